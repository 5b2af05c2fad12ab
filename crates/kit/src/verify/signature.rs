//! One signature in one of the two forms, and what it must say.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;

use super::Key;
use crate::{Digest, manifest::Annotations};

/// What is signed, and stands beside the artifact.
pub(super) const SIGNED: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// A signature with all that belongs to it, which refers to the artifact.
pub(super) const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Of an envelope that holds a statement, and of the statement by which cosign signs. Others of the same
/// key may say how something was made or tested, which is not to say that it may be used.
const STATEMENT: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/";
const SIGNS: &str = "https://sigstore.dev/cosign/sign/v1";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("it cannot be understood")]
    Nonsense,
    #[error("somebody else made it")]
    Key,
    #[error("it is for {0}")]
    Artifact(String),
    #[error("it is no signature but a statement of type {0:?}")]
    Kind(String),
}

/// As it was found. Nothing in it is to be trusted before the key has said so.
pub(super) enum Signature {
    Beside {
        payload: Vec<u8>,
        signature: Vec<u8>,
    },
    /// Of the bytes of the manifest.
    Message {
        signature: Vec<u8>,
    },
    /// Of a statement that names the artifact (DSSE).
    Statement {
        kind: String,
        payload: Vec<u8>,
        signatures: Vec<Vec<u8>>,
    },
    Nonsense,
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    #[serde(default)]
    message_signature: Option<MessageSignature>,
    #[serde(default)]
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
struct MessageSignature {
    signature: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type", default)]
    type_: String,
    #[serde(default)]
    predicate_type: String,
    #[serde(default)]
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    digest: Digests,
}

#[derive(Default, Deserialize)]
struct Digests {
    #[serde(default)]
    sha256: String,
}

impl Signature {
    pub(super) fn beside(payload: &[u8], annotations: &Annotations) -> Self {
        let signature = annotations.get(SIGNATURE).and_then(|text| decode(text));
        match signature {
            Some(signature) => Self::Beside { payload: payload.to_owned(), signature },
            None => Self::Nonsense,
        }
    }

    pub(super) fn bundle(bytes: &[u8]) -> Self {
        let read = || {
            let bundle: Bundle = serde_json::from_slice(bytes).ok()?;
            match (bundle.message_signature, bundle.dsse_envelope) {
                (Some(message), None) => {
                    Some(Self::Message { signature: decode(&message.signature)? })
                }
                (None, Some(envelope)) => Some(Self::Statement {
                    kind: envelope.payload_type,
                    payload: decode(&envelope.payload)?,
                    signatures: envelope.signatures.iter().filter_map(|s| decode(&s.sig)).collect(),
                }),
                _ => None,
            }
        };
        read().unwrap_or(Self::Nonsense)
    }

    pub(super) fn check(&self, key: &Key, digest: &Digest, manifest: &[u8]) -> Result<(), Refused> {
        match self {
            Self::Nonsense => Err(Refused::Nonsense),
            Self::Message { signature } => by(key.has_signed(manifest, signature)),
            Self::Beside { payload, signature } => {
                by(key.has_signed(payload, signature))?;
                let said: Payload =
                    serde_json::from_slice(payload).map_err(|_| Refused::Nonsense)?;
                let said = said.critical.image.digest;
                if said == digest.as_str() { Ok(()) } else { Err(Refused::Artifact(said)) }
            }
            Self::Statement { kind, payload, signatures } => {
                let message = encoded(kind, payload);
                by(signatures.iter().any(|signature| key.has_signed(&message, signature)))?;
                if kind != STATEMENT {
                    return Err(Refused::Kind(kind.clone()));
                }
                let said: Statement =
                    serde_json::from_slice(payload).map_err(|_| Refused::Nonsense)?;
                if !said.type_.starts_with(STATEMENT_TYPE) {
                    return Err(Refused::Kind(said.type_));
                }
                if said.predicate_type != SIGNS {
                    return Err(Refused::Kind(said.predicate_type));
                }
                let mut said = said.subject.into_iter().map(|subject| subject.digest.sha256);
                match said.find(|hex| hex == digest.hex()) {
                    Some(_) => Ok(()),
                    None => Err(Refused::Artifact("something else".to_owned())),
                }
            }
        }
    }
}

fn by(is_signed: bool) -> Result<(), Refused> {
    if is_signed { Ok(()) } else { Err(Refused::Key) }
}

/// What is signed of an envelope: its type and content, each behind its length.
pub(super) fn encoded(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    message.extend(payload);
    message
}

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(text.trim()).ok()
}
