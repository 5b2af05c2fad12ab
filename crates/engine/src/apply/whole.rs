//! Maps that are ours as a whole.
//!
//! An apply removes only the keys that it has set before, and lets those of others be. Where one of
//! them changes what the whole means, as in a selector, they are taken away before it.

use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::{Applier, Correction, failed};
use crate::{
    compare::{Difference, surplus},
    error::Error,
    object::Object,
    plan::{Desired, Strategy},
};

impl Applier {
    /// The object without the keys of others, and the first of them; `None` if there were none.
    pub(super) async fn clear(
        &self,
        desired: &Desired,
        live: &Object,
        current: &Value,
    ) -> Result<Option<(Object, Correction)>, Error> {
        let Strategy::ApplyWhole(at) = desired.strategy else { return Ok(None) };
        let surplus = surplus(&desired.body, current, at, self.manager);
        let mut patch = without(&surplus);
        let Some(difference) = surplus.into_iter().next() else { return Ok(None) };
        let version = json!({ "uid": live.uid, "resourceVersion": live.resource_version });
        merge(&mut patch, &json!({ "metadata": version }));
        let params = PatchParams { field_manager: Some(self.manager.into()), ..<_>::default() };
        let api = self.api(&desired.kind, &desired.key);
        let now = api.patch(&desired.key.name, &params, &Patch::Merge(&patch)).await;
        let now = Object::from(now.map_err(|error| failed("clear", desired, error))?);
        self.cache.put_own(&desired.kind, now.clone().into());
        let correction =
            Correction { kind: desired.kind.clone(), key: desired.key.clone(), difference };
        Ok(Some((now, correction)))
    }
}

fn without(surplus: &[Difference]) -> Value {
    let mut patch = Value::Object(Map::new());
    for difference in surplus {
        merge(&mut patch, &difference.path.removal());
    }
    patch
}

fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (key, below) in from {
        match into.get_mut(key) {
            Some(known) => merge(known, below),
            None => drop(into.insert(key.clone(), below.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_patch_takes_all_keys_of_others_away() {
        let live = json!({ "spec": { "selector": { "a": "1", "x/y": "2", "z": "3" } } });
        let desired = json!({ "spec": { "selector": { "a": "1" } } });
        let surplus = surplus(&desired, &live, "/spec/selector", "us");
        let want = json!({ "spec": { "selector": { "x/y": null, "z": null } } });
        assert_eq!(without(&surplus), want);
        assert_eq!(without(&[]), json!({}));
    }
}
