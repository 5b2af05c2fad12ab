//! `windlass registry` as a process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use rustix::process::{Pid, Signal, kill_process};
use windlass_kit::{
    Digest, Reference,
    remote::{Progress, Remote, Settings, Upload, credentials},
};

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(root: &Path, more: &[&str], input: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["registry", "serve", "--listen", "127.0.0.1:0", "--root"])
            .arg(root)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(';').next());
        let address = address.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, address }
    }

    fn remote(&self, credentials: &Path) -> Remote {
        let credentials = vec![credentials.to_owned()];
        let settings = Settings { plain_http: true, credentials, ..Settings::default() };
        Remote::new(&self.address, &settings).unwrap()
    }

    fn end(mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Quiet;

impl Progress for Quiet {
    fn sent(&self, _: u64) {}

    fn reached(&self, _: &Upload) {}
}

async fn push(remote: &Remote, name: &Reference) -> Digest {
    let blob = bytes::Bytes::from_static(b"weights");
    let digest = Digest::of(&blob);
    remote.upload("org/m", &digest, Arc::new(blob), None, Arc::new(Quiet)).await.unwrap();
    let link = format!(r#"{{"mediaType":"a/b","digest":"{digest}","size":7}}"#);
    let manifest = format!(r#"{{"schemaVersion":2,"config":{link},"layers":[{link}]}}"#);
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    remote.put_manifest(name, media_type, manifest.into()).await.unwrap()
}

#[tokio::test]
async fn what_was_pushed_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("registry");
    let nobody = folder.path().join("nobody");
    let server = Server::start(&root, &[], "");
    let name = |server: &Server| Reference::parse(&format!("{}/org/m:v1", server.address)).unwrap();
    let pushed = push(&server.remote(&nobody), &name(&server)).await;
    assert_eq!(server.end(), Some(0));
    let server = Server::start(&root, &["--read-only"], "");
    let remote = server.remote(&nobody);
    assert_eq!(remote.resolve(&name(&server)).await.unwrap(), Some(pushed));
    let refused = remote.delete_manifest(&name(&server)).await.unwrap_err();
    assert!(refused.to_string().contains("can only be read"), "{refused}");
    let sweep = || {
        let program = env!("CARGO_BIN_EXE_windlass");
        let output = Command::new(program).args(["registry", "gc", "--root"]).arg(&root).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (code, said) = sweep();
    assert!(code == Some(2) && said.contains("another process serves"), "{code:?} {said}");
    assert_eq!(server.end(), Some(0));
    assert_eq!(sweep(), (Some(0), "0 blobs and 0 uploads removed, 0 bytes\n".to_owned()));
}

#[tokio::test]
async fn whoever_has_no_password_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("registry"), &["--user", "u"], "secret\n");
    let file = folder.path().join("credentials.json");
    let refused = server.remote(&file).ping().await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    credentials::keep(&file, &server.address, "u", "secret").unwrap();
    server.remote(&file).ping().await.unwrap();
}
