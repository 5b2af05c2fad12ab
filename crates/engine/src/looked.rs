//! What a look has seen, so that a plan is not carried out on an object that has become another since.
//!
//! A plan leaves alone what others have set, such as a number of pods. If somebody sets it after the
//! look, the plan does not know, and would take it back. The change is an event, so the next pass will
//! have seen it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::{
    fetch::Notes,
    kind::{Kind, ObjectKey},
    object::Object,
};

/// The generation at which each object was first read by its name.
#[derive(Debug, Default)]
pub(crate) struct Looked(Mutex<HashMap<(Kind, ObjectKey), i64>>);

impl Looked {
    /// Whether the object has got another spec since it was read. False for what was not read, and for
    /// kinds whose generations are not counted.
    pub(crate) fn is_outdated_by(&self, kind: &Kind, live: &Object) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&(kind.clone(), live.key.clone()));
        known.is_some_and(|generation| *generation != live.generation)
    }
}

impl Notes for Looked {
    fn found(&self, kind: &Kind, object: &Object) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry((kind.clone(), object.key.clone())).or_insert(object.generation);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    fn deployment(name: &str, generation: i64) -> Object {
        let metadata = json!({ "name": name, "namespace": "n", "generation": generation });
        Object::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn a_plan_is_outdated_by_another_spec_and_by_nothing_else() {
        let (kind, looked) = (Kind::of::<Deployment>(), Looked::default());
        looked.found(&kind, &deployment("a", 1));
        // Read once more in the same look: what was planned may rest on either.
        looked.found(&kind, &deployment("a", 2));
        assert!(!looked.is_outdated_by(&kind, &deployment("a", 1)));
        assert!(looked.is_outdated_by(&kind, &deployment("a", 2)));
        assert!(!looked.is_outdated_by(&kind, &deployment("b", 2)), "it was not looked at");
    }
}
