//! The type table of the embedded API: `crates/local/data`, made once per Kubernetes version.
//!
//! A real API server's OpenAPI documents say what the types look like and how their lists merge. The
//! Go sources say the rest (`dump.go`): what is printed when empty, numbers in protobuf, strategies
//! of patches. [`table`] joins the two.

mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{
    cluster::{Assets, ControlPlane, KUBERNETES_VERSION, Options},
    program::{kubectl, run_to_end},
    scratch::Folder,
    workspace::project_root,
};

/// Writes the table and the descriptions.
pub fn write() -> Result<()> {
    let dump = dump()?;
    let schemas = schemas(&dump)?;
    let folder = project_root().join("crates/local/data");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let types = table::types(&dump, &schemas)?;
    let docs = serde_json::to_vec(&table::docs(&dump, &schemas)).context("cannot print docs")?;
    let docs = lz4_flex::block::compress_prepend_size(&docs);
    for (name, bytes) in [("types.txt", types.as_bytes()), ("docs.lz4", &docs)] {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        println!("crates/local/data/{name}");
    }
    Ok(())
}

/// Runs `dump.go` as a module of its own.
fn dump() -> Result<Value> {
    let folder = Folder::new("types")?;
    let version = KUBERNETES_VERSION.replacen("v1.", "v0.", 1);
    let required: String = ["api", "apiextensions-apiserver", "apimachinery"]
        .map(|name| format!("\tk8s.io/{name} {version}\n"))
        .concat();
    let manifest = format!("module windlass.dev/types\n\ngo 1.26\n\nrequire (\n{required})\n");
    for (name, text) in [("go.mod", manifest.as_str()), ("main.go", include_str!("types/dump.go"))]
    {
        let path = folder.path().join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut go = Command::new("go");
    go.args(["run", "-mod=mod", "."]).env("GOWORK", "off").env("CGO_ENABLED", "0");
    let printed = run_to_end(go.current_dir(folder.path()), "go run dump.go")?;
    serde_json::from_str(&printed).context("cannot parse what dump.go printed")
}

/// The OpenAPI schemas of all groups that hold a kind of ours.
fn schemas(dump: &Value) -> Result<BTreeMap<String, Value>> {
    let folder = Folder::new("types-server")?;
    let options = Options { controller_manager: false, ..Options::in_dir(folder.path()) };
    let plane = ControlPlane::start(&Assets::ensure()?, options)?;
    let kinds = dump["kinds"].as_array().context("dump.go printed no kinds")?;
    let versions: BTreeSet<&str> =
        kinds.iter().filter_map(|kind| kind["apiVersion"].as_str()).collect();
    let mut schemas = BTreeMap::new();
    for version in versions {
        let root = if version.contains('/') { "apis" } else { "api" };
        let path = format!("/openapi/v3/{root}/{version}");
        let text = kubectl(&plane, &["get", "--raw", &path])?;
        let document: Value =
            serde_json::from_str(&text).with_context(|| format!("cannot parse {path}"))?;
        let Some(found) = document["components"]["schemas"].as_object() else {
            bail!("cannot find schemas in {path}");
        };
        schemas.extend(found.iter().map(|(name, schema)| (name.clone(), schema.clone())));
    }
    // Every group repeats this list in its own name.
    if let Some(options) = schemas.get_mut("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions") {
        options["x-kubernetes-group-version-kind"] = json!([]);
    }
    Ok(schemas)
}
