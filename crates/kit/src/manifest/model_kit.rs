//! The form of KitOps.

use super::{Artifact, Descriptor, Error, Manifest, Profile, Stored, config_descriptor, finish};
use crate::{Kitfile, kitfile::Kind};

pub const MANIFEST: &str = "application/vnd.kitops.modelkit.manifest.v1+json";
pub const CONFIG: &str = "application/vnd.kitops.modelkit.config.v1+json";

/// The Kitfile has the digests of its layers.
pub fn artifact(
    kitfile: &Kitfile,
    layers: &[Stored],
    profile: &Profile,
) -> Result<Artifact, Error> {
    let config = kitfile.to_json()?;
    let manifest = Manifest {
        schema_version: 2,
        media_type: profile.media_type(),
        artifact_type: Some(MANIFEST.to_owned()),
        config: config_descriptor(CONFIG, &config),
        layers: layers.iter().map(layer).collect::<Result<_, _>>()?,
        subject: None,
        annotations: profile.annotations(),
    };
    finish(&manifest, config)
}

fn layer(stored: &Stored) -> Result<Descriptor, serde_json::Error> {
    let name = match stored.kind {
        Kind::Model => "model",
        Kind::ModelPart => "modelpart",
        Kind::Code | Kind::Prompt => "code",
        Kind::Dataset => "dataset",
        Kind::Docs => "docs",
    };
    let media_type = format!("application/vnd.kitops.modelkit.{name}.v1.{}", stored.suffix());
    stored.descriptor(media_type)
}
