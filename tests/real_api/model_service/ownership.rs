use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{
    Operator, Space, eventually,
    operator::{METRICS, Setup},
};

use super::{
    KINDS, children, condition, content, create, everything, find, make_ready, of_kind, read, see,
    wait,
};

/// Every child there is with its version: the same again means that nobody has touched one.
async fn versions(space: &Space) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for child in children(space).await {
        let (kind, name) = child.split_once(' ').unwrap();
        let object = find(space, kind, name).await.unwrap();
        all.push((child.clone(), object["metadata"]["resourceVersion"].clone()));
    }
    all
}

async fn settled(space: &Space, name: &str) {
    make_ready(space, name).await;
    wait(space, name, "EPPReady", "True", "DeploymentAvailable").await;
}

async fn ended(space: &Space, name: &str) {
    space.delete::<ModelService>(name).await;
    eventually("its end", || space.get::<ModelService>(name), Option::is_none).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m05_who_comes_second_to_a_name_waits_for_the_end_of_the_first() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("second").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a-b", everything()).await;
    settled(&space, "a-b").await;
    let before = versions(&space).await;

    create(&space, "a.b", everything()).await;
    let object = wait(&space, "a.b", "Ready", "False", "Conflict").await;
    let message = condition(&object, "Ready")["message"].as_str().unwrap();
    assert!(message.contains("a-b-epp belongs to ModelService a-b"), "{message}");
    assert!(message.contains("rename one of them"), "{message}");
    assert_eq!(object["status"]["phase"], "Failed");
    assert_eq!(versions(&space).await, before, "nothing of the first is touched");
    ended(&space, "a.b").await;
    assert_eq!(versions(&space).await, before, "nor does the second take anything with it");

    create(&space, "a.b", everything()).await;
    wait(&space, "a.b", "Ready", "False", "Conflict").await;
    ended(&space, "a-b").await;
    settled(&space, "a.b").await;
    let left = children(&space).await;
    assert!(!left.contains(&"Deployment a-b-decode".to_owned()), "{left:?}");
    for child in ["Deployment a.b-decode", "Deployment a-b-epp", "InferencePool a.b"] {
        assert!(left.contains(&child.to_owned()), "{child} in {left:?}");
    }
    let account = see(&space, "ServiceAccount", "a-b-epp", |_| true).await;
    assert_eq!(account["metadata"]["ownerReferences"][0]["name"], "a.b");
}

/// It may not be read, and yet it is not removed where the token would be.
#[tokio::test(flavor = "multi_thread")]
async fn m14_a_foreign_secret_of_the_tokens_name_stays() {
    const TOKEN: &str = "a-epp-sa-metrics-reader-secret";
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("secret").await;
    let foreign: Secret = serde_json::from_value(json!({
        "metadata": { "name": TOKEN }, "stringData": { "key": "of somebody" } }))
    .unwrap();
    let before = space.create(&foreign).await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", everything()).await;
    settled(&space, "a").await;

    let without = json!({ "spec": { "inferencePool": null } });
    space.edit::<ModelService>("a", without).await;
    // What is deleted goes before the mark.
    let marked =
        |epp: &Deployment| epp.annotations().keys().any(|key| key.contains("token-secret"));
    eventually(
        "no mark",
        || space.get::<Deployment>("a-epp"),
        |epp| epp.as_ref().is_some_and(|epp| !marked(epp)),
    )
    .await;
    let after: Secret = space.get(TOKEN).await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    ended(&space, "a").await;
    let after: Secret = space.get(TOKEN).await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
}

#[tokio::test(flavor = "multi_thread")]
async fn m04_a_service_named_like_the_picker_of_another_shares_nothing_with_it() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("named").await;
    let setup = Setup::default().with(METRICS);
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    for name in ["x", "x-epp"] {
        create(&space, name, everything()).await;
    }
    for name in ["x", "x-epp"] {
        settled(&space, name).await;
    }
    for (kind, name, owner) in [
        ("Deployment", "x-epp", "x"),
        ("ConfigMap", "x-epp-config", "x"),
        ("Service", "x-epp", "x"),
        ("InferencePool", "x-epp", "x-epp"),
        ("HTTPRoute", "x-epp", "x-epp"),
        ("Deployment", "x-epp-decode", "x-epp"),
        ("Service", "x-epp-epp", "x-epp"),
    ] {
        let object = find(&space, kind, name).await.unwrap();
        assert_eq!(object["metadata"]["ownerReferences"][0]["name"], owner, "{kind} {name}");
    }
    // The operator before us took the pool of the one for a pool of the other, at each pass.
    crate::quiet::settle(&cluster, &operator).await;
    let before = versions(&space).await;
    let passes = operator.passes().await;
    for name in ["x", "x-epp"] {
        let label = json!({ "metadata": { "labels": { "x": "y" } } });
        space.edit::<ModelService>(name, label).await;
    }
    eventually("another pass of each", || operator.passes(), |now| *now >= passes + 2.0).await;
    assert_eq!(versions(&space).await, before);

    ended(&space, "x").await;
    let names = async || super::names(&space, "Deployment").await;
    eventually("the other's children alone", names, |left| {
        left == &["x-epp-decode", "x-epp-epp", "x-epp-prefill"]
    })
    .await;
    assert!(find(&space, "InferencePool", "x-epp").await.is_some());
}

