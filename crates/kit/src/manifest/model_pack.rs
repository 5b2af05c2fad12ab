//! The form of the CNCF model specification.

use serde::Serialize;

use super::{Artifact, Descriptor, Error, Manifest, Profile, Stored, config_descriptor, finish};
use crate::{Digest, Kitfile, json, kitfile::Kind};

pub const MANIFEST: &str = "application/vnd.cncf.model.manifest.v1+json";
pub const CONFIG: &str = "application/vnd.cncf.model.config.v1+json";
/// The Kitfile, for tools that know it.
pub const KITFILE: &str = "ml.kitops.modelkit.kitfile";

#[derive(Serialize)]
struct Config<'a> {
    descriptor: About<'a>,
    modelfs: Layers<'a>,
    config: Details<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    authors: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Layers<'a> {
    #[serde(rename = "type")]
    type_: &'static str,
    diff_ids: Vec<&'a Digest>,
}

#[derive(Serialize)]
struct Details<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    format: &'a str,
}

/// The Kitfile has the digests of its layers.
pub fn artifact(
    kitfile: &Kitfile,
    layers: &[Stored],
    profile: &Profile,
) -> Result<Artifact, Error> {
    let config = json::to_bytes(&config(kitfile, layers, profile))?;
    let told = String::from_utf8_lossy(&kitfile.to_json()?).into_owned();
    let mut annotations = profile.annotations();
    annotations.insert(KITFILE.to_owned(), told);
    let manifest = Manifest {
        schema_version: 2,
        media_type: profile.media_type(),
        artifact_type: Some(MANIFEST.to_owned()),
        config: config_descriptor(CONFIG, &config),
        layers: layers.iter().map(layer).collect::<Result<_, _>>()?,
        subject: None,
        annotations,
    };
    finish(&manifest, config)
}

fn config<'a>(kitfile: &'a Kitfile, layers: &'a [Stored], profile: &'a Profile) -> Config<'a> {
    let package = &kitfile.package;
    Config {
        descriptor: About {
            created_at: profile.created(),
            authors: &package.authors,
            name: &package.name,
            version: &package.version,
            licenses: kitfile.licenses(),
            title: &package.name,
            description: &package.description,
        },
        modelfs: Layers {
            type_: "layers",
            diff_ids: layers.iter().map(|layer| &layer.diff_id).collect(),
        },
        config: Details { format: kitfile.model.as_ref().map_or("", |model| &model.format) },
    }
}

fn layer(stored: &Stored) -> Result<Descriptor, serde_json::Error> {
    let name = match stored.kind {
        Kind::Model => "weight",
        Kind::ModelPart => "weight.config",
        Kind::Code | Kind::Prompt => "code",
        Kind::Dataset => "dataset",
        Kind::Docs => "doc",
    };
    let media_type = format!("application/vnd.cncf.model.{name}.v1.{}", stored.suffix());
    stored.descriptor(media_type)
}
