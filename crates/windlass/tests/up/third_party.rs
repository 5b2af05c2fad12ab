use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::{
    backend::{apply, named, route, service},
    running::World,
    wait::until,
};

const ROUTES: &str = "httproutes.gateway.networking.k8s.io";

#[tokio::test]
async fn a_definition_that_is_there_is_never_touched() {
    let world = World::new();
    let up = world.up(&["--no-third-party-kinds", "--gateway-port", "0"]);
    let client = up.client().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let all = definitions.list(&ListParams::default()).await.unwrap();
    let foreign = |definition: &&CustomResourceDefinition| {
        let group = &definition.spec.group;
        group.ends_with(".k8s.io") || group.ends_with(".x-k8s.io") || group.contains("kserve")
    };
    assert_eq!(all.items.iter().filter(foreign).count(), 0);
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let mine = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": ROUTES, "annotations": { "api-approved.kubernetes.io": "unapproved" } },
        "spec": { "group": "gateway.networking.k8s.io", "scope": "Namespaced",
            "names": { "kind": "HTTPRoute", "plural": "httproutes" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} }, "schema": { "openAPIV3Schema": any } }] } });
    apply(&client, mine).await;
    // It works with what there is, from when it is there.
    service(&client, "a", &[named("a").await]).await;
    let spec = json!({ "parentRefs": [{ "name": "g" }],
        "rules": [{ "backendRefs": [{ "name": "a", "port": 80 }] }] });
    until("definition", || async {
        let found = definitions.get(ROUTES).await.map_err(|error| error.to_string())?;
        let status = serde_json::to_string(&found.status).unwrap();
        if status.contains(r#""status":"True","type":"Established""#) {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await;
    apply(&client, route("r", spec)).await;
    until("answer", || async {
        let got = up.get("h", "/").await;
        if got == (200, "a h /".to_owned()) { Ok(()) } else { Err(format!("{got:?}")) }
    })
    .await;
    let before = definitions.get(ROUTES).await.unwrap();
    up.terminate();

    let up = world.up(&["--gateway-port", "0"]);
    let definitions: Api<CustomResourceDefinition> = Api::all(up.client().await);
    assert_eq!(definitions.get(ROUTES).await.unwrap(), before);
    let all = definitions.list(&ListParams::default()).await.unwrap();
    assert_eq!(all.items.iter().filter(foreign).count(), 11);
    // And it stops when it goes.
    definitions.delete(ROUTES, &DeleteParams::default()).await.unwrap();
    until("no answer", || async {
        let got = up.get("h", "/").await;
        if got.0 == 404 { Ok(()) } else { Err(format!("{got:?}")) }
    })
    .await;
}
