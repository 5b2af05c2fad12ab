use axum::body::Body;
use http::{HeaderValue, Method, Request};
use serde_json::json;
use windlass_local::auth::User;

use crate::api::{Answer, Api, CONFIG_MAPS, config_map};

fn user() -> User {
    User { name: "u".into(), groups: vec!["system:authenticated".into()], ..User::default() }
}

#[track_caller]
fn refused(answer: Answer, message: &str) {
    assert_eq!(answer.fails(403, "Forbidden").message(), message);
}

#[tokio::test]
async fn what_no_role_allows_is_refused() {
    let api = Api::new().await;
    let other = api.as_user(user());
    let list = other.get(CONFIG_MAPS).await;
    refused(
        list,
        r#"configmaps is forbidden: User "u" cannot list resource "configmaps" in API group "" in the namespace "default""#,
    );
    let get = other.get("/apis/apps/v1/namespaces/a/deployments/x").await;
    assert_eq!(get.body["details"], json!({"name": "x", "group": "apps", "kind": "deployments"}));
    refused(
        get,
        r#"deployments.apps "x" is forbidden: User "u" cannot get resource "deployments" in API group "apps" in the namespace "a""#,
    );
    let nodes = other.get("/api/v1/nodes?watch=1").await;
    refused(
        nodes,
        r#"nodes is forbidden: User "u" cannot watch resource "nodes" in API group "" at the cluster scope"#,
    );
    refused(other.get("/foo").await, r#"forbidden: User "u" cannot get path "/foo""#);
    other.get("/version").await.is(200);
    for name in ["healthz", "livez", "readyz"] {
        assert_eq!(other.get(&format!("/{name}")).await.is(200).text, "ok");
        let verbose = other.get(&format!("/{name}?verbose")).await.is(200).text;
        assert_eq!(verbose, format!("[+]ping ok\n[+]store ok\n{name} check passed\n"));
        assert_eq!(api.get(&format!("/{name}/ping")).await.is(200).text, "ok");
    }
}

#[tokio::test]
async fn roles_open_what_they_name() {
    let api = Api::new().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({
        "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"]}],
    });
    api.post(&format!("{roles}/roles"), role.clone()).await.is(201);
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}],
    });
    api.post(&format!("{roles}/rolebindings"), binding).await.is(201);
    let other = api.as_user(user());
    other.post(CONFIG_MAPS, config_map("a", json!({}))).await.is(201);
    other.get(&format!("{CONFIG_MAPS}/a")).await.is(200);
    other.get(CONFIG_MAPS).await.is(403);
    other.get("/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt").await.is(403);
    let review = json!({"spec": {"resourceAttributes": {
        "namespace": "default", "verb": "get", "resource": "configmaps",
    }}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(other.post(path, review).await.is(201).body["status"]["allowed"], true);
    api.delete(&format!("{roles}/rolebindings/b")).await.is(200);
    other.get(&format!("{CONFIG_MAPS}/a")).await.is(403);
}

#[tokio::test]
async fn nobody_grants_more_than_it_has() {
    let api = Api::new().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let maker = json!({
        "metadata": {"name": "maker"},
        "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create"]}],
    });
    api.post(roles, maker).await.is(201);
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maker"},
        "subjects": [{"kind": "User", "name": "u"}],
    });
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await.is(201);
    let all = json!({
        "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    let refused = api.as_user(user()).post(roles, all).await.fails(403, "Forbidden");
    assert!(
        refused.message().contains("is attempting to grant RBAC permissions not currently held")
    );
}

#[tokio::test]
async fn admins_may_stand_for_others() {
    let api = Api::new().await;
    let request = |user: &str| {
        http::Request::builder()
            .method(Method::GET)
            .uri(CONFIG_MAPS)
            .header("impersonate-user", user)
            .body(axum::body::Body::empty())
            .unwrap()
    };
    let stood = api.ask(request("somebody")).await.fails(403, "Forbidden");
    assert!(stood.message().contains("User \"somebody\""), "{}", stood.message());
    let other = api.as_user(user()).ask(request("admin")).await.fails(403, "Forbidden");
    assert!(other.message().contains("cannot impersonate"), "{}", other.message());
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = api.as_user(user()).post(who, json!({})).await.is(201);
    assert_eq!(who.body["status"]["userInfo"]["username"], "u");
}

#[tokio::test]
async fn a_name_that_cannot_be_read_is_not_the_callers_own() {
    let api = Api::new().await;
    let ask = |name: &'static str, value: &'static [u8]| {
        let request = Request::builder().uri("/api/v1/secrets").header("impersonate-user", "bob");
        api.ask(
            request
                .header(name, HeaderValue::from_bytes(value).unwrap())
                .body(Body::empty())
                .unwrap(),
        )
    };
    let said = ask("impersonate-group", "grün".as_bytes()).await.fails(403, "Forbidden");
    assert!(said.message().contains("User \"bob\""), "{}", said.message());
    ask("impersonate-group", b"gr\xffn").await.fails(400, "BadRequest");
    ask("impersonate-extra-a", b"\xff").await.fails(400, "BadRequest");
    let alone = |value: &[u8]| {
        let request = Request::builder().uri("/api/v1/secrets");
        let value = HeaderValue::from_bytes(value).unwrap();
        api.ask(request.header("impersonate-user", value).body(Body::empty()).unwrap())
    };
    let said = alone("jürgen".as_bytes()).await.fails(403, "Forbidden");
    assert!(said.message().contains("User \"jürgen\""), "{}", said.message());
    alone(b"j\xffrgen").await.fails(400, "BadRequest");
}
