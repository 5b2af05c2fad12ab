//! Which crate may depend on which of ours.

use serde_json::Value;

use super::Finding;

/// Each crate of ours with those it may use. A new crate is added here with its arrows.
const ARROWS: [(&str, &[&str]); 10] = [
    ("windlass-api", &[]),
    ("windlass-engine", &[]),
    ("windlass-domains", &["windlass-api", "windlass-engine"]),
    ("windlass-local", &[]),
    ("windlass-routing", &[]),
    ("windlass-kit", &[]),
    ("windlass-inference", &[]),
    (
        "windlass",
        &[
            "windlass-api",
            "windlass-engine",
            "windlass-domains",
            "windlass-local",
            "windlass-routing",
            "windlass-kit",
            "windlass-inference",
        ],
    ),
    (
        "windlass-tests",
        &[
            "windlass-api",
            "windlass-engine",
            "windlass-domains",
            "windlass-local",
            "windlass-routing",
            "windlass-kit",
            "windlass",
            "xtask",
        ],
    ),
    ("xtask", &[]),
];

/// Checks the answer of `cargo metadata --no-deps`.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    packages.iter().flat_map(|package| check_package(package, &ours)).collect()
}

fn check_package(package: &Value, ours: &[&str]) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let finding = |message: String| Finding { path: format!("package {name}"), line: 0, message };
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![finding("has no arrows in xtask/src/tidy/arrows.rs".into())];
    };
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    dependencies
        .iter()
        .filter_map(|dependency| dependency["name"].as_str())
        // A crate may name itself as a dev-dependency to switch its own features on for tests.
        .filter(|to| *to != name && ours.contains(to) && !allowed.contains(to))
        .map(|to| finding(format!("must not depend on {to}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arrows_point_one_way() {
        let package = |name: &str, uses: &[&str]| {
            let uses: Vec<Value> = uses.iter().map(|name| json!({"name": name})).collect();
            json!({"name": name, "dependencies": uses})
        };
        let metadata = json!({"packages": [
            package("windlass-api", &["serde"]),
            package("windlass-engine", &["windlass-api"]),
            package("windlass-domains", &["windlass-api", "windlass-engine"]),
            package("windlass-novel", &[]),
        ]});
        let found: Vec<String> = check(&metadata).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "package windlass-engine: must not depend on windlass-api",
                "package windlass-novel: has no arrows in xtask/src/tidy/arrows.rs",
            ]
        );
    }
}
