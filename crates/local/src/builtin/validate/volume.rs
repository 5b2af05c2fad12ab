//! Volumes of pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{container::descending, names};
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, integer, items, text},
};

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Checks them and returns the names that can be mounted.
pub(super) fn volumes<'a>(spec: &'a Value, path: &Path, causes: &mut Causes) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in items(spec, &["volumes"]).iter().enumerate() {
        let path = path.index(index);
        let before = causes.0.len();
        source(volume, &path, causes);
        let name = text(volume, &["name"]);
        if name.is_empty() {
            causes.required(&path.child("name"), "");
        } else {
            for problem in names::label(name) {
                causes.invalid(&path.child("name"), name, &problem);
            }
        }
        if names.contains(name) {
            causes.duplicate(&path.child("name"), name);
        }
        if causes.0.len() == before {
            names.insert(name);
        }
    }
    names
}

fn source(volume: &Value, path: &Path, causes: &mut Causes) {
    let given = volume.as_object().into_iter().flatten();
    let given: Vec<&str> = given
        .filter(|(name, value)| *name != "name" && !value.is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    if given.is_empty() {
        causes.required(path, "must specify a volume type");
    }
    for extra in given.iter().skip(1) {
        causes.forbidden(&path.child(extra), "may not specify more than 1 volume type");
    }
    let Some(kind) = given.first() else { return };
    let none = Value::Null;
    let source = at(volume, &[kind]).unwrap_or(&none);
    let path = path.child(kind);
    match *kind {
        "secret" => files(source, "secretName", &path, causes),
        "configMap" => files(source, "name", &path, causes),
        "persistentVolumeClaim" => required(source, "claimName", &path, causes),
        "hostPath" => host_path(source, &path, causes),
        "downwardAPI" => {
            mode(source, "defaultMode", &path, causes);
            downward(source, &path, causes);
        }
        "projected" => projected(source, &path, causes),
        _ => {}
    }
}

fn required(source: &Value, field: &str, path: &Path, causes: &mut Causes) {
    if text(source, &[field]).is_empty() {
        causes.required(&path.child(field), "");
    }
}

fn mode(source: &Value, field: &str, path: &Path, causes: &mut Causes) {
    if let Some(mode) = integer(source, &[field])
        && !(0..=0o777).contains(&mode)
    {
        causes.invalid(&path.child(field), mode, MODE);
    }
}

fn files(source: &Value, name: &str, path: &Path, causes: &mut Causes) {
    required(source, name, path, causes);
    mode(source, "defaultMode", path, causes);
    for (index, item) in items(source, &["items"]).iter().enumerate() {
        let path = path.child("items").index(index);
        required(item, "key", &path, causes);
        required(item, "path", &path, causes);
        beneath(text(item, &["path"]), &path.child("path"), causes);
        mode(item, "mode", &path, causes);
    }
}

/// A path inside the volume. Names that start with two dots are the kubelet's own.
fn beneath(target: &str, path: &Path, causes: &mut Causes) {
    descending(target, path, causes);
    if target.starts_with("..") && !target.starts_with("../") && target != ".." {
        causes.invalid(path, target, "must not start with '..'");
    }
}

fn host_path(source: &Value, path: &Path, causes: &mut Causes) {
    const TYPES: &[&str] = &[
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    let target = text(source, &["path"]);
    if target.is_empty() {
        causes.required(&path.child("path"), "");
        return;
    }
    if target.split('/').any(|part| part == "..") {
        causes.invalid(&path.child("path"), target, "must not contain '..'");
    }
    let kind = text(source, &["type"]);
    if !TYPES.contains(&kind) {
        causes.not_supported(&path.child("type"), kind, TYPES);
    }
}

fn downward(source: &Value, path: &Path, causes: &mut Causes) {
    for (index, item) in items(source, &["items"]).iter().enumerate() {
        let path = path.child("items").index(index);
        required(item, "path", &path, causes);
        beneath(text(item, &["path"]), &path.child("path"), causes);
        let given = ["fieldRef", "resourceFieldRef"].iter().filter(|kind| item.get(kind).is_some());
        match given.count() {
            0 => causes.required(&path, "one of fieldRef and resourceFieldRef is required"),
            1 => {}
            _ => {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.invalid(&path, "resource", detail);
            }
        }
        mode(item, "mode", &path, causes);
    }
}

fn projected(source: &Value, volume: &Path, causes: &mut Causes) {
    let path = volume;
    mode(source, "defaultMode", path, causes);
    for (index, item) in items(source, &["sources"]).iter().enumerate() {
        let path = path.child("sources").index(index);
        let given = item.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        for (count, (kind, source)) in given.enumerate() {
            let path = path.child(kind);
            if count > 0 {
                causes.forbidden(&path, "may not specify more than 1 volume type");
                continue;
            }
            match kind.as_str() {
                "secret" | "configMap" => files(source, "name", &path, causes),
                "downwardAPI" => downward(source, &path, causes),
                "serviceAccountToken" => token(source, &path, volume, causes),
                _ => {}
            }
        }
    }
}

/// Kubernetes looks for the path of a token in the volume, not in the source.
fn token(source: &Value, path: &Path, volume: &Path, causes: &mut Causes) {
    let seconds = integer(source, &["expirationSeconds"]).unwrap_or(3600);
    if seconds < 600 {
        let detail = "may not specify a duration less than 10 minutes";
        causes.invalid(&path.child("expirationSeconds"), seconds, detail);
    }
    if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        causes.invalid(&path.child("expirationSeconds"), seconds, detail);
    }
    required(source, "path", volume, causes);
    beneath(text(source, &["path"]), &path.child("path"), causes);
}
