//! Schemas of fields with borrowed types, for `schema_with`: as Kubernetes and the Gateway API
//! publish them, with the parts that the types' own schemas lack.

use k8s_openapi::api::core::v1::{EnvVar, LocalObjectReference, ResourceRequirements};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::schema::{self, Rule};

/// A value that is set cannot become another one; where the field is optional, it may come and go.
pub(super) fn immutable(message: &str) -> Vec<Rule> {
    vec![Rule::new("self == oldSelf", message)]
}

pub(super) fn image_resources() -> Vec<Rule> {
    vec![
        Rule::new(
            "has(self.requests) && 'cpu' in self.requests && 'memory' in self.requests",
            "resources.requests must include cpu and memory",
        ),
        Rule::new(
            "has(self.limits) && 'memory' in self.limits",
            "resources.limits must include memory",
        ),
    ]
}

pub(super) fn resources(generator: &mut SchemaGenerator) -> Schema {
    let quantity = schema::quantity(generator);
    let mut resources = ResourceRequirements::json_schema(generator);
    set(&mut resources, "/properties/claims", "x-kubernetes-list-type", "map".into());
    set(&mut resources, "/properties/claims", "x-kubernetes-list-map-keys", json!(["name"]));
    for amounts in ["/properties/requests", "/properties/limits"] {
        set(&mut resources, amounts, "additionalProperties", quantity.clone().into());
    }
    resources
}

/// A list keyed by name.
pub(super) fn env(generator: &mut SchemaGenerator) -> Schema {
    let mut list = plain_env(generator);
    set(&mut list, "", "x-kubernetes-list-type", "map".into());
    set(&mut list, "", "x-kubernetes-list-map-keys", json!(["name"]));
    list
}

/// A list that may name a variable twice.
pub(super) fn plain_env(generator: &mut SchemaGenerator) -> Schema {
    let quantity = schema::quantity(generator);
    let mut variable = EnvVar::json_schema(generator);
    for source in ["configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"] {
        let source = format!("/properties/valueFrom/properties/{source}");
        set(&mut variable, &source, "x-kubernetes-map-type", "atomic".into());
    }
    for reference in ["configMapKeyRef", "secretKeyRef"] {
        let reference = format!("/properties/valueFrom/properties/{reference}");
        set(&mut variable, &reference, "required", json!(["key"]));
        set(&mut variable, &format!("{reference}/properties/name"), "default", "".into());
    }
    let field = "/properties/valueFrom/properties/resourceFieldRef/properties";
    set(&mut variable, field, "divisor", quantity.into());
    json_schema!({ "type": "array", "items": variable })
}

pub(super) fn pull_secrets(generator: &mut SchemaGenerator) -> Schema {
    let mut secret = LocalObjectReference::json_schema(generator);
    secret.remove("required");
    set(&mut secret, "", "x-kubernetes-map-type", "atomic".into());
    set(&mut secret, "/properties/name", "default", "".into());
    json_schema!({ "type": "array", "items": secret })
}

pub(super) fn gateway_ref(_: &mut SchemaGenerator) -> Schema {
    const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    const KIND: &str = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
    json_schema!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "group": {
                "description": "API group of the parent.",
                "type": "string",
                "default": "gateway.networking.k8s.io",
                "maxLength": 253,
                "pattern": format!("^$|{SUBDOMAIN}"),
            },
            "kind": {
                "description": "Kind of the parent.",
                "type": "string",
                "default": "Gateway",
                "minLength": 1,
                "maxLength": 63,
                "pattern": KIND,
            },
            "name": {
                "description": "Name of the parent.",
                "type": "string",
                "minLength": 1,
                "maxLength": 253,
            },
            "namespace": {
                "description": "Namespace of the parent; by default that of the service.",
                "type": "string",
                "minLength": 1,
                "maxLength": 63,
                "pattern": LABEL,
            },
            "port": {
                "description": "Port of the parent to listen on; by default any.",
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": 65535,
            },
            "sectionName": {
                "description": "Listener of the gateway; by default any.",
                "type": "string",
                "minLength": 1,
                "maxLength": 253,
                "pattern": SUBDOMAIN,
            },
        },
    })
}

fn set(schema: &mut Schema, pointer: &str, key: &str, value: Value) {
    let target = match pointer {
        "" => Some(schema.ensure_object()),
        _ => schema.pointer_mut(pointer).and_then(Value::as_object_mut),
    };
    if let Some(target) = target {
        target.insert(key.to_owned(), value);
    }
}
