//! How much to measure, as given on the command line.

use crate::bench::arguments::count;

#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "bench"), allow(dead_code, reason = "only measuring looks at most of it"))]
pub(in crate::bench) struct Arguments {
    /// Of all files together, in millions of bytes.
    pub(in crate::bench) megabytes: u32,
    pub(in crate::bench) files: u32,
    pub(in crate::bench) rounds: u32,
    /// Files of 4 KiB that are one layer.
    pub(in crate::bench) small_files: u32,
    /// Of text, in millions of bytes.
    pub(in crate::bench) text_megabytes: u32,
    pub(in crate::bench) debug: bool,
}

impl Arguments {
    pub(in crate::bench) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut parsed = Self {
            megabytes: 2000,
            files: 4,
            rounds: 3,
            small_files: 50_000,
            text_megabytes: 1000,
            debug: false,
        };
        let mut rest = arguments.iter();
        while let Some(&flag) = rest.next() {
            if flag == "--debug" {
                parsed.debug = true;
                continue;
            }
            let number = match flag {
                "--megabytes" => &mut parsed.megabytes,
                "--files" => &mut parsed.files,
                "--rounds" => &mut parsed.rounds,
                "--small-files" => &mut parsed.small_files,
                "--text-megabytes" => &mut parsed.text_megabytes,
                _ => return Err(format!("cannot understand {flag:?}")),
            };
            let value = rest.next().ok_or_else(|| format!("{flag} needs a value after it"))?;
            *number = count(flag, value)?;
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_taken_by_name() {
        let parsed = Arguments::parse(&["--files", "2", "--debug", "--megabytes", "8"]).unwrap();
        assert_eq!((parsed.files, parsed.megabytes, parsed.debug), (2, 8, true));
        assert_eq!(parsed.rounds, Arguments::parse(&[]).unwrap().rounds);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (given, want) in [
            (&["--files"][..], "--files needs a value"),
            (&["--megabytes", "0"], "--megabytes must be at least 1"),
            (&["--fast"], "cannot understand \"--fast\""),
        ] {
            let error = Arguments::parse(given).unwrap_err();
            assert!(error.starts_with(want), "{given:?}: {error}");
        }
    }
}
