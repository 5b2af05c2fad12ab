//! Objects that we make and remove but may not read (Secrets): no answer with their content is asked
//! for, and what is there already is left as it is.

use std::collections::HashMap;

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams, Preconditions},
};

use serde_json::json;

use super::{Applier, Step, failed};
use crate::{
    error::Error,
    kind::{Kind, ObjectKey},
    plan::{Desired, Removal},
};

/// What a run has made blindly so far, for the objects that keep note of it.
#[derive(Default)]
pub(super) struct Made(HashMap<(Kind, ObjectKey), String>);

impl Made {
    pub(super) fn add(&mut self, desired: &Desired, uid: &str) {
        self.0.insert((desired.kind.clone(), desired.key.clone()), uid.to_owned());
    }

    pub(super) fn noted_on(&self, desired: &Desired) -> Desired {
        let mut desired = desired.clone();
        let Some(note) = desired.note.clone() else { return desired };
        let uid = self.0.get(&(note.kind, note.key));
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