/// `a` and `b-c` in one namespace make up the same text as `a-b` and `c` in another.
#[tokio::test(flavor = "multi_thread")]
async fn m05_cluster_rbac_is_not_taken_from_a_service_of_another_namespace() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let first = cluster.space("twice").await;
    let second = Space { client: first.client.clone(), name: format!("{}-b", first.name) };
    let namespaces: Api<Namespace> = Api::all(first.client.clone());
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": second.name } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let _operators =
        [Operator::start(&cluster, &first).await, Operator::start(&cluster, &second).await];
    let rbac = format!("{}-c-epp", second.name);
    create(&first, "b-c", everything()).await;
    wait(&first, "b-c", "MetricsAuthReady", "True", "Configured").await;
    let role = see(&first, "ClusterRole", &rbac, |_| true).await;

    create(&second, "c", everything()).await;
    let object = wait(&second, "c", "MetricsAuthReady", "False", "Conflict").await;
    let message = condition(&object, "MetricsAuthReady")["message"].as_str().unwrap();
    assert!(message.contains(&format!("ClusterRole {rbac} belongs to another")), "{message}");
    make_ready(&second, "c").await;
    let binding = see(&first, "ClusterRoleBinding", &rbac, |_| true).await;
    assert_eq!(binding["subjects"][0]["namespace"], first.name);
    ended(&second, "c").await;
    assert_eq!(find(&first, "ClusterRole", &rbac).await.unwrap(), role);

    create(&second, "c", everything()).await;
    wait(&second, "c", "MetricsAuthReady", "False", "Conflict").await;
    ended(&first, "b-c").await;
    wait(&second, "c", "MetricsAuthReady", "True", "Configured").await;
    see(&second, "ClusterRoleBinding", &rbac, |now| now["subjects"][0]["namespace"] == second.name)
        .await;
}

/// An object that has nothing to do with us.
fn foreign(kind: &str, name: &str) -> Value {
    let (api_version, _) = KINDS.iter().find(|(_, known)| *known == kind).unwrap_or(&("v1", ""));
    let labels = json!({ "app": "foreign" });
    let reference = json!({ "roleRef": { "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole", "name": "view" } });
    let mut object = match kind {
        "Deployment" => json!({ "spec": {
            "replicas": 0, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "i" }] } },
        }}),
        "ConfigMap" => json!({ "data": { "a": "b" } }),
        "Secret" => json!({ "stringData": { "a": "b" } }),
        "Service" => json!({ "spec": { "ports": [{ "port": 1 }], "selector": labels } }),
        "RoleBinding" | "ClusterRoleBinding" => reference,
        "InferencePool" => json!({ "spec": {
            "selector": { "matchLabels": labels }, "targetPorts": [{ "number": 1 }],
            "endpointPickerRef": { "name": "other", "port": { "number": 1 } },
        }}),
        "HTTPRoute" => json!({ "spec": { "parentRefs": [{ "name": "other" }] } }),
        "DestinationRule" => json!({ "spec": { "host": "other" } }),
        "PodMonitor" => json!({ "spec": { "selector": {}, "podMetricsEndpoints": [] } }),
        "ServiceMonitor" => json!({ "spec": { "selector": {}, "endpoints": [] } }),
        _ => json!({}),
    };
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"] = json!({ "name": name, "labels": labels });
    object
}

async fn put(space: &Space, kind: &str, name: &str) -> Value {
    let object = serde_json::from_value(foreign(kind, name)).unwrap();
    let made = of_kind(space, kind).create(&PostParams::default(), &object).await.unwrap();
    serde_json::to_value(made).unwrap()
}

