use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::model::model_service::ModelService;
use windlass_tests::{Operator, Space, eventually};

use super::{condition, content, create, delete, edit, everything, make_ready, read, see, wait};

const TOKEN: &str = "a-epp-sa-metrics-reader-secret";

/// Every child of a service with everything, and an edit of what is ours in it. The token Secret is
/// not among them: it has a scenario of its own.
fn edits(space: &Space) -> Vec<(&'static str, String, Value)> {
    let rbac = format!("{}-a-epp", space.name);
    let image = |container: &str| {
        let containers = json!([{ "name": container, "image": "example.com/hacked:1" }]);
        json!({ "spec": { "template": { "spec": { "containers": containers } } } })
    };
    let selector = json!({ "spec": { "selector": { "matchLabels": { "app": "b" } } } });
    let nobody = json!({ "subjects": [] });
    let anything =
        json!({ "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] }] });
    let named = |name: &str| name.to_owned();
    vec![
        ("Deployment", named("a-decode"), image("vllm")),
        ("Deployment", named("a-prefill"), image("vllm")),
        ("Deployment", named("a-epp"), image("epp")),
        (
            "ServiceAccount",
            named("a-epp"),
            json!({ "metadata": { "labels": {
            "app.kubernetes.io/part-of": "something-else" } } }),
        ),
        ("ConfigMap", named("a-epp-config"), json!({ "data": { "pd-config.yaml": "hacked" } })),
        ("Service", named("a-epp"), json!({ "spec": { "selector": { "app": "b" } } })),
        ("Role", named("a-epp"), anything.clone()),
        ("RoleBinding", named("a-epp"), nobody.clone()),
        ("ClusterRole", rbac.clone(), anything),
        ("ClusterRoleBinding", rbac, nobody),
        ("InferencePool", named("a"), json!({ "spec": { "targetPorts": [{ "number": 1 }] } })),
        // A label more, and the pool has no pods.
        ("InferencePool", named("a"), selector.clone()),
        ("HTTPRoute", named("a"), json!({ "spec": { "parentRefs": [{ "name": "other" }] } })),
        ("DestinationRule", named("a-epp"), json!({ "spec": { "host": "other" } })),
        ("PodMonitor", named("a-decode"), selector.clone()),
        ("PodMonitor", named("a-prefill"), selector.clone()),
        ("ServiceMonitor", named("a-epp"), selector),
    ]
}

/// Waits until everything was written, and nothing is about to be.
async fn settled(space: &Space) -> Value {
    make_ready(space, "a").await;
    wait(space, "a", "EPPReady", "True", "DeploymentAvailable").await
}

#[tokio::test(flavor = "multi_thread")]
async fn m10_every_child_is_healed_when_edited_or_deleted() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("drift").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", everything()).await;
    settled(&space).await;
    let edits = edits(&space);
    let edited: BTreeSet<_> =
        edits.iter().map(|(kind, name, _)| format!("{kind} {name}")).collect();
    let children = super::children(&space).await;
    assert_eq!(edited, children.into_iter().collect(), "no child is forgotten");
    for (kind, name, patch) in &edits {
        let before = see(&space, kind, name, |_| true).await;
        let edited = edit(&space, kind, name, patch).await;
        assert_ne!(content(&edited), content(&before), "the edit of {kind} changes something");
        let healed = |now: &Value| content(now) == content(&before);
        let now = see(&space, kind, name, healed).await;
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "{kind} {name}");

        delete(&space, kind, name).await;
        let uid = &before["metadata"]["uid"];
        see(&space, kind, name, |now| now["metadata"]["uid"] != *uid && healed(now)).await;
    }
    settled(&space).await;
}

/// Children without the labels by which they are watched, as a clumsy `kubectl label` leaves them.
#[tokio::test(flavor = "multi_thread")]
async fn m10_a_child_that_loses_its_labels_gets_them_back() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("labels").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", everything()).await;
    settled(&space).await;
    let keys = ["app.kubernetes.io/managed-by", "app.kubernetes.io/component", "llm-d.ai/model"];
    for (kind, name, _) in edits(&space) {
        // Without an owner the labels are all that tells whose it is; see the scenarios of `names`.
        if kind.starts_with("Cluster") {
            continue;
        }
        let before = see(&space, kind, &name, |_| true).await;
        for key in keys {
            edit(&space, kind, &name, &json!({ "metadata": { "labels": { key: null } } })).await;
            see(&space, kind, &name, |now| content(now) == content(&before)).await;
        }
    }
}

/// Secrets are written and never read; that this one is gone is seen on its account.
#[tokio::test(flavor = "multi_thread")]
async fn m10_the_token_secret_comes_back_and_with_its_account_too() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("token").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", everything()).await;
    settled(&space).await;
    let filled = |secret: &Option<Secret>| {
        let data = secret.as_ref().and_then(|secret| secret.data.as_ref());
        data.is_some_and(|data| data.contains_key("token"))
    };
    let token = || space.get::<Secret>(TOKEN);
    let first = eventually("a token", token, filled).await.unwrap();
    assert_eq!(first.annotations()["kubernetes.io/service-account.name"], "a-epp");
    assert_eq!(first.owner_references()[0].name, "a");

    // What others write to it stays: the control plane keeps its own notes there.
    let note = json!({ "metadata": { "annotations": { "x": "y" } } });
    space.edit::<Secret>(TOKEN, note).await;
    let args = json!({ "spec": { "engine": { "args": ["--one"] } } });
    space.edit::<ModelService>("a", args).await;
    settled(&space).await;
    let second = token().await.unwrap();
    assert_eq!((second.uid(), &second.annotations()["x"][..]), (first.uid(), "y"));

    let after = |old: &Secret| {
        let old = old.uid();
        move |now: &Option<Secret>| filled(now) && now.as_ref().unwrap().uid() != old
    };
    let mut last = second;
    for _ in 0..3 {
        space.delete::<Secret>(TOKEN).await;
        last = eventually("another token", token, after(&last)).await.unwrap();
    }

    // With its account the token ends.
    let uid = "kubernetes.io/service-account.uid";
    for _ in 0..3 {
        delete(&space, "ServiceAccount", "a-epp").await;
        last = eventually("a token of the new account", token, after(&last)).await.unwrap();
        let account = see(&space, "ServiceAccount", "a-epp", |_| true).await;
        assert_eq!(account["metadata"]["uid"], last.annotations()[uid]);
    }
    see(&space, "ServiceAccount", "a-epp", |account| account["secrets"][0]["name"] == TOKEN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn m22_the_status_is_healed_too() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("status").await;
    let _operator = Operator::start(&cluster, &space).await;
    create(&space, "a", json!({})).await;
    let before = make_ready(&space, "a").await;
    let lie = json!({ "phase": "Failed", "decodeReady": 7, "conditions": [] });
    space.edit_status::<ModelService>("a", lie).await;
    let truth = |object: &Value| {
        let ready = condition(object, "Ready");
        object["status"]["phase"] == "Ready"
            && object["status"]["decodeReady"] == before["status"]["decodeReady"]
            && ready["status"] == "True"
    };
    eventually("the truth", || read(&space, "a"), truth).await;
}
