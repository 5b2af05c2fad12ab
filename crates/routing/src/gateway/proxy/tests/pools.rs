//! What pools add: the picker's word, and what it may read first.

use std::collections::BTreeMap;

use super::{super::choose::READ_FIRST, *};
use crate::{
    Config, Endpoint, Picker,
    gateway::backends::{POOLS, Pool, PoolKey},
    picker::Settings,
};

const PREFILL: &str =
    include_str!("../../../../../domains/src/model_service/epp_config/pd-config.yaml");

/// Endpoints with their roles; an empty role is no label.
fn pool(config: &str, fails_open: bool, endpoints: &[(SocketAddr, &str)]) -> Pool {
    let config = if config.is_empty() { Config::default() } else { Config::parse(config).unwrap() };
    let picker = Picker::new(config, Settings::default());
    let endpoint = |(address, role): &(SocketAddr, &str)| {
        let label = ("llm-d.ai/role".to_owned(), (*role).to_owned());
        Endpoint {
            namespace: "ns".into(),
            name: address.to_string(),
            address: *address,
            metrics: *address,
            labels: BTreeMap::from_iter((!role.is_empty()).then_some(label)),
        }
    };
    picker.set_endpoints(endpoints.iter().map(endpoint).collect());
    let endpoints = endpoints.iter().map(|(address, _)| *address).collect();
    Pool { picker, config: None, has_picker: true, fails_open, endpoints }
}

async fn gateway_of(pool: Pool) -> SocketAddr {
    let key = PoolKey { group: POOLS[0].into(), namespace: "ns".into(), name: "p".into() };
    let refer = json!({ "group": POOLS[0], "kind": "InferencePool", "name": "p" });
    let backends = Backends { pools: HashMap::from([(key, pool)]), ..Backends::default() };
    gateway_with(json!([{ "backendRefs": [refer] }]), backends).await
}

