//! A directory and its Kitfile become an artifact.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use crate::{
    Digest, Kitfile,
    layer::{Format, Layer},
    manifest::{self, Artifact, Compression, Profile, RawFile, Stored, model_kit, model_pack},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    #[default]
    ModelKit,
    ModelPack,
}

/// What the hash of a layer is fed with at a time.
const PIECE: usize = 1 << 20;

/// The digest of a layer that is stored as it is.
pub fn hash(layer: &Layer) -> io::Result<Digest> {
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut reader = layer.read();
    loop {
        match reader.read(&mut piece)? {
            0 => return Ok(Digest::finish(hash)),
            count => hash.update(&piece[..count]),
        }
    }
}

/// What a layer of plain bytes is in a manifest.
pub fn stored(layer: &Layer, digest: Digest) -> Stored {
    let raw = layer.content().next().filter(|_| layer.format == Format::Raw);
    Stored {
        kind: layer.entry.kind,
        path: layer.entry.path.as_str().to_owned(),
        format: layer.format,
        compression: Compression::None,
        diff_id: digest.clone(),
        digest,
        size: layer.size(),
        file: raw.map(|file| RawFile { mode: file.mode & 0o777, size: file.size }),
    }
}

/// The manifest and the config over layers that are stored.
pub fn assemble(
    kitfile: &Kitfile,
    layers: &[Stored],
    form: Form,
    profile: &Profile,
) -> Result<Artifact, manifest::Error> {
    let mut kitfile = kitfile.clone();
    for (entry, layer) in kitfile.stored().zip(layers) {
        *entry.digest = Some(layer.digest.clone());
        *entry.diff_id = Some(layer.diff_id.clone());
    }
    match form {
        Form::ModelKit => model_kit::artifact(&kitfile, layers, profile),
        Form::ModelPack => model_pack::artifact(&kitfile, layers, profile),
    }
}

#[cfg(test)]
mod tests;
