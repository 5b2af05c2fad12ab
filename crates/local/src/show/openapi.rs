//! OpenAPI v3, as much of it as kubectl reads: `explain`, `apply`, `diff` and `edit`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    builtin::Resource,
    types::{Builtin, Form, Id, ListKind, Scalar, Typed, builtin},
};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MANAGED_FIELDS_ENTRY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry";
const FIELDS_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";

/// `/openapi/v3`: for each document its path beneath that (`api/v1`, `apis/apps/v1`) and its content
/// hash, by which clients keep it.
pub fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let paths: Map<String, Value> = documents
        .into_iter()
        .map(|(path, hash)| {
            let url = format!("/openapi/v3/{path}?hash={hash}");
            (path.to_owned(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

/// The path of a document beneath `/openapi/v3`.
pub fn path(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

/// What `index` wants to know of a document.
pub fn hash(document: &[u8]) -> String {
    Sha256::digest(document).iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The document of one version of a group. Custom resources come with the schema of their definition.
pub fn document(resources: &[(&Resource, Option<Value>)]) -> Value {
    let mut schemas = Schemas { table: builtin(), done: BTreeMap::new() };
    let mut paths = Map::new();
    for (resource, schema) in resources {
        let name = match schema {
            Some(schema) => schemas.add_custom(resource, schema),
            None => schemas.add_builtin(resource),
        };
        add_paths(resource, &name, &mut paths);
    }
    schemas.done.insert(PATCH.to_owned(), json!({"type": "object"}));
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": schemas.done},
    })
}

/// The older form of such a document, with nothing in it.
pub fn empty_v2() -> Value {
    let info = json!({"title": "Kubernetes", "version": "v1.36.3"});
    json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})
}

/// The same in protobuf: the format is field 1, and of the info, which is field 2, the title is field 1
/// and the version field 2. Every field comes with its length.
pub const EMPTY_V2: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.3";

fn kind_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn add_paths(resource: &Resource, name: &str, paths: &mut Map<String, Value>) {
    let root = path(&resource.group, &resource.version);
    let scope = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
    let collection = format!("/{root}/{scope}{}", resource.plural);
    let kind = kind_of(resource);
    let content = json!({"application/json": {"schema": reference(name)}});
    let ok = json!({"200": {"description": "OK", "content": content}});
    if resource.verbs.contains(&"list") {
        let list = json!({
            "x-kubernetes-action": "list",
            "x-kubernetes-group-version-kind": kind,
            "responses": {"200": {"description": "OK"}},
        });
        paths.insert(collection.clone(), json!({"get": list}));
    } else {
        let create = json!({
            "x-kubernetes-action": "post",
            "x-kubernetes-group-version-kind": kind,
            "responses": ok,
        });
        paths.insert(collection, json!({"post": create}));
        return;
    }
    let get = json!({
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": kind,
        "responses": ok,
    });
    let mut path_parameters = vec![path_parameter("name")];
    if resource.namespaced {
        path_parameters.push(path_parameter("namespace"));
    }
    let one =
        json!({"parameters": path_parameters, "get": get, "patch": patch(resource, &kind, &ok)});
    paths.insert(format!("{collection}/{{name}}"), one);
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
}

/// From this clients learn which kinds of patches and which parameters are understood.
fn patch(resource: &Resource, kind: &Value, responses: &Value) -> Value {
    let parameter = |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    let mut types = vec![
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ];
    if !resource.custom {
        types.push("application/strategic-merge-patch+json");
    }
    let body = |name: &&str| ((*name).to_owned(), json!({"schema": reference(PATCH)}));
    let content: Map<String, Value> = types.iter().map(body).collect();
    json!({
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
        "parameters": [
            parameter("dryRun", "string"),
            parameter("fieldManager", "string"),
            parameter("fieldValidation", "string"),
            parameter("force", "boolean"),
        ],
        "requestBody": {"content": content, "required": true},
        "responses": responses,
    })
}

/// Schemas by name, each made once.
struct Schemas {
    table: &'static Builtin,
    done: BTreeMap<String, Value>,
}

impl Schemas {
    fn add_custom(&mut self, resource: &Resource, schema: &Value) -> String {
        let reversed: Vec<&str> = resource.group.split('.').rev().collect();
        let name = format!("{}.{}.{}", reversed.join("."), resource.version, resource.kind);
        self.add_metadata();
        let mut schema = schema.clone();
        if !schema.is_object() {
            schema = json!({"type": "object"});
        }
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        // Every kind means the same by these three.
        let described = |field: &str, mut form: Value| {
            if let Some(text) = self.table.description(CONFIG_MAP, Some(field)) {
                form["description"] = json!(text);
            }
            form
        };
        let properties = &mut schema["properties"];
        for field in ["apiVersion", "kind"] {
            properties[field] = described(field, json!({"type": "string"}));
        }
        properties["metadata"] = described("metadata", json!({"allOf": [reference(OBJECT_META)]}));
        schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource)]);
        self.done.insert(name.clone(), schema);
        name
    }

    fn add_metadata(&mut self) {
        if let Some(typed) = self.table.object_meta() {
            self.add(OBJECT_META, typed);
        }
    }

    fn add_builtin(&mut self, resource: &Resource) -> String {
        let typed = self.table.kind(&resource.api_version(), &resource.kind);
        let name = typed.and_then(|typed| self.table.name(typed.id));
        let (Some(typed), Some(name)) = (typed, name) else {
            let name = format!("{}.{}", resource.version, resource.kind);
            let schema = json!({
                "type": "object", "x-kubernetes-group-version-kind": [kind_of(resource)],
            });
            self.done.insert(name.clone(), schema);
            return name;
        };
        self.add(name, typed);
        if let Some(schema) = self.done.get_mut(name) {
            schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource)]);
        }
        name.to_owned()
    }

    /// A type with all that it refers to.
    fn add(&mut self, name: &str, typed: Typed<'static>) {
        if self.done.contains_key(name) {
            return;
        }
        // The place is taken first: types may refer to themselves.
        self.done.insert(name.to_owned(), Value::Null);
        let mut schema = match typed.form() {
            Form::Struct(form) => {
                let mut properties = Map::new();
                for (field, declared) in &form.fields {
                    let mut property = match (name, &**field) {
                        (MANAGED_FIELDS_ENTRY, "fieldsV1") => self.fields_v1(),
                        _ => self.of(typed, declared.form),
                    };
                    self.describe(name, field, &mut property);
                    let strategy = &declared.strategy;
                    if let Some(key) = &strategy.merge_key {
                        property["x-kubernetes-patch-merge-key"] = json!(key);
                    }
                    if let Some(text) = strategy_text(strategy) {
                        property["x-kubernetes-patch-strategy"] = json!(text);
                    }
                    properties.insert(field.clone(), property);
                }
                let mut schema = json!({"type": "object", "properties": properties});
                let required = form.fields.iter().filter(|(_, field)| field.required);
                let required: Vec<&String> = required.map(|(name, _)| name).collect();
                if !required.is_empty() {
                    schema["required"] = json!(required);
                }
                if form.atomic {
                    schema["x-kubernetes-map-type"] = json!("atomic");
                }
                schema
            }
            _ => self.form(typed),
        };
        if let Some(text) = self.table.description(name, None) {
            schema["description"] = json!(text);
        }
        self.done.insert(name.to_owned(), schema);
    }

    /// With a description beside it, a reference has to stand alone in a list.
    fn describe(&self, name: &str, field: &str, property: &mut Value) {
        if property.get("$ref").is_some() {
            *property = json!({"allOf": [property.take()]});
        }
        if let Some(text) = self.table.description(name, Some(field)) {
            property["description"] = json!(text);
        }
        let allowed = self.table.allowed(name, field);
        if !allowed.is_empty() {
            property["enum"] = json!(allowed);
        }
    }

    /// Clients print the name of the type, of which nothing else is known.
    fn fields_v1(&mut self) -> Value {
        self.done.entry(FIELDS_V1.to_owned()).or_insert_with(|| json!({"type": "object"}));
        reference(FIELDS_V1)
    }

    fn of(&mut self, typed: Typed<'static>, id: Id) -> Value {
        let there = typed.at(id);
        match self.table.name(id) {
            Some(name) => {
                self.add(name, there);
                reference(name)
            }
            None => self.form(there),
        }
    }

    fn form(&mut self, typed: Typed<'static>) -> Value {
        match typed.form() {
            Form::Scalar(scalar) => self.scalar(*scalar),
            Form::Map { values, .. } => {
                json!({"type": "object", "additionalProperties": self.of(typed, *values)})
            }
            Form::List { items, kind } => {
                let mut list = json!({"type": "array", "items": self.of(typed, *items)});
                match kind {
                    ListKind::Atomic => list["x-kubernetes-list-type"] = json!("atomic"),
                    ListKind::Set => list["x-kubernetes-list-type"] = json!("set"),
                    ListKind::Map { keys } => {
                        list["x-kubernetes-list-type"] = json!("map");
                        list["x-kubernetes-list-map-keys"] = json!(keys);
                    }
                }
                list
            }
            Form::Struct(_) | Form::Any => json!({"type": "object"}),
        }
    }

    fn scalar(&mut self, scalar: Scalar) -> Value {
        let named = |name: &'static str, schema: Value| (Some(name), schema);
        let (name, schema) = match scalar {
            Scalar::String => (None, json!({"type": "string"})),
            Scalar::Integer => (None, json!({"type": "integer"})),
            Scalar::Number => (None, json!({"type": "number"})),
            Scalar::Boolean => (None, json!({"type": "boolean"})),
            Scalar::Bytes => (None, json!({"type": "string", "format": "byte"})),
            Scalar::Untyped => (None, json!({})),
            Scalar::Quantity => {
                named(QUANTITY, json!({"oneOf": [{"type": "string"}, {"type": "number"}]}))
            }
            Scalar::IntOrString => named(
                INT_OR_STRING,
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            ),
            Scalar::Time => named(TIME, json!({"type": "string", "format": "date-time"})),
            Scalar::MicroTime => {
                named(MICRO_TIME, json!({"type": "string", "format": "date-time"}))
            }
        };
        let Some(name) = name else { return schema };
        self.done.entry(name.to_owned()).or_insert(schema);
        reference(name)
    }
}

fn strategy_text(strategy: &crate::types::Strategy) -> Option<String> {
    let words = [
        ("merge", strategy.merge),
        ("retainKeys", strategy.retain_keys),
        ("replace", strategy.replace),
    ];
    let said: Vec<&str> = words.iter().filter(|(_, said)| *said).map(|(word, _)| *word).collect();
    (!said.is_empty()).then(|| said.join(","))
}
