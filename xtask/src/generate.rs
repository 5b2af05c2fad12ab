//! Files under `deploy/` that come out of the program and are never edited by hand.
//!
//! [`GENERATED`] is the whole list: a command of the windlass binary, and the folder its output
//! goes to. Whatever the binary learns to print (RBAC, for one) becomes a row there.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::{build, project_root};

struct Generated {
    /// Arguments of the windlass binary.
    command: &'static [&'static str],
    /// Relative to the project. Everything in it is generated.
    folder: &'static str,
    /// From what the command prints to files by name.
    files: fn(&str) -> Result<Files>,
}

type Files = BTreeMap<String, String>;

const GENERATED: [Generated; 1] = [Generated {
    command: &["crds"],
    folder: "deploy/chart/windlass/crds",
    files: one_file_per_object,
}];

/// Writes all generated files, and removes those the program no longer prints.
pub fn write() -> Result<()> {
    let binary = build()?;
    for row in &GENERATED {
        let folder = project_root().join(row.folder);
        let wanted = row.run(&binary)?;
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        for (name, text) in &wanted {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        for name in present(&folder)?.into_keys().filter(|name| !wanted.contains_key(name)) {
            let path = folder.join(name);
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        println!("{}: {} files", row.folder, wanted.len());
    }
    Ok(())
}

/// Fails if a generated file differs from what the program prints now.
pub fn check() -> Result<()> {
    let binary = build()?;
    let mut stale = Vec::new();
    for row in &GENERATED {
        let differences =
            differences(&row.run(&binary)?, &present(&project_root().join(row.folder))?);
        stale.extend(differences.iter().map(|name| format!("{}/{name}", row.folder)));
    }
    if stale.is_empty() {
        return Ok(());
    }
    bail!("stale, run `cargo xtask generate`:\n{}", stale.join("\n"))
}

impl Generated {
    fn run(&self, binary: &Path) -> Result<Files> {
        let name = format!("windlass {}", self.command.join(" "));
        let output = Command::new(binary)
            .args(self.command)
            .output()
            .with_context(|| format!("cannot run `{name}`"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("cannot generate from `{name}` ({}): {}", output.status, said.trim());
        }
        let text = String::from_utf8(output.stdout)
            .with_context(|| format!("cannot read the output of `{name}`"))?;
        let files =
            (self.files)(&text).with_context(|| format!("cannot split the output of `{name}`"))?;
        if files.is_empty() {
            bail!("cannot generate from `{name}`: it printed no objects");
        }
        Ok(files)
    }
}

/// Splits a stream of YAML objects into `<metadata.name>.yaml`, each with its text unchanged.
fn one_file_per_object(stream: &str) -> Result<Files> {
    let mut files = Files::new();
    for text in documents(stream) {
        let object: Value = serde_saphyr::from_str(&text).context("cannot parse an object")?;
        let name = object["metadata"]["name"].as_str().context("an object has no name")?;
        if files.insert(format!("{name}.yaml"), text).is_some() {
            bail!("two objects are named {name}");
        }
    }
    Ok(files)
}

fn documents(stream: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in stream.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    documents.retain(|document| !document.trim().is_empty());
    documents
}

fn present(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    if !folder.is_dir() {
        return Ok(files);
    }
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(name, text);
    }
    Ok(files)
}

/// Names of files that are missing, different or no longer wanted.
fn differences(wanted: &Files, present: &Files) -> Vec<String> {
    let names = wanted.keys().chain(present.keys().filter(|name| !wanted.contains_key(*name)));
    names.filter(|name| wanted.get(*name) != present.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_becomes_one_file_per_object() {
        let stream = "---\nmetadata:\n  name: b\n---\nmetadata:\n  name: a\n";
        let files = one_file_per_object(stream).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a.yaml", "b.yaml"]);
        assert_eq!(files["a.yaml"], "metadata:\n  name: a\n");
    }

    #[test]
    fn two_objects_of_one_name_are_refused() {
        assert!(one_file_per_object("metadata: {name: a}\n---\nmetadata: {name: a}\n").is_err());
    }

    #[test]
    fn missing_changed_and_left_over_files_are_stale() {
        let files = |entries: &[(&str, &str)]| -> Files {
            entries.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
        };
        let wanted = files(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let present = files(&[("a", "1"), ("b", "2"), ("d", "1")]);
        assert_eq!(differences(&wanted, &present), ["b", "c", "d"]);
    }
}
