//! Whole requests, as `METHOD URI`, a line with the media type, and the body: each is answered in
//! words, and it is never the server's own fault.
#![no_main]

use std::{cell::OnceCell, sync::Arc};

use axum::{Router, body::Body};
use http::{Request, header};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt;
use windlass_fuzz::{definition, two};
use windlass_local::{
    auth::User,
    http::{Access, Server},
    registry::{Registry, Settings},
    store::Store,
};

thread_local! {
    static API: OnceCell<Api> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    API.with(|api| api.get_or_init(Api::start).check(data));
});

struct Api {
    runtime: Runtime,
    router: Router,
}

impl Api {
    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().expect("no runtime");
        let router = runtime.block_on(async {
            let store = Store::in_memory(Arc::new(Timestamp::now)).expect("no store");
            let registry = Registry::start(store, Settings::default()).await.expect("no registry");
            let groups = vec!["system:masters".into()];
            let admin = User { name: "admin".into(), groups, ..User::default() };
            Server::new(registry, Access::default()).service(admin)
        });
        let api = Self { runtime, router };
        let namespaced = |group: &str, plural: &str| format!("{group}/namespaces/default/{plural}");
        let template = json!({"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}});
        for (path, object) in [
            ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(), definition()),
            (
                namespaced("/api/v1", "configmaps"),
                json!({"metadata": {"name": "a"}, "data": {"a": "1"}}),
            ),
            (
                namespaced("/api/v1", "services"),
                json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
            ),
            (
                namespaced("/api/v1", "pods"),
                json!({"metadata": {"name": "p"}, "spec": template["spec"]}),
            ),
            (
                namespaced("/apis/apps/v1", "deployments"),
                json!({"metadata": {"name": "d"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
            ),
            (
                namespaced("/apis/ex.io/v1", "widgets"),
                json!({"apiVersion": "ex.io/v1", "kind": "Widget",
                "metadata": {"name": "w"}, "spec": {"items": [{"name": "x"}]}}),
            ),
        ] {
            let request = Request::post(&path).header(header::CONTENT_TYPE, "application/json");
            let request = request.body(Body::from(object.to_string())).expect("no request");
            let (code, answer) = api.answer(request);
            assert_eq!(code, 201, "{path}: {}", String::from_utf8_lossy(&answer));
        }
        api.runtime.block_on(async { tokio::time::pause() });
        api
    }

    fn answer(&self, request: Request<Body>) -> (u16, Vec<u8>) {
        self.runtime.block_on(async {
            let Ok(response) = self.router.clone().oneshot(request).await;
            let code = response.status().as_u16();
            // A watch has no end.
            if code < 400 {
                return (code, Vec::new());
            }
            let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await;
            (code, bytes.expect("an answer breaks off").to_vec())
        })
    }

    fn check(&self, data: &[u8]) {
        let Some((line, rest)) = two(data) else { return };
        let Some((media, body)) = two(rest) else { return };
        let Some((method, uri)) = std::str::from_utf8(line).ok().and_then(|l| l.split_once(' '))
        else {
            return;
        };
        let head = method == "HEAD";
        // Nothing is stored, so that each request finds the same.
        let uri = match uri.split_once('?') {
            Some((path, query)) => format!("{path}?dryRun=All&{query}"),
            None => format!("{uri}?dryRun=All"),
        };
        let request =
            Request::builder().method(method).uri(uri).header(header::CONTENT_TYPE, media);
        let Ok(request) = request.body(Body::from(body.to_vec())) else { return };
        let (code, bytes) = self.answer(request);
        if code < 400 || head || (code == 404 && bytes == b"404 page not found\n") {
            return;
        }
        let status: Value = serde_json::from_slice(&bytes).expect("an error that is no JSON");
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["code"], code, "{status}");
        assert_ne!(status["reason"], "InternalError", "{status}");
    }
}
