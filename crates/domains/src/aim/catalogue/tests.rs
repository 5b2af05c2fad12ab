use serde_json::{Value, json};

use super::*;

fn own(template: &str) -> Fetched<AimImage> {
    Fetched::Found(serde_json::from_value(image("AIMImage", Some("n"), template)).unwrap())
}

fn cluster(template: &str) -> Fetched<AimClusterImage> {
    Fetched::Found(serde_json::from_value(image("AIMClusterImage", None, template)).unwrap())
}

fn image(kind: &str, namespace: Option<&str>, template: &str) -> Value {
    json!({ "apiVersion": "aim.silogen.ai/v1alpha1", "kind": kind,
        "metadata": { "name": "tiny-lm", "namespace": namespace, "uid": kind },
        "spec": { "image": kind, "defaultServiceTemplate": template, "resources": {} } })
}

#[test]
fn the_namespace_goes_before_the_cluster() {
    let kinds = |namespaced, cluster| {
        let found = Images { namespaced, cluster }.resolve().unwrap();
        found.map(|image| (image.spec.image, image.reference.scope.unwrap()))
    };
    let of = |kind: &str, scope: &str| Some((kind.to_owned(), scope.to_owned()));
    assert_eq!(kinds(own(""), cluster("")), of("AIMImage", "Namespace"));
    assert_eq!(kinds(Fetched::Missing, cluster("")), of("AIMClusterImage", "Cluster"));
    assert_eq!(kinds(Fetched::Missing, Fetched::Missing), None);
}

#[test]
fn an_image_that_could_not_be_read_is_not_missing() {
    let error = || Error::infrastructure("Timeout", "no answer");
    let images = Images { namespaced: Fetched::Failed(error()), cluster: cluster("") };
    assert!(images.resolve().is_err());
    let images = Images { namespaced: Fetched::Missing, cluster: Fetched::Failed(error()) };
    assert!(images.resolve().is_err());
}

#[test]
fn an_image_without_a_default_template_leaves_it_to_the_cluster() {
    let template =
        |namespaced, cluster| Images { namespaced, cluster }.default_template().map(str::to_owned);
    assert_eq!(template(own("a"), cluster("b")).as_deref(), Some("a"));
    assert_eq!(template(own(" "), cluster(" b ")).as_deref(), Some("b"));
    assert_eq!(template(Fetched::Missing, cluster("b")).as_deref(), Some("b"));
    assert_eq!(template(own(""), cluster("")), None);
}
