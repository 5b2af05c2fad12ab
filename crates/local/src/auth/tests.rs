//! Users, tokens and rights.

mod rights;

use std::{fs, os::unix::fs::PermissionsExt};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

fn private() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn request() -> TokenRequest {
    TokenRequest {
        namespace: "ns".into(),
        account: "sa".into(),
        account_uid: "u1".into(),
        audiences: vec![Tokens::audience().into()],
        seconds: 600,
        bound: Some(Bound { kind: "Pod".into(), name: "p".into(), uid: "u2".into() }),
    }
}

#[test]
fn a_token_holds_for_its_time_and_audience() {
    let dir = private();
    let tokens = Tokens::load_or_create(dir.path()).unwrap();
    let issued = tokens.issue(&request(), now()).unwrap();
    assert_eq!(issued.expires, later(600));
    let claims = tokens.check(&issued.token, &[], later(599)).expect("it holds");
    assert_eq!(claims.bound, request().bound);
    let user = claims.user();
    assert_eq!(user.name, "system:serviceaccount:ns:sa");
    assert_eq!(
        user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
    );
    assert_eq!(user.uid, "u1");
    assert_eq!(tokens.check(&issued.token, &[], later(600)), None);
    assert_eq!(tokens.check(&issued.token, &[], later(-1)), None);
    assert_eq!(tokens.check(&issued.token, &["other".into()], now()), None);
}

#[test]
fn a_token_ends_with_its_account_and_its_pod() {
    let dir = private();
    let tokens = Tokens::load_or_create(dir.path()).unwrap();
    let issued = tokens.issue(&request(), now()).unwrap();
    let claims = tokens.check(&issued.token, &[], now()).unwrap();
    let object = |uid: &str| json!({ "metadata": { "uid": uid } });
    let (account, pod, other) = (object("u1"), object("u2"), object("u3"));
    for (with, want) in [
        ((Some(&account), Some(&pod)), true),
        ((Some(&account), None), false),
        ((None, Some(&pod)), false),
        ((Some(&other), Some(&pod)), false),
        ((Some(&account), Some(&other)), false),
    ] {
        assert_eq!(claims.holds(with.0, with.1), want, "{with:?}");
    }
}

#[test]
fn tokens_of_others_are_refused() {
    let (dir, other) = (private(), private());
    let tokens = Tokens::load_or_create(dir.path()).unwrap();
    let others = Tokens::load_or_create(other.path()).unwrap();
    let issued = others.issue(&request(), now()).unwrap();
    assert_eq!(tokens.check(&issued.token, &[], now()), None);
    let unsigned = "eyJhbGciOiJub25lIn0.e30.";
    assert_eq!(tokens.check(unsigned, &[], now()), None);
}

#[test]
fn keys_and_tokens_outlive_a_restart_and_are_private() {
    let dir = private();
    let first = Tokens::load_or_create(dir.path()).unwrap();
    let issued = first.issue(&request(), now()).unwrap();
    let second = Tokens::load_or_create(dir.path()).unwrap();
    assert!(second.check(&issued.token, &[], now()).is_some());
    assert_eq!(first.jwks(), second.jwks());
    assert!(second.is_admin(first.admin()));
    assert!(!second.is_admin(""));
    assert!(!second.is_admin("x"));
    for name in ["admin.token", "account.key"] {
        assert_eq!(mode(&dir.path().join(name)), 0o600, "{name}");
    }
    assert!(!format!("{first:?}").contains(first.admin()));
}

#[test]
fn an_authority_outlives_a_restart_and_is_private() {
    let dir = private();
    let first = Certificates::load_or_create(dir.path(), now()).unwrap();
    let second = Certificates::load_or_create(dir.path(), later(86_400 * 400)).unwrap();
    assert_eq!(first.authority, second.authority);
    assert_ne!(first.chain[0], second.chain[0]);
    assert_eq!(first.chain[1], second.chain[1]);
    for name in ["ca.key", "ca.crt"] {
        assert_eq!(mode(&dir.path().join(name)), 0o600, "{name}");
    }
}

