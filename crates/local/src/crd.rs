//! Custom resource definitions: their schemas, defaults, rules and versions.
//!
//! A definition is checked when it is written and read once per change; what a version then does to
//! objects (`prune`, `default`, `validate`) is pure. Its schema takes many times the room of its text
//! and is compiled when the first object needs it: most kinds of a cluster have none.

mod budget;
mod causes;
mod check;
mod defaults;
mod definition;
mod embedded;
mod formats;
mod forms;
mod names;
mod path;
mod prune;
mod room;
mod rules;
mod scale;
mod schema;
mod structure;
#[cfg(test)]
mod tests;
mod values;

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

pub use definition::{default_definition, validate_definition};
pub use names::{Taken, accept_names, is_established, terminating};
pub use scale::ScalePaths;

use crate::{
    builtin::{Resource, Storage, Subresource},
    error::Cause,
    store::Object,
    types::{Id, Typed, Types},
};
use path::Path;
use schema::{Schema, list, text};

/// A definition, ready for use.
#[derive(Debug)]
pub struct Definition {
    pub group: String,
    pub names: Names,
    pub namespaced: bool,
    /// Whether its resources are served.
    pub established: bool,
    pub versions: Vec<Version>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

/// One version of a custom kind.
#[derive(Debug)]
pub struct Version {
    pub name: String,
    pub served: bool,
    pub storage: bool,
    pub has_status: bool,
    pub scale: Option<ScalePaths>,
    pub columns: Vec<Column>,
    /// The `jsonPath`s, as in `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// What each answer warns of, if the version is deprecated.
    pub deprecation: Option<String>,
    /// The definition, and which of its versions this is.
    source: (Arc<Object>, usize),
    compiled: OnceLock<Compiled>,
}

/// A schema, ready for use.
#[derive(Debug)]
struct Compiled {
    schema: Schema,
    types: Types,
    root: Id,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    pub format: String,
    pub description: String,
    /// Above zero: only in wide tables.
    pub priority: i64,
    pub json_path: String,
}

impl Definition {
    /// Of a definition that has passed `validate_definition`; fails with its causes where it cannot be
    /// used all the same.
    pub fn read(object: &Arc<Object>) -> Result<Self, Vec<Cause>> {
        let crd = object.tree();
        let spec = &crd["spec"];
        let owned = |value: &Value, name: &str| text(value, name).unwrap_or_default().to_owned();
        let strings = |name: &str| {
            list(&spec["names"], name).filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let names = Names {
            plural: owned(&spec["names"], "plural"),
            singular: owned(&spec["names"], "singular"),
            kind: owned(&spec["names"], "kind"),
            list_kind: owned(&spec["names"], "listKind"),
            short_names: strings("shortNames"),
            categories: strings("categories"),
        };
        let group = owned(spec, "group");
        let version = |(at, raw)| Version::read(raw, &group, &names.kind, (Arc::clone(object), at));
        let versions: Vec<Version> = list(spec, "versions").enumerate().map(version).collect();
        let named = ![&group, &names.plural, &names.kind].iter().any(|name| name.is_empty());
        if !named || versions.is_empty() {
            return Err(validate_definition(&crd, None));
        }
        let namespaced = text(spec, "scope") == Some("Namespaced");
        Ok(Self { group, names, namespaced, established: is_established(&crd), versions })
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version that objects are stored in.
    pub fn storage(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The resources that are served, one for each version.
    pub fn resources(&self) -> Vec<Resource> {
        let served = self.versions.iter().filter(|version| version.served);
        served.map(|version| self.resource(version)).collect()
    }

    fn resource(&self, version: &Version) -> Resource {
        const VERBS: &[&str] =
            &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
        let text = |text: &String| text.clone().into();
        let mut subresources = Vec::new();
        if version.has_status {
            subresources.push(Subresource::STATUS);
        }
        if version.scale.is_some() {
            subresources.push(Subresource::SCALE);
        }
        Resource {
            group: text(&self.group),
            version: text(&version.name),
            kind: text(&self.names.kind),
            list_kind: text(&self.names.list_kind),
            plural: text(&self.names.plural),
            singular: text(&self.names.singular),
            short_names: self.names.short_names.iter().map(text).collect(),
            categories: self.names.categories.iter().map(text).collect(),
            namespaced: self.namespaced,
            verbs: VERBS,
            subresources,
            has_generation: true,
            has_status: version.has_status,
            custom: true,
            storage: Storage::Own,
            delete_shows_object: false,
            put_creates: false,
        }
    }
}

impl Version {
    fn read(raw: &Value, group: &str, kind: &str, source: (Arc<Object>, usize)) -> Self {
        let flag = |name: &str| raw[name].as_bool().unwrap_or_default();
        let name = text(raw, "name").unwrap_or_default();
        let deprecation = flag("deprecated").then(|| {
            let usual = || format!("{group}/{name} {kind} is deprecated");
            text(raw, "deprecationWarning").map_or_else(usual, str::to_owned)
        });
        let there = |name: &str| raw["subresources"].get(name).filter(|part| !part.is_null());
        let selectable = list(raw, "selectableFields").filter_map(|field| text(field, "jsonPath"));
        Self {
            name: name.to_owned(),
            served: flag("served"),
            storage: flag("storage"),
            has_status: there("status").is_some(),
            scale: there("scale").map(ScalePaths::read),
            columns: Column::read_all(raw),
            selectable_fields: selectable.map(str::to_owned).collect(),
            deprecation,
            source,
            compiled: OnceLock::new(),
        }
    }

    /// As it was declared, for clients to read.
    pub fn raw_schema(&self) -> Value {
        let (definition, at) = &self.source;
        let definition = definition.tree();
        let version = definition.pointer(&format!("/spec/versions/{at}"));
        version.and_then(definition::schema_of).cloned().unwrap_or_else(|| json!({}))
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            let schema = Schema::read(&self.raw_schema());
            let (types, root) = forms::of_objects(&schema);
            Compiled { schema, types, root }
        })
    }

    fn schema(&self) -> &Schema {
        &self.compiled().schema
    }

    /// The form of the objects, for apply and patches.
    pub fn typed(&self) -> Typed<'_> {
        let Compiled { types, root, .. } = self.compiled();
        Typed { types, id: *root }
    }

