//! Flags that several commands have.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{ArgAction, Args, ValueEnum};
use windlass_kit::{layer, manifest, pack, remote};

#[derive(Debug, Args)]
#[group(id = "kit-global")]
pub(super) struct Global {
    /// Directory of the local storage and of passwords; $KITOPS_HOME if not given, or else `kitops` in
    /// $XDG_DATA_HOME or ~/.local/share
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) config: Option<PathBuf>,
    /// Least level of what is told
    #[arg(long, global = true, value_name = "LEVEL", default_value = "info")]
    pub(super) log_level: Level,
    /// Bars on a terminal and lines elsewhere; in colour; or nothing
    #[arg(long, global = true, value_name = "STYLE", default_value = "plain")]
    pub(super) progress: Style,
    /// Tell more; twice for everything
    #[arg(short, global = true, action = ArgAction::Count)]
    pub(super) verbose: u8,
    /// One JSON object on standard output, everything else on standard error
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Style {
    None,
    Plain,
    Fancy,
}

impl Global {
    pub(super) fn level(&self) -> Level {
        match self.verbose {
            0 => self.log_level,
            1 => Level::Debug,
            _ => Level::Trace,
        }
    }

    /// What is told in such detail would run between the bars.
    pub(super) fn style(&self) -> Style {
        if self.verbose > 2 { Style::None } else { self.progress }
    }
}

#[derive(Debug, Args)]
#[group(id = "kit-network")]
pub(super) struct Network {
    /// Speak plain HTTP to the registry
    #[arg(long)]
    pub(super) plain_http: bool,
    /// Check the certificate of the registry
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, hide_possible_values = true,
        default_missing_value = "true", default_value = "true", action = ArgAction::Set
    )]
    pub(super) tls_verify: bool,
    /// Certificate to show to the registry
    #[arg(long, value_name = "FILE", env = "KITOPS_CLIENT_CERT", requires = "key")]
    pub(super) cert: Option<PathBuf>,
    /// Key of the certificate
    #[arg(long, value_name = "FILE", env = "KITOPS_CLIENT_KEY", requires = "cert")]
    pub(super) key: Option<PathBuf>,
    /// Certificates of authorities to trust besides those of the system
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// How many layers at once
    #[arg(long, value_name = "COUNT", default_value = "5")]
    pub(super) concurrency: NonZeroUsize,
    /// Proxy for all requests; those of the environment if not given
    #[arg(long, value_name = "ADDRESS")]
    pub(super) proxy: Option<String>,
    /// Size of the parts in which large layers are pushed
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = bytes)]
    pub(super) chunk_size: u64,
    /// How often a request that has failed is repeated
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub(super) retries: u32,
}

impl Network {
    pub(super) fn settings(&self, credentials: Vec<PathBuf>) -> remote::Settings {
        remote::Settings {
            plain_http: self.plain_http,
            verify_tls: self.tls_verify,
            ca_file: self.ca_file.clone(),
            identity: self.cert.clone().zip(self.key.clone()),
            proxy: self.proxy.clone(),
            attempts: self.retries.saturating_add(1),
            chunk: self.chunk_size,
            ranges: remote::Ranges::default(),
            credentials,
        }
    }

    /// For where an import comes from. That a registry has no TLS, or no certificate that anybody knows,
    /// says nothing of others, and who we are to it does not concern them.
    pub(super) fn of_source(&self) -> remote::Settings {
        remote::Settings {
            plain_http: false,
            verify_tls: true,
            identity: None,
            ..self.settings(Vec::new())
        }
    }
}

/// What an artifact becomes.
#[derive(Debug, Args)]
#[group(id = "kit-form")]
pub(super) struct Form {
    /// How layers are compressed; `auto` does it by zstd where that makes them smaller
    #[arg(long, value_name = "KIND", default_value = "none")]
    pub(super) compression: Compression,
    /// Make a ModelPack, which other tools know too, instead of a ModelKit
    #[arg(long)]
    use_model_pack: bool,
    /// Archives, or single files as they are
    #[arg(long, value_name = "FORMAT", default_value = "tar")]
    layer_format: LayerFormat,
}

impl Form {
    pub(super) fn form(&self) -> pack::Form {
        if self.use_model_pack { pack::Form::ModelPack } else { pack::Form::ModelKit }
    }

    pub(super) fn layers(&self) -> layer::Format {
        match self.layer_format {
            LayerFormat::Tar => layer::Format::Tar,
            LayerFormat::Raw => layer::Format::Raw,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Compression {
    None,
    Gzip,
    GzipFastest,
    Zstd,
    Auto,
}

impl Compression {
    /// What a layer is compressed by; `shrinks` is asked where it depends on it.
    pub(super) fn of(
        self,
        shrinks: impl FnOnce() -> std::io::Result<bool>,
    ) -> std::io::Result<manifest::Compression> {
        Ok(match self {
            Self::None => manifest::Compression::None,
            Self::Gzip => manifest::Compression::Gzip,
            Self::GzipFastest => manifest::Compression::GzipFastest,
            Self::Zstd => manifest::Compression::Zstd,
            Self::Auto => match shrinks()? {
                true => manifest::Compression::Zstd,
                false => manifest::Compression::None,
            },
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LayerFormat {
    Tar,
    Raw,
}

/// `64MiB`, `1G`, `500000`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.trim().trim_end_matches("iB").trim_end_matches('B') {
        "" => Some(0),
        "K" | "k" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let number = number.parse::<u64>().ok().filter(|number| *number > 0);
    number
        .zip(shift)
        .and_then(|(number, shift)| number.checked_mul(1 << shift))
        .ok_or_else(|| "must be a number of bytes, such as 64MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, want) in [
            ("1", Some(1)),
            ("64MiB", Some(64 << 20)),
            ("2G", Some(2 << 30)),
            ("3 KB", Some(3 << 10)),
            ("0", None),
            ("", None),
            ("MiB", None),
            ("-1", None),
            ("1X", None),
            ("99999999999T", None),
        ] {
            assert_eq!(bytes(text).ok(), want, "{text:?}");
        }
    }
}
