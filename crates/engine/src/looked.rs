//! What a look has seen, so that a plan is not carried out on an object that has become another since.
//!
//! A plan leaves alone what others have set, such as a number of pods. If somebody sets it after the
//! look, the plan does not know, and would take it back. And what it says of an object may be true of
//! that one only, not of another in its place. The change is an event, so the next pass will have seen it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::{
    fetch::Notes,
    kind::{Kind, ObjectKey},
    object::Object,
};

/// Groups whose objects have no generation and report something every few seconds: a change says nothing
/// of what is wanted.
const REPORTS_OFTEN: [&str; 1] = ["autoscaling"];

/// What each object was when it was first read by its name.
#[derive(Debug, Default)]
pub(crate) struct Looked(Mutex<HashMap<(Kind, ObjectKey), Seen>>);

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    uid: String,
    generation: i64,
    /// Only of kinds whose generations are not counted: any change may be one of what is wanted.
    version: Option<String>,
}

impl Seen {
    fn of(kind: &Kind, object: &Object) -> Self {
        let Object { uid, generation, resource_version, .. } = object;
        let is_counted = *generation != 0 || REPORTS_OFTEN.contains(&&*kind.group);
        let version = (!is_counted).then(|| resource_version.clone());
        Self { uid: uid.clone(), generation: *generation, version }
    }
}

impl Looked {
    pub(crate) fn saw(&self, kind: &Kind, key: &ObjectKey) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains_key(&(kind.clone(), key.clone()))
    }

    /// Whether the object has gone or got another spec since it was read. False for what was not read.
    pub(crate) fn is_outdated_by(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        live: Option<&Object>,
    ) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&(kind.clone(), key.clone()));
        known.is_some_and(|seen| live.map(|live| Seen::of(kind, live)).as_ref() != Some(seen))
    }
}

impl Notes for Looked {
    fn found(&self, kind: &Kind, object: &Object) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry((kind.clone(), object.key.clone())).or_insert_with(|| Seen::of(kind, object));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    fn deployment(name: &str, generation: i64) -> Object {
        with_uid("1", name, generation)
    }

    fn at_version(name: &str, version: &str) -> Object {
        let metadata = json!({ "name": name, "namespace": "n", "resourceVersion": version });
        Object::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn with_uid(uid: &str, name: &str, generation: i64) -> Object {
        let metadata =
            json!({ "name": name, "namespace": "n", "uid": uid, "generation": generation });
        Object::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn a_plan_is_outdated_by_another_spec_or_another_object() {
        let (kind, looked) = (Kind::of::<Deployment>(), Looked::default());
        let outdated = |name: &str, live: Option<&Object>| {
            looked.is_outdated_by(&kind, &ObjectKey::new(Some("n"), name), live)
        };
        looked.found(&kind, &deployment("a", 1));
        // Read once more in the same look: what was planned may rest on either.
        looked.found(&kind, &deployment("a", 2));
        assert!(!outdated("a", Some(&deployment("a", 1))));
        assert!(outdated("a", Some(&deployment("a", 2))));
        assert!(outdated("a", Some(&with_uid("2", "a", 1))));
        assert!(outdated("a", None), "it has gone");
        assert!(!outdated("b", Some(&deployment("b", 2))), "it was not looked at");

        // One without a generation, such as an account.
        looked.found(&kind, &at_version("c", "7"));
        assert!(!outdated("c", Some(&at_version("c", "7"))));
        assert!(outdated("c", Some(&at_version("c", "8"))));
        assert!(!outdated("b", None));
    }
}