#[test]
fn a_secret_is_given_a_token_that_ends_with_it() {
    let dir = private();
    let tokens = Tokens::load_or_create(dir.path()).unwrap();
    let account = json!({ "metadata": { "namespace": "ns", "name": "sa", "uid": "u1" } });
    let mut secret = json!({ "metadata": { "name": "s", "uid": "u2" } });
    assert!(tokens.fill_secret(&mut secret, &account, "CA", now()).unwrap());
    assert!(!tokens.fill_secret(&mut secret, &account, "CA", now()).unwrap(), "it lacks nothing");
    assert_eq!(secret["data"]["ca.crt"], "Q0E=");
    assert_eq!(secret["data"]["namespace"], "bnM=");
    assert_eq!(secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"], "u1");
    let token = STANDARD.decode(secret["data"]["token"].as_str().unwrap()).unwrap();
    let token = String::from_utf8(token).unwrap();
    let claims = tokens.check(&token, &[], later(86_400 * 365)).expect("it holds for long");
    assert!(claims.holds(Some(&account), Some(&secret)));
    assert!(!claims.holds(Some(&account), None));
}

/// A client that trusts the authority talks to a listener that shows its certificate.
async fn shakes_hands(authority: &[u8], shown: &Certificates, name: &'static str) -> bool {
    use tokio_rustls::rustls::{self, pki_types};
    let ring = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.to_vec().into()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(ring.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let chain = shown.chain.iter().map(|der| der.clone().into()).collect();
    let key = pki_types::PrivateKeyDer::try_from(shown.key.clone()).unwrap();
    let server = rustls::ServerConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let client = tokio_rustls::TlsConnector::from(std::sync::Arc::new(client));
    let server = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(server));
    let name = pki_types::ServerName::try_from(name).unwrap();
    let (asked, _) = tokio::join!(client.connect(name, near), server.accept(far));
    asked.is_ok()
}

#[tokio::test]
async fn clients_that_trust_the_authority_trust_the_listener_after_a_restart() {
    let dir = private();
    let first = Certificates::load_or_create(dir.path(), Timestamp::now()).unwrap();
    let second = Certificates::load_or_create(dir.path(), Timestamp::now()).unwrap();
    for name in ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"] {
        assert!(shakes_hands(&first.chain[1], &second, name).await, "{name}");
    }
    assert!(!shakes_hands(&first.chain[1], &second, "example.com").await);
    let other = private();
    let other = Certificates::load_or_create(other.path(), Timestamp::now()).unwrap();
    assert!(!shakes_hands(&other.chain[1], &second, "localhost").await);
}

#[test]
fn a_directory_that_others_can_read_is_refused() {
    let dir = private();
    let own = dir.path().join("a/b");
    private_dir(&own).unwrap();
    assert_eq!(mode(&own), 0o700);
    private_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o750)).unwrap();
    assert!(private_dir(&own).unwrap_err().to_string().contains("can be read by others"));
    // Users of pods come through, and see nothing.
    fs::set_permissions(&own, fs::Permissions::from_mode(0o711)).unwrap();
    private_dir(&own).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    assert!(private_dir(&link).unwrap_err().to_string().contains("is a symbolic link"));
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(private_dir(&file).is_err());
}

#[test]
fn the_kubeconfig_is_private_and_replaced_whole() {
    let dir = private();
    let path = dir.path().join("kubeconfig");
    kubeconfig::write(&path, "https://127.0.0.1:1", "CA", "t1").unwrap();
    kubeconfig::write(&path, "https://127.0.0.1:2", "CA", "t2").unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let text = fs::read_to_string(&path).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    let cluster = &config["clusters"][0]["cluster"];
    assert_eq!(cluster["server"], "https://127.0.0.1:2");
    assert_eq!(cluster["certificate-authority-data"], "Q0E=");
    assert_eq!(config["users"][0]["user"]["token"], "t2");
    assert_eq!(config["current-context"], config["contexts"][0]["name"]);
    assert_eq!(config["contexts"][0]["context"]["user"], config["users"][0]["name"]);
}

#[test]
fn requests_for_tokens_are_checked() {
    assert_eq!(token_request(&json!({})), Ok((vec![Tokens::audience().into()], 3600)));
    let asked = json!({ "spec": { "audiences": ["a"], "expirationSeconds": 600 } });
    assert_eq!(token_request(&asked), Ok((vec!["a".into()], 600)));
    let causes = token_request(&json!({ "spec": { "expirationSeconds": 5 } })).unwrap_err();
    assert_eq!(
        causes[0].to_string(),
        "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes"
    );
}

proptest! {
    #[test]
    fn any_token_is_handled(token in "[A-Za-z0-9_.-]{0,80}|.{0,20}") {
        let dir = private();
        let tokens = Tokens::load_or_create(dir.path()).unwrap();
        prop_assert_eq!(tokens.check(&token, &[], now()), None);
    }
}
