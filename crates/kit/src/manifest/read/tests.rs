use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn manifest(config: &str, layers: serde_json::Value, annotations: serde_json::Value) -> Manifest {
    serde_json::from_value(json!({
        "schemaVersion": 2,
        "config": {"mediaType": config, "digest": Digest::of(b"c"), "size": 1},
        "layers": layers, "annotations": annotations,
    }))
    .unwrap()
}

fn layer(media_type: &str, content: &str, path: Option<&str>) -> serde_json::Value {
    let digest = Digest::of(content.as_bytes());
    let annotations = path.map(|path| json!({FILE_PATH: path})).unwrap_or(json!({}));
    json!({"mediaType": media_type, "digest": digest, "size": 1, "annotations": annotations})
}

#[test]
fn entries_and_layers_are_joined_by_digest_whatever_their_order() {
    let (model, code) = (Digest::of(b"model"), Digest::of(b"code"));
    let config = json!({"manifestVersion": "1.0.0", "package": {},
        "model": {"path": "m", "digest": model, "diffId": model},
        "code": [{"path": "c", "digest": code, "diffId": code}]});
    let layers = json!([
        layer("application/vnd.kitops.modelkit.code.v1.tar+gzip", "code", None),
        layer("application/vnd.kitops.modelkit.model.v1.tar", "model", None),
        layer("application/vnd.kitops.modelkit.mcpb.v1.raw", "other", None),
    ]);
    let manifest = manifest(model_kit::CONFIG, layers, json!({}));
    let contents = contents(&manifest, config.to_string().as_bytes()).unwrap();
    let found: Vec<_> = contents
        .layers
        .iter()
        .map(|found| (found.entry.path.as_str(), found.expected.compression))
        .collect();
    assert_eq!(found, [("c", Compression::Gzip), ("m", Compression::None)]);
    assert_eq!(contents.layers[1].expected.diff_id, Some(model));
    assert_eq!(contents.unknown, ["application/vnd.kitops.modelkit.mcpb.v1.raw"]);
    let other = config.to_string().replace(code.hex(), Digest::of(b"else").hex());
    let error = super::contents(&manifest, other.as_bytes()).unwrap_err();
    assert!(error.to_string().starts_with("digest in config and manifest do not match"));
}

#[test]
fn k29_artifacts_of_others_are_understood() {
    // Without a Kitfile, in the older spelling, one file each.
    let layers = json!([
        layer("application/vnd.cnai.model.weight.v1.raw", "w", Some("a/model.bin")),
        layer("application/vnd.cnai.model.doc.v1.tar", "d", Some("README.md")),
    ]);
    let config = "application/vnd.cnai.model.config.v1+json";
    let diff_ids =
        json!({"modelfs": {"type": "layers", "diff_ids": [Digest::of(b"w"), "nonsense"]}});
    let manifest = manifest(config, layers, json!({}));
    let contents = contents(&manifest, diff_ids.to_string().as_bytes()).unwrap();
    assert!(contents.kitfile.is_none());
    assert_eq!(contents.layers[0].expected.path, "a/model.bin");
    assert_eq!(contents.layers[0].expected.diff_id, Some(Digest::of(b"w")));
    assert_eq!(contents.layers[1].expected.diff_id, None);
    assert!(!contents.has_wrong_diff_ids);
    let evil = json!([layer("application/vnd.cncf.model.weight.v1.raw", "w", Some("../evil"))]);
    let manifest = self::manifest(config, evil, json!({}));
    assert!(matches!(super::contents(&manifest, b"{}"), Err(Error::Path(_))));
}

#[test]
fn k29_hashes_of_hashes_are_told_and_not_believed() {
    let model = Digest::of(b"model");
    let kitfile = json!({"manifestVersion": "1.0.0", "package": {},
        "model": {"path": "m", "digest": model, "diffId": model}});
    let layers = json!([layer("application/vnd.cncf.model.weight.v1.tar", "model", Some("m"))]);
    let told = json!({model_pack::KITFILE: kitfile.to_string()});
    let manifest = manifest(model_pack::CONFIG, layers, told);
    let wrong = Digest::of(model.as_str().as_bytes());
    for (diff_id, is_wrong) in [(&wrong, true), (&model, false)] {
        let config = json!({"modelfs": {"type": "layers", "diffIds": [diff_id]}}).to_string();
        let contents = contents(&manifest, config.as_bytes()).unwrap();
        assert_eq!(contents.has_wrong_diff_ids, is_wrong);
        assert_eq!(contents.layers[0].expected.diff_id, Some(model.clone()));
    }
}

