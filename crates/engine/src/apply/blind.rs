//! Objects that we make and remove but may not read (Secrets): no answer with their content is asked
//! for, and what is there already is left as it is.

use std::collections::{HashMap, HashSet};

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams, Preconditions},
};

use serde_json::json;

use super::{Applier, Step, failed};
use crate::{
    error::{Error, chain},
    kind::{Kind, ObjectKey},
    plan::{Desired, Look, Removal, When},
};

/// What a run has made blindly so far, for the objects that keep note of it.
#[derive(Default)]
pub(super) struct Made {
    uids: HashMap<(Kind, ObjectKey), String>,
    noted: HashSet<(Kind, ObjectKey)>,
}

impl Made {
    pub(super) fn add(&mut self, desired: &Desired, uid: &str) {
        self.uids.insert((desired.kind.clone(), desired.key.clone()), uid.to_owned());
    }

    /// Of an object that was written just now.
    pub(super) fn is_noted_on(&mut self, desired: &Desired) {
        self.noted.extend(desired.note.clone().map(|note| (note.kind, note.key)));
    }

    /// What nobody has kept note of, and nobody would know any more after this run.
    fn unnoted(self) -> impl Iterator<Item = (Kind, ObjectKey, String)> {
        let Self { uids, noted } = self;
        let unnoted = uids.into_iter().filter(move |(of, _)| !noted.contains(of));
        unnoted.map(|((kind, key), uid)| (kind, key, uid))
    }

    pub(super) fn noted_on(&self, desired: &Desired) -> Desired {
        let mut desired = desired.clone();
        let Some(note) = desired.note.clone() else { return desired };
        let uid = self.uids.get(&(note.kind, note.key));
        if let Some((uid, metadata)) = uid.zip(desired.metadata_mut()) {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            annotations[note.annotation] = uid.as_str().into();
        }
        desired
    }
}

impl Applier {
    pub(super) async fn create_blind(&self, desired: &Desired) -> Result<Step, Error> {
        let body = serde_json::from_value(desired.body.clone()).map_err(|cause| {
            let message = format!("{} {} cannot be written", desired.kind, desired.key);
            Error::invalid_spec("Unserialisable", message).with_cause(cause)
        })?;
        let resource = desired.kind.api_resource();
        let api: Api<DynamicObject> = match &desired.key.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let params =
            PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        match api.create(&params, &body).await {
            Ok(made) => Ok(Step::Made { uid: made.metadata.uid.unwrap_or_default() }),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Step::Unchanged),
            Err(error) => Err(failed("create", desired, error)),
        }
    }

    /// What was made and will not be known as ours goes again: the next pass makes another one.
    pub(super) async fn take_back(&self, made: Made) {
        for (kind, key, uid) in made.unnoted() {
            let what = format!("{kind} {key}");
            let how = Look::Known { uid: uid.clone() };
            let removal = Removal { kind, key, when: When::AfterApply, how };
            if let Err(error) = self.delete_unseen(&removal, &uid).await {
                let error = chain(&error);
                tracing::warn!(what, error, "cannot take back what nobody keeps note of");
            }
        }
    }

    /// Only the object that has this uid.
    pub(super) async fn delete_unseen(
        &self,
        removal: &Removal,
        uid: &str,
    ) -> Result<Step, kube::Error> {
        let api = self.api(&removal.kind, &removal.key);
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let params = DeleteParams::background().preconditions(preconditions);
        match api.delete(&removal.key.name, &params).await {
            Ok(_) => Ok(Step::Written(None)),
            // Gone, or another has taken its name.
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {
                Ok(Step::Unchanged)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
    use kube::api::ObjectMeta;

    use super::*;
    use crate::plan::Plan;

    fn named(name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.into()), namespace: Some("ns".into()), ..Default::default() }
    }

    #[test]
    fn what_is_noted_on_no_object_that_was_written_is_taken_back() {
        let mut plan = Plan::default();
        plan.create_blind_first(&Secret { metadata: named("s"), ..Default::default() });
        let keeper = Deployment { metadata: named("d"), ..Default::default() };
        plan.apply_with_uid_of::<Secret>(&keeper, "s", "example.com/uid");
        let [secret, keeper] = plan.apply.as_slice() else { panic!("{plan:?}") };

        let mut made = Made::default();
        assert_eq!(made.noted_on(keeper), *keeper, "nothing was made");
        made.add(secret, "1");
        let noted = made.noted_on(keeper);
        assert_eq!(noted.body["metadata"]["annotations"]["example.com/uid"], "1");
        made.is_noted_on(keeper);
        assert_eq!(made.unnoted().count(), 0);

        let mut made = Made::default();
        made.add(secret, "2");
        let back: Vec<_> = made.unnoted().collect();
        assert_eq!(back, [(secret.kind.clone(), secret.key.clone(), "2".to_owned())]);
    }
}