fn completion(headers: &str, body: &str) -> Vec<u8> {
    let head = "POST /v1/completions HTTP/1.1\r\nhost: h\r\nconnection: close";
    let length = body.len();
    format!("{head}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

fn in_chunks(headers: &str, chunks: &[&str]) -> Vec<u8> {
    let head = "POST /v1/completions HTTP/1.1\r\nhost: h\r\nconnection: close";
    let chunk = |chunk: &&str| format!("{:x}\r\n{chunk}\r\n", chunk.len());
    let body: String = chunks.iter().map(chunk).collect();
    format!("{head}\r\ntransfer-encoding: chunked\r\n{headers}\r\n{body}0\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn an_endpoint_gets_each_header_once() {
    let (engine, mut heard) = listener().await;
    let gateway = gateway_of(pool("", false, &[(engine, "")])).await;
    let body = r#"{"model":"m","prompt":"x"}"#;
    let headers = "x-gateway-destination-endpoint: 1.2.3.4:5\r\nx-request-id: a\r\n";
    assert_eq!(exchange(gateway, &completion(headers, body)).await.0, 200);
    let heard = heard.recv().await.unwrap();
    assert_eq!(heard.values("content-length"), [body.len().to_string()]);
    assert_eq!(heard.values("x-gateway-destination-endpoint"), [engine.to_string()]);
    assert_eq!(heard.values("x-request-id"), ["a"]);
    assert_eq!(heard.body, body);
}

#[tokio::test]
async fn a_client_cannot_say_who_prefills() {
    let (engine, mut heard) = listener().await;
    let prefill: SocketAddr = "127.0.0.9:8000".parse().unwrap();
    let pool = pool(PREFILL, false, &[(engine, "decode"), (prefill, "prefill")]);
    let gateway = gateway_of(pool).await;
    let ours = ["x-prefiller-host-port", "x-data-parallel-host-port"];
    let headers: String =
        ours.iter().map(|name| format!("{name}: 1.2.3.4:80\r\n").repeat(2)).collect();
    for (prompt, want) in [("short", vec![]), (&"x".repeat(1024), vec![prefill.to_string()])] {
        let body = json!({ "model": "m", "prompt": prompt }).to_string();
        assert_eq!(exchange(gateway, &completion(&headers, &body)).await.0, 200);
        let heard = heard.recv().await.unwrap();
        assert_eq!(heard.values("x-prefiller-host-port"), want, "{prompt}");
        assert!(heard.values("x-data-parallel-host-port").is_empty(), "{prompt}");
    }
}

#[tokio::test]
async fn a_body_in_chunks_is_seen_to_its_end() {
    let (engine, mut heard) = listener().await;
    let gateway = gateway_of(pool("", false, &[(engine, "")])).await;
    let rewrite = "x-gateway-model-name-rewrite: t\r\n";
    let chunks = [r#"{"model":"lo"#, r#"ng","prompt":"x"}"#];
    assert_eq!(exchange(gateway, &in_chunks(rewrite, &chunks)).await.0, 200);
    let got = heard.recv().await.unwrap();
    assert_eq!(got.body, r#"{"model":"t","prompt":"x"}"#);
    assert_eq!(got.values("content-length"), [got.body.len().to_string()]);
    assert!(got.values("transfer-encoding").is_empty());
    let json = "inference gateway: BadRequest - Error unmarshaling request body";
    let model = "inference gateway: BadRequest - model not found in request body";
    for (chunks, want) in [
        (&["no healthy", " upstream"][..], json),
        (&[], json),
        (&["[]"], json),
        (&["{\"model\":\"m\""], json),
        (&["{\"model\":1}"], model),
        (&["{\"hello\":", "\"world\"}"], model),
    ] {
        let (code, _, said) = exchange(gateway, &in_chunks("", chunks)).await;
        assert_eq!((code, said.as_str()), (400, want), "{chunks:?}");
    }
}

#[tokio::test]
async fn a_long_body_gets_the_other_model_name_too() {
    let (engine, mut heard) = listener().await;
    let gateway = gateway_of(pool("", false, &[(engine, "")])).await;
    let rewrite = "x-gateway-model-name-rewrite: another\r\n";
    let prompt = "x".repeat(2 * READ_FIRST);
    let body = format!(r#"{{"model":"m","prompt":"{prompt}"}}"#);
    let want = format!(r#"{{"model":"another","prompt":"{prompt}"}}"#);
    for request in [completion(rewrite, &body), in_chunks(rewrite, &[&body[..9], &body[9..]])] {
        assert_eq!(exchange(gateway, &request).await.0, 200);
        let heard = heard.recv().await.unwrap();
        assert!(heard.body == want, "{}", &heard.body[..60]);
    }
    // Its place is not known, so it cannot be changed; and that is not passed over in silence.
    let late = format!(r#"{{"prompt":"{prompt}","model":"m"}}"#);
    assert_eq!(exchange(gateway, &completion(rewrite, &late)).await.0, 400);
    assert_eq!(exchange(gateway, &completion("", &late)).await.0, 200);
    assert!(heard.recv().await.unwrap().body == late);
}

#[tokio::test]
async fn what_a_picker_refuses_nobody_else_serves() {
    let (engine, _heard) = listener().await;
    let gateway = gateway_of(pool(PREFILL, true, &[(engine, "prefill")])).await;
    let body = r#"{"model":"m","prompt":"x"}"#;
    let (code, _, said) = exchange(gateway, &completion("", body)).await;
    assert_eq!(code, 503);
    assert!(said.ends_with("failed to find available decode workers"), "{said}");
}

#[tokio::test]
async fn an_answer_without_body_is_a_whole_one() {
    let (engine, _heard) = listener().await;
    let pool = pool("", false, &[(engine, "")]);
    let picker = pool.picker.clone();
    let gateway = gateway_of(pool).await;
    let body = r#"{"model":"m","prompt":"x"}"#;
    assert_eq!(exchange(gateway, &completion("", body)).await.0, 200);
    let metrics = picker.metrics(Instant::now());
    let models = "model_name=\"m\",target_model_name=\"m\"";
    let line = format!("inference_objective_request_duration_seconds_count{{{models}}} 1");
    assert!(metrics.lines().any(|known| known == line), "{metrics}");
}

#[tokio::test]
async fn without_its_picker_a_pool_serves_only_if_it_fails_open() {
    let body = r#"{"model":"m","prompt":"x"}"#;
    for (fails_open, want) in [(true, 200), (false, 503)] {
        let (engine, _heard) = listener().await;
        let pool = Pool { has_picker: false, ..pool("", fails_open, &[(engine, "")]) };
        assert_eq!(exchange(gateway_of(pool).await, &completion("", body)).await.0, want);
    }
}