/// Nobody but the control plane has touched it since.
async fn assert_same(space: &Space, made: &Value) {
    let kind = made["kind"].as_str().unwrap();
    let name = made["metadata"]["name"].as_str().unwrap();
    let now = find(space, kind, name).await.unwrap_or_else(|| panic!("{kind} {name} is gone"));
    assert_eq!(now["metadata"]["uid"], made["metadata"]["uid"], "{kind} {name}");
    assert_eq!(content(&now), content(made), "{kind} {name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn m03_foreign_objects_in_the_way_are_left_alone_and_named() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("way").await;
    let cluster_name = format!("{}-{{}}-epp", space.name);
    let ways = [
        ("Deployment", "{}-decode"),
        ("Deployment", "{}-prefill"),
        ("Deployment", "{}-epp"),
        ("ServiceAccount", "{}-epp"),
        ("ConfigMap", "{}-epp-config"),
        ("Service", "{}-epp"),
        ("Role", "{}-epp"),
        ("RoleBinding", "{}-epp"),
        ("ClusterRole", &cluster_name),
        ("ClusterRoleBinding", &cluster_name),
        ("InferencePool", "{}"),
        ("HTTPRoute", "{}"),
        ("DestinationRule", "{}-epp"),
        ("PodMonitor", "{}-decode"),
        ("PodMonitor", "{}-prefill"),
        ("ServiceMonitor", "{}-epp"),
    ];
    let ways: Vec<(&str, String, String)> = ways
        .iter()
        .enumerate()
        .map(|(n, (kind, form))| (*kind, format!("s{n}"), form.replace("{}", &format!("s{n}"))))
        .collect();
    let mut made = Vec::new();
    for (kind, service, name) in &ways {
        made.push(put(&space, kind, name).await);
        create(&space, service, everything()).await;
    }
    let _operator = Operator::start(&cluster, &space).await;
    stream::iter(ways.iter().zip(&made))
        .for_each_concurrent(4, |((kind, service, name), made)| {
            is_left_alone(&space, kind, service, name, made)
        })
        .await;
    // Once it is out of the way, the service has it made.
    let (kind, service, name) = &ways[0];
    super::delete(&space, kind, name).await;
    let label = json!({ "metadata": { "labels": { "x": "y" } } });
    space.edit::<ModelService>(service, label).await;
    wait(&space, service, "Ready", "False", "PodsStarting").await;
}

async fn is_left_alone(space: &Space, kind: &str, service: &str, name: &str, made: &Value) {
    let text = format!("{name} exists and was not made by this controller; it is left as it is");
    // The pods come after accounts, rights and configuration; on the rest they do not build.
    let first = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
    let holds_up = first.contains(&kind) || kind == "ConfigMap";
    let is_role = name.ends_with("-decode") || name.ends_with("-prefill");
    let lacks_pods = holds_up || (kind == "Deployment" && is_role);
    let told = |object: &Value| {
        let ready = condition(object, "Ready");
        let message = ready["message"].as_str().unwrap_or_default();
        let conflict = ready["status"] == "False" && ready["reason"] == "Conflict";
        let phase = if lacks_pods { "Pending" } else { "Running" };
        let told = conflict && message.contains(kind) && message.contains(&text);
        told && object["status"]["phase"] == phase
    };
    eventually(&text, || read(space, service), told).await;
    assert_same(space, made).await;
    let decode = find(space, "Deployment", &format!("{service}-decode")).await;
    assert_eq!(decode.is_none(), holds_up, "{kind} {name}");
    if service != "s0" {
        ended(space, service).await;
        assert_same(space, made).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn m03_foreign_objects_under_names_that_are_not_wanted_are_not_deleted() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("foreign").await;
    let rbac = format!("{}-a-epp", space.name);
    let names = [
        ("Deployment", "a-prefill"),
        ("PodMonitor", "a-decode"),
        ("PodMonitor", "a-prefill"),
        ("ServiceMonitor", "a-epp"),
        ("HTTPRoute", "a"),
        ("DestinationRule", "a-epp"),
        ("InferencePool", "a-epp"),
        ("ClusterRole", rbac.as_str()),
        ("ClusterRoleBinding", rbac.as_str()),
        ("Secret", "a-epp-sa-metrics-reader-secret"),
    ];
    let mut made = Vec::new();
    for (kind, name) in names {
        made.push(put(&space, kind, name).await);
    }
    let setup = Setup::default().with("--provider=none").with("--default-gateway-name=");
    let _operator = Operator::start_with(&cluster, &space, &setup).await;
    create(&space, "a", json!({ "monitoring": { "podMonitor": { "enabled": false } } })).await;
    settled(&space, "a").await;
    ended(&space, "a").await;
    for made in &made {
        assert_same(&space, made).await;
    }
}

/// As after a restore from a backup: the children are there, their owner has another uid.
#[tokio::test(flavor = "multi_thread")]
async fn m03_children_without_an_owner_are_adopted() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("orphans").await;
    let mut operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    settled(&space, "a").await;
    let before = children(&space).await;
    operator.kill();
    let orphan = DeleteParams::orphan();
    drop(space.api::<ModelService>().delete("a", &orphan).await.unwrap());
    eventually("its end", || space.get::<ModelService>("a"), Option::is_none).await;
    let mut uids = Vec::new();
    for child in &before {
        let (kind, name) = child.split_once(' ').unwrap();
        let free = |object: &Value| object["metadata"]["ownerReferences"].is_null();
        uids.push(see(&space, kind, name, free).await["metadata"]["uid"].clone());
    }
    let service = create(&space, "a", json!({})).await;
    operator.restart(&space, &Setup::default());
    settled(&space, "a").await;
    assert_eq!(children(&space).await, before);
    for (child, uid) in before.iter().zip(&uids) {
        let (kind, name) = child.split_once(' ').unwrap();
        let ours = |now: &Value| {
            now["metadata"]["ownerReferences"][0]["uid"].as_str() == service.uid().as_deref()
        };
        let now = see(&space, kind, name, ours).await;
        assert_eq!(now["metadata"]["uid"], *uid, "{child} is the one it was");
    }
}