#[test]
fn the_oldest_artifacts_have_their_layers_in_order() {
    let config = json!({"manifestVersion": "v0.1", "package": {}, "model": {"path": "sub/m"},
        "datasets": [{"path": "a"}, {"path": "b"}]});
    let layers = json!([
        layer("application/vnd.kitops.modelkit.model.v1.tar+gzip", "1", None),
        layer("application/vnd.kitops.modelkit.dataset.v1.tar+gzip", "2", None),
        layer("application/vnd.kitops.modelkit.dataset.v1.tar+gzip", "3", None),
    ]);
    let manifest = manifest(model_kit::CONFIG, layers, json!({}));
    let contents = contents(&manifest, config.to_string().as_bytes()).unwrap();
    let paths: Vec<_> = contents
        .layers
        .iter()
        .map(|found| (found.entry.path.as_str(), found.expected.under.as_str()))
        .collect();
    assert_eq!(paths, [("sub/m", "sub"), ("a", ""), ("b", "")]);
}

#[test]
fn what_is_no_model_is_refused() {
    let manifest = manifest("application/vnd.oci.image.config.v1+json", json!([]), json!({}));
    let error = contents(&manifest, b"{}").unwrap_err();
    assert!(error.to_string().contains("it is no model"), "{error}");
}

/// Any JSON, and the words that mean something here among it.
fn nonsense() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z./:@ -]{0,12}".prop_map(Value::from),
        Just(json!("../../etc/passwd")),
        Just(json!("/abs")),
        Just(json!("a\u{0}b")),
        Just(json!(Digest::of(b"x"))),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            Just("path".to_owned()),
            Just("digest".to_owned()),
            Just("diffIds".to_owned()),
            "[a-z]{1,6}"
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Somewhere in it something else stands.
fn replace(within: &mut Value, at: &mut usize, new: &Value) {
    if *at == 0 {
        *within = new.clone();
    }
    *at = at.wrapping_sub(1);
    match within {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, new)),
        Value::Object(items) => items.values_mut().for_each(|item| replace(item, at, new)),
        _ => {}
    }
}

fn real() -> (Value, Value) {
    let (model, code) = (Digest::of(b"model"), Digest::of(b"code"));
    let kitfile = json!({"manifestVersion": "1.0.0", "package": {"name": "n", "authors": ["a"]},
        "model": {"path": "m", "digest": model, "diffId": model, "parts": [], "parameters": {"a": 1}},
        "code": [{"path": "c", "digest": code, "diffId": code}]});
    let layers = json!([
        layer("application/vnd.cncf.model.weight.v1.tar", "model", Some("m")),
        layer("application/vnd.cncf.model.code.v1.raw", "code", Some("c")),
    ]);
    let annotations = json!({model_pack::KITFILE: kitfile.to_string()});
    let manifest = json!({"schemaVersion": 2, "layers": layers, "annotations": annotations,
        "config": {"mediaType": model_pack::CONFIG, "digest": Digest::of(b"c"), "size": 1}});
    (manifest, kitfile)
}

/// Whatever comes of it, no layer may lead elsewhere.
fn judge(manifest: &[u8], config: &[u8]) -> Result<(), TestCaseError> {
    let Ok(manifest) = serde_json::from_slice::<Manifest>(manifest) else { return Ok(()) };
    let Ok(contents) = contents(&manifest, config) else { return Ok(()) };
    for found in contents.layers {
        for path in [&found.expected.path, &found.expected.under] {
            let is_legal = !path.starts_with('/') && !path.split('/').any(|e| e == "..");
            prop_assert!(is_legal && !path.contains('\0'), "{:?}", path);
        }
        prop_assert!(found.expected.mode <= 0o777);
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_manifest_is_too_strange(at in 0usize..40, new in nonsense(), is_kit: bool) {
        let (mut manifest, mut config) = real();
        if is_kit {
            manifest["config"]["mediaType"] = model_kit::CONFIG.into();
            replace(&mut config, &mut at.clone(), &new);
        } else {
            config = json!({"modelfs": {"type": "layers", "diffIds": [new.clone()]}});
            let mut kitfile = real().1;
            replace(&mut kitfile, &mut (at / 2), &new);
            manifest["annotations"][model_pack::KITFILE] = kitfile.to_string().into();
        }
        judge(manifest.to_string().as_bytes(), config.to_string().as_bytes())?;
        replace(&mut manifest, &mut at.clone(), &new);
        judge(manifest.to_string().as_bytes(), config.to_string().as_bytes())?;
    }

    #[test]
    fn nor_are_bytes_that_were_one(at: prop::sample::Index, value: u8, cut: prop::sample::Index) {
        let (manifest, config) = real();
        let mut bytes = manifest.to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = value;
        judge(&bytes, config.to_string().as_bytes())?;
        judge(&bytes[..cut.index(bytes.len())], b"{}")?;
        let mut config = config.to_string().into_bytes();
        let at = at % config.len();
        config[at] = value;
        judge(manifest.to_string().as_bytes(), &config)?;
    }
}
