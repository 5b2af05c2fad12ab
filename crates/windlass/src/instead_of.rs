//! What images of others stand for on a laptop, where their programs are not: `windlass instead-of
//! picker`. Not for people: the rules of the node name it.

mod engine;
mod picker;

use std::net::{IpAddr, Ipv4Addr};

use clap::{Args, ValueEnum};

use crate::exit::BadInput;

#[derive(Debug, Args)]
#[group(id = "instead-of")]
pub(crate) struct Flags {
    program: Program,
    /// As the program gets them, after `--host`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Program {
    /// An endpoint picker: its pod is there, and the gateway picks in its place
    Picker,
    /// A server that takes the words of zerfoo
    Zerfoo,
    /// An image of AIM's catalogue
    Aim,
}

pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    let words = Words(flags.words);
    match flags.program {
        Program::Picker => picker::run(&words),
        Program::Zerfoo => engine::zerfoo(&words),
        Program::Aim => engine::aim(&words),
    }
}

/// `--name value`, `--name=value` and others.
struct Words(Vec<String>);

impl Words {
    fn get(&self, name: &str) -> Option<&str> {
        let mut words = self.0.iter();
        while let Some(word) = words.next() {
            let Some(rest) = word.strip_prefix("--").and_then(|word| word.strip_prefix(name))
            else {
                continue;
            };
            match rest.strip_prefix('=') {
                Some(value) => return Some(value),
                None if rest.is_empty() => return words.next().map(String::as_str),
                None => {}
            }
        }
        None
    }

    /// After the host.
    fn first(&self) -> Option<&str> {
        let at = if self.0.first().is_some_and(|word| word == "--host") { 2 } else { 0 };
        self.0.get(at).map(String::as_str)
    }

    fn last(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    fn host(&self) -> IpAddr {
        let given = self.get("host").and_then(|host| host.parse().ok());
        given.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }

    fn port(&self, name: &str, usual: u16) -> Result<u16, BadInput> {
        let Some(text) = self.get(name) else { return Ok(usual) };
        text.parse().map_err(|_| BadInput(format!("--{name} must be a port, got {text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_their_names() {
        let words = ["--host", "127.64.0.3", "--grpc-port=9002", "--zap-encoder", "json", "--x"];
        let words = Words(words.map(str::to_owned).to_vec());
        assert_eq!(words.host(), IpAddr::from([127, 64, 0, 3]));
        assert_eq!(words.port("grpc-port", 1).unwrap(), 9002);
        assert_eq!(words.port("grpc", 1).unwrap(), 1);
        assert_eq!(words.get("x"), None);
        assert_eq!((words.first(), words.last()), (Some("--grpc-port=9002"), Some("--x")));
        assert!(words.port("zap-encoder", 1).is_err());
    }
}
