//! Bodies as kubectl 1.36 sent them, beside what the same command prints as JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn captured() -> Vec<Value> {
    let lines = include_str!("tests/kubectl.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn body(case: &Value) -> Vec<u8> {
    bytes(case["body"].as_str().unwrap())
}

/// As it reads from either form.
fn normal(object: Value) -> Value {
    let (version, kind) = (object["apiVersion"].clone(), object["kind"].clone());
    let (version, kind) = (version.as_str().unwrap(), kind.as_str().unwrap());
    let typed = types::builtin().kind(version, kind).unwrap();
    let mut object = builtin::decode_kind(version, kind, object, typed).unwrap().object;
    // kubectl's printer shows no status of what it has not sent.
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    // The namespace of the request is added to what is printed, not to what is sent.
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("namespace");
    }
    object
}

#[test]
fn bodies_of_kubectl_read_as_their_json() {
    for case in captured() {
        let read = decode(&body(&case)).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(normal(read), normal(case["json"].clone()), "{}", case["command"]);
    }
}

#[test]
fn zero_values_of_what_is_no_pointer_are_dropped() {
    let case =
        captured().into_iter().find(|case| case["command"] == "kubectl create serviceaccount a");
    let read = decode(&body(&case.unwrap())).unwrap();
    let want = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "a", "namespace": "diff" },
    });
    assert_eq!(read, want);
}

#[test]
fn what_is_no_message_is_refused_in_words() {
    for (body, want) in [
        (&b""[..], Error::Prefix),
        (b"{}", Error::Prefix),
        (b"k8s\0\x0a\x05a", Error::Truncated),
        (b"k8s\0\x0b", Error::Malformed),
        (b"k8s\0", Error::Kind { api_version: String::new(), kind: String::new() }),
    ] {
        assert_eq!(decode(body), Err(want), "{body:?}");
    }
}

#[test]
fn messages_within_messages_without_end_are_refused() {
    // A schema within a schema within a schema: field 28 is `not`.
    let mut schema = Vec::new();
    for _ in 0..200 {
        let mut outer = vec![0xe2, 0x01];
        write_length(&mut outer, schema.len());
        outer.extend(&schema);
        schema = outer;
    }
    let wrap = |tag: u8, inner: &[u8]| {
        let mut outer = vec![tag];
        write_length(&mut outer, inner.len());
        outer.extend(inner);
        outer
    };
    let version = wrap(0x22, &wrap(0x0a, &schema));
    let object = wrap(0x12, &wrap(0x3a, &version));
    let mut meta = wrap(0x0a, b"apiextensions.k8s.io/v1");
    meta.extend(wrap(0x12, b"CustomResourceDefinition"));
    let mut body = MAGIC.to_vec();
    body.extend(wrap(0x0a, &meta));
    body.extend(wrap(0x12, &object));
    assert_eq!(decode(&body), Err(Error::Depth));
}

fn write_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push((length as u8 & 0x7f) | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

proptest! {
    #[test]
    fn any_bytes_end_in_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode(&[MAGIC, &bytes].concat());
    }

    #[test]
    fn spoiled_bodies_end_in_a_value_or_an_error(
        case in 0..captured().len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = body(&captured()[case]);
        for (place, byte) in changes {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let _ = decode(&body);
        body.truncate(cut.index(body.len()));
        let _ = decode(&body);
    }
}
