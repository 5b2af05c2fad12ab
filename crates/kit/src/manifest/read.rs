//! Artifacts of anybody: which layers they have, and what each is for.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Descriptor, FILE_METADATA, FILE_PATH, Manifest, SUBTYPE, model_kit, model_pack};
use crate::{
    Digest, Kitfile,
    kitfile::{self, Entry, Kind, Path},
    layer::Format,
    manifest::Compression,
    pack::Form,
    unpack::Expected,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it is no model: its type is {0:?}")]
    NoModel(String),
    #[error(transparent)]
    Kitfile(#[from] kitfile::Error),
    #[error("its config makes no sense")]
    Config(#[source] serde_json::Error),
    #[error("digest in config and manifest do not match: there is no layer {0}")]
    Mismatch(Digest),
    #[error("illegal file path: {0:?} of a layer")]
    Path(String),
}

#[derive(Debug)]
pub struct Contents {
    pub form: Form,
    /// Others than kit need not have one.
    pub kitfile: Option<Kitfile>,
    pub layers: Vec<Found>,
    /// Layers of types that nobody here knows.
    pub unknown: Vec<String>,
    /// The config tells other content of the layers than the Kitfile, which is believed: kit from 1.10 to
    /// 1.14 has hashed the text of each hash.
    pub has_wrong_diff_ids: bool,
}

#[derive(Debug)]
pub struct Found {
    pub entry: Entry,
    pub expected: Expected,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PackConfig {
    modelfs: Layers,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Layers {
    #[serde(rename = "diffIds", alias = "diff_ids")]
    diff_ids: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    mode: u32,
}

/// Which form it is, judged by its own type or by that of its config.
pub fn form(manifest: &Manifest) -> Result<Form, Error> {
    let own = manifest.artifact_type.as_deref().unwrap_or_default();
    let config = manifest.config.media_type.as_str();
    // Its name in the first drafts.
    let is_old = |known: &str, text: &str| text == known.replace("vnd.cncf.", "vnd.cnai.");
    if own == model_kit::MANIFEST || config == model_kit::CONFIG {
        return Ok(Form::ModelKit);
    }
    if own == model_pack::MANIFEST
        || config == model_pack::CONFIG
        || is_old(model_pack::MANIFEST, own)
        || is_old(model_pack::CONFIG, config)
    {
        return Ok(Form::ModelPack);
    }
    Err(Error::NoModel(if own.is_empty() { config.to_owned() } else { own.to_owned() }))
}

pub fn contents(manifest: &Manifest, config: &[u8]) -> Result<Contents, Error> {
    let form = form(manifest)?;
    let (kitfile, diff_ids) = match form {
        Form::ModelKit => (Some(Kitfile::from_json(config)?), Vec::new()),
        Form::ModelPack => {
            let told = manifest.annotations.get(model_pack::KITFILE);
            let kitfile = told.map(|text| Kitfile::from_json(text.as_bytes())).transpose()?;
            let read: PackConfig = serde_json::from_slice(config).map_err(Error::Config)?;
            (kitfile, read.modelfs.diff_ids)
        }
    };
    let mut contents = Contents {
        form,
        kitfile,
        layers: Vec::new(),
        unknown: Vec::new(),
        has_wrong_diff_ids: false,
    };
    let entries = match &contents.kitfile {
        Some(kitfile) => entries(kitfile)?,
        None => Vec::new(),
    };
    for wanted in entries.iter().filter_map(|known| known.digest.as_ref()) {
        if manifest.layers.iter().all(|layer| layer.digest != *wanted) {
            return Err(Error::Mismatch(wanted.clone()));
        }
    }
    let mut taken = BTreeSet::new();
    let mut by_order = entries.iter().filter(|known| known.digest.is_none());
    for (number, layer) in manifest.layers.iter().enumerate() {
        let Some((kind, format, compression)) = media_type(layer) else {
            contents.unknown.push(layer.media_type.clone());
            continue;
        };
        let named = named(&entries, layer, &mut taken);
        // In the oldest artifacts layers are in the order of the entries, and named from beside them.
        let old = || by_order.find(|known| known.entry.kind == kind);
        let is_old = named.is_none() && entries.iter().any(|known| known.digest.is_none());
        let known = named.or_else(old);
        let by_kitfile = known.and_then(|known| known.diff_id.clone());
        let by_config: Option<Digest> = diff_ids.get(number).and_then(|text| text.parse().ok());
        contents.has_wrong_diff_ids |=
            by_kitfile.as_ref().zip(by_config.as_ref()).is_some_and(|(one, other)| one != other);
        let expected = Expected {
            digest: layer.digest.clone(),
            size: layer.size,
            diff_id: by_kitfile.or(by_config.filter(|_| known.is_none())),
            format,
            compression,
            path: path(layer, known)?,
            mode: mode(layer),
            under: match known {
                Some(known) if is_old => parent(known.entry.path.as_str()),
                _ => String::new(),
            },
        };
        let entry = match known {
            Some(known) => known.entry.clone(),
            None => {
                let illegal = |_| Error::Path(expected.path.clone());
                let path = Path::parse(&expected.path).map_err(illegal)?;
                Entry { kind, name: String::new(), path }
            }
        };
        contents.layers.push(Found { entry, expected });
    }
    Ok(contents)
}

struct Known {
    entry: Entry,
    digest: Option<Digest>,
    diff_id: Option<Digest>,
}

fn entries(kitfile: &Kitfile) -> Result<Vec<Known>, Error> {
    let entries = kitfile.entries()?;
    let mut kitfile = kitfile.clone();
    let stored = kitfile.stored().map(|stored| (stored.digest.take(), stored.diff_id.take()));
    let known = |(entry, (digest, diff_id))| Known { entry, digest, diff_id };
    Ok(entries.into_iter().zip(stored).map(known).collect())
}

/// The entry of a layer. Where several have the same content, the one of this path, or else the first
/// that has no layer yet.
fn named<'a>(
    entries: &'a [Known],
    layer: &Descriptor,
    taken: &mut BTreeSet<usize>,
) -> Option<&'a Known> {
    let told = file_path(layer).and_then(|told| Path::parse(told).ok());
    let numbered = entries.iter().enumerate();
    let same: Vec<_> =
        numbered.filter(|(_, known)| known.digest.as_ref() == Some(&layer.digest)).collect();
    let is_told = |known: &Known| told.as_ref() == Some(&known.entry.path);
    let by_path = same.iter().find(|(_, known)| is_told(known));
    let free = || same.iter().find(|(number, _)| !taken.contains(number));
    let (number, known) = *by_path.or_else(free).or(same.first())?;
    taken.insert(number);
    Some(known)
}

fn file_path(layer: &Descriptor) -> Option<&String> {
    let old = || layer.annotations.get("org.cnai.model.filepath");
    layer.annotations.get(FILE_PATH).or_else(old)
}

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned())
}

