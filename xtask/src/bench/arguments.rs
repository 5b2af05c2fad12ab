//! What to measure, as given on the command line.

use std::{path::PathBuf, str::FromStr, time::Duration};

use crate::workspace::project_root;

const MANIFEST: &str = "xtask/src/bench/model-service.yaml";
/// What our kinds make children of.
const CRDS: [&str; 4] = ["gateway-api", "inference-extension", "istio", "prometheus-operator"];
const REST: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq)]
#[cfg_attr(not(feature = "bench"), allow(dead_code, reason = "only measuring looks at most of it"))]
pub(super) struct Arguments {
    pub(super) services: u32,
    pub(super) manifest: PathBuf,
    /// A command line for the shell; `None` for our own operator.
    pub(super) operator: Option<String>,
    /// So many objects of each of several kinds that are none of ours.
    pub(super) foreign: Option<u32>,
    /// Names of third-party CRDs.
    pub(super) crds: Vec<String>,
    pub(super) rest: Duration,
    pub(super) debug: bool,
}

/// What `bench up` is to do.
#[derive(Debug, PartialEq)]
#[cfg_attr(not(feature = "bench"), allow(dead_code, reason = "only measuring looks at most of it"))]
pub(super) struct Starts {
    /// With an empty directory, and as many with a store.
    pub(super) starts: u32,
    /// In that store, beside what is installed.
    pub(super) objects: u32,
    pub(super) rest: Duration,
    pub(super) debug: bool,
}

impl Starts {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let rest = Duration::from_secs(5);
        let mut parsed = Self { starts: 9, objects: 1000, rest, debug: false };
        let mut rest = arguments.iter();
        while let Some(&flag) = rest.next() {
            let mut value =
                || rest.next().copied().ok_or_else(|| format!("{flag} needs a value after it"));
            match flag {
                "--starts" => parsed.starts = count(flag, value()?)?,
                "--objects" => parsed.objects = number(flag, value()?)?,
                "--rest" => parsed.rest = Duration::from_secs(number(flag, value()?)?),
                "--debug" => parsed.debug = true,
                _ => return Err(format!("cannot understand {flag:?}")),
            }
        }
        Ok(parsed)
    }
}

impl Arguments {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut services = None;
        let mut parsed = Self {
            services: 0,
            manifest: project_root().join(MANIFEST),
            operator: None,
            foreign: None,
            crds: CRDS.map(str::to_owned).to_vec(),
            rest: REST,
            debug: false,
        };
        let mut rest = arguments.iter();
        while let Some(&flag) = rest.next() {
            let mut value =
                || rest.next().copied().ok_or_else(|| format!("{flag} needs a value after it"));
            match flag {
                "--services" => services = Some(count(flag, value()?)?),
                "--manifest" => parsed.manifest = value()?.into(),
                "--operator" => parsed.operator = Some(value()?.to_owned()),
                "--foreign" => parsed.foreign = Some(count(flag, value()?)?),
                "--crds" => parsed.crds = value()?.split(',').map(str::to_owned).collect(),
                "--rest" => parsed.rest = Duration::from_secs(number(flag, value()?)?),
                "--debug" => parsed.debug = true,
                _ => return Err(format!("cannot understand {flag:?}")),
            }
        }
        parsed.services = services.ok_or("--services is required")?;
        Ok(parsed)
    }
}

pub(super) fn count(flag: &str, text: &str) -> Result<u32, String> {
    match number(flag, text)? {
        0 => Err(format!("{flag} must be at least 1")),
        count => Ok(count),
    }
}

fn number<T: FromStr>(flag: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{flag} must be a whole number, got {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_not_given_have_defaults() {
        let parsed = Arguments::parse(&["--services", "200"]).unwrap();
        assert_eq!(parsed.services, 200);
        assert_eq!(parsed.manifest, project_root().join(MANIFEST));
        assert_eq!((parsed.operator, parsed.foreign), (None, None));
        assert_eq!((parsed.crds.len(), parsed.rest.as_secs()), (4, 30));
        assert!(!parsed.debug);
    }

    #[test]
    fn a_command_line_is_taken_as_a_whole() {
        let given = ["--operator", "manager --a b", "--services", "2", "--crds", "a,b", "--debug"];
        let parsed = Arguments::parse(&given).unwrap();
        assert_eq!(parsed.operator.as_deref(), Some("manager --a b"));
        assert_eq!(parsed.crds, ["a", "b"]);
        assert!(parsed.debug);
    }

    #[test]
    fn starts_are_counted() {
        let parsed = Starts::parse(&["--starts", "3", "--objects", "0"]).unwrap();
        assert_eq!((parsed.starts, parsed.objects, parsed.rest.as_secs()), (3, 0, 5));
        assert!(Starts::parse(&["--starts", "0"]).is_err());
        assert!(Starts::parse(&["--services", "1"]).is_err());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (given, want) in [
            (&[][..], "--services is required"),
            (&["--services"], "--services needs a value"),
            (&["--services", "0"], "--services must be at least 1"),
            (&["--services", "many"], "--services must be a whole number"),
            (&["--services", "1", "--foreign", "-1"], "--foreign must be a whole number"),
            (&["--fast"], "cannot understand \"--fast\""),
        ] {
            let error = Arguments::parse(given).unwrap_err();
            assert!(error.starts_with(want), "{given:?}: {error}");
        }
    }
}
