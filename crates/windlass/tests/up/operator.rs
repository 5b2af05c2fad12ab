use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Namespace, Secret},
        rbac::v1::ClusterRoleBinding,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use windlass_api::serving::zerfoo_inference_service::{
    ZerfooInferenceService, ZerfooInferenceServiceSpec,
};

use crate::{
    running::{World, client},
    wait::until,
};

const ACCOUNT: &str = "system:serviceaccount:windlass-system:windlass";

pub(crate) async fn create_service(client: &Client, name: &str) -> Api<ZerfooInferenceService> {
    let spec: ZerfooInferenceServiceSpec =
        serde_json::from_value(json!({"modelRef": "llama-3-8b-q4", "replicas": 1})).unwrap();
    let services: Api<ZerfooInferenceService> = Api::default_namespaced(client.clone());
    let service = ZerfooInferenceService::new(name, spec);
    services.create(&PostParams::default(), &service).await.unwrap();
    services
}

/// Waits for the operator's word on the service.
async fn observed(services: &Api<ZerfooInferenceService>, name: &str) {
    until("status", || async {
        let found = services.get(name).await.map_err(|error| error.to_string())?;
        let status = serde_json::to_value(&found.status).unwrap();
        match status["conditions"].as_array() {
            Some(conditions) if !conditions.is_empty() => Ok(()),
            _ => Err(status.to_string()),
        }
    })
    .await;
}

#[tokio::test]
async fn the_operator_works_by_the_rights_of_its_install_and_no_others() {
    let world = World::new();
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    let services = create_service(&client, "chat").await;
    observed(&services, "chat").await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let all = deployments.list(&ListParams::default()).await.unwrap();
    assert!(!all.items.is_empty());

    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.delete("windlass", &DeleteParams::default()).await.unwrap();
    create_service(&client, "mute").await;
    until("refusal", || async {
        let log = up.log();
        match log.contains("forbidden") && log.contains(ACCOUNT) {
            true => Ok(()),
            false => Err(log),
        }
    })
    .await;
    let mute = services.get("mute").await.unwrap();
    assert!(mute.status.is_none(), "{:?}", mute.status);
    up.terminate();

    // Every start brings the whole install.
    let up = world.up::<&str>(&[]);
    observed(&Api::default_namespaced(up.client().await), "mute").await;
}

#[tokio::test]
async fn every_start_brings_the_definitions_of_the_program() {
    let world = World::new();
    let name = "zerfooinferenceservices.serving.zerfoo.com";
    let up = world.up::<&str>(&[]);
    let definitions: Api<CustomResourceDefinition> = Api::all(up.client().await);
    let shipped = definitions.get(name).await.unwrap().spec;
    let older = Patch::Json::<()>(
        serde_json::from_value(json!([
            {"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}
        ]))
        .unwrap(),
    );
    let changed = definitions.patch(name, &PatchParams::default(), &older).await.unwrap();
    assert_ne!(changed.spec, shipped);
    up.terminate();

    let up = world.up::<&str>(&[]);
    let definitions: Api<CustomResourceDefinition> = Api::all(up.client().await);
    assert_eq!(definitions.get(name).await.unwrap().spec, shipped);
}

#[tokio::test]
async fn a_start_over_an_unchanged_install_writes_nothing() {
    let world = World::new();
    let up = world.up::<&str>(&[]);
    // The node writes a lease at its start, which is no part of the install.
    let versions = async |client: Client| {
        let version = |metadata: &ObjectMeta| metadata.resource_version.clone();
        let all = ListParams::default();
        let namespaces = Api::<Namespace>::all(client.clone()).list(&all).await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definitions = definitions.list(&all).await.unwrap();
        let bindings = Api::<ClusterRoleBinding>::all(client).list(&all).await.unwrap();
        let of_namespaces = namespaces.iter().map(|object| version(&object.metadata));
        let of_definitions = definitions.iter().map(|object| version(&object.metadata));
        let of_bindings = bindings.iter().map(|object| version(&object.metadata));
        of_namespaces.chain(of_definitions).chain(of_bindings).collect::<Vec<_>>()
    };
    let before = versions(up.client().await).await;
    assert!(before.len() > 10, "{before:?}");
    up.terminate();
    let up = world.up::<&str>(&[]);
    assert_eq!(versions(up.client().await).await, before);
}

#[tokio::test]
async fn roles_count_unless_everything_is_allowed() {
    let world = World::new();
    for (mode, want) in [("rbac", Some(403)), ("allow-all", None)] {
        let up = world.up(&["--ephemeral", "--authorization", mode]);
        let nobody = client(&up.kubeconfig(), |config| {
            config.auth_info.impersonate = Some("nobody".to_owned());
        })
        .await;
        let secrets: Api<Secret> = Api::default_namespaced(nobody);
        let refused = match secrets.list(&ListParams::default()).await {
            Ok(_) => None,
            Err(kube::Error::Api(status)) => Some(status.code),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(refused, want, "{mode}");
    }
}