    /// Drops fields that are not declared; returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.schema(), object)
    }

    /// Drops nulls that may not stand and that no default replaces. What is read is spared them, but
    /// an apply that leaves one behind is refused.
    pub fn drop_nulls(&self, object: &mut Value) {
        defaults::drop_nulls(self.schema(), object);
    }

    /// Fills in defaults.
    pub fn default(&self, object: &mut Value) {
        defaults::default(self.schema(), object);
    }

    /// What is wrong with an object as a whole. The old object is what it replaces: its faults are
    /// forgiven where they have not been touched.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        let causes = check::check(self.schema(), new, old, &Path::Root);
        self.finish(causes, new, old, Part::Whole)
    }

    /// As `validate` for a write of `/status`, which cannot answer for the rest of the object.
    pub fn validate_status(&self, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        let causes = match (self.schema().field("status"), new.get("status")) {
            (Some(schema), Some(status)) => {
                let old = old.and_then(|old| old.get("status"));
                // The texts name fields as the status itself would, the causes in full.
                let causes = check::check(schema, status, old, &Path::Root);
                causes.into_iter().map(causes::in_status).collect()
            }
            _ => Vec::new(),
        };
        self.finish(causes, new, old, Part::Status)
    }

    fn finish(
        &self,
        mut causes: Vec<Cause>,
        new: &Value,
        old: Option<&Value>,
        part: Part,
    ) -> Vec<Cause> {
        let schema = self.schema();
        if let Some(scale) = &self.scale {
            if part == Part::Whole {
                scale.check_spec(new, &mut causes);
            }
            scale.check_status(new, &mut causes);
        }
        embedded::check(schema, new, &Path::Root, &mut causes);
        let twice = |object: &Value| {
            let mut causes = Vec::new();
            check::check_unique(schema, object, &Path::Root, &mut causes);
            causes
        };
        if old.is_none_or(|old| twice(old).is_empty()) {
            causes.append(&mut twice(new));
        }
        // As an older program may have stored it. What nobody can check is not let through.
        if schema.broken {
            let detail =
                "some validation rules of the definition cannot be read; correct them first";
            causes.push(causes::invalid(&Path::Root, &Value::Null, detail));
        }
        if schema.has_rules {
            if causes.iter().any(check::is_blocking) {
                let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
                causes.push(causes::invalid(&Path::Root, &Value::Null, detail));
            } else {
                causes.append(&mut rules::check(schema, new, old));
            }
        }
        causes
    }
}

/// What a write can answer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Status,
}

impl Column {
    fn read_all(version: &Value) -> Vec<Self> {
        let columns: Vec<Self> =
            list(version, "additionalPrinterColumns").map(Self::read).collect();
        if !columns.is_empty() {
            return columns;
        }
        vec![Self {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            json_path: ".metadata.creationTimestamp".to_owned(),
        }]
    }

    fn read(raw: &Value) -> Self {
        let owned = |name: &str| text(raw, name).unwrap_or_default().to_owned();
        let description = Some(owned("description")).filter(|text| !text.is_empty());
        let json_path = owned("jsonPath");
        Self {
            name: owned("name"),
            kind: owned("type"),
            format: owned("format"),
            description: description.unwrap_or_else(|| {
                format!("Custom resource definition column (in JSONPath format): {json_path}")
            }),
            priority: raw["priority"].as_i64().unwrap_or_default(),
            json_path,
        }
    }
}
