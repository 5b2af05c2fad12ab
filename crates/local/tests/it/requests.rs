use axum::body::Body;
use http::{Method, Request};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Value, json};

use crate::{
    api::{Api, CONFIG_MAPS, config_map},
    custom::definition,
};

/// Paths that exist, so that most requests get far.
const PATHS: &[&str] = &[
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/services/s",
    "/api/v1/namespaces/default/pods/p/log",
    "/api/v1/namespaces/default/pods/p/binding",
    "/api/v1/namespaces/default/pods/p/status",
    "/api/v1/namespaces/default/serviceaccounts/default/token",
    "/api/v1/namespaces/default/events",
    "/api/v1/namespaces/other/finalize",
    "/apis/events.k8s.io/v1/namespaces/default/events/e",
    "/apis/apps/v1/namespaces/default/deployments/d",
    "/apis/apps/v1/namespaces/default/deployments/d/scale",
    "/apis/ex.io/v1/namespaces/default/widgets",
    "/apis/ex.io/v1/namespaces/default/widgets/w",
    "/apis/ex.io/v1/namespaces/default/widgets/w/status",
    "/apis/ex.io/v1/namespaces/default/widgets/w/scale",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.ex.io",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/r",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/openapi/v3/apis/apps/v1",
];
const PARTS: &[&str] = &[
    "api",
    "apis",
    "v1",
    "apps",
    "ex.io",
    "namespaces",
    "default",
    "configmaps",
    "widgets",
    "a",
    "w",
    "status",
    "scale",
    "log",
    "..",
    "%2e%2e",
    "%2f",
    "%00",
    "%ff",
    "%C3%A9",
    "openapi",
    "v3",
    "watch",
    "",
];
const OPTIONS: &[&str] = &[
    "watch",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "includeObject",
    "propagationPolicy",
    "gracePeriodSeconds",
    "allowWatchBookmarks",
    "tailLines",
    "sinceTime",
    "container",
    "hash",
];
const VALUES: &[&str] = &[
    "",
    "true",
    "false",
    "1",
    "0",
    "-1",
    "All",
    "Exact",
    "NotOlderThan",
    "Strict",
    "Orphan",
    "m",
    "a%3Db",
    "metadata.name%3Da",
    "spec.x!%3D",
    "99999999999999999999",
    "None",
    "%ff",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
];
const MEDIA: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "x",
];
const ACCEPTED: &[&str] = &[
    "*/*",
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "text/plain",
    ";;,",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
];
/// Names that lead into the code, so that wrong types meet it deep down.
const FIELDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "labels",
    "annotations",
    "managedFields",
    "fieldsV1",
    "f:spec",
    "manager",
    "operation",
    "finalizers",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "data",
    "spec",
    "status",
    "replicas",
    "ports",
    "template",
    "containers",
    "versions",
    "schema",
    "openAPIV3Schema",
    "properties",
    "type",
    "op",
    "path",
    "value",
    "$patch",
    "$setElementOrder/ports",
    "$retainKeys",
    "rules",
    "x-kubernetes-validations",
    "rule",
    "selector",
];
const TEXTS: &[&str] = &[
    "v1",
    "ConfigMap",
    "apps/v1",
    "Deployment",
    "ex.io/v1",
    "Widget",
    "a",
    "w",
    "d",
    "",
    "replace",
    "delete",
    "add",
    "/data/a",
    "/spec/-",
    "object",
    "string",
    "self.x == oldSelf.x",
    "FieldsV1",
    "Apply",
    "1Gi",
    "None",
    "\u{0}",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(TEXTS).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let fields = prop::collection::vec((select(FIELDS), inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| {
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect())
            }),
        ]
    })
}

