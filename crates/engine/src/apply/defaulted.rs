//! Defaults of the server that stand in the way of what is wanted.
//!
//! An apply removes only what it has set before, and what the server filled in nobody has set. Where
//! the wanted object must not have such a field, the server refuses it. So the field is first made
//! ours as it is; the apply that follows leaves it out, and with that it goes.

use serde_json::Value;

use crate::plan::Desired;

/// What to apply first, if anything.
pub(super) fn with_defaults_in_the_way(desired: &Desired, current: &Value) -> Option<Value> {
    let strategy = |body: &Value| body.pointer("/spec/strategy").cloned().unwrap_or_default();
    let (wanted, live) = (strategy(&desired.body), strategy(current));
    let is_deployment = desired.kind.group == "apps" && desired.kind.kind == "Deployment";
    if !is_deployment || wanted["type"] != "Recreate" || !live["rollingUpdate"].is_object() {
        return None;
    }
    let mut body = desired.body.clone();
    body["spec"]["strategy"] = live;
    Some(body)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
    use kube::Resource;
    use serde::{Serialize, de::DeserializeOwned};
    use serde_json::json;

    use super::*;
    use crate::{
        kind::TypedScope,
        plan::{Ownership, Strategy},
    };

    fn desired<K>(strategy: Value) -> Desired
    where
        K: Resource<DynamicType = (), Scope: TypedScope> + Serialize + DeserializeOwned,
    {
        let object = json!({ "metadata": { "name": "a", "namespace": "n" } });
        let object: K = serde_json::from_value(object).unwrap();
        let mut desired = Desired::new(&object, Ownership::Owned, Strategy::Apply).unwrap();
        desired.body["spec"] = json!({ "strategy": strategy });
        desired
    }

    #[test]
    fn a_default_that_the_wanted_strategy_excludes_is_taken_first() {
        let defaulted = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%" } });
        let live = json!({ "spec": { "strategy": defaulted } });
        let recreate = || json!({ "type": "Recreate" });
        let first = with_defaults_in_the_way(&desired::<Deployment>(recreate()), &live);
        assert_eq!(first.unwrap()["spec"]["strategy"], defaulted);

        let done = json!({ "spec": { "strategy": recreate() } });
        for (wanted, live) in [
            (desired::<Deployment>(recreate()), &done),
            (desired::<Deployment>(defaulted.clone()), &live),
            (desired::<Deployment>(Value::Null), &live),
            (desired::<StatefulSet>(recreate()), &live),
        ] {
            assert_eq!(with_defaults_in_the_way(&wanted, live), None);
        }
    }
}
