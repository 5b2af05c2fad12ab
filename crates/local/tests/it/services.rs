use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_local::{controllers::Settings, http::Access, registry, store::Store};

use crate::{
    api::Api,
    controlled::{Controlled, PODS, pod},
};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/web";

fn service(spec: Value) -> Value {
    json!({"metadata": {"name": "web", "labels": {"team": "x"}}, "spec": spec})
}

fn ready(slice: &Value) -> Vec<(&str, bool)> {
    let endpoints = slice["endpoints"].as_array().map_or(&[][..], Vec::as_slice);
    let one = |endpoint: &'_ Value| endpoint["conditions"]["ready"] == true;
    endpoints.iter().map(|e| (e["addresses"][0].as_str().unwrap(), one(e))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_a_slice_of_its_pods_and_both_go_with_it() {
    let cluster = Controlled::new(Settings::default()).await;
    let spec = json!({"selector": {"app": "a"},
        "ports": [{"name": "api", "port": 80, "targetPort": "http"}]});
    cluster.api.post(SERVICES, service(spec)).await.is(201);
    let placeholder = cluster.list(SLICES, |slices| slices.len() == 1).await;
    assert_eq!(ready(&placeholder[0]), []);

    cluster.api.post(PODS, pod("a", json!({}))).await.is(201);
    cluster.run_pod("a", "127.64.0.1", false).await;
    let unready =
        cluster.list(SLICES, |slices| slices.len() == 1 && !ready(&slices[0]).is_empty()).await;
    assert_eq!(ready(&unready[0]), [("127.64.0.1", false)]);
    let slice = &unready[0];
    assert!(slice["metadata"]["name"].as_str().unwrap().starts_with("web-"), "{slice}");
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "web");
    assert_eq!(slice["metadata"]["labels"]["team"], "x");
    assert_eq!(slice["metadata"]["managedFields"][0]["manager"], "kube-controller-manager");
    assert_eq!(slice["ports"], json!([{"name": "api", "port": 8000, "protocol": "TCP"}]));

    cluster.run_pod("a", "127.64.0.1", true).await;
    let now = cluster.list(SLICES, |slices| ready(&slices[0]) == [("127.64.0.1", true)]).await;
    assert_eq!(now[0]["metadata"]["uid"], slice["metadata"]["uid"], "the same slice");
    let mirror = cluster.api.until(ENDPOINTS, |a| a.body["subsets"][0]["addresses"].is_array());
    assert_eq!(mirror.await.body["subsets"][0]["addresses"][0]["ip"], "127.64.0.1");

    // Other labels are no longer meant.
    cluster.api.merge(&format!("{PODS}/a"), json!({"metadata": {"labels": {"app": "b"}}})).await;
    cluster.list(SLICES, |slices| slices.len() == 1 && ready(&slices[0]).is_empty()).await;

    // Who deletes it gets another.
    let name = cluster.list(SLICES, |slices| slices.len() == 1).await[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    cluster.api.delete(&format!("{SLICES}/{name}")).await.is(200);
    let fresh = |slices: &[Value]| slices.len() == 1 && slices[0]["metadata"]["name"] != *name;
    cluster.list(SLICES, fresh).await;

    cluster.api.delete(&format!("{SERVICES}/web")).await.is(200);
    cluster.list(SLICES, <[Value]>::is_empty).await;
    cluster.api.until_gone(ENDPOINTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_a_selector_is_left_to_its_author() {
    let cluster = Controlled::new(Settings::default()).await;
    cluster.api.post(SERVICES, service(json!({"ports": [{"port": 80}]}))).await.is(201);
    let mut other = service(json!({"ports": [{"port": 80}], "selector": {"app": "a"}}));
    other["metadata"]["name"] = json!("zzz");
    cluster.api.post(SERVICES, other).await.is(201);
    let slices = cluster.list(SLICES, |slices| !slices.is_empty()).await;
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0]["metadata"]["labels"]["kubernetes.io/service-name"], "zzz");
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_whose_service_went_while_nobody_looked_go_too() {
    let api = Api::new().await;
    let all = "/api/v1/namespaces/default/endpoints";
    let ours = json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"});
    for (name, labels) in [("left", ours), ("foreign", json!({}))] {
        let metadata = json!({"name": name, "labels": labels});
        api.post(all, json!({"metadata": metadata})).await.is(201);
    }
    let cluster = Controlled::on(api, Settings::default());
    cluster.api.until_gone(&format!("{all}/left")).await;
    cluster.api.get(&format!("{all}/foreign")).await.is(200);
}

#[tokio::test]
async fn the_api_says_where_it_answers_itself() {
    let store = Store::in_memory(Arc::new(Timestamp::now)).unwrap();
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    let mut uids = BTreeSet::new();
    // Another start may have another port.
    for port in [4711, 4712] {
        let settings = registry::Settings { port: Some(port), ..Default::default() };
        let api = Api::start(store.clone(), Access::default(), settings).await;
        let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
        let found = api.get(slice).await.is(200).body;
        assert_eq!(found["ports"], ports);
        assert_eq!(found["addressType"], "IPv4");
        let ready = json!([{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}]);
        assert_eq!(found["endpoints"], ready);
        let labels = json!({"kubernetes.io/service-name": "kubernetes"});
        assert_eq!(found["metadata"]["labels"], labels);
        let older = api.get(endpoints).await.is(200).body;
        let subsets = json!([{"addresses": [{"ip": "127.0.0.1"}], "ports": ports}]);
        assert_eq!(older["subsets"], subsets);
        let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.is(200).body;
        assert_eq!(service["spec"]["ports"][0]["targetPort"], port);
        assert_eq!(service["spec"]["clusterIP"], "127.96.0.1");
        uids.extend([&service, &older].map(|object| object["metadata"]["uid"].to_string()));
        assert_eq!(uids.len(), 2, "they are the same as before: {uids:?}");
        // What somebody deletes comes back.
        api.delete(slice).await.is(200);
        let old = &found["metadata"]["uid"];
        api.until(slice, |now| now.status == 200 && now.body["metadata"]["uid"] != *old).await;
    }
}
