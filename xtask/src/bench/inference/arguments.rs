//! How much to measure, as given on the command line.

use std::path::PathBuf;

use crate::bench::arguments::count;

#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "bench"), allow(dead_code, reason = "only measuring looks at most of it"))]
pub(in crate::bench) struct Arguments {
    /// Another model than the one that the targets are for.
    pub(in crate::bench) model: Option<PathBuf>,
    pub(in crate::bench) rounds: u32,
    /// Of each answer.
    pub(in crate::bench) tokens: u32,
    pub(in crate::bench) debug: bool,
}

impl Arguments {
    pub(in crate::bench) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut parsed = Self { model: None, rounds: 5, tokens: 128, debug: false };
        let mut rest = arguments.iter();
        while let Some(&flag) = rest.next() {
            if flag == "--debug" {
                parsed.debug = true;
                continue;
            }
            if !matches!(flag, "--model" | "--rounds" | "--tokens") {
                return Err(format!("cannot understand {flag:?}"));
            }
            let value = *rest.next().ok_or_else(|| format!("{flag} needs a value after it"))?;
            match flag {
                "--model" => parsed.model = Some(value.into()),
                "--rounds" => parsed.rounds = count(flag, value)?,
                _ => parsed.tokens = count(flag, value)?,
            }
        }
        if parsed.tokens < 2 {
            return Err("--tokens must be at least 2".to_owned());
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_taken_by_name() {
        let parsed = Arguments::parse(&["--model", "m.gguf", "--rounds", "2", "--debug"]).unwrap();
        let want = Arguments { model: Some("m.gguf".into()), rounds: 2, tokens: 128, debug: true };
        assert_eq!(parsed, want);
        for (given, want) in [
            (&["--rounds", "0"][..], "--rounds must be at least 1"),
            (&["--tokens", "1"], "--tokens must be at least 2"),
            (&["--model"], "--model needs a value"),
            (&["--fast"], "cannot understand"),
        ] {
            let error = Arguments::parse(given).unwrap_err();
            assert!(error.starts_with(want), "{given:?}: {error}");
        }
    }
}
