use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path, process::Command};

use rustix::process::geteuid;
use serde_json::{Value, json};
use windlass_local::controllers::Settings;

use crate::controlled::{Controlled, PODS, pod};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn claim(spec: Value) -> Value {
    let mut claim = json!({"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    if let Some(class) = spec.get("storageClassName") {
        claim["spec"]["storageClassName"] = class.clone();
    }
    claim
}

fn settings(directory: &Path) -> Settings {
    Settings { volumes: Some(directory.to_owned()), ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_bound_to_a_directory_that_goes_with_it() {
    let home = tempfile::tempdir().unwrap();
    let cluster = Controlled::new(settings(home.path())).await;
    cluster.api.post(CLAIMS, claim(json!({}))).await.is(201);
    let path = format!("{CLAIMS}/c");
    let bound = cluster.api.until(&path, |a| a.body["status"]["phase"] == "Bound").await.body;
    let uid = bound["metadata"]["uid"].as_str().unwrap();
    let name = format!("pvc-{uid}");
    assert_eq!(bound["spec"]["volumeName"], *name);
    assert_eq!(bound["status"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(bound["status"]["capacity"], json!({"storage": "1Gi"}));
    for key in ["pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"] {
        assert_eq!(bound["metadata"]["annotations"][key], "yes");
    }
    let volume = format!("{VOLUMES}/{name}");
    let held = cluster.api.until(&volume, |a| a.body["status"]["phase"] == "Bound").await.body;
    let directory = home.path().join(&name);
    assert_eq!(held["spec"]["local"]["path"], *directory.to_str().unwrap());
    assert!(directory.is_dir());
    std::fs::write(directory.join("weights"), "x").unwrap();
    // As some programs leave their caches.
    let closed = directory.join("cache/of/models");
    std::fs::create_dir_all(&closed).unwrap();
    std::fs::write(closed.join("index"), "x").unwrap();
    std::fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();

    // While a pod holds it, nothing goes.
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    // One without a node would not hold it.
    let pod = pod("a", json!({"volumes": volumes, "nodeName": "n"}));
    cluster.api.post(PODS, pod).await.is(201);
    cluster.api.delete(&path).await.is(200);
    assert!(cluster.api.get(&path).await.is(200).body["metadata"]["deletionTimestamp"].is_string());
    assert!(directory.join("weights").is_file());
    cluster.api.delete(&format!("{PODS}/a?gracePeriodSeconds=0")).await.is(200);
    cluster.api.until_gone(&path).await;
    cluster.api.until_gone(&volume).await;
    assert!(!directory.exists());
}

/// To root nothing is closed, unless it is without the right to pass over everything.
#[test]
fn the_directory_of_a_claim_goes_although_parts_of_it_are_closed() {
    if !geteuid().is_root() {
        // To anybody else they are in any case.
        return;
    }
    let said = Command::new("setpriv")
        .args(["--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "claims::a_claim_is_bound_to_a_directory_that_goes_with_it"])
        .output()
        .unwrap();
    let text = [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(text[0].contains("running 1 test") && said.status.success(), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_nobody_can_serve_wait_and_say_why() {
    let home = tempfile::tempdir().unwrap();
    let cluster = Controlled::new(settings(home.path())).await;
    let foreign = json!({"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com"});
    cluster.api.post("/apis/storage.k8s.io/v1/storageclasses", foreign).await.is(201);
    for (name, class, reason) in [
        ("a", "", "FailedBinding"),
        ("b", "fast", "ExternalProvisioning"),
        ("d", "none", "ProvisioningFailed"),
    ] {
        let mut claim = claim(json!({"storageClassName": class}));
        claim["metadata"]["name"] = json!(name);
        cluster.api.post(CLAIMS, claim).await.is(201);
        let event = cluster.event(reason).await;
        assert_eq!(event["involvedObject"]["name"], name);
        let claim = cluster.api.get(&format!("{CLAIMS}/{name}")).await.is(200);
        assert_eq!(claim.body["status"]["phase"], "Pending");
    }
    // Somebody brings a volume for the first.
    let volume = json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
    cluster.api.post(VOLUMES, volume).await.is(201);
    let bound = |answer: &crate::api::Answer| answer.body["status"]["phase"] == "Bound";
    let claim = cluster.api.until(&format!("{CLAIMS}/a"), bound).await.body;
    assert_eq!(claim["status"]["capacity"], json!({"storage": "2Gi"}));
    // It is not ours, so it stays when the claim has gone.
    cluster.api.delete(&format!("{CLAIMS}/a")).await.is(200);
    let released = |answer: &crate::api::Answer| answer.body["status"]["phase"] == "Released";
    cluster.api.until(&format!("{VOLUMES}/v"), released).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_made_is_told() {
    let home = tempfile::tempdir().unwrap();
    let blocked = home.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let cluster = Controlled::new(settings(&blocked)).await;
    cluster.api.post(CLAIMS, claim(json!({}))).await.is(201);
    let event = cluster.event("ProvisioningFailed").await;
    assert_eq!(event["type"], "Warning");
    std::fs::remove_file(&blocked).unwrap();
    cluster.api.until(&format!("{CLAIMS}/c"), |a| a.body["status"]["phase"] == "Bound").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_grows_where_its_class_lets_it() {
    let home = tempfile::tempdir().unwrap();
    let cluster = Controlled::new(settings(home.path())).await;
    let class = json!({"metadata": {"name": "grows"}, "provisioner": "windlass.dev/local",
        "allowVolumeExpansion": true});
    cluster.api.post("/apis/storage.k8s.io/v1/storageclasses", class).await.is(201);
    let larger = json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}});
    for (name, class, may) in [("a", "local", false), ("b", "grows", true)] {
        let mut claim = claim(json!({"storageClassName": class}));
        claim["metadata"]["name"] = json!(name);
        cluster.api.post(CLAIMS, claim).await.is(201);
        let path = format!("{CLAIMS}/{name}");
        let bound = cluster.api.until(&path, |a| a.body["status"]["phase"] == "Bound").await.body;
        let asked = cluster.api.merge(&path, larger.clone()).await;
        if !may {
            let want = "persistentvolumeclaims \"a\" is forbidden: only dynamically provisioned pvc \
                        can be resized and the storageclass that provisions the pvc must support resize";
            assert_eq!(asked.is(403).body["message"], want);
            continue;
        }
        asked.is(200);
        let grown = |a: &crate::api::Answer| a.body["status"]["capacity"]["storage"] == "5Gi";
        cluster.api.until(&path, grown).await;
        let volume = format!("{VOLUMES}/{}", bound["spec"]["volumeName"].as_str().unwrap());
        assert_eq!(cluster.api.get(&volume).await.body["spec"]["capacity"]["storage"], "5Gi");
    }
}
