use serde_json::{Value, json};

use super::*;
use crate::aim::tests::{broken_rules, demands, field};

fn image(kind: &str, resources: &Value) -> Value {
    json!({
        "apiVersion": "aim.silogen.ai/v1alpha1",
        "kind": kind,
        "metadata": { "name": "tiny-lm" },
        "spec": {
            "image": "registry.example.com/aim/tiny-lm:1.4.0",
            "defaultServiceTemplate": "",
            "runtimeConfigName": "default",
            "resources": resources,
        },
    })
}

#[test]
fn each_field_has_the_demands_of_the_contract() {
    let crd = crd();
    assert_eq!(demands(&crd, "/spec/image"), json!({ "type": "string", "minLength": 1 }));
    assert_eq!(demands(&crd, "/spec/defaultServiceTemplate"), json!({ "type": "string" }));
    assert_eq!(
        demands(&crd, "/spec/resources"),
        json!({
            "type": "object",
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.requests) && 'cpu' in self.requests \
                             && 'memory' in self.requests",
                    "message": "resources.requests must include cpu and memory",
                },
                {
                    "rule": "has(self.limits) && 'memory' in self.limits",
                    "message": "resources.limits must include memory",
                },
            ],
        })
    );
}

#[test]
fn an_image_says_what_a_server_takes() {
    let requests = "resources.requests must include cpu and memory";
    let limits = "resources.limits must include memory";
    for (resources, want) in [
        (
            json!({ "requests": { "cpu": 4, "memory": "1Gi" }, "limits": { "memory": "1Gi" } }),
            &[][..],
        ),
        (json!({}), &[requests, limits]),
        (json!({ "requests": { "cpu": "4" }, "limits": { "memory": "1Gi" } }), &[requests]),
        (json!({ "requests": { "cpu": "4", "memory": 1 }, "limits": { "cpu": 4 } }), &[limits]),
    ] {
        for crd in [crd(), cluster_crd()] {
            let image = image(&crd.spec.names.kind, &resources);
            assert_eq!(broken_rules(&crd, &image, None), want, "{resources}");
        }
    }
}

#[test]
fn the_two_definitions_differ_in_name_and_scope_alone() {
    let [mut namespaced, mut cluster] =
        [crd(), cluster_crd()].map(|crd| serde_json::to_value(crd).unwrap());
    for crd in [&mut namespaced, &mut cluster] {
        for own in ["/metadata", "/spec/names", "/spec/scope"] {
            assert!(!crd.pointer_mut(own).unwrap().take().is_null());
        }
    }
    assert_eq!(namespaced, cluster);
    assert!(field(&cluster_crd(), "/spec")["properties"]["image"]["description"].is_string());
}

#[test]
fn both_kinds_are_written_as_they_were_read_and_readable_when_odd() {
    let resources = json!({ "requests": { "cpu": "4" }, "limits": { "memory": "24Gi" } });
    let namespaced = image("AIMImage", &resources);
    let read: AimImage = serde_json::from_value(namespaced.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), namespaced);
    let cluster = image("AIMClusterImage", &resources);
    let read_too: AimClusterImage = serde_json::from_value(cluster.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read_too).unwrap(), cluster);
    assert_eq!(read.spec, read_too.spec.0);

    let odd = json!({ "metadata": {}, "spec": { "image": "", "former": 1 }, "status": {} });
    let read: AimClusterImage = serde_json::from_value(odd).unwrap();
    assert_eq!(read.spec, AimClusterImageSpec::default());
    let bare = json!({ "metadata": {} });
    assert_eq!(serde_json::from_value::<AimImage>(bare.clone()).unwrap(), AimImage::default());
    assert_eq!(
        serde_json::from_value::<AimClusterImage>(bare).unwrap(),
        AimClusterImage::default()
    );
}
