//! The work of a run: many objects like the one of a manifest, and the children they become.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::objects::{self, name};
use crate::{generate::documents, program::run_to_end};

pub(super) struct Work {
    pub(super) parents: Vec<Value>,
    /// Of each parent, in the same order.
    pub(super) children: Vec<Vec<Value>>,
}

impl Work {
    /// As `windlass render` has it. `scratch` is a file that may be written.
    pub(super) fn render(
        windlass: &Path,
        manifest: &Value,
        services: u32,
        namespace: &str,
        scratch: &Path,
    ) -> Result<Self> {
        let parents = copies(manifest, services, namespace);
        let input: Vec<String> = parents.iter().map(Value::to_string).collect();
        fs::write(scratch, input.join("\n---\n"))
            .with_context(|| format!("cannot write {}", scratch.display()))?;
        let mut command = Command::new(windlass);
        let output =
            run_to_end(command.arg("render").arg("--filename").arg(scratch), "windlass render")?;
        let children = parse(&output).context("cannot read what `windlass render` printed")?;
        Ok(Self { children: deal(children, parents.len())?, parents })
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Value> {
        self.parents.iter().chain(self.all_children())
    }

    pub(super) fn all_children(&self) -> impl Iterator<Item = &Value> {
        self.children.iter().flatten()
    }

    pub(super) fn children_per_service(&self) -> f64 {
        self.all_children().count() as f64 / self.parents.len() as f64
    }
}

/// The one object of a manifest.
pub(super) fn read(manifest: &Path) -> Result<Value> {
    let cannot = || format!("cannot read {}", manifest.display());
    let text = fs::read_to_string(manifest).with_context(cannot)?;
    let mut all: Vec<Value> = parse(&text).with_context(cannot)?;
    // A document of nothing but comments.
    all.retain(|object| !object.is_null());
    let (Some(object), true) = (all.pop(), all.is_empty()) else {
        bail!("{} must hold exactly one object", manifest.display());
    };
    if name(&object).is_empty() || objects::text(&object, "/kind").is_empty() {
        bail!("the object in {} needs a kind and a name", manifest.display());
    }
    Ok(object)
}

fn parse(stream: &str) -> Result<Vec<Value>> {
    documents(stream).iter().map(|text| Ok(serde_saphyr::from_str(text)?)).collect()
}

fn copies(manifest: &Value, count: u32, namespace: &str) -> Vec<Value> {
    let copy = |number: u32| {
        let mut object = manifest.clone();
        object["metadata"]["name"] = json!(format!("{}-{number}", name(manifest)));
        object["metadata"]["namespace"] = json!(namespace);
        object
    };
    (1..=count).map(copy).collect()
}

/// Like objects become equally many children, printed one object after the other.
fn deal(children: Vec<Value>, parents: usize) -> Result<Vec<Vec<Value>>> {
    let each = children.len() / parents;
    if each == 0 || each * parents != children.len() {
        bail!("{parents} objects became {} children, which cannot be shared out", children.len());
    }
    Ok(children.chunks(each).map(<[Value]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_differ_in_nothing_but_their_names() {
        let manifest = json!({"kind": "X", "metadata": {"name": "a", "namespace": "b"}, "spec": 1});
        assert_eq!(
            copies(&manifest, 2, "n"),
            [
                json!({"kind": "X", "metadata": {"name": "a-1", "namespace": "n"}, "spec": 1}),
                json!({"kind": "X", "metadata": {"name": "a-2", "namespace": "n"}, "spec": 1}),
            ]
        );
    }

    #[test]
    fn children_are_shared_out_evenly_or_not_at_all() {
        let children: Vec<Value> = (0..6).map(|number| json!(number)).collect();
        let dealt = deal(children.clone(), 3).unwrap();
        assert_eq!(dealt[2], [json!(4), json!(5)]);
        assert!(deal(children, 4).is_err());
        assert!(deal(Vec::new(), 1).is_err());
    }
}
