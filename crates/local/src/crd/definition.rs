//! A definition itself: what is filled in and what is refused.

use std::{collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use serde_json::{Value, json};

use super::{
    causes,
    path::Path,
    room,
    schema::{Schema, list, text},
    structure,
};
use crate::error::Cause;

/// Fills in what kube-apiserver does.
pub fn default_definition(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let empty = |value: Option<&Value>| value.and_then(Value::as_str).is_none_or(str::is_empty);
        if !kind.is_empty() && empty(names.get("singular")) {
            names.insert("singular".to_owned(), json!(kind.to_lowercase()));
        }
        if !kind.is_empty() && empty(names.get("listKind")) {
            names.insert("listKind".to_owned(), json!(format!("{kind}List")));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// What keeps a definition from being stored.
pub fn validate_definition(crd: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &crd["spec"];
    check_name(crd, &mut causes);
    let root = Path::Root;
    let path = root.field("spec");
    check_group(spec, &path, &mut causes);
    check_scope(spec, &path, &mut causes);
    check_versions(spec, &path, &mut causes);
    check_names(&spec["names"], &path.field("names"), &mut causes);
    if let Err(detail) = room::check_amount(spec) {
        causes.push(causes::invalid_whole(&path.field("versions"), &detail));
        return causes;
    }
    check_schemas(spec, &path, &mut causes);
    check_subresources(spec, &path, &mut causes);
    check_columns(spec, &path, &mut causes);
    check_selectable(spec, &path, &mut causes);
    check_conversion(spec, &path, &mut causes);
    check_stored(crd, &mut causes);
    check_approval(crd, old, &mut causes);
    if let Some(old) = old {
        check_unchanged(crd, old, &mut causes);
    }
    causes
}

fn check_name(crd: &Value, causes: &mut Vec<Cause>) {
    let Some(name) = text(&crd["metadata"], "name") else { return };
    let plural = text(&crd["spec"]["names"], "plural").unwrap_or_default();
    let group = text(&crd["spec"], "group").unwrap_or_default();
    if name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(causes::invalid(&Path::Text("metadata.name"), &json!(name), detail));
    }
}

fn check_group(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let at = path.field("group");
    match text(spec, "group").unwrap_or_default() {
        "" => causes.push(causes::required(&at, "")),
        group if !is_subdomain(group) => {
            let detail = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            causes.push(causes::invalid(&at, &json!(group), detail));
        }
        group if !group.contains('.') => {
            let detail = "should be a domain with at least one dot";
            causes.push(causes::invalid(&at, &json!(group), detail));
        }
        _ => {}
    }
}

fn check_scope(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let at = path.field("scope");
    match text(spec, "scope").unwrap_or_default() {
        "" => causes.push(causes::required(&at, "")),
        "Namespaced" | "Cluster" => {}
        other => {
            let supported = ["Cluster", "Namespaced"].map(str::to_owned);
            causes.push(causes::not_supported(&at, &json!(other), &supported));
        }
    }
}

fn check_versions(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let at = path.field("versions");
    let mut names = BTreeSet::new();
    let mut storage = 0;
    let mut unique = true;
    for (index, version) in list(spec, "versions").enumerate() {
        let here = at.index(index);
        let name = text(version, "name").unwrap_or_default();
        unique &= names.insert(name);
        storage += usize::from(version["storage"] == json!(true));
        if let Some(detail) = label_problem(name) {
            causes.push(causes::invalid(&here.field("name"), &json!(name), detail));
        }
        if schema_of(version).is_none() {
            let schema = here.field("schema");
            causes.push(causes::required(&schema.field("openAPIV3Schema"), ""));
        }
    }
    let all = spec.get("versions").cloned().unwrap_or_default();
    if !unique {
        causes.push(causes::invalid(&at, &all, "must contain unique version names"));
    }
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(causes::invalid(&at, &all, detail));
    }
    if storage == 0 {
        let detail = "must have at least one stored version";
        causes.push(causes::invalid(&Path::Text("status.storedVersions"), &Value::Null, detail));
    }
}

pub(super) fn schema_of(version: &Value) -> Option<&Value> {
    version.get("schema")?.get("openAPIV3Schema").filter(|schema| schema.is_object())
}

fn check_names(names: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    for name in ["plural", "singular", "kind", "listKind"] {
        let at = path.field(name);
        let value = text(names, name).unwrap_or_default();
        if value.is_empty() {
            causes.push(causes::required(&at, ""));
        } else if name.ends_with("ind") || name.ends_with("Kind") {
            if let Some(detail) = label_problem(&value.to_lowercase()) {
                let detail = format!("may have mixed case, but should otherwise match: {detail}");
                causes.push(causes::invalid(&at, &json!(value), &detail));
            }
        } else if let Some(detail) = label_problem(value) {
            causes.push(causes::invalid(&at, &json!(value), detail));
        }
    }
    for name in ["shortNames", "categories"] {
        let at = path.field(name);
        for (index, value) in list(names, name).enumerate() {
            if let Some(detail) = label_problem(value.as_str().unwrap_or_default()) {
                causes.push(causes::invalid(&at.index(index), value, detail));
            }
        }
    }
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if kind == list_kind && kind.is_some_and(|kind| !kind.is_empty()) {
        let detail = "kind and listKind may not be the same";
        causes.push(causes::invalid(&path.field("listKind"), &json!(list_kind), detail));
    }
}

/// A part that is the same in all versions is named once, as if it stood outside of them.
fn each<'a>(
    spec: &'a Value,
    part: impl Fn(&'a Value) -> Option<&'a Value>,
    mut then: impl FnMut(&'a Value, Option<usize>),
) {
    let parts: Vec<Option<&Value>> = list(spec, "versions").map(part).collect();
    if let Some((first, rest)) = parts.split_first()
        && rest.iter().all(|part| part == first)
    {
        return first.iter().for_each(|part| then(part, None));
    }
    for (index, part) in parts.into_iter().enumerate() {
        part.into_iter().for_each(|part| then(part, Some(index)));
    }
}

fn check_schemas(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    each(spec, schema_of, |raw, version| {
        let place = match version {
            None => format!("{path}.validation.openAPIV3Schema"),
            Some(index) => format!("{path}.versions[{index}].schema.openAPIV3Schema"),
        };
        let schema = Schema::read(raw);
        causes.extend(structure::problems(raw, &schema, &Path::Text(&place)));
    });
}

fn check_subresources(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    each(
        spec,
        |version| version.get("subresources"),
        |subresources, version| {
            let place = match version {
                None => format!("{path}.subresources"),
                Some(index) => format!("{path}.versions[{index}].subresources"),
            };
            let Some(scale) = subresources.get("scale").filter(|scale| !scale.is_null()) else {
                return;
            };
            for (name, roots, required) in [
                ("specReplicasPath", &[".spec."][..], true),
                ("statusReplicasPath", &[".status."], true),
                ("labelSelectorPath", &[".spec.", ".status."], false),
            ] {
                let at = format!("{place}.scale.{name}");
                let at = Path::Text(&at);
                match text(scale, name).unwrap_or_default() {
                    "" if required => causes.push(causes::required(&at, "")),
                    "" => {}
                    value if !value.starts_with('.') => {
                        let detail = "must be a simple json path starting with .";
                        causes.push(causes::invalid(&at, &json!(value), detail));
                    }
                    value if value.contains(['[', ']']) => {
                        let detail = "must be a json path in the dot notation";
                        causes.push(causes::invalid(&at, &json!(value), detail));
                    }
                    value if !roots.iter().any(|root| value.starts_with(root)) => {
                        let under = match roots {
                            [one] => one.trim_end_matches('.').to_owned(),
                            _ => "either .spec or .status".to_owned(),
                        };
                        let detail = format!("should be a json path under {under}");
                        causes.push(causes::invalid(&at, &json!(value), &detail));
                    }
                    _ => {}
                }
            }
        },
    );
}

fn check_columns(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    each(
        spec,
        |version| version.get("additionalPrinterColumns"),
        |columns, version| {
            let place = match version {
                None => format!("{path}.additionalPrinterColumns"),
                Some(index) => format!("{path}.versions[{index}].additionalPrinterColumns"),
            };
            let place = Path::Text(&place);
            for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
                let here = place.index(index);
                if text(column, "name").is_none_or(str::is_empty) {
                    causes.push(causes::required(&here.field("name"), ""));
                }
                let kind = text(column, "type").unwrap_or_default();
                let detail = format!("must be one of {}", TYPES.join(","));
                if kind.is_empty() {
                    causes.push(causes::required(&here.field("type"), &detail));
                } else if !TYPES.contains(&kind) {
                    causes.push(causes::invalid(&here.field("type"), &json!(kind), &detail));
                }
                let at = here.field("JSONPath");
                match text(column, "jsonPath").unwrap_or_default() {
                    "" => causes.push(causes::required(&at, "")),
                    value if !value.starts_with('.') => {
                        let detail = "must be a simple json path starting with .";
                        causes.push(causes::invalid(&at, &json!(value), detail));
                    }
                    _ => {}
                }
            }
        },
    );
}

fn check_selectable(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    const MOST: u64 = 8;
    each(
        spec,
        |version| version.get("selectableFields"),
        |fields, version| {
            let place = match version {
                None => format!("{path}.selectableFields"),
                Some(index) => format!("{path}.versions[{index}].selectableFields"),
            };
            let place = Path::Text(&place);
            let schema =
                list(spec, "versions").nth(version.unwrap_or_default()).and_then(schema_of);
            let mut seen = BTreeSet::new();
            for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
                let here = place.index(index);
                let at = here.field("jsonPath");
                let json_path = text(field, "jsonPath").unwrap_or_default();
                let value = json!(json_path);
                if json_path.is_empty() {
                    causes.push(causes::required(&at, ""));
                } else if json_path.starts_with(".metadata") {
                    let detail = "must not point to fields in metadata";
                    causes.push(causes::invalid(&at, &value, detail));
                } else if let Some(detail) =
                    schema.and_then(|schema| unselectable(schema, json_path))
                {
                    causes.push(causes::invalid(&at, &value, detail));
                } else if !seen.insert(json_path) {
                    causes.push(causes::duplicate(&at, &value));
                }
            }
            if seen.len() as u64 > MOST {
                causes.push(causes::too_many(&place, seen.len(), MOST));
            }
        },
    );
}

