//! The sidecar that stands before a decode server.

use k8s_openapi::api::core::v1::Container;

use super::environment;
use super::security::locked_down;
use super::{Pods, container_port, non_empty};
use windlass_api::model::model_service::RoutingProxy;

pub(super) fn container(pods: Pods<'_>) -> Option<Container> {
    let (spec, settings) = (pods.blueprint.spec, pods.blueprint.settings);
    let image = pods.proxy_image()?;
    let proxy = spec.routing_proxy.as_ref()?;
    Some(Container {
        name: "routing-proxy".to_owned(),
        image: Some(image.to_owned()),
        args: Some(args(proxy, spec.engine.port)),
        env: non_empty(environment::tracing(
            &settings.tracing,
            "llm-d-routing-sidecar",
            Vec::new(),
        )),
        ports: Some(vec![container_port("proxy", spec.engine.port)]),
        // What makes an init container run beside the others instead of before them.
        restart_policy: Some("Always".to_owned()),
        security_context: Some(locked_down()),
        ..Default::default()
    })
}

fn args(proxy: &RoutingProxy, port: i32) -> Vec<String> {
    let mut args: Vec<String> = Vec::new();
    let mut pair = |flag: &str, value: String| args.extend([flag.to_owned(), value]);
    pair("--port", port.to_string());
    pair("--vllm-port", proxy.target_port.to_string());
    pair("--connector", proxy.connector.clone());
    for (flag, value) in
        [("--zap-encoder", &proxy.zap_encoder), ("--zap-log-level", &proxy.zap_log_level)]
    {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            pair(flag, value.clone());
        }
    }
    args.push(format!("--secure-proxy={}", proxy.secure_proxy.unwrap_or(false)));
    if let Some(tls) = proxy.prefiller_use_tls {
        args.push(format!("--prefiller-use-tls={tls}"));
    }
    if let Some(path) = proxy.cert_path.as_ref().filter(|path| !path.is_empty()) {
        args.extend(["--cert-path".to_owned(), path.clone()]);
    }
    args
}
