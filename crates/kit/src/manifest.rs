//! What an artifact is made of, in the two forms that tools know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, kitfile::Kind, layer::Format};

pub mod model_kit;
pub mod model_pack;
pub mod read;

pub const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const FILE_PATH: &str = "org.cncf.model.filepath";
pub const FILE_METADATA: &str = "org.cncf.model.file.metadata+json";
pub const CLI_VERSION: &str = "ml.kitops.modelkit.cli-version";
pub const SUBTYPE: &str = "ml.kitops.modelkit.layer-subtype";
pub const CREATED: &str = "org.opencontainers.image.created";
/// What registries and clients take.
pub const LIMIT: usize = 4 << 20;

/// Sorted by their names, as bytes depend on it.
pub type Annotations = BTreeMap<String, String>;

// The order of the fields is the order of the bytes.

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub config: Descriptor,
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

/// Whose bytes are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Ours; `created` is an instant in RFC 3339 if one was asked for.
    Default { created: Option<String> },
    /// Those of kit 1.11.0.
    Kit111,
}

impl Profile {
    fn media_type(&self) -> Option<String> {
        match self {
            Self::Default { .. } => Some(IMAGE_MANIFEST.to_owned()),
            Self::Kit111 => None,
        }
    }

    fn created(&self) -> Option<&str> {
        match self {
            Self::Default { created } => created.as_deref(),
            Self::Kit111 => None,
        }
    }

    fn annotations(&self) -> Annotations {
        let version = match self {
            Self::Default { .. } => "windlass",
            Self::Kit111 => "1.11.0",
        };
        let version = (CLI_VERSION.to_owned(), version.to_owned());
        let created = self.created().map(|at| (CREATED.to_owned(), at.to_owned()));
        [version].into_iter().chain(created).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    GzipFastest,
    Zstd,
}

/// A layer whose bytes are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub kind: Kind,
    pub path: String,
    pub format: Format,
    pub compression: Compression,
    pub digest: Digest,
    pub diff_id: Digest,
    pub size: u64,
    /// Of the file in a raw layer.
    pub file: Option<RawFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    pub mode: u32,
    pub size: u64,
}

/// What is told of a file whose layer is no archive.
#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    mtime: &'static str,
    typeflag: u8,
}

impl Stored {
    fn descriptor(&self, media_type: String) -> Result<Descriptor, serde_json::Error> {
        let mut annotations = Annotations::from([(FILE_PATH.to_owned(), self.path.clone())]);
        if let Some(file) = &self.file {
            let told = Metadata {
                name: &self.path,
                mode: file.mode,
                uid: 0,
                gid: 0,
                size: file.size,
                mtime: "1970-01-01T00:00:00Z",
                typeflag: 0,
            };
            let told = String::from_utf8_lossy(&crate::json::to_bytes(&told)?).into_owned();
            annotations.insert(FILE_METADATA.to_owned(), told);
        }
        if self.kind == Kind::Prompt {
            annotations.insert(SUBTYPE.to_owned(), "prompt".to_owned());
        }
        let (digest, size) = (self.digest.clone(), self.size);
        Ok(Descriptor { media_type, digest, size, urls: Vec::new(), annotations })
    }

    /// The end of the media type.
    fn suffix(&self) -> &'static str {
        match (self.format, self.compression) {
            (Format::Raw, _) => "raw",
            (Format::Tar, Compression::None) => "tar",
            (Format::Tar, Compression::Gzip | Compression::GzipFastest) => "tar+gzip",
            (Format::Tar, Compression::Zstd) => "tar+zstd",
        }
    }
}

/// A manifest and its config, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub manifest: Vec<u8>,
    pub config: Vec<u8>,
}

impl Artifact {
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kitfile(#[from] crate::kitfile::Error),
    #[error("cannot write the manifest as JSON")]
    Json(#[from] serde_json::Error),
    #[error(
        "the manifest would have at least {size} bytes, and registries take {LIMIT}: let the Kitfile name \
         directories instead of their files"
    )]
    TooLarge { size: usize },
    #[error(
        "the config would have at least {size} bytes, and whoever reads it takes {LIMIT}: let the Kitfile have \
         shorter parameters"
    )]
    ConfigTooLarge { size: usize },
}

fn finish(manifest: &Manifest, config: Vec<u8>) -> Result<Artifact, Error> {
    let manifest = crate::json::to_bytes(manifest)?;
    if manifest.len() > LIMIT {
        return Err(Error::TooLarge { size: manifest.len() });
    }
    match config.len() > LIMIT {
        true => Err(Error::ConfigTooLarge { size: config.len() }),
        false => Ok(Artifact { manifest, config }),
    }
}

fn config_descriptor(media_type: &str, config: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(config),
        size: config.len() as u64,
        urls: Vec::new(),
        annotations: Annotations::new(),
    }
}
