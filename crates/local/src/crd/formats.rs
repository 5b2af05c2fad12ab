//! The formats of values that are checked; others are words without effect.

use std::{net::IpAddr, str::FromStr};

use base64::Engine;
use regex::Regex;
use std::sync::LazyLock;

use super::schema::Kind;

/// A format as the schema spells it, for it appears in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) name: String,
    pub(super) meaning: Meaning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Int32,
    Int64,
    Float,
    Double,
    Byte,
    Date,
    DateTime,
    Duration,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uri,
    Email,
    Hostname,
    Uuid,
    ShortName,
    LongName,
    Password,
}

impl Format {
    pub(super) fn of(name: &str, kind: Option<Kind>) -> Option<Self> {
        let meaning = match (kind, name) {
            (Some(Kind::Integer), "int32") => Meaning::Int32,
            (Some(Kind::Integer), "int64") => Meaning::Int64,
            (Some(Kind::Number), "float") => Meaning::Float,
            (Some(Kind::Number), "double") => Meaning::Double,
            (Some(Kind::String) | None, _) => match name.replace('-', "").as_str() {
                "byte" => Meaning::Byte,
                "date" => Meaning::Date,
                "datetime" => Meaning::DateTime,
                "duration" => Meaning::Duration,
                "ipv4" => Meaning::Ipv4,
                "ipv6" => Meaning::Ipv6,
                "cidr" => Meaning::Cidr,
                "mac" => Meaning::Mac,
                "uri" => Meaning::Uri,
                "email" => Meaning::Email,
                "hostname" => Meaning::Hostname,
                "uuid" | "uuid3" | "uuid4" | "uuid5" => Meaning::Uuid,
                "k8sshortname" => Meaning::ShortName,
                "k8slongname" => Meaning::LongName,
                "password" => Meaning::Password,
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { name: name.to_owned(), meaning })
    }

    /// Whether a text has this format.
    pub(super) fn fits(&self, text: &str) -> bool {
        match self.meaning {
            // Nothing is no base64 to kube-apiserver.
            Meaning::Byte => {
                !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok()
            }
            Meaning::Date => jiff::civil::Date::strptime("%Y-%m-%d", text).is_ok(),
            Meaning::DateTime => is_time(text),
            Meaning::Duration => is_duration(text),
            Meaning::Ipv4 => matches!(IpAddr::from_str(text), Ok(IpAddr::V4(_))),
            Meaning::Ipv6 => matches!(IpAddr::from_str(text), Ok(IpAddr::V6(_))),
            Meaning::Cidr => is_cidr(text),
            Meaning::Mac => matches(&MAC, text),
            Meaning::Uri => text.starts_with('/') || matches(&URI, text),
            Meaning::Email => matches(&EMAIL, text),
            Meaning::Hostname => text.len() <= 255 && matches(&HOSTNAME, text),
            Meaning::Uuid => matches(&UUID, text),
            Meaning::ShortName => text.len() <= 63 && matches(&LABEL, text),
            Meaning::LongName => text.len() <= 253 && matches(&SUBDOMAIN, text),
            _ => true,
        }
    }
}

type Pattern = LazyLock<Option<Regex>>;

static MAC: Pattern =
    LazyLock::new(|| Regex::new("^([0-9A-Fa-f]{2}[:-]){5,7}[0-9A-Fa-f]{2}$").ok());
static URI: Pattern = LazyLock::new(|| Regex::new(r"^[A-Za-z][A-Za-z0-9+.-]*:\S+$").ok());
static EMAIL: Pattern = LazyLock::new(|| Regex::new(r"^(.*<)?[^\s@<>]+@[^\s@<>]+>?$").ok());
static HOSTNAME: Pattern = LazyLock::new(|| {
    Regex::new(
        "^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\\.?$",
    )
    .ok()
});
static UUID: Pattern = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
static LABEL: Pattern = LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").ok());
static SUBDOMAIN: Pattern = LazyLock::new(|| {
    Regex::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").ok()
});

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

fn is_time(text: &str) -> bool {
    static TIME: Pattern = LazyLock::new(|| {
        Regex::new(r"(?i)^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$").ok()
    });
    matches(&TIME, text) && jiff::Timestamp::from_str(text).is_ok()
}

/// `1h30m` as Go has it, or `2 days` as Scala does.
fn is_duration(text: &str) -> bool {
    static GO: Pattern =
        LazyLock::new(|| Regex::new(r"^[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$").ok());
    static WORDS: Pattern = LazyLock::new(|| {
        Regex::new(
            r"(?i)^\d+\s*(ns|nanos?|us|micros?|µs|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)$",
        )
        .ok()
    });
    matches(&GO, text) || matches(&WORDS, text)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match IpAddr::from_str(address) {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}