/// Why objects cannot be selected by this field.
fn unselectable(schema: &Value, json_path: &str) -> Option<&'static str> {
    let mut names = json_path.trim_start_matches('.').split('.');
    let found = names.try_fold(schema, |schema, name| schema.get("properties")?.get(name));
    let Some(found) = found else {
        return Some("is an invalid path: does not refer to a valid field");
    };
    let fits = matches!(text(found, "type"), Some("string" | "boolean" | "integer"));
    (!fits).then_some(
        "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
    )
}

fn check_conversion(spec: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let at = path.field("conversion");
    match text(&spec["conversion"], "strategy").unwrap_or("None") {
        "None" => {}
        "Webhook" => {
            let detail = "conversion by webhook is not supported on a local node";
            causes.push(causes::forbidden(&at.field("strategy"), detail));
        }
        other => {
            let supported = ["None", "Webhook"].map(str::to_owned);
            causes.push(causes::not_supported(&at.field("strategy"), &json!(other), &supported));
        }
    }
    if spec["preserveUnknownFields"] == json!(true) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(causes::invalid(&path.field("preserveUnknownFields"), &json!(true), detail));
    }
}

/// A version in which objects may be stored cannot go.
fn check_stored(crd: &Value, causes: &mut Vec<Cause>) {
    let versions: Vec<&str> =
        list(&crd["spec"], "versions").filter_map(|version| text(version, "name")).collect();
    for (index, stored) in list(&crd["status"], "storedVersions").enumerate() {
        let Some(name) = stored.as_str() else { continue };
        if !versions.contains(&name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            let at = format!("status.storedVersions[{index}]");
            causes.push(causes::invalid(&Path::Text(&at), stored, &detail));
        }
    }
}

