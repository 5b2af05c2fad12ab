//! How much to measure, as given on the command line.

use crate::bench::arguments::count;

#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "bench"), allow(dead_code, reason = "only measuring looks at most of it"))]
pub(in crate::bench) struct Arguments {
    /// Of each kind and round.
    pub(in crate::bench) objects: u32,
    /// How often each object is changed after it was made.
    pub(in crate::bench) changes: u32,
    pub(in crate::bench) watchers: u32,
    /// Writes per round that the watchers wait for.
    pub(in crate::bench) samples: u32,
    pub(in crate::bench) rounds: u32,
    pub(in crate::bench) debug: bool,
}

impl Arguments {
    pub(in crate::bench) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut parsed =
            Self { objects: 500, changes: 3, watchers: 100, samples: 200, rounds: 3, debug: false };
        let mut rest = arguments.iter();
        while let Some(&flag) = rest.next() {
            if flag == "--debug" {
                parsed.debug = true;
                continue;
            }
            let number = match flag {
                "--objects" => &mut parsed.objects,
                "--changes" => &mut parsed.changes,
                "--watchers" => &mut parsed.watchers,
                "--samples" => &mut parsed.samples,
                "--rounds" => &mut parsed.rounds,
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
        let parsed = Arguments::parse(&["--rounds", "1", "--debug", "--watchers", "7"]).unwrap();
        assert_eq!((parsed.rounds, parsed.watchers, parsed.debug), (1, 7, true));
        assert_eq!(parsed.samples, Arguments::parse(&[]).unwrap().samples);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (given, want) in [
            (&["--objects"][..], "--objects needs a value"),
            (&["--objects", "0"], "--objects must be at least 1"),
            (&["--fast"], "cannot understand \"--fast\""),
        ] {
            let error = Arguments::parse(given).unwrap_err();
            assert!(error.starts_with(want), "{given:?}: {error}");
        }
    }
}
