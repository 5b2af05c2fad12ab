//! Artifacts of anybody: which layers they have, and what each is for.

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
    let mut contents = Contents { form, kitfile, layers: Vec::new(), unknown: Vec::new() };
    let entries = match &contents.kitfile {
        Some(kitfile) => entries(kitfile)?,
        None => Vec::new(),
    };
    for wanted in entries.iter().filter_map(|known| known.digest.as_ref()) {
        if manifest.layers.iter().all(|layer| layer.digest != *wanted) {
            return Err(Error::Mismatch(wanted.clone()));
        }
    }
    let mut by_order = entries.iter().filter(|known| known.digest.is_none());
    for (number, layer) in manifest.layers.iter().enumerate() {
        let Some((kind, format, compression)) = media_type(layer) else {
            contents.unknown.push(layer.media_type.clone());
            continue;
        };
        let named = entries.iter().find(|known| known.digest.as_ref() == Some(&layer.digest));
        // In the oldest artifacts layers are in the order of the entries, and named from beside them.
        let old = || by_order.find(|known| known.entry.kind == kind);
        let is_old = named.is_none() && entries.iter().any(|known| known.digest.is_none());
        let known = named.or_else(old);
        let expected = Expected {
            digest: layer.digest.clone(),
            size: layer.size,
            diff_id: known
                .and_then(|known| known.diff_id.clone())
                .or_else(|| diff_ids.get(number).filter(|_| known.is_none())?.parse().ok()),
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

fn parent(path: &str) -> String {
    path.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned())
}

fn path(layer: &Descriptor, known: Option<&Known>) -> Result<String, Error> {
    let told = layer
        .annotations
        .get(FILE_PATH)
        .or_else(|| layer.annotations.get("org.cnai.model.filepath"));
    match (told, known) {
        (Some(told), _) => {
            let is_legal = Path::parse(told).is_ok() && !told.split('/').any(|e| e == "..");
            if is_legal { Ok(told.clone()) } else { Err(Error::Path(told.clone())) }
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
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(
        config: &str,
        layers: serde_json::Value,
        annotations: serde_json::Value,
    ) -> Manifest {
        serde_json::from_value(json!({
            "schemaVersion": 2,
            "config": {"mediaType": config, "digest": Digest::of(b"c"), "size": 1},
            "layers": layers, "annotations": annotations,
        }))
        .unwrap()
    }

    fn layer(media_type: &str, content: &str, path: Option<&str>) -> serde_json::Value {
        let digest = Digest::of(content.as_bytes());
        let annotations = path.map(|path| json!({FILE_PATH: path})).unwrap_or(json!({}));
        json!({"mediaType": media_type, "digest": digest, "size": 1, "annotations": annotations})
    }

    #[test]
    fn entries_and_layers_are_joined_by_digest_whatever_their_order() {
        let (model, code) = (Digest::of(b"model"), Digest::of(b"code"));
        let config = json!({"manifestVersion": "1.0.0", "package": {},
            "model": {"path": "m", "digest": model, "diffId": model},
            "code": [{"path": "c", "digest": code, "diffId": code}]});
        let layers = json!([
            layer("application/vnd.kitops.modelkit.code.v1.tar+gzip", "code", None),
            layer("application/vnd.kitops.modelkit.model.v1.tar", "model", None),
            layer("application/vnd.kitops.modelkit.mcpb.v1.raw", "other", None),
        ]);
        let manifest = manifest(model_kit::CONFIG, layers, json!({}));
        let contents = contents(&manifest, config.to_string().as_bytes()).unwrap();
        let found: Vec<_> = contents
            .layers
            .iter()
            .map(|found| (found.entry.path.as_str(), found.expected.compression))
            .collect();
        assert_eq!(found, [("c", Compression::Gzip), ("m", Compression::None)]);
        assert_eq!(contents.layers[1].expected.diff_id, Some(model));
        assert_eq!(contents.unknown, ["application/vnd.kitops.modelkit.mcpb.v1.raw"]);
        let other = config.to_string().replace(code.hex(), Digest::of(b"else").hex());
        let error = super::contents(&manifest, other.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("digest in config and manifest do not match"));
    }

    #[test]
    fn k29_artifacts_of_others_are_understood() {
        // Without a Kitfile, in the older spelling, one file each.
        let layers = json!([
            layer("application/vnd.cnai.model.weight.v1.raw", "w", Some("a/model.bin")),
            layer("application/vnd.cnai.model.doc.v1.tar", "d", Some("README.md")),
        ]);
        let config = "application/vnd.cnai.model.config.v1+json";
        let diff_ids =
            json!({"modelfs": {"type": "layers", "diff_ids": [Digest::of(b"w"), "nonsense"]}});
        let manifest = manifest(config, layers, json!({}));
        let contents = contents(&manifest, diff_ids.to_string().as_bytes()).unwrap();
        assert!(contents.kitfile.is_none());
        assert_eq!(contents.layers[0].expected.path, "a/model.bin");
        assert_eq!(contents.layers[0].expected.diff_id, Some(Digest::of(b"w")));
        assert_eq!(contents.layers[1].expected.diff_id, None);
        let evil = json!([layer("application/vnd.cncf.model.weight.v1.raw", "w", Some("../evil"))]);
        let manifest = self::manifest(config, evil, json!({}));
        assert!(matches!(super::contents(&manifest, b"{}"), Err(Error::Path(_))));
    }

    #[test]
    fn the_oldest_artifacts_have_their_layers_in_order() {
        let config = json!({"manifestVersion": "v0.1", "package": {}, "model": {"path": "sub/m"},
            "datasets": [{"path": "a"}, {"path": "b"}]});
        let layers = json!([
            layer("application/vnd.kitops.modelkit.model.v1.tar+gzip", "1", None),
            layer("application/vnd.kitops.modelkit.dataset.v1.tar+gzip", "2", None),
            layer("application/vnd.kitops.modelkit.dataset.v1.tar+gzip", "3", None),
        ]);
        let manifest = manifest(model_kit::CONFIG, layers, json!({}));
        let contents = contents(&manifest, config.to_string().as_bytes()).unwrap();
        let paths: Vec<_> = contents
            .layers
            .iter()
            .map(|found| (found.entry.path.as_str(), found.expected.under.as_str()))
            .collect();
        assert_eq!(paths, [("sub/m", "sub"), ("a", ""), ("b", "")]);
    }

    #[test]
    fn what_is_no_model_is_refused() {
        let manifest = manifest("application/vnd.oci.image.config.v1+json", json!([]), json!({}));
        let error = contents(&manifest, b"{}").unwrap_err();
        assert!(error.to_string().contains("it is no model"), "{error}");
    }
}
