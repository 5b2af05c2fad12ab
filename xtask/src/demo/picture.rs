//! What `windlass demo` says, as a picture of a terminal.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::program::{self, Profile};

const COLUMNS: usize = 100;
/// Of a character and of a line, in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 19.0;
const MARGIN: f32 = 18.0;
const COMMAND: &str = "$ cargo xtask demo --once";

pub(super) fn draw(file: &Path) -> Result<()> {
    let windlass = program::build(Profile::Debug)?;
    let mut demo = Command::new(windlass)
        .args(["demo", "--once"])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run `windlass demo`")?;
    let mut said = vec![COMMAND.to_owned()];
    for line in demo.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line.context("cannot hear what `windlass demo` says")?;
        println!("{line}");
        // What a step waits for is gone again when it is done, as it is on a terminal.
        if !line.starts_with("· ") {
            said.extend(wrapped(&line));
        }
    }
    let status = demo.wait().context("cannot wait for `windlass demo`")?;
    if !status.success() {
        bail!("`windlass demo` has failed ({status}); nothing is drawn");
    }
    fs::write(file, picture(&said)).with_context(|| format!("cannot write {}", file.display()))
}

/// At blanks where that is possible.
fn wrapped(line: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > COLUMNS {
        let blank = rest[..COLUMNS].iter().rposition(|c| *c == ' ').filter(|at| *at > COLUMNS / 2);
        let next = rest.split_off(blank.map_or(COLUMNS, |at| at + 1));
        lines.push(rest.iter().collect::<String>().trim_end().to_owned());
        rest = next;
    }
    lines.push(rest.into_iter().collect());
    lines
}

fn picture(lines: &[String]) -> String {
    let width = COLUMNS as f32 * WIDTH + 2.0 * MARGIN;
    let height = lines.len() as f32 * HEIGHT + 2.0 * MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"windlass demo\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1f24\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" \
         font-size=\"14\" fill=\"#d7dde4\" xml:space=\"preserve\">\n"
    );
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let baseline = MARGIN + (index as f32 + 0.75) * HEIGHT;
        let colour = match line.chars().next() {
            Some('✓') => " fill=\"#7ee787\"",
            Some('>' | '$') => " fill=\"#ffffff\" font-weight=\"bold\"",
            Some('(') => " fill=\"#8b949e\"",
            _ => "",
        };
        let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text += &format!("<text x=\"{MARGIN}\" y=\"{baseline:.1}\"{colour}>{line}</text>\n");
    }
    text + "</g>\n</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_blanks_and_markup_is_text() {
        let long = format!("{} {}", "a".repeat(60), "b".repeat(60));
        assert_eq!(wrapped(&long), ["a".repeat(60), "b".repeat(60)]);
        assert_eq!(wrapped(&"x".repeat(150)).len(), 2);
        assert_eq!(wrapped(""), [""]);
        let svg = picture(&["> 1 < 2 & 3".to_owned()]);
        assert!(svg.contains(">&gt; 1 &lt; 2 &amp; 3</text>"), "{svg}");
    }
}
