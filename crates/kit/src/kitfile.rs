//! The Kitfile: what is in an artifact, in the words of whoever packs it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, Reference, json};

mod path;
mod read;
mod scalar;
mod yaml;

pub use path::{Path, Unusable};

/// The names under which it is looked for, in this order.
pub const NAMES: [&str; 3] = ["Kitfile", "kitfile", ".kitfile"];
const VERSION: &str = "1.0.0";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the Kitfile: {0}")]
    Syntax(String),
    #[error("cannot use {kind} of the Kitfile")]
    Path { kind: Kind, source: Unusable },
    #[error("the Kitfile names {0} twice")]
    Twice(Path),
    #[error("the type of a model part must be up to 64 letters, digits, dots and dashes: {0:?}")]
    PartType(String),
    #[error("cannot write the Kitfile as JSON")]
    Json(#[source] serde_json::Error),
}

// The order of the fields is the order of the bytes, on which digests depend.

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kitfile {
    pub manifest_version: String,
    pub package: Package,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<Code>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<Dataset>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub docs: Vec<Docs>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Prompt>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Package {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Model {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub framework: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub format: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<Digest>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Part {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<Digest>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Code {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<Digest>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dataset {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub license: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Where it is instead of in a layer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<Digest>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Docs {
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<Digest>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Prompt {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_id: Option<Digest>,
}

/// What a layer is for; layers are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Model,
    ModelPart,
    Code,
    Dataset,
    Docs,
    Prompt,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::ModelPart => "modelpart",
            Self::Code => "code",
            Self::Dataset => "dataset",
            Self::Docs => "docs",
            Self::Prompt => "prompt",
        })
    }
}

/// An entry that is a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// Empty where entries of this kind have no name.
    pub name: String,
    pub path: Path,
}

/// An entry's two digests, to be filled in or read.
pub struct Stored<'a> {
    pub digest: &'a mut Option<Digest>,
    pub diff_id: &'a mut Option<Digest>,
}

impl Kitfile {
    /// As a user writes it. What it says is checked: see [`Self::entries`].
    pub fn from_yaml(text: &str) -> Result<Self, Error> {
        let read = read::value(text).map_err(Error::Syntax)?;
        let mut kitfile: Self =
            serde_json::from_value(read).map_err(|error| Error::Syntax(error.to_string()))?;
        if kitfile.manifest_version.is_empty() {
            VERSION.clone_into(&mut kitfile.manifest_version);
        }
        kitfile.check()?;
        Ok(kitfile)
    }

    /// As it stands in artifacts. What newer tools may have added is passed over.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let read: Self =
            serde_json::from_slice(bytes).map_err(|error| Error::Syntax(error.to_string()))?;
        read.check()?;
        Ok(read)
    }

    /// As a user would have written it, without digests.
    pub fn to_yaml(&self) -> Result<String, Error> {
        let mut kitfile = self.clone();
        for stored in kitfile.stored() {
            (*stored.digest, *stored.diff_id) = (None, None);
        }
        let options = serde_saphyr::ser_options! { compact_list_indent: false };
        serde_saphyr::to_string_with_options(&yaml::Written::from(&kitfile), options)
            .map_err(|error| Error::Syntax(error.to_string()))
    }

    /// The bytes that digests are made of.
    pub fn to_json(&self) -> Result<Vec<u8>, Error> {
        let sorted = |value: &mut Option<Value>| value.iter_mut().for_each(sort);
        let mut kitfile = self.clone();
        kitfile.model.iter_mut().for_each(|model| sorted(&mut model.parameters));
        kitfile.datasets.iter_mut().for_each(|dataset| sorted(&mut dataset.parameters));
        json::to_bytes(&kitfile).map_err(Error::Json)
    }

    /// What becomes layers, in their order.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let of = |(kind, name, path): (Kind, &String, &String)| {
            let path = Path::parse(path).map_err(|source| Error::Path { kind, source })?;
            Ok(Entry { kind, name: name.clone(), path })
        };
        self.paths().map(of).collect()
    }

    /// Whether the model is an artifact of its own, to be fetched beside this one.
    pub fn parent(&self) -> Option<Reference> {
        self.model.as_ref().and_then(|model| parent(&model.path))
    }

    fn paths(&self) -> impl Iterator<Item = (Kind, &String, &String)> {
        const NONE: &String = &String::new();
        let model = self.model.iter().filter(|model| parent(&model.path).is_none());
        let parts = self.model.iter().flat_map(|model| &model.parts);
        let datasets = self.datasets.iter().filter(|dataset| dataset.remote_path.is_empty());
        model
            .map(|model| (Kind::Model, &model.name, &model.path))
            .chain(parts.map(|part| (Kind::ModelPart, &part.name, &part.path)))
            .chain(self.code.iter().map(|code| (Kind::Code, NONE, &code.path)))
            .chain(datasets.map(|dataset| (Kind::Dataset, &dataset.name, &dataset.path)))
            .chain(self.docs.iter().map(|docs| (Kind::Docs, NONE, &docs.path)))
            .chain(self.prompts.iter().map(|prompt| (Kind::Prompt, NONE, &prompt.path)))
    }

    /// The digests of the same entries, in the same order.
    pub fn stored(&mut self) -> impl Iterator<Item = Stored<'_>> {
        let (model, parts) = match &mut self.model {
            Some(model) => {
                let own = parent(&model.path)
                    .is_none()
                    .then_some(Stored { digest: &mut model.digest, diff_id: &mut model.diff_id });
                (own, model.parts.as_mut_slice())
            }
            None => (None, Default::default()),
        };
        let datasets = self.datasets.iter_mut().filter(|dataset| dataset.remote_path.is_empty());
        model
            .into_iter()
            .chain(
                parts
                    .iter_mut()
                    .map(|part| Stored { digest: &mut part.digest, diff_id: &mut part.diff_id }),
            )
            .chain(
                self.code
                    .iter_mut()
                    .map(|code| Stored { digest: &mut code.digest, diff_id: &mut code.diff_id }),
            )
            .chain(datasets.map(|dataset| Stored {
                digest: &mut dataset.digest,
                diff_id: &mut dataset.diff_id,
            }))
            .chain(
                self.docs
                    .iter_mut()
                    .map(|docs| Stored { digest: &mut docs.digest, diff_id: &mut docs.diff_id }),
            )
            .chain(
                self.prompts.iter_mut().map(|prompt| Stored {
                    digest: &mut prompt.digest,
                    diff_id: &mut prompt.diff_id,
                }),
            )
    }

    /// All licenses that are named, each once.
    pub fn licenses(&self) -> Vec<&str> {
        let model = self.model.iter();
        let parts = model.clone().flat_map(|model| &model.parts);
        let all = std::iter::once(&self.package.license)
            .chain(model.map(|model| &model.license))
            .chain(parts.map(|part| &part.license))
            .chain(self.code.iter().map(|code| &code.license))
            .chain(self.datasets.iter().map(|dataset| &dataset.license));
        let mut all: Vec<&str> = all.map(String::as_str).filter(|name| !name.is_empty()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn check(&self) -> Result<(), Error> {
        let mut seen = BTreeMap::new();
        for entry in self.entries()? {
            if seen.insert(entry.path.clone(), entry.kind).is_some() {
                return Err(Error::Twice(entry.path));
            }
        }
        let mut parts = self.model.iter().flat_map(|model| &model.parts);
        match parts.find(|part| !part.type_.is_empty() && !is_part_type(&part.type_)) {
            Some(part) => Err(Error::PartType(part.type_.clone())),
            None => Ok(()),
        }
    }
}

/// A path with a tag or a digest is the name of another artifact.
fn parent(path: &str) -> Option<Reference> {
    let is_name = path.contains([':', '@']);
    is_name.then(|| Reference::parse(path).ok()).flatten()
}

fn is_part_type(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 64
        && text.starts_with(is_word)
        && text.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

/// Free maps are written by their keys, whatever order they were read in.
fn sort(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sort);
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
