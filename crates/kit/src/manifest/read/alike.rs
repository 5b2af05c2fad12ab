//! Layers whose bytes are the same.

use serde_json::{Value, json};

use super::*;

fn layer(kind: &str, path: Option<&str>) -> Value {
    let annotations = path.map(|path| json!({FILE_PATH: path})).unwrap_or(json!({}));
    json!({"mediaType": format!("application/vnd.kitops.modelkit.{kind}.v1.raw"),
        "digest": Digest::of(b"same"), "size": 1, "annotations": annotations})
}

#[test]
fn entries_of_the_same_content_have_a_layer_each() {
    let same = Digest::of(b"same");
    let config = json!({"manifestVersion": "1.0.0", "package": {},
        "code": [{"path": "a", "digest": same}, {"path": "./b/", "digest": same}],
        "docs": [{"path": "c", "digest": same}]});
    let told = [layer("docs", Some("c/")), layer("code", Some("b")), layer("code", Some("a"))];
    let untold = [layer("code", None), layer("code", None), layer("docs", None)];
    for (layers, want) in [(told, ["c", "b", "a"]), (untold, ["a", "b", "c"])] {
        let manifest = json!({"schemaVersion": 2, "layers": layers,
            "config": {"mediaType": model_kit::CONFIG, "digest": Digest::of(b"c"), "size": 1}});
        let manifest = serde_json::from_value(manifest).unwrap();
        let contents = contents(&manifest, config.to_string().as_bytes()).unwrap();
        let entries = contents.layers.iter().map(|found| found.entry.path.as_str());
        assert_eq!(entries.collect::<Vec<_>>(), want);
        let files = contents.layers.iter().map(|found| found.expected.path.as_str());
        assert_eq!(files.collect::<Vec<_>>(), want);
    }
}
