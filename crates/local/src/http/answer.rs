//! Answers: objects and lists in the form that was asked for.

use std::borrow::Cow;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::negotiate::Form;
use crate::{
    error::Error,
    registry::{Answer, Content, Listed, Served},
    show::{Include, partial_metadata},
    store::Object,
};

/// A form with what belongs to it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) form: Form,
    /// What the rows of a table bring along.
    pub(super) include: Include,
    pub(super) now: Timestamp,
}

pub(super) fn json_bytes(code: StatusCode, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

pub(super) fn json(code: StatusCode, value: &Value) -> Response {
    json_bytes(code, value.to_string())
}

/// The outcome of a write.
pub(super) fn written(served: &Served, answer: Answer, shape: Shape) -> Response {
    let code = if answer.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = match &answer.body {
        Content::Stored(stored) => object(served, stored, shape),
        Content::Shown(shown) => json(code, &formed(served, shown, shape)),
    };
    *response.status_mut() = code;
    warn(&mut response, &answer.warnings);
    response
}

fn formed<'a>(served: &Served, shown: &'a Value, shape: Shape) -> Cow<'a, Value> {
    match shown.get("kind").and_then(Value::as_str) {
        // Neither is an object of the resource.
        Some("Status" | "Scale") => Cow::Borrowed(shown),
        _ if shape.form == Form::Whole => Cow::Borrowed(shown),
        _ => Cow::Owned(shaped(served, shown, shape)),
    }
}

/// As much as Kubernetes gives of warnings, in letters: what has many headers, clients do not read.
const MOST_WARNING: usize = 4096;
/// What is left of one where there are too many.
const LONGEST_WARNING: usize = 256;

/// Each once, as long as there is room.
pub(super) fn warn(response: &mut Response, warnings: &[String]) {
    for text in told(warnings) {
        let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

fn told(warnings: &[String]) -> Vec<String> {
    let mut once: Vec<&String> = Vec::new();
    for text in warnings {
        if !once.contains(&text) {
            once.push(text);
        }
    }
    let letters = |text: &str| text.chars().count();
    let are_many = once.iter().map(|text| letters(text)).sum::<usize>() > MOST_WARNING;
    let mut told = Vec::new();
    let mut written = 0;
    for text in once {
        if written >= MOST_WARNING {
            break;
        }
        let text = match are_many && letters(text) > LONGEST_WARNING {
            true => text.chars().take(LONGEST_WARNING).collect(),
            false => text.clone(),
        };
        written += letters(&text);
        told.push(text);
    }
    told
}

pub(super) fn shaped(served: &Served, object: &Value, shape: Shape) -> Value {
    match shape.form {
        Form::Whole => object.clone(),
        Form::Metadata => partial_metadata(object),
        Form::Table => {
            let mut table = served.table(&[object], shape.include, shape.now);
            if let Some(version) = object.pointer("/metadata/resourceVersion") {
                table["metadata"] = json!({ "resourceVersion": version });
            }
            table
        }
    }
}

pub(super) fn object(served: &Served, object: &Object, shape: Shape) -> Response {
    if shape.form == Form::Whole {
        let mut out = Vec::new();
        print(served, object, object.version(), true, &mut out);
        return json_bytes(StatusCode::OK, out);
    }
    json(StatusCode::OK, &shaped(served, &served.show(object), shape))
}

/// Prints an object whole. Items of built-in lists do not say what they are.
pub(super) fn print(
    served: &Served,
    object: &Object,
    version: u64,
    names_itself: bool,
    out: &mut Vec<u8>,
) {
    if served.shows_as_stored(object) {
        return object.print_into(if names_itself { &served.head } else { "" }, version, out);
    }
    let mut value = served.show(object);
    value["metadata"]["resourceVersion"] = version.to_string().into();
    if let Some(map) = value.as_object_mut()
        && !names_itself
    {
        map.remove("apiVersion");
        map.remove("kind");
    }
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(out, &value);
}

pub(super) fn list(served: &Served, listed: &Listed, shape: Shape) -> Response {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), listed.version.to_string().into());
    if let Some(token) = &listed.go_on {
        metadata.insert("continue".into(), token.as_str().into());
    }
    if let Some(remaining) = listed.remaining {
        metadata.insert("remainingItemCount".into(), remaining.into());
    }
    match shape.form {
        Form::Whole => whole_list(served, listed, &metadata.into()),
        Form::Metadata => {
            let objects =
                listed.objects.iter().map(|object| partial_metadata(&served.show(object)));
            let list = json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": objects.collect::<Vec<_>>(),
            });
            json(StatusCode::OK, &list)
        }
        Form::Table => {
            let objects: Vec<_> = listed.objects.iter().map(|each| served.show(each)).collect();
            let objects: Vec<_> = objects.iter().collect();
            let mut table = served.table(&objects, shape.include, shape.now);
            table["metadata"] = metadata.into();
            json(StatusCode::OK, &table)
        }
    }
}

fn whole_list(served: &Served, listed: &Listed, metadata: &Value) -> Response {
    let (kind, version) = (&*served.resource.list_kind, &*served.api_version);
    let mut out = Vec::with_capacity(256 + 512 * listed.objects.len());
    let start = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
        Value::from(kind),
        Value::from(version)
    );
    out.extend_from_slice(start.as_bytes());
    for (at, object) in listed.objects.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        print(served, object, object.version(), served.resource.custom, &mut out);
    }
    out.extend_from_slice(b"]}");
    json_bytes(StatusCode::OK, out)
}

/// For errors that are answers of their own.
pub(super) fn or_error(answer: Result<Response, Error>) -> Response {
    answer.unwrap_or_else(IntoResponse::into_response)
}
