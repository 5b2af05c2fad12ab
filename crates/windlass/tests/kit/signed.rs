//! What the holder of a key has signed, as cosign stores it beside an artifact.

use std::sync::Arc;

use bytes::Bytes;
use windlass_kit::{
    Digest, Reference,
    remote::{Progress, Remote, Settings, Upload},
};

use crate::{
    server::Server,
    world::{MODEL_KIT, World},
};

/// The keys and the signature were made by openssl, which is not what reads them here.
const KEY_A: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE10qNbdGFwr0kXFOSLWfWRYyEkOyZ
TyioHFDjwYmipVM4wZE4R148Hgnr/PhnpZ+otW9+8bdgzvkBCDdHf+SOBg==
-----END PUBLIC KEY-----
";
const KEY_B: &str = "\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/BH1dhw40KyRMp3imSER/CfflyCT
Qm1d2DtnSVFIOgUcXetRZPUzvWkMeafNqwzwo9IlaahRGfS/XnLgzxs5XQ==
-----END PUBLIC KEY-----
";
/// By A, of this text about the model of the tests.
const SIGNATURE: &str = "MEYCIQClNODsYP8wBo3quRUuexvtfdCYYFc970WMVUBD+O47twIhAJngTbLA5b0k/AAviTbS9hsD6Bzklhzcqhkjrlfyohm9";
const SIGNED: &str = r#"{"critical":{"identity":{"docker-reference":"example.com/org/tiny"},"image":{"docker-manifest-digest":"sha256:baa19e77c5b2dcec5e0f2acbdbf239840f518e6fd414c57156d010542e46ff3a"},"type":"cosign container image signature"},"optional":null}"#;

struct Silent;

impl Progress for Silent {
    fn sent(&self, _: u64) {}
    fn reached(&self, _: &Upload) {}
}

async fn sign(registry: &str) {
    let settings = Settings { plain_http: true, ..Settings::default() };
    let remote = Remote::new(registry, &settings).unwrap();
    let mut links = Vec::new();
    for (kind, text) in [
        ("application/vnd.oci.image.config.v1+json", "{}"),
        ("application/vnd.dev.cosign.simplesigning.v1+json", SIGNED),
    ] {
        let bytes = Bytes::from_static(text.as_bytes());
        let digest = Digest::of(&bytes);
        remote.upload("org/tiny", &digest, Arc::new(bytes), None, Arc::new(Silent)).await.unwrap();
        links.push(format!(
            r#"{{"mediaType":"{kind}","digest":"{digest}","size":{},"annotations":{{"dev.cosignproject.cosign/signature":"{SIGNATURE}"}}}}"#,
            text.len()
        ));
    }
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{},"layers":[{}]}}"#,
        links[0], links[1]
    );
    let tag = format!("{registry}/org/tiny:{}.sig", MODEL_KIT.replace(':', "-"));
    let at = Reference::parse(&tag).unwrap();
    remote.put_manifest(&at, kind, manifest.into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn k31_who_has_signed_is_believed_and_nobody_else() {
    let world = World::new();
    let server = Server::start(&world.path("registry"), &[], "");
    let name = format!("{}/org/tiny:v1", server.address);
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &name]).well();
    world.write("a.pub", KEY_A.as_bytes());
    world.write("b.pub", KEY_B.as_bytes());
    let verify = |key: &str| world.kit(&["verify", "--plain-http", &name, "--verify-key", key]);
    let unpack =
        |key: &str| world.kit(&["unpack", "--plain-http", &name, "-d", "out", "--verify-key", key]);
    verify("a.pub").refused(5, "is not signed");
    sign(&server.address).await;
    assert_eq!(verify("a.pub").well(), format!("Verified {MODEL_KIT}\n"));
    verify("b.pub").refused(5, "somebody else made it");
    unpack("b.pub").refused(5, "somebody else made it");
    assert!(!world.path("out").exists() || world.files("out").is_empty());
    unpack("a.pub").well();
    assert_eq!(world.files("out"), world.files("model"));
}