/// Groups of the Kubernetes project want to know who approved the API.
fn check_approval(crd: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let group = text(&crd["spec"], "group").unwrap_or_default();
    let is_protected = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !is_protected("k8s.io") && !is_protected("kubernetes.io") {
        return;
    }
    let approval = |crd: &Value| crd["metadata"]["annotations"].get(ANNOTATION).cloned();
    let now = approval(crd);
    if old.is_some_and(|old| approval(old) == now) {
        return;
    }
    let at = format!("metadata.annotations[{ANNOTATION}]");
    let at = Path::Text(&at);
    match now.as_ref().and_then(Value::as_str).unwrap_or_default() {
        "" => {
            let detail = format!(
                "protected groups must have approval annotation {ANNOTATION:?}, see https://github.com/kubernetes/enhancements/pull/1111"
            );
            causes.push(causes::required(&at, &detail));
        }
        text if text.starts_with("unapproved") || text.contains("://") => {}
        other => {
            let detail = format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            );
            causes.push(causes::invalid(&at, &json!(other), &detail));
        }
    }
}

fn check_unchanged(crd: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let established = super::names::is_established(old);
    for (pointer, field, always) in [
        ("/spec/scope", "spec.scope", false),
        ("/spec/names/kind", "spec.names.kind", false),
        ("/spec/group", "spec.group", true),
        ("/spec/names/plural", "spec.names.plural", true),
    ] {
        let (new, old) = (crd.pointer(pointer), old.pointer(pointer));
        if new != old && (always || established) {
            let value = new.cloned().unwrap_or_default();
            causes.push(causes::invalid(&Path::Text(field), &value, "field is immutable"));
        }
    }
}

fn is_subdomain(name: &str) -> bool {
    static SUBDOMAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").ok()
    });
    name.len() <= 253 && SUBDOMAIN.as_ref().is_some_and(|pattern| pattern.is_match(name))
}

fn label_problem(name: &str) -> Option<&'static str> {
    let bytes = name.as_bytes();
    let fits = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-');
    if name.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    (!fits).then_some(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    )
}
