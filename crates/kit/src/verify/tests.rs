//! Signatures made here with keys of their own, stored as cosign stores them.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;
use crate::{
    manifest::{Annotations, Descriptor, IMAGE_MANIFEST},
    registry,
    remote::{Progress, Settings, Upload},
};

struct Signer(EcdsaKeyPair);

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let curve = &ECDSA_P256_SHA256_ASN1_SIGNING;
        Self(EcdsaKeyPair::from_pkcs8(curve, pair.as_ref(), &random).unwrap())
    }

    fn key(&self) -> Key {
        Key::parse(&Key::pem(self.0.public_key().as_ref())).unwrap()
    }

    fn sign(&self, message: &[u8]) -> String {
        let signature = self.0.sign(&SystemRandom::new(), message).unwrap();
        BASE64_STANDARD.encode(signature.as_ref())
    }
}

struct Silent;

impl Progress for Silent {
    fn sent(&self, _: u64) {}
    fn reached(&self, _: &Upload) {}
}

/// A registry with one artifact.
struct Site {
    remote: Remote,
    reference: Reference,
    manifest: Bytes,
    digest: Digest,
    folder: TempDir,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = registry::Settings { root: folder.path().to_owned(), ..Default::default() };
        let router = registry::Registry::open(settings).unwrap().router();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let settings = Settings { plain_http: true, ..Settings::default() };
        let remote = Remote::new(&address, &settings).unwrap();
        let reference = Reference::parse(&format!("{address}/a/model:v1")).unwrap();
        let mut site =
            Self { remote, reference, manifest: Bytes::new(), digest: Digest::of(b""), folder };
        site.manifest = site.put(&site.reference, None, "a/layer", b"weights", []).await;
        site.digest = Digest::of(&site.manifest);
        site
    }

    async fn blob(&self, media_type: &str, bytes: &[u8]) -> Descriptor {
        let bytes = Bytes::copy_from_slice(bytes);
        let digest = Digest::of(&bytes);
        let size = bytes.len() as u64;
        let repository = self.reference.repository();
        let source = Arc::new(bytes);
        self.remote.upload(repository, &digest, source, None, Arc::new(Silent)).await.unwrap();
        let (urls, annotations) = (Vec::new(), Annotations::new());
        Descriptor { media_type: media_type.to_owned(), digest, size, urls, annotations }
    }

    async fn put<const N: usize>(
        &self,
        at: &Reference,
        subject: Option<Descriptor>,
        media_type: &str,
        layer: &[u8],
        annotations: [(&str, String); N],
    ) -> Bytes {
        let mut layer = self.blob(media_type, layer).await;
        layer.annotations = annotations.map(|(name, value)| (name.to_owned(), value)).into();
        let manifest = Manifest {
            schema_version: 2,
            media_type: Some(IMAGE_MANIFEST.to_owned()),
            artifact_type: Some(media_type.to_owned()),
            config: self.blob("application/vnd.oci.empty.v1+json", b"{}").await,
            layers: vec![layer],
            subject,
            annotations: Annotations::new(),
        };
        let bytes = Bytes::from(serde_json::to_vec(&manifest).unwrap());
        let at = match at.version() {
            Version::Tag(_) => at.clone(),
            Version::Digest(_) => at.with(Version::Digest(Digest::of(&bytes))),
        };
        self.remote.put_manifest(&at, IMAGE_MANIFEST, bytes.clone()).await.unwrap();
        bytes
    }

    async fn sign_beside(&self, signer: &Signer, digest: &Digest) {
        let said = json!({"critical": {"image": {"docker-manifest-digest": digest.as_str()}}});
        let payload = said.to_string();
        let tag = Tag::parse(&format!("sha256-{}.sig", self.digest.hex())).unwrap();
        let at = self.reference.with(Version::Tag(tag));
        let signature = ("dev.cosignproject.cosign/signature", signer.sign(payload.as_bytes()));
        self.put(&at, None, SIGNED, payload.as_bytes(), [signature]).await;
    }

    async fn refer(&self, bundle: &serde_json::Value) {
        let at = self.reference.with(Version::Digest(self.digest.clone()));
        let subject = Descriptor {
            media_type: IMAGE_MANIFEST.to_owned(),
            digest: self.digest.clone(),
            size: self.manifest.len() as u64,
            urls: Vec::new(),
            annotations: Annotations::new(),
        };
        self.put(&at, Some(subject), BUNDLE, bundle.to_string().as_bytes(), []).await;
    }

    async fn verify(&self, signer: &Signer) -> Result<Digest, String> {
        let outcome = verify(&self.remote, &self.reference, &signer.key()).await;
        outcome.map_err(|error| error.to_string())
    }
}

const KIND: &str = "application/vnd.in-toto+json";

fn statement(signer: &Signer, digest: &Digest) -> serde_json::Value {
    envelope(signer, KIND, &said(digest))
}

