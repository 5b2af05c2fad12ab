//! What an expression may name in an AIMService, and what an unset field says.
//!
//! JSON leaves unset fields out, but a name that exists and is unset is not the same as one that
//! does not exist.

use Shape::{Any, Changing, Flag, Inline, List, Map, Number, Object, Optional, Text};

pub(super) type Field = (&'static str, Shape);

pub(super) enum Shape {
    /// Unset: empty.
    Text,
    /// Unset: false.
    Flag,
    /// Unset: zero.
    Number,
    /// Unset: without a value, which is an error to print and to look into.
    Optional(&'static Shape),
    /// Unset: all its fields are.
    Object(&'static [Field]),
    /// Unset: empty. A key that is missing is an error.
    Map(&'static Shape),
    /// Unset: empty.
    List(&'static Shape),
    /// A part of the object that only the original's own types have a name for.
    Inline(&'static [Field]),
    /// Whatever JSON is there; unset as in `Optional`.
    Any,
    /// Changes when nobody changes the service. A path that told of it would change with each telling,
    /// so to name it is an error, and who looks through everything does not find it.
    Changing,
}

pub(super) static SERVICE: Shape = Object(&[
    ("apiVersion", Text),
    ("kind", Text),
    ("TypeMeta", Inline(&[("apiVersion", Text), ("kind", Text)])),
    (
        "metadata",
        Object(&[
            ("name", Text),
            ("generateName", Text),
            ("namespace", Text),
            ("selfLink", Text),
            ("uid", Text),
            ("resourceVersion", Changing),
            ("generation", Number),
            ("creationTimestamp", Optional(&Text)),
            ("deletionTimestamp", Optional(&Text)),
            ("deletionGracePeriodSeconds", Optional(&Number)),
            ("labels", Map(&Text)),
            ("annotations", Map(&Text)),
            ("ownerReferences", List(&OWNER)),
            ("finalizers", List(&Text)),
            ("managedFields", Changing),
        ]),
    ),
    (
        "spec",
        Object(&[
            ("aimImageName", Text),
            ("templateRef", Text),
            ("cacheModel", Flag),
            ("replicas", Optional(&Number)),
            ("runtimeConfigName", Text),
            ("resources", Optional(&RESOURCES)),
            ("overrides", Optional(&OVERRIDES)),
            ("env", List(&ENV_VAR)),
            ("imagePullSecrets", List(&Object(&[("name", Text)]))),
            ("routing", Optional(&ROUTING)),
        ]),
    ),
    ("status", Changing),
]);

static OWNER: Shape = Object(&[
    ("apiVersion", Text),
    ("kind", Text),
    ("name", Text),
    ("uid", Text),
    ("controller", Optional(&Flag)),
    ("blockOwnerDeletion", Optional(&Flag)),
]);

static RESOURCES: Shape = Object(&[
    ("limits", Map(&Any)),
    ("requests", Map(&Any)),
    ("claims", List(&Object(&[("name", Text), ("request", Text)]))),
]);

static OVERRIDES: Shape = Object(&[
    METRIC,
    PRECISION,
    GPU_SELECTOR,
    ("AIMRuntimeParameters", Inline(&[METRIC, PRECISION, GPU_SELECTOR])),
]);
const METRIC: Field = ("metric", Optional(&Text));
const PRECISION: Field = ("precision", Optional(&Text));
const GPU_SELECTOR: Field =
    ("gpuSelector", Optional(&Object(&[("count", Number), ("model", Text)])));

static ENV_VAR: Shape =
    Object(&[("name", Text), ("value", Text), ("valueFrom", Optional(&ENV_SOURCE))]);

static ENV_SOURCE: Shape = Object(&[
    ("fieldRef", Optional(&Object(&[("apiVersion", Text), ("fieldPath", Text)]))),
    (
        "resourceFieldRef",
        Optional(&Object(&[("containerName", Text), ("resource", Text), ("divisor", Any)])),
    ),
    ("configMapKeyRef", Optional(&KEY)),
    ("secretKeyRef", Optional(&KEY)),
    (
        "fileKeyRef",
        Optional(&Object(&[
            ("volumeName", Text),
            ("path", Text),
            ("key", Text),
            ("optional", Optional(&Flag)),
        ])),
    ),
]);

static KEY: Shape = Object(&[
    ("name", Text),
    ("LocalObjectReference", Inline(&[("name", Text)])),
    ("key", Text),
    ("optional", Optional(&Flag)),
]);

static ROUTING: Shape = Object(&[
    ("enabled", Optional(&Flag)),
    ("gatewayRef", Optional(&GATEWAY)),
    ("annotations", Map(&Text)),
    ("routeTemplate", Text),
]);

static GATEWAY: Shape = Object(&[
    ("group", Optional(&Text)),
    ("kind", Optional(&Text)),
    ("namespace", Optional(&Text)),
    ("name", Text),
    ("sectionName", Optional(&Text)),
    ("port", Optional(&Number)),
]);

/// A field by the name that JSON has for it or the original's own types have: paths could always use both.
pub(super) fn named(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    let is_go = |field: &&Field| go_name(field.0) == name;
    fields.iter().find(|(field, _)| *field == name).or_else(|| fields.iter().find(is_go))
}

/// A field of the metadata by its own name alone: in those types what is embedded lends its fields.
pub(super) fn promoted(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    match fields.iter().find(|(field, _)| *field == EMBEDDED)? {
        (_, Object(metadata)) => metadata.iter().find(|(field, _)| go_name(field) == name),
        _ => None,
    }
}

pub(super) const EMBEDDED: &str = "metadata";

fn go_name(field: &str) -> String {
    match field {
        "aimImageName" => "AIMImageName".to_owned(),
        "apiVersion" => "APIVersion".to_owned(),
        "gpuSelector" => "GPUSelector".to_owned(),
        "metadata" => "ObjectMeta".to_owned(),
        "uid" => "UID".to_owned(),
        _ => {
            let mut rest = field.chars();
            rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
        }
    }
}
