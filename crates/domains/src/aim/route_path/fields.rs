//! What an expression may name in an AIMService, and what an unset field says.
//!
//! JSON leaves unset fields out, but a name that exists and is unset is not the same as one that
//! does not exist.

use Shape::{Any, Changing, Flag, List, Map, Number, Object, Optional, Text};

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
    Object(&'static [(&'static str, Shape)]),
    /// Unset: empty. A key that is missing is an error.
    Map(&'static Shape),
    /// Unset: empty.
    List(&'static Shape),
    /// Whatever JSON is there; unset as in `Optional`.
    Any,
    /// Changes when nobody changes the service. A path that told of it would change with each telling,
    /// so to name it is an error, and who looks through everything does not find it.
    Changing,
}

pub(super) static SERVICE: Shape = Object(&[
    ("apiVersion", Text),
    ("kind", Text),
    (
        "metadata",
        Object(&[
            ("name", Text),
            ("generateName", Text),
            ("namespace", Text),
            ("uid", Text),
            ("resourceVersion", Changing),
            ("generation", Number),
            ("creationTimestamp", Optional(&Text)),
            ("deletionTimestamp", Optional(&Text)),
            ("deletionGracePeriodSeconds", Optional(&Number)),
            ("labels", Map(&Text)),
            ("annotations", Map(&Text)),
            ("ownerReferences", List(&Any)),
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

static RESOURCES: Shape = Object(&[
    ("limits", Map(&Any)),
    ("requests", Map(&Any)),
    ("claims", List(&Object(&[("name", Text), ("request", Text)]))),
]);

static OVERRIDES: Shape = Object(&[
    ("metric", Optional(&Text)),
    ("precision", Optional(&Text)),
    ("gpuSelector", Optional(&Object(&[("count", Number), ("model", Text)]))),
]);

static ENV_VAR: Shape = Object(&[("name", Text), ("value", Text), ("valueFrom", Any)]);

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

/// The name of a field in the original's own types, by which paths could always name it too.
pub(super) fn go_name(field: &str) -> String {
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
