//! What processes of pods may do in the API, by the token that they find.

use std::{fs, path::Path};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client, Config,
    api::LogParams,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use windlass_tests::until;

use crate::{
    objects,
    rules::RULES,
    up::{Up, World},
};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const NODES: &str = "/api/v1/nodes";
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// An account that may read ConfigMaps.
fn account() -> [Value; 3] {
    let name = json!({"name": "reader", "namespace": "default"});
    let group = "rbac.authorization.k8s.io";
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name}),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": name,
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": name,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        }),
    ]
}

fn pod(name: &str, containers: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "serviceAccountName": "reader", "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1, "containers": containers,
        },
    })
}

async fn reached(pods: &Api<Pod>, name: &str, phase: &str) -> Pod {
    until(phase, || async {
        let pod = pods.get(name).await.map_err(|error| error.to_string())?;
        let found = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if found == Some(phase) { Ok(pod) } else { Err(format!("{:?}", pod.status)) }
    })
    .await
}

#[tokio::test]
async fn a_process_asks_the_api_by_the_rights_of_its_account() {
    let world = World::new(RULES);
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    for object in account() {
        objects::apply(&client, &object).await;
    }
    let container = |name: &str, first: &[&str]| {
        let paths = [CONFIG_MAPS, SECRETS, NODES];
        let words: Vec<&str> = first.iter().copied().chain(paths).collect();
        json!({"name": name, "image": "local/client:1", "args": words})
    };
    let containers =
        json!([container("by-kubeconfig", &[]), container("by-token", &["--account", ACCOUNT]),]);
    objects::apply(&client, &pod("asks", containers)).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    reached(&pods, "asks", "Succeeded").await;
    for container in ["by-kubeconfig", "by-token"] {
        let params = LogParams { container: Some(container.to_owned()), ..LogParams::default() };
        let said = pods.logs("asks", &params).await.unwrap();
        let want = format!(
            "system:serviceaccount:default:reader\n200 {CONFIG_MAPS}\n403 {SECRETS}\n403 {NODES}\n"
        );
        assert_eq!(said, want, "{container}");
    }
    up.terminate();
}

/// Somebody who has got hold of a token.
async fn with_token(up: &Up, token: &str) -> Client {
    let mut file = Kubeconfig::read_from(up.kubeconfig()).unwrap();
    let user = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
    file.auth_infos[0].auth_info = Some(user);
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// The file of the token in the private directory of a pod.
fn token_of(private: &Path) -> String {
    let volumes = fs::read_dir(private.join("volumes")).unwrap();
    let files = volumes.map(|volume| volume.unwrap().path().join("token"));
    let file = files.into_iter().find(|file| file.exists()).unwrap();
    fs::read_to_string(file).unwrap()
}

#[tokio::test]
async fn a_token_ends_with_its_pod() {
    let world = World::new(RULES);
    let up = world.up::<&str>(&[]);
    let client = up.client().await;
    for object in account() {
        objects::apply(&client, &object).await;
    }
    let shell = json!([{"name": "c", "image": "local/shell:1", "args": ["exec sleep 4831"]}]);
    let pod = pod("holds", shell);
    objects::apply(&client, &pod).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let uid = reached(&pods, "holds", "Running").await.metadata.uid.unwrap();
    let private = world.state().join("run/pods").join(uid);
    let holder = with_token(&up, &token_of(&private)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(holder);
    maps.list(&Default::default()).await.unwrap();
    objects::delete(&client, &pod).await;
    until("the end of the token", || async {
        match maps.list(&Default::default()).await {
            Err(kube::Error::Api(status)) if status.code == 401 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    until("the end of its file", || async {
        if private.exists() { Err(private.display().to_string()) } else { Ok(()) }
    })
    .await;
    up.terminate();
}