/// An object of the kind that the path asks for, with something odd in it.
fn nearly(path: &str, odd: &Value) -> Value {
    let (version, kind) = match path {
        path if path.contains("widgets") => ("ex.io/v1", "Widget"),
        path if path.contains("deployments") => ("apps/v1", "Deployment"),
        path if path.contains("customresource") => {
            let mut object = definition();
            object["metadata"]["name"] = json!("things.ex.io");
            object["spec"]["names"] = json!({"kind": "Thing", "plural": "things"});
            object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
                odd.clone();
            return object;
        }
        _ => ("v1", "ConfigMap"),
    };
    let name = path.split('/').skip_while(|part| *part != "default").nth(2).unwrap_or("n");
    let metadata = json!({"name": name, "managedFields": odd.get("managedFields"), "labels": odd.get("labels")});
    json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": odd, "data": odd})
}

fn body(path: String) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        "[-a-z:{}\\[\\],&*!|>'\" \n0-9]{0,60}".prop_map(String::into_bytes),
        value().prop_map(|value| value.to_string().into_bytes()),
        prop::collection::vec(value(), 0..3)
            .prop_map(|list| Value::from(list).to_string().into_bytes()),
        value().prop_map(move |odd| nearly(&path, &odd).to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| [b"k8s\0", &*bytes].concat()),
    ]
}

#[derive(Clone, Debug)]
struct Odd {
    method: Method,
    path: String,
    query: String,
    media: &'static str,
    accepted: &'static str,
    body: Vec<u8>,
}

fn odd() -> impl Strategy<Value = Odd> {
    let known = select(PATHS).prop_map(str::to_owned);
    let made = prop::collection::vec(select(PARTS), 1..8)
        .prop_map(|parts| format!("/{}", parts.join("/")));
    let value = prop_oneof![select(VALUES).prop_map(str::to_owned), "[a-z=!(),%.]{0,10}"];
    let pair = (select(OPTIONS), value).prop_map(|(name, value)| format!("{name}={value}"));
    let query = prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.join("&"));
    let methods = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::PATCH,
        Method::DELETE,
        Method::HEAD,
    ];
    let rest = (query, select(methods.to_vec()), select(MEDIA), select(ACCEPTED));
    let path = prop_oneof![4 => known, 1 => made];
    (path, rest).prop_flat_map(|(path, (query, method, media, accepted))| {
        body(path.clone()).prop_map(move |body| Odd {
            method: method.clone(),
            path: path.clone(),
            query: query.clone(),
            media,
            accepted,
            body,
        })
    })
}

async fn check(api: &Api, odd: Odd) -> Result<(), TestCaseError> {
    let request = Request::builder()
        .method(odd.method.clone())
        .uri(format!("{}?{}", odd.path, odd.query))
        .header("content-type", odd.media)
        .header("accept", odd.accepted);
    let Ok(request) = request.body(Body::from(odd.body)) else { return Ok(()) };
    let response = api.raw(request).await;
    let code = response.status().as_u16();
    // A watch has no end, and HEAD no body.
    if code < 400 || odd.method == Method::HEAD {
        return Ok(());
    }
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    if code == 404 && &bytes[..] == b"404 page not found\n" {
        return Ok(());
    }
    let status: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    prop_assert_eq!(&status["kind"], "Status", "{:?}", bytes);
    prop_assert_eq!(&status["code"], code);
    // The server's own fault it is never.
    prop_assert_ne!(&status["reason"], "InternalError");
    Ok(())
}

#[test]
fn any_request_is_answered_in_words() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let api = runtime.block_on(async {
        let api = Api::new().await;
        api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition()).await.is(201);
        api.post(CONFIG_MAPS, config_map("a", json!({"a": "1"}))).await.is(201);
        let deployments = "/apis/apps/v1/namespaces/default/deployments";
        api.post(deployments, crate::objects::deployment("d")).await.is(201);
        let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}});
        api.post("/apis/ex.io/v1/namespaces/default/widgets", widget).await.is(201);
        api
    });
    let config = Config { cases: 1500, failure_persistence: None, ..Config::default() };
    let checked = TestRunner::new(config).run(&odd(), |odd| runtime.block_on(check(&api, odd)));
    checked.unwrap();
    // Whatever was sent, the writer still writes.
    runtime.block_on(api.post(CONFIG_MAPS, config_map("after", json!({})))).is(201);
}
