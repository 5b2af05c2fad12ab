//! Custom resource definitions: their schemas, defaults, rules and versions.
//!
//! A definition is checked when it is written and compiled once per change; what a version then does
//! to objects (`prune`, `default`, `validate`) is pure.

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

use serde_json::{Value, json};

pub use definition::{default_definition, validate_definition};
pub use names::{accept_names, is_established, terminating};
pub use scale::ScalePaths;

use crate::{
    builtin::{Resource, Storage, Subresource},
    error::Cause,
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
    /// As it was declared, for clients to read.
    pub raw_schema: Value,
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
    pub fn compile(crd: &Value) -> Result<Self, Vec<Cause>> {
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
        let version = |raw| Version::compile(raw, &group, &names.kind);
        let versions: Vec<Version> = list(spec, "versions").map(version).collect();
        let named = ![&group, &names.plural, &names.kind].iter().any(|name| name.is_empty());
        if !named || versions.is_empty() || versions.iter().any(|version| version.schema.broken) {
            return Err(validate_definition(crd, None));
        }
        let namespaced = text(spec, "scope") == Some("Namespaced");
        Ok(Self { group, names, namespaced, versions })
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
    fn compile(raw: &Value, group: &str, kind: &str) -> Self {
        let flag = |name: &str| raw[name].as_bool().unwrap_or_default();
        let raw_schema = definition::schema_of(raw).cloned().unwrap_or_else(|| json!({}));
        let schema = Schema::read(&raw_schema);
        let (types, root) = forms::of_objects(&schema);
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
            raw_schema,
            schema,
            types,
            root,
        }
    }

    /// The form of the objects, for apply and patches.
    pub fn typed(&self) -> Typed<'_> {
        Typed { types: &self.types, id: self.root }
    }

    /// Drops fields that are not declared; returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.schema, object)
    }

    /// Drops nulls that may not stand and that no default replaces. What is read is spared them, but
    /// an apply that leaves one behind is refused.
    pub fn drop_nulls(&self, object: &mut Value) {
        defaults::drop_nulls(&self.schema, object);
    }

    /// Fills in defaults.
    pub fn default(&self, object: &mut Value) {
        defaults::default(&self.schema, object);
    }

    /// What is wrong with an object as a whole. The old object is what it replaces: its faults are
    /// forgiven where they have not been touched.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        let causes = check::check(&self.schema, new, old, &Path::Root);
        self.finish(causes, new, old, Part::Whole)
    }

    /// As `validate` for a write of `/status`, which cannot answer for the rest of the object.
    pub fn validate_status(&self, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        let causes = match (self.schema.field("status"), new.get("status")) {
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
        if let Some(scale) = &self.scale {
            if part == Part::Whole {
                scale.check_spec(new, &mut causes);
            }
            scale.check_status(new, &mut causes);
        }
        embedded::check(&self.schema, new, &Path::Root, &mut causes);
        let twice = |object: &Value| {
            let mut causes = Vec::new();
            check::check_unique(&self.schema, object, &Path::Root, &mut causes);
            causes
        };
        if old.is_none_or(|old| twice(old).is_empty()) {
            causes.append(&mut twice(new));
        }
        if self.schema.has_rules {
            if causes.iter().any(check::is_blocking) {
                let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
                causes.push(causes::invalid(&Path::Root, &Value::Null, detail));
            } else {
                causes.append(&mut rules::check(&self.schema, new, old));
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
