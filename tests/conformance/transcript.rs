//! The real kubectl: it says the same on both servers, output and exit code of every line; and what
//! only pods that run can show it says on `windlass up`.

mod up;

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
    sync::LazyLock,
};

use regex::Regex;
use serde::Deserialize;

use crate::{
    case,
    expect::fits,
    server::{Server, assets},
};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// As one would type it. `kubectl` is the real one, the folder is empty at first.
    sh: String,
    #[serde(default)]
    code: i32,
    /// Must be in the output, in this order, one pattern per line.
    #[serde(default)]
    shows: Vec<String>,
    /// The whole output, without its ages and the like; lines are patterns.
    #[serde(default)]
    says: Option<String>,
    /// Its lines may come in any order.
    #[serde(default)]
    any_order: bool,
    /// Typed again until the output is as wanted: events are written beside the work.
    #[serde(default)]
    eventually: bool,
    /// Files to be there first.
    #[serde(default)]
    files: std::collections::BTreeMap<String, String>,
    /// The servers word it differently, or it depends on what else there is.
    #[serde(default)]
    compare: case::Compare,
}

#[derive(Debug, PartialEq, Eq)]
struct Output {
    code: i32,
    text: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_says_the_same_on_both_servers() {
    let Some(kubectl) = assets().map(|assets| assets.kubectl) else { return };
    let servers = Server::all().await;
    let lines: Vec<Line> = case::parse(&case::folder().join("transcript.yaml"));
    let mut failures = Vec::new();
    let desk = |server: &Server| Desk::new(server.name(), server.kubeconfig(), &kubectl);
    let desks: Vec<_> = servers.iter().map(desk).collect();
    for line in &lines {
        let outputs: Vec<Output> = desks.iter().map(|desk| desk.run(line)).collect();
        for (desk, output) in desks.iter().zip(&outputs) {
            let problem = problem_with(line, output);
            failures.extend(problem.map(|problem| format!("{}: {problem}", desk.server)));
        }
        if let [one, other] = &outputs[..]
            && one != other
            && line.compare == case::Compare::Whole
        {
            failures.push(format!("$ {}\n{}", line.sh, difference(one, other)));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

fn problem_with(line: &Line, output: &Output) -> Option<String> {
    let Output { code, text } = output;
    if *code != line.code {
        return Some(format!("$ {}\nexit code {code}, wanted {}\n{text}", line.sh, line.code));
    }
    if let Some(says) = &line.says
        && !is_whole(says, text, line.any_order)
    {
        return Some(format!("$ {}\nwanted:\n{says}\ngot:\n{text}", line.sh));
    }
    let mut lines = text.lines();
    let missing = line.shows.iter().find(|wanted| !lines.any(|line| fits(wanted, line)));
    missing.map(|wanted| format!("$ {}\nno line is {wanted:?}\n{text}", line.sh))
}

fn is_whole(says: &str, text: &str, any_order: bool) -> bool {
    let mut wanted: Vec<_> = says.lines().collect();
    let mut seen: Vec<_> = text.lines().collect();
    if any_order {
        wanted.sort_unstable();
        seen.sort_unstable();
    }
    wanted.len() == seen.len() && wanted.iter().zip(seen).all(|(wanted, line)| fits(wanted, line))
}

fn difference(one: &Output, other: &Output) -> String {
    let mut text = String::new();
    if one.code != other.code {
        text += &format!("exit codes {} and {}\n", one.code, other.code);
    }
    for line in one.text.lines().filter(|line| !other.text.lines().any(|other| other == *line)) {
        text += &format!("real only:     {line}\n");
    }
    for line in other.text.lines().filter(|line| !one.text.lines().any(|one| one == *line)) {
        text += &format!("embedded only: {line}\n");
    }
    if text.is_empty() { "the same lines in another order".to_owned() } else { text }
}

/// A folder to work in, with a kubectl that talks to one server.
struct Desk {
    server: &'static str,
    folder: tempfile::TempDir,
}

impl Desk {
    fn new(server: &'static str, kubeconfig: &Path, kubectl: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["bin", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        symlink(kubectl, folder.path().join("bin/kubectl")).unwrap();
        // A copy, because kubectl writes into it.
        fs::copy(kubeconfig, folder.path().join("kubeconfig")).unwrap();
        Self { server, folder }
    }

    fn run(&self, line: &Line) -> Output {
        let work = self.folder.path().join("work");
        for (name, text) in &line.files {
            fs::write(work.join(name), text).unwrap();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder.path().join("bin").display());
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1; {}", line.sh)])
            .current_dir(&work)
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        Output { code: output.status.code().unwrap_or(-1), text: normal(&text, self.folder.path()) }
    }
}

/// The output without what two servers, or two runs, may differ in.
fn normal(text: &str, folder: &Path) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rule = |pattern: &str, with| (Regex::new(pattern).unwrap(), with);
        vec![
            rule(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
            rule(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|[+-]\d\d:?\d\d))?", "<time>"),
            rule(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
            rule(r#"resourceVersion: "\d+""#, "resourceVersion: <version>"),
            rule(r"Resource Version: +\d+", "Resource Version: <version>"),
            rule(r"127\.0\.0\.1:\d+", "<server>"),
            rule(r"\b(10|127\.(64|96))(\.\d+)+\b", "<address>"),
            rule(r"\b(\d+d)?(\d+h)?(\d+m)?\d+m?s\b", "<age>"),
            // Full minutes, on a slow machine. More digits are an amount of processors.
            rule(r"\b[1-9]m\b", "<age>"),
            rule(r"/tmp/[A-Za-z0-9_./-]+", "<file>"),
            // Columns are as wide as what stands in them.
            rule(r" {2,}", "  "),
            rule(r"(?m) +$", ""),
        ]
    });
    let text = text.replace(&folder.display().to_string(), "<folder>");
    RULES.iter().fold(text, |text, (rule, with)| rule.replace_all(&text, *with).into_owned())
}

#[test]
fn ages_may_differ_and_amounts_may_not() {
    for age in ["0s", "59s", "3m", "3m1s", "2m59s", "1h2m3s", "250ms"] {
        assert_eq!(normal(&format!("a  {age} b"), Path::new("/none")), "a  <age> b");
    }
    for amount in ["100m", "10Mi", "3", "3M"] {
        assert_eq!(normal(amount, Path::new("/none")), amount);
    }
}

#[test]
fn a_line_that_goes_wrong_is_told() {
    let output = |code, text: &str| Output { code, text: text.to_owned() };
    let line = |yaml: &str| serde_saphyr::from_str::<Line>(yaml).unwrap();
    for (yaml, seen, is_right) in [
        ("{sh: x}", output(0, "a"), true),
        ("{sh: x}", output(1, "a"), false),
        ("{sh: x, code: 1}", output(0, "a"), false),
        ("{sh: x, shows: [b]}", output(0, "a\nb\nc"), true),
        ("{sh: x, shows: [c, b]}", output(0, "a\nb\nc"), false),
        ("{sh: x, says: b…}", output(0, "bc\n"), true),
        ("{sh: x, says: b}", output(0, "b\nc"), false),
        ("{sh: x, says: ''}", output(0, "b"), false),
        ("{sh: x, says: \"a\\nb\"}", output(0, "b\na"), false),
        ("{sh: x, says: \"a\\nb\", any_order: true}", output(0, "b\na"), true),
        ("{sh: x, says: \"a\\nb\", any_order: true}", output(0, "b\nb"), false),
    ] {
        let problem = problem_with(&line(yaml), &seen);
        assert_eq!(problem.is_none(), is_right, "{yaml} {seen:?}");
    }
}
