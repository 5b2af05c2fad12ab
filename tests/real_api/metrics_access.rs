//! Who may read the operator's metrics.

use k8s_openapi::{
    api::{
        authentication::v1::TokenRequest,
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use windlass_tests::{
    Operator, Space, http,
    operator::{METRICS, Setup},
};

/// A token of a new account.
async fn token(space: &Space, name: &str) -> String {
    let accounts: Api<ServiceAccount> = space.api();
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
    let account = ServiceAccount { metadata, ..Default::default() };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request = TokenRequest::default();
    let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
    answer.unwrap().status.unwrap().token
}

/// Lets an account read metrics, which only a right on the whole cluster can.
async fn allow(space: &Space, account: &str) {
    let name = format!("metrics-reader-{}", space.name);
    let role = json!({
        "metadata": { "name": name },
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    });
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": space.name }],
    });
    let roles: Api<ClusterRole> = Api::all(space.client.clone());
    let role = serde_json::from_value(role).unwrap();
    roles.create(&PostParams::default(), &role).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(space.client.clone());
    let binding = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

async fn forbid(space: &Space) {
    let name = format!("metrics-reader-{}", space.name);
    let roles: Api<ClusterRole> = Api::all(space.client.clone());
    roles.delete(&name, &DeleteParams::default()).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(space.client.clone());
    bindings.delete(&name, &DeleteParams::default()).await.unwrap();
}

/// The body, or the code and text of a refusal.
async fn scrape(address: &str, path: &str, token: Option<&str>) -> Result<String, (u16, String)> {
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    // It made its certificate itself.
    config.accept_invalid_certs = true;
    config.auth_info.token = token.map(|token| token.to_owned().into());
    let client = Client::try_from(config).unwrap();
    let request = ::http::Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| match error {
        kube::Error::Api(status) => (status.code, status.message),
        other => panic!("{other}"),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn secured_metrics_are_for_those_who_may_get_them() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("scrape").await;
    let setup = Setup::default().with(METRICS).with("--metrics-secure");
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    let address = operator.address("metrics").await;

    assert_eq!(scrape(&address, "/metrics", None).await.unwrap_err().0, 401);
    assert_eq!(scrape(&address, "/metrics", Some("nonsense")).await.unwrap_err().0, 401);

    let stranger = token(&space, "stranger").await;
    let (code, text) = scrape(&address, "/metrics", Some(&stranger)).await.unwrap_err();
    let user = format!("system:serviceaccount:{}:stranger", space.name);
    assert_eq!(code, 403, "{text}");
    assert!(text.contains(&user), "{text}");

    let scraper = token(&space, "scraper").await;
    allow(&space, "scraper").await;
    let metrics = scrape(&address, "/metrics", Some(&scraper)).await.unwrap();
    assert!(metrics.contains("windlass_leader"), "{metrics}");
    let elsewhere = scrape(&address, "/elsewhere", Some(&scraper)).await.unwrap_err();
    assert_eq!(elsewhere.0, 403, "a right on one path is none on another");
    assert!(http::get(&address, "/metrics").is_err(), "nothing without TLS");

    forbid(&space).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_that_are_not_secured_are_for_everybody() {
    let Some(cluster) = crate::shared(&[]).await else { return };
    let space = cluster.space("scrape").await;
    let setup = Setup::default().with(METRICS).with("--metrics-secure=false");
    let operator = Operator::start_with(&cluster, &space, &setup).await;
    let metrics = http::get(&operator.address("metrics").await, "/metrics").unwrap();
    assert!(metrics.contains("windlass_leader"), "{metrics}");
}
