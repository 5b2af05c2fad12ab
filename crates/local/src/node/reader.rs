//! Reads what pods name, through a client.

use std::{fmt::Debug, sync::Arc};

use futures::future::{BoxFuture, FutureExt};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
        core::v1::{
            ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount,
        },
    },
};
use kube::{Api, Client, Resource, api::PostParams};
use serde::de::DeserializeOwned;

use super::sources::{Found, Reader, Token, TokenKey};

pub struct ClientReader(pub Client);

impl ClientReader {
    async fn get<K>(&self, namespace: &str, name: &str) -> Found<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        found(Api::namespaced(self.0.clone(), namespace).get_opt(name).await)
    }

    async fn request(&self, pod: &Pod, wanted: &TokenKey) -> Result<Token, kube::Error> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
        let audience = Some(wanted.audience.clone()).filter(|audience| !audience.is_empty());
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: audience.into_iter().collect(),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
                expiration_seconds: Some(wanted.seconds),
            },
            ..TokenRequest::default()
        };
        let api: Api<ServiceAccount> = Api::namespaced(self.0.clone(), namespace);
        let account = account.unwrap_or("default");
        let now = Timestamp::now();
        let given = api.create_token_request(account, &PostParams::default(), &request).await?;
        let usual = now + SignedDuration::from_secs(wanted.seconds.clamp(0, 1 << 30));
        Ok(match given.status {
            Some(status) => {
                Token { text: status.token, issued: now, expires: status.expiration_timestamp.0 }
            }
            None => Token { text: String::new(), issued: now, expires: usual },
        })
    }
}

fn found<K>(answer: Result<Option<K>, kube::Error>) -> Found<K> {
    answer.map(|found| found.map(Arc::new)).map_err(|error| text(&error))
}

/// As the API says it.
fn text(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Reader for ClientReader {
    fn config_map<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Found<ConfigMap>> {
        self.get(namespace, name).boxed()
    }

    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Found<Secret>> {
        self.get(namespace, name).boxed()
    }

    fn claim<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Found<PersistentVolumeClaim>> {
        self.get(namespace, name).boxed()
    }

    fn volume<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Found<PersistentVolume>> {
        async move { found(Api::all(self.0.clone()).get_opt(name).await) }.boxed()
    }

    fn token<'a>(
        &'a self,
        pod: &'a Pod,
        wanted: &'a TokenKey,
    ) -> BoxFuture<'a, Result<Token, String>> {
        async move { self.request(pod, wanted).await.map_err(|error| text(&error)) }.boxed()
    }
}
