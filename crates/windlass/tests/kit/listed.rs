//! What is in a registry besides models, and what it lets go.

use axum::{Router, body::Body, extract::Request, http::Response};
use tokio::net::TcpListener;
use windlass_kit::{
    Digest, Reference,
    manifest::IMAGE_MANIFEST,
    remote::{Remote, Settings},
};

use crate::{
    server::Server,
    world::{MODEL_KIT, World},
};

/// Something that is in the registry anyway.
const LAYER: &str = "fad64cc0c57283d16fb7efcda3cff63ea824e90137d2c8d8dbc90b97228950cf";

fn pushed(server: &Server) -> World {
    let world = World::new();
    let name = format!("{}/org/tiny:v1,v2", server.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();
    world
}

/// As others put it there.
async fn put(server: &Server, tag: &str, kind: &str, manifest: &str) {
    let settings = Settings { plain_http: true, ..Settings::default() };
    let remote = Remote::new(&server.address, &settings).unwrap();
    let name = Reference::parse(&format!("{}/org/tiny:{tag}", server.address)).unwrap();
    remote.put_manifest(&name, kind, manifest.to_owned().into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_passes_over_what_is_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[], "");
    let world = pushed(&server);
    let kind = "application/vnd.oci.image.index.v1+json";
    let one = format!(r#"{{"mediaType":"{IMAGE_MANIFEST}","digest":"{MODEL_KIT}","size":1640}}"#);
    put(&server, "list", kind, &format!(r#"{{"schemaVersion":2,"manifests":[{one}]}}"#)).await;
    let kind = "application/vnd.oci.image.config.v1+json";
    let config = format!(r#"{{"mediaType":"{kind}","digest":"sha256:{LAYER}","size":2048}}"#);
    let image = format!(r#"{{"schemaVersion":2,"config":{config},"layers":[]}}"#);
    put(&server, "sha256-abc.sig", IMAGE_MANIFEST, &image).await;
    let listed = world.kit(&["list", "--plain-http", &format!("{}/org/tiny", server.address)]);
    let listed = listed.well();
    let tags: Vec<_> =
        listed.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(tags, ["v1", "v2"], "{listed}");
}

#[test]
fn a_tag_goes_alone_unless_all_are_to_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[], "");
    let world = pushed(&server);
    let name = |tag: &str| format!("{}/org/tiny:{tag}", server.address);
    world.kit(&["tag", &name("v1"), &name("v3")]);
    world.kit(&["remove", "-r", "--plain-http", &name("v1")]).well();
    world.kit(&["inspect", "-r", "--plain-http", &name("v1")]).refused(3, "v1");
    world.kit(&["inspect", "-r", "--plain-http", &name("v2")]).well();
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name("v1,v2")]).well();
    world.kit(&["remove", "-r", "-f", "--plain-http", &name("v1")]).well();
    world.kit(&["inspect", "-r", "--plain-http", &name("v2")]).refused(3, "v2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_removes_no_tags_is_known_by_the_message() {
    let answer = |request: Request| async move {
        let response =
            Response::builder().header("docker-content-digest", Digest::of(b"x").as_str());
        let status = if request.method() == "DELETE" { 405 } else { 200 };
        response.status(status).body(Body::empty()).unwrap()
    };
    let router = Router::new().fallback(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = format!("{}/org/tiny:v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let world = World::new();
    let remove = ["remove", "-r", "--plain-http", &name];
    world.kit(&remove).refused(6, "--force removes it with all of them");
    world.kit(&[&remove[..], &["-f"]].concat()).refused(6, "lets nobody remove anything");
}

#[test]
fn to_unpack_from_a_registry_nothing_of_ones_own_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[], "");
    let world = pushed(&server);
    let name = format!("{}/org/tiny:v1", server.address);
    // Whatever would be made in it cannot be made.
    world.write("nowhere", b"");
    let unpack = ["--config", "nowhere/kitops", "unpack", "--plain-http", "-d", "out", &name];
    world.kit(&unpack).well();
    assert_eq!(world.files("out"), world.files("model"));
    let local = ["--config", "none", "unpack", "tiny", "-d", "out"];
    world.kit(&local).refused(3, "not in the local storage");
}
