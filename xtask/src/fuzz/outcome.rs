//! What libFuzzer says about a run.

use std::fmt;

#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    executions: u64,
    /// How many edges of the code were passed.
    coverage: u64,
    pub(super) crash: Option<Crash>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Crash {
    /// The input, where it was written.
    file: String,
    why: String,
}

impl Outcome {
    pub(super) fn read(succeeded: bool, text: &str) -> Self {
        let after = |word: &str| {
            let found = text.lines().rev().find_map(|line| line.split_once(word));
            found.map(|(_, rest)| rest.trim())
        };
        let number = |word: &str| -> Option<u64> {
            after(word).and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        };
        let crash = || Crash {
            file: after("Test unit written to ").unwrap_or("nothing was written").to_owned(),
            why: why(text),
        };
        Self {
            executions: number("stat::number_of_executed_units:").unwrap_or_default(),
            coverage: number(" cov: ").unwrap_or_default(),
            crash: (!succeeded).then(crash),
        }
    }
}

/// A panic with what it says, else what libFuzzer calls an error, else the last line.
fn why(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let panicked = lines.iter().position(|line| line.contains(" panicked at "));
    if let Some(at) = panicked {
        return lines[at..].iter().take(4).map(|line| format!("  {line}\n")).collect();
    }
    let told = lines.iter().find(|line| line.contains("ERROR: libFuzzer"));
    told.or(lines.last()).map(|line| format!("  {line}\n")).unwrap_or_default()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executions, coverage, crash } = self;
        write!(f, "{executions} executions, coverage {coverage}, ")?;
        match crash {
            None => f.write_str("no crash"),
            Some(Crash { file, why }) => write!(f, "CRASHED: {file}\n{why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_run_are_read() {
        let text = "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #99\tDONE   cov: 345 ft: 400 corp: 9/99b lim: 4 exec/s: 9 rss: 40Mb\n\
            Done 99 runs in 2 second(s)\nstat::number_of_executed_units: 99\n";
        let outcome = Outcome::read(true, text);
        assert_eq!(outcome, Outcome { executions: 99, coverage: 345, crash: None });
        assert_eq!(outcome.to_string(), "99 executions, coverage 345, no crash");
    }

    #[test]
    fn a_crash_is_told_with_its_cause_and_its_file() {
        let text = "#7\tNEW    cov: 5 ft: 6\n\
            thread '<unnamed>' (1) panicked at fuzz_targets/tar.rs:9:5:\nnot below\nnote: x\n\
            ==1== ERROR: libFuzzer: deadly signal\nstat::number_of_executed_units: 8\n\
            artifact_prefix='/c/'; Test unit written to /c/crash-1\n";
        let outcome = Outcome::read(false, text);
        let crash = outcome.crash.as_ref().unwrap();
        assert_eq!((outcome.executions, &*crash.file), (8, "/c/crash-1"));
        assert!(crash.why.contains("not below"), "{}", crash.why);
        let slow = Outcome::read(false, "x\n==1== ERROR: libFuzzer: timeout after 30 seconds\ny\n");
        assert!(slow.to_string().contains("timeout after 30"), "{slow}");
    }
}
