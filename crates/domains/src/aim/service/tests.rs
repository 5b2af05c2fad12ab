//! The domain as a whole: what follows from a service and the objects around it.

mod children;
mod outdated;
mod properties;
mod resolution;
mod routing;
mod steps;
mod weaknesses;

use serde_json::json;
use windlass_engine::domain::{Access, Domain, Need, Whose};
use windlass_engine::plan::{Ownership, Strategy};

use super::ServiceDomain;
use super::fixture::{TEMPLATE, catalogue, cluster_image, overriding, routed, see, template};

#[test]
fn the_identity_is_that_of_the_operator_before_us() {
    let domain = ServiceDomain::default();
    let identity = domain.identity();
    assert_eq!(identity.controller, "aim-service-controller");
    assert_eq!(identity.events.controller, "aim-service-controller");
    assert_eq!(identity.managed_by, "aim-controller");
    assert_eq!(identity.components, ["inference-service"]);
    assert_eq!((identity.finalizer, identity.hold, identity.name_label), (None, None, ""));
}

/// What is missing, and what others own, wakes the service as well.
#[test]
fn w01_all_that_a_judgement_rests_on_is_watched() {
    let watches = ServiceDomain::default().watches();
    let of = |whose, access| {
        let fits = watches.iter().filter(|watch| watch.whose == whose && watch.access == access);
        fits.map(|watch| watch.kind.kind.to_string()).collect::<Vec<_>>()
    };
    assert!(watches.iter().all(|watch| watch.need == Need::Optional));
    assert_eq!(of(Whose::Ours, Access::Write), ["InferenceService", "HTTPRoute"]);
    assert_eq!(of(Whose::Anyones, Access::Write), ["AIMServiceTemplate"]);
    assert_eq!(
        of(Whose::Anyones, Access::Read),
        [
            "AIMClusterServiceTemplate",
            "AIMImage",
            "AIMClusterImage",
            "AIMRuntimeConfig",
            "AIMClusterRuntimeConfig"
        ]
    );
}

#[test]
fn children_go_with_their_service_and_derived_templates_do_not() {
    let plan = see(&routed(), catalogue()).plan;
    for desired in &plan.apply {
        assert_eq!((desired.ownership, desired.strategy), (Ownership::Owned, Strategy::Apply));
    }
    let objects = vec![cluster_image(""), template(TEMPLATE, json!({}))];
    let plan = see(&overriding(json!({ "precision": "fp16" })), objects).plan;
    let desired = &plan.apply[0];
    assert_eq!((desired.ownership, desired.strategy), (Ownership::Shared, Strategy::CreateOnce));
}

#[test]
fn labels_of_a_service_are_not_its_childrens() {
    let mut service = routed();
    let labels = [("aim.silogen.ai/tier", "gold"), ("team", "a")];
    service.metadata.labels =
        Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(see(&service, catalogue()).plan, see(&routed(), catalogue()).plan);
}
