use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;

use super::*;

fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {
            "volumes": [
                {"name": "map", "configMap": {"name": "m1"}},
                {"name": "secret", "secret": {"secretName": "s1"}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "bound"}},
                {"name": "waiting", "persistentVolumeClaim": {"claimName": "waiting"}},
                {"name": "all", "projected": {"sources": [
                    {"configMap": {"name": "m2"}},
                    {"secret": {"name": "s2"}},
                    {"serviceAccountToken": {"path": "token"}},
                    {"serviceAccountToken": {"path": "vault", "audience": "vault", "expirationSeconds": 600}},
                ]}},
                {"name": "idle", "configMap": {"name": "never"}},
            ],
            "initContainers": [{
                "name": "i",
                "envFrom": [{"configMapRef": {"name": "m3"}}, {"secretRef": {"name": "s3"}}],
                "volumeMounts": [{"name": "map", "mountPath": "/m"}, {"name": "all", "mountPath": "/a"}],
            }],
            "containers": [{
                "name": "c",
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m4", "key": "k"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s4", "key": "k"}}},
                    {"name": "C", "value": "x"},
                ],
                "volumeMounts": [
                    {"name": "secret", "mountPath": "/s"},
                    {"name": "claim", "mountPath": "/c"},
                    {"name": "waiting", "mountPath": "/w"},
                ],
            }],
        },
    }))
    .unwrap()
}

fn keys() -> [TokenKey; 2] {
    [TokenKey::new(None, None), TokenKey::new(Some("vault"), Some(600))]
}

#[test]
fn a_pod_names_objects_in_its_environment_and_in_what_it_mounts() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let want = References {
        config_maps: names(&["m1", "m2", "m3", "m4"]),
        secrets: names(&["s1", "s2", "s3", "s4"]),
        claims: names(&["bound", "waiting"]),
        tokens: keys().into(),
    };
    assert_eq!(References::of(&pod()), want);
    assert_eq!(References::of(&Pod::default()), References::default());
}

/// Has only what starts with `m` or `s`, and counts the tokens it gives.
struct Fake {
    now: Timestamp,
    given: AtomicI64,
}

impl Reader for Fake {
    fn config_map<'a>(&'a self, _: &'a str, name: &'a str) -> BoxFuture<'a, Found<ConfigMap>> {
        let there = name != "m4";
        Box::pin(async move { Ok(there.then(Default::default)) })
    }

    fn secret<'a>(&'a self, namespace: &'a str, _: &'a str) -> BoxFuture<'a, Found<Secret>> {
        Box::pin(async move { Err(format!("no secrets of {namespace}")) })
    }

    fn claim<'a>(
        &'a self,
        _: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Found<PersistentVolumeClaim>> {
        let volume = if name == "bound" { "pv" } else { "" };
        let claim = json!({"spec": {"volumeName": volume}});
        Box::pin(async move { Ok(Some(Arc::new(serde_json::from_value(claim).unwrap()))) })
    }

    fn volume<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Found<PersistentVolume>> {
        assert_eq!(name, "pv");
        Box::pin(async { Ok(Some(Default::default())) })
    }

    fn token<'a>(&'a self, _: &'a Pod, key: &'a TokenKey) -> BoxFuture<'a, Result<Token, String>> {
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        let expires = self.now + SignedDuration::from_secs(key.seconds);
        let token = Token { text: number.to_string(), issued: self.now, expires };
        let broken = self.now.as_second() == 970;
        Box::pin(async move { if broken { Err("not now".into()) } else { Ok(token) } })
    }
}

fn texts(sources: &Sources) -> [Option<String>; 2] {
    keys().map(|key| sources.tokens[&key].as_ref().ok().map(|token| token.text.clone()))
}

#[tokio::test]
async fn everything_is_read_and_refusals_are_kept() {
    let fake = Fake { now: Timestamp::UNIX_EPOCH, given: AtomicI64::new(0) };
    let found = gather(&fake, &pod(), &Sources::default(), fake.now).await;
    assert!(found.config_map("m1").is_ok());
    let missing = Lack::Missing("configmap \"m4\" not found".into());
    assert_eq!(found.config_map("m4").unwrap_err(), missing);
    assert_eq!(found.secret("s1").unwrap_err(), Lack::Refused("no secrets of ns".into()));
    assert!(matches!(found.claims["bound"].volume, Ok(Some(_))));
    assert!(matches!(found.claims["waiting"].volume, Ok(None)));
}

#[tokio::test]
async fn tokens_are_asked_for_again_when_they_are_due() {
    let some = |text: &str| Some(text.to_owned());
    let mut found = Sources::default();
    let mut given = 0;
    for (second, want) in [
        (0, [some("0"), some("1")]),
        (100, [some("0"), some("1")]),
        (480, [some("0"), some("2")]),
        (500, [some("0"), some("2")]),
        // The API fails while the old one still works.
        (970, [some("0"), some("2")]),
        (1000, [some("0"), some("4")]),
        (9000, [some("5"), some("6")]),
    ] {
        let now = Timestamp::from_second(second).unwrap();
        let fake = Fake { now, given: AtomicI64::new(given) };
        found = gather(&fake, &pod(), &found, now).await;
        assert_eq!(texts(&found), want, "at {second}");
        given = fake.given.load(Ordering::Relaxed);
    }
}