fn path(layer: &Descriptor, known: Option<&Known>) -> Result<String, Error> {
    match (file_path(layer), known) {
        (Some(told), _) => {
            let path = Path::parse(told).ok().filter(|_| !told.split('/').any(|e| e == ".."));
            path.map(|path| path.as_str().to_owned()).ok_or_else(|| Error::Path(told.clone()))
        }
        (None, Some(known)) => Ok(known.entry.path.as_str().to_owned()),
        (None, None) => Ok(".".to_owned()),
    }
}

fn mode(layer: &Descriptor) -> u32 {
    let told = layer.annotations.get(FILE_METADATA);
    let told = told.and_then(|text| serde_json::from_str::<Metadata>(text).ok());
    told.map_or(0o644, |told| told.mode & 0o777)
}

fn media_type(layer: &Descriptor) -> Option<(Kind, Format, Compression)> {
    let rest = layer.media_type.strip_prefix("application/vnd.")?;
    let rest = ["kitops.modelkit.", "cncf.model.", "cnai.model."]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let (name, suffix) = rest.split_once(".v1.")?;
    let kind = match name {
        "model" | "weight" => Kind::Model,
        "modelpart" | "weight.config" => Kind::ModelPart,
        "code" if layer.annotations.get(SUBTYPE).is_some_and(|text| text == "prompt") => {
            Kind::Prompt
        }
        "code" => Kind::Code,
        "dataset" => Kind::Dataset,
        "docs" | "doc" => Kind::Docs,
        _ => return None,
    };
    let (format, compression) = match suffix {
        "tar" => (Format::Tar, Compression::None),
        "tar+gzip" => (Format::Tar, Compression::Gzip),
        "tar+zstd" => (Format::Tar, Compression::Zstd),
        "raw" => (Format::Raw, Compression::None),
        "raw+gzip" => (Format::Raw, Compression::Gzip),
        "raw+zstd" => (Format::Raw, Compression::Zstd),
        _ => return None,
    };
    Some((kind, format, compression))
}

#[cfg(test)]
mod alike;

#[cfg(test)]
mod tests;
