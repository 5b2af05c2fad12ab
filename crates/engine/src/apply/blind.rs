//! Objects that we make and remove but may not read (Secrets): no answer with their content is asked
//! for, and what is there already is left as it is.

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, PostParams, Preconditions},
};

use super::{Applier, Step, failed};
use crate::{
    error::Error,
    plan::{Desired, Removal},
};

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
            Ok(_) => Ok(Step::Written(None)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Step::Unchanged),
            Err(error) => Err(failed("create", desired, error)),
        }
    }

    /// With a uid only the object that has it.
    pub(super) async fn delete_unseen(
        &self,
        removal: &Removal,
        uid: Option<String>,
    ) -> Result<Step, kube::Error> {
        let api = self.api(&removal.kind, &removal.key);
        let mut params = DeleteParams::background();
        params.preconditions =
            uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None });
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
