//! `windlass registry` as a process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

#[path = "kit/server.rs"]
mod server;

use std::{path::Path, process::Command, sync::Arc};

use server::Server;
use windlass_kit::{
    Digest, Reference,
    remote::{Progress, Remote, Settings, Upload, credentials},
};

fn remote(server: &Server, credentials: &Path) -> Remote {
    let credentials = vec![credentials.to_owned()];
    let settings = Settings { plain_http: true, credentials, ..Settings::default() };
    Remote::new(&server.address, &settings).unwrap()
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
    let pushed = push(&remote(&server, &nobody), &name(&server)).await;
    assert_eq!(server.end(), Some(0));
    let server = Server::start(&root, &["--read-only"], "");
    let remote = remote(&server, &nobody);
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
    let refused = remote(&server, &file).ping().await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    credentials::keep(&file, &server.address, "u", "secret").unwrap();
    remote(&server, &file).ping().await.unwrap();
}
