//! A real control plane is started, killed, restarted and left behind. Tier "real API".
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use xtask::{
    cluster::{Assets, ControlPlane, Options, wait_until},
    test::required,
};

const SOON: Duration = Duration::from_secs(30);

/// The programs, or `None` where the test is skipped aloud.
fn assets() -> Option<Assets> {
    match Assets::find() {
        Ok(assets) => Some(assets),
        Err(reason) if required("real-api") => panic!("real-api is required: {reason:#}"),
        Err(reason) => {
            println!("skipped: {reason:#}");
            None
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> String {
    let output = plane.kubectl().args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Processes that have the folder in their command line.
fn processes_on(folder: &Path) -> usize {
    let folder = folder.to_string_lossy();
    let entries = fs::read_dir("/proc").unwrap();
    let lines = entries.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let ours = lines.filter(|line| String::from_utf8_lossy(line).contains(&format!("{folder}/")));
    ours.count()
}

#[test]
fn data_outlives_a_killed_api_server() {
    let Some(assets) = assets() else { return };
    let dir = folder("restart");
    let options = Options { audit_log: true, ..Options::in_dir(&dir) };
    let mut plane = ControlPlane::start(&assets, options).unwrap();
    let url = plane.url();
    kubectl(&plane, &["create", "configmap", "kept", "--from-literal=a=b"]);
    // Signed and checked with the generated key.
    let token = kubectl(&plane, &["create", "token", "default"]);
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
    let mode = fs::metadata(plane.kubeconfig()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    plane.kill_apiserver();
    assert!(!plane.kubectl().args(["get", "--raw", "/readyz"]).output().unwrap().status.success());
    plane.start_apiserver().unwrap();

    assert_eq!(plane.url(), url);
    assert_eq!(kubectl(&plane, &["get", "configmap", "kept", "-o", "jsonpath={.data.a}"]), "b");
    let whoami =
        ["--token", token.trim(), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    assert_eq!(kubectl(&plane, &whoami), "system:serviceaccount:default:default");
    let audit = fs::read_to_string(plane.audit_log()).unwrap();
    let creations = audit.lines().filter(|line| {
        line.contains(r#""verb":"create","user":{"username":"admin""#)
            && line.contains("/namespaces/default/configmaps")
    });
    assert_eq!(creations.count(), 1);
    assert!(!audit.contains("RequestReceived"));

    plane.stop();
    assert_eq!(processes_on(&dir), 0);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_deployment_gets_its_pods_from_the_controller_manager() {
    let Some(assets) = assets() else { return };
    let dir = folder("deployment");
    let plane = ControlPlane::start(&assets, Options::in_dir(&dir)).unwrap();
    kubectl(&plane, &["create", "deployment", "web", "--image=none", "--replicas=2"]);
    wait_until("two pods of the deployment", SOON, || {
        let pods = kubectl(&plane, &["get", "pods", "-l", "app=web", "-o", "name"]);
        Ok((pods.lines().count() == 2).then_some(()))
    })
    .unwrap();
    drop(plane);
    assert_eq!(processes_on(&dir), 0);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_killed_parent_leaves_no_process() {
    let Some(_) = assets() else { return };
    let dir = folder("orphans");
    let mut parent = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["cluster", "run", "--dir"])
        .arg(&dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The kubeconfig's path is printed once everything runs.
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.ends_with("kubeconfig\n"), "{line}");
    assert!(processes_on(&dir) >= 3);

    parent.kill().unwrap();
    parent.wait().unwrap();

    wait_until("all processes end", SOON, || Ok((processes_on(&dir) == 0).then_some(()))).unwrap();
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_failed_start_shows_the_end_of_the_log() {
    let Some(assets) = assets() else { return };
    let dir = folder("failed");
    // A program that ends at once, with words of its own.
    let broken = Assets { kube_apiserver: assets.kubectl.clone(), ..assets };
    let error = ControlPlane::start(&broken, Options::in_dir(&dir)).err().unwrap();
    let error = format!("{error:#}");
    assert!(error.contains("kube-apiserver ended") && error.contains("unknown flag"), "{error}");
    assert_eq!(processes_on(&dir), 0);
    fs::remove_dir_all(&dir).unwrap();
}
