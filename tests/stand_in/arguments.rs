//! The words that the real programs would get.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

/// `--name value`, `--name=value` and words without a name. Flags without a value take none of
/// these.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    named: BTreeMap<String, String>,
    pub(crate) others: Vec<String>,
}

/// Flags of the real programs that are complete in themselves.
const ALONE: [&str; 2] = ["allow-no-auth", "ha-enable-leader-election"];

impl Arguments {
    pub(crate) fn parse(words: &[String]) -> Self {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                arguments.others.push(word.clone());
                continue;
            };
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if ALONE.contains(&name) => (name, String::new()),
                None => (name, words.next().cloned().unwrap_or_default()),
            };
            arguments.named.insert(name.to_owned(), value);
        }
        arguments
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.named.get(name).map(String::as_str)
    }

    pub(crate) fn host(&self) -> IpAddr {
        let given = self.get("host").and_then(|host| host.parse().ok());
        given.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }

    pub(crate) fn port(&self, name: &str, usual: u16) -> Result<u16, String> {
        let given = self
            .get(name)
            .map(|text| text.parse().map_err(|_| format!("--{name} must be a port, got {text:?}")));
        given.unwrap_or(Ok(usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_programs_are_understood() {
        let words = ["serve", "--port", "8200", "--allow-no-auth", "llama", "--tracing=false"];
        let arguments = Arguments::parse(&words.map(str::to_owned));
        assert_eq!(arguments.others, ["serve", "llama"]);
        assert_eq!(arguments.port("port", 1), Ok(8200));
        assert_eq!(arguments.port("other", 1), Ok(1));
        assert_eq!(arguments.get("tracing"), Some("false"));
        assert!(Arguments::parse(&["--port=x".to_owned()]).port("port", 1).is_err());
    }
}