fn said(digest: &Digest) -> serde_json::Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
        "subject": [{"name": "x", "digest": {"sha256": digest.hex()}}],
        "predicate": {},
    })
}

fn envelope(signer: &Signer, kind: &str, said: &serde_json::Value) -> serde_json::Value {
    let said = said.to_string();
    let sig = signer.sign(&signature::encoded(kind, said.as_bytes()));
    let payload = BASE64_STANDARD.encode(said);
    json!({"dsseEnvelope": {"payload": payload, "payloadType": kind, "signatures": [{"sig": sig}]}})
}

#[tokio::test]
async fn k31_the_key_that_has_signed_is_told_from_another_and_from_none() {
    let (ours, other) = (Signer::new(), Signer::new());
    let site = Site::new().await;
    let unsigned = site.verify(&ours).await.unwrap_err();
    assert!(unsigned.ends_with(&format!("@{} is not signed", site.digest)), "{unsigned}");
    site.sign_beside(&ours, &site.digest).await;
    assert_eq!(site.verify(&ours).await.unwrap(), site.digest);
    let refused = site.verify(&other).await.unwrap_err();
    assert!(refused.contains("somebody else made it"), "{refused}");
}

#[tokio::test]
async fn a_signature_of_another_artifact_is_none_of_this() {
    let ours = Signer::new();
    let site = Site::new().await;
    let elsewhere = Digest::of(b"another manifest");
    site.sign_beside(&ours, &elsewhere).await;
    let refused = site.verify(&ours).await.unwrap_err();
    assert!(refused.contains(&format!("it is for {elsewhere}")), "{refused}");
    site.refer(&statement(&ours, &elsewhere)).await;
    assert!(site.verify(&ours).await.unwrap_err().contains("2 looked at"));
}

#[tokio::test]
async fn bundles_that_refer_to_the_artifact_count_in_both_forms() {
    let (ours, other) = (Signer::new(), Signer::new());
    let site = Site::new().await;
    site.refer(&statement(&ours, &site.digest)).await;
    assert_eq!(site.verify(&ours).await.unwrap(), site.digest);
    assert!(site.verify(&other).await.is_err());
    site.refer(&json!({"messageSignature": {"signature": other.sign(&site.manifest)}})).await;
    assert_eq!(site.verify(&other).await.unwrap(), site.digest);
}

#[tokio::test]
async fn what_makes_no_sense_is_no_signature() {
    let ours = Signer::new();
    let site = Site::new().await;
    for nonsense in [
        json!([]),
        json!({}),
        json!({"messageSignature": {"signature": "???"}}),
        json!({"dsseEnvelope": {"payload": "e30=", "payloadType": "x", "signatures": []}}),
    ] {
        site.refer(&nonsense).await;
    }
    let refused = site.verify(&ours).await.unwrap_err();
    assert!(refused.contains("4 looked at"), "{refused}");
}

#[test]
fn only_keys_that_can_be_used_are_taken() {
    let good = Key::pem(Signer::new().0.public_key().as_ref());
    assert!(Key::parse(&good).is_some());
    for bad in
        ["", "-----BEGIN PUBLIC KEY-----", &good.replace("MFkw", "MFow"), &Key::pem(&[4; 64])]
    {
        assert!(Key::parse(bad).is_none(), "{bad:?}");
    }
}

#[tokio::test]
async fn a_statement_about_how_it_was_made_is_no_signature() {
    let ours = Signer::new();
    for (kind, field, value) in [
        (KIND, "predicateType", "https://slsa.dev/provenance/v1"),
        (KIND, "_type", "https://example.com/else"),
        ("application/octet-stream", "predicate", ""),
    ] {
        let site = Site::new().await;
        let mut said = said(&site.digest);
        said[field] = value.into();
        site.refer(&envelope(&ours, kind, &said)).await;
        let refused = site.verify(&ours).await.unwrap_err();
        assert!(refused.contains("it is no signature but a statement"), "{refused}");
    }
}

#[tokio::test]
async fn a_signature_that_cannot_be_read_spoils_no_other() {
    let ours = Signer::new();
    let site = Site::new().await;
    // Its bytes are not what they were, for whatever reason.
    site.sign_beside(&Signer::new(), &site.digest).await;
    let said = json!({"critical": {"image": {"docker-manifest-digest": site.digest.as_str()}}});
    let hex = Digest::of(said.to_string().as_bytes()).hex().to_owned();
    let blob = site.folder.path().join("blobs/sha256").join(&hex[..2]).join(&hex);
    std::fs::remove_file(&blob).unwrap();
    std::fs::write(&blob, vec![b'x'; said.to_string().len()]).unwrap();
    site.refer(&statement(&ours, &site.digest)).await;
    assert_eq!(site.verify(&ours).await.unwrap(), site.digest);
}
