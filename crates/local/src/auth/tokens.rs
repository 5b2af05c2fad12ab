//! Bearer tokens: the admin's, and those of service accounts.

use std::{fmt, path::Path};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
        UnparsedPublicKey,
    },
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{User, files};
use crate::{
    builtin::{
        causes::{Causes, Path as Field},
        object::{integer, items, map_mut, text},
    },
    error::Cause,
};

/// Who issues, and whom tokens are for unless they say otherwise.
const ISSUER: &str = "https://kubernetes.default.svc";
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const USUAL: i64 = 3600;

/// Issues and checks tokens.
pub struct Tokens {
    admin: String,
    key: EcdsaKeyPair,
    key_id: String,
}

/// Tokens and keys have no place in a log.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot keep the keys of tokens")]
    Files(#[source] files::Error),
    #[error("cannot use the key of tokens")]
    Key,
    #[error("cannot draw random bytes")]
    Random,
}

/// A token that is wanted for an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    pub namespace: String,
    pub account: String,
    pub account_uid: String,
    pub audiences: Vec<String>,
    pub seconds: i64,
    /// The token ends with this object.
    pub bound: Option<Bound>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// `Pod`, `Secret` or `Node`.
    pub kind: String,
    pub name: String,
    pub uid: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    pub token: String,
    pub expires: Timestamp,
}

/// What a token says, once its signature and its times have been checked. Whether the account and
/// the bound object still exist is for the caller to see, see [`Claims::holds`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    pub namespace: String,
    pub account: String,
    pub account_uid: String,
    pub audiences: Vec<String>,
    pub bound: Option<Bound>,
    pub id: String,
}

impl Tokens {
    /// Reads the admin's token and the signing key from the directory, or makes them.
    pub fn load_or_create(dir: &Path) -> Result<Tokens, Error> {
        let random = || -> Result<_, Error> {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(|_| Error::Random)?;
            Ok(URL_SAFE_NO_PAD.encode(bytes).into_bytes())
        };
        let admin = files::keep(&dir.join("admin.token"), random)?;
        let admin = String::from_utf8(admin).map_err(|_| Error::Key)?.trim().to_owned();
        let generate = || -> Result<_, Error> {
            let rng = SystemRandom::new();
            let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng);
            Ok(key.map_err(|_| Error::Key)?.as_ref().to_vec())
        };
        let key = files::keep(&dir.join("account.key"), generate)?;
        Tokens::new(admin, &key)
    }

    fn new(admin: String, key: &[u8]) -> Result<Tokens, Error> {
        // An empty token would let everybody in who sends none.
        if admin.is_empty() {
            return Err(Error::Key);
        }
        let rng = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key, &rng);
        let key = key.map_err(|_| Error::Key)?;
        let key_id = URL_SAFE_NO_PAD.encode(Sha256::digest(key.public_key().as_ref()));
        Ok(Tokens { admin, key, key_id })
    }

    /// For the kubeconfig file, and nothing else.
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// Compared by hashes, in a time that does not depend on where they differ.
    pub fn is_admin(&self, token: &str) -> bool {
        let (one, other) = (Sha256::digest(token), Sha256::digest(&self.admin));
        one.iter().zip(other.iter()).fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
    }

    pub fn issue(&self, request: &TokenRequest, now: Timestamp) -> Result<Issued, Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| Error::Random)?;
        let start = now.as_second();
        let end = start.saturating_add(request.seconds);
        let TokenRequest { namespace, account, account_uid, audiences, bound, .. } = request;
        let mut about = json!({
            "namespace": namespace,
            "serviceaccount": { "name": account, "uid": account_uid },
        });
        if let Some(Bound { kind, name, uid }) = bound {
            about[kind.to_lowercase()] = json!({ "name": name, "uid": uid });
        }
        let claims = json!({
            "aud": audiences, "exp": end, "iat": start, "nbf": start, "iss": ISSUER,
            "jti": uuid(id), "kubernetes.io": about,
            "sub": format!("system:serviceaccount:{namespace}:{account}"),
        });
        let header = json!({ "alg": "ES256", "kid": self.key_id });
        let signed = format!("{}.{}", encoded(&header), encoded(&claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| Error::Key)?;
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        Ok(Issued { token, expires: Timestamp::from_second(end).map_err(|_| Error::Key)? })
    }

    /// The claims of a token that we issued and that holds now for one of these audiences; none given:
    /// for the API.
    pub fn check(&self, token: &str, audiences: &[String], now: Timestamp) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        // Only one way of signing is ours, whatever the header asks for.
        if text(&decoded(header)?, &["alg"]) != "ES256" {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .ok()?;
        let claims = decoded(claims)?;
        let now = now.as_second();
        let holds = integer(&claims, &["nbf"])? <= now && now < integer(&claims, &["exp"])?;
        if !holds || text(&claims, &["iss"]) != ISSUER {
            return None;
        }
        let mut claims = Claims::read(&claims)?;
        let wanted = if audiences.is_empty() { &[ISSUER.to_owned()][..] } else { audiences };
        claims.audiences.retain(|audience| wanted.contains(audience));
        (!claims.audiences.is_empty()).then_some(claims)
    }

    /// Fills in what a Secret lacks that asks for a token of this account, and says whether it lacked
    /// anything. The token ends with the Secret.
    pub fn fill_secret(
        &self,
        secret: &mut Value,
        account: &Value,
        authority: &str,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let owned = |object: &Value, field| text(object, &["metadata", field]).to_owned();
        let (namespace, authority) = (owned(account, "namespace"), STANDARD.encode(authority));
        let mut lacking = Vec::new();
        if text(secret, &["data", "ca.crt"]) != authority {
            lacking.push(("ca.crt", authority));
        }
        if text(secret, &["data", "namespace"]).is_empty() {
            lacking.push(("namespace", STANDARD.encode(&namespace)));
        }
        if text(secret, &["data", "token"]).is_empty() {
            let request = TokenRequest {
                namespace,
                account: owned(account, "name"),
                account_uid: owned(account, "uid"),
                audiences: vec![ISSUER.to_owned()],
                seconds: LONGEST,
                bound: Some(Bound {
                    kind: "Secret".to_owned(),
                    name: owned(secret, "name"),
                    uid: owned(secret, "uid"),
                }),
            };
            lacking.push(("token", STANDARD.encode(self.issue(&request, now)?.token)));
        }
        if lacking.is_empty() {
            return Ok(false);
        }
        if let Some(marks) = map_mut(secret, &["metadata", "annotations"]) {
            let uid = "kubernetes.io/service-account.uid".to_owned();
            marks.insert(uid, owned(account, "uid").into());
        }
        if let Some(data) = map_mut(secret, &["data"]) {
            data.extend(lacking.into_iter().map(|(key, value)| (key.to_owned(), value.into())));
        }
        Ok(true)
    }

    /// The public key, for those who check tokens themselves.
    pub fn jwks(&self) -> Value {
        let point = self.key.public_key().as_ref();
        let part = |range| URL_SAFE_NO_PAD.encode(point.get(range).unwrap_or_default());
        json!({ "keys": [{
            "use": "sig", "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": self.key_id,
            "x": part(1..33), "y": part(33..65),
        }] })
    }

    /// Where the public key is; `base` is the address of the API.
    pub fn configuration(base: &str) -> Value {
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("{base}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    /// Whom tokens are for unless they say otherwise.
    pub fn audience() -> &'static str {
        ISSUER
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Error {
        Error::Files(error)
    }
}

impl Claims {
    fn read(claims: &Value) -> Option<Claims> {
        let about = claims.get("kubernetes.io")?;
        let bound = ["pod", "secret", "node"].iter().find_map(|kind| {
            let object = about.get(kind)?;
            let (first, rest) = kind.split_at(1);
            Some(Bound {
                kind: format!("{}{rest}", first.to_uppercase()),
                name: text(object, &["name"]).to_owned(),
                uid: text(object, &["uid"]).to_owned(),
            })
        });
        let audiences = items(claims, &["aud"]).iter().filter_map(Value::as_str);
        Some(Claims {
            namespace: text(about, &["namespace"]).to_owned(),
            account: text(about, &["serviceaccount", "name"]).to_owned(),
            account_uid: text(about, &["serviceaccount", "uid"]).to_owned(),
            audiences: audiences.map(str::to_owned).collect(),
            bound,
            id: text(claims, &["jti"]).to_owned(),
        })
    }

    /// Whether the account and the object that the token is bound to are still the same ones.
    pub fn holds(&self, account: Option<&Value>, bound: Option<&Value>) -> bool {
        let same = |object: Option<&Value>, uid: &str| {
            object.is_some_and(|object| {
                let gone = object.pointer("/metadata/deletionTimestamp").is_some();
                !gone && text(object, &["metadata", "uid"]) == uid
            })
        };
        // A pod that is being deleted still runs and still needs its token.
        let bound_same = |object: Option<&Value>, uid: &str| {
            object.is_some_and(|object| text(object, &["metadata", "uid"]) == uid)
        };
        same(account, &self.account_uid)
            && self.bound.as_ref().is_none_or(|wanted| bound_same(bound, &wanted.uid))
    }

    pub fn user(&self) -> User {
        let mut user = User::account(&self.namespace, &self.account, &self.account_uid);
        let mut add = |key: &str, value: String| {
            user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
        };
        add("credential-id", format!("JTI={}", self.id));
        if let Some(Bound { kind, name, uid }) = &self.bound
            && kind == "Pod"
        {
            add("pod-name", name.clone());
            add("pod-uid", uid.clone());
        }
        user
    }
}

/// What is wrong with a TokenRequest, or how long and for whom it asks.
pub fn token_request(body: &Value) -> Result<(Vec<String>, i64), Vec<Cause>> {
    let mut causes = Causes::default();
    let field = Field::new("spec.expirationSeconds");
    let seconds = integer(body, &["spec", "expirationSeconds"]).unwrap_or(USUAL);
    if seconds < SHORTEST {
        causes.invalid(&field, seconds, "may not specify a duration less than 10 minutes");
    }
    if seconds > LONGEST {
        causes.invalid(&field, seconds, "may not specify a duration larger than 2^32 seconds");
    }
    let audiences = items(body, &["spec", "audiences"]).iter().filter_map(Value::as_str);
    let mut audiences: Vec<String> = audiences.map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    if causes.0.is_empty() { Ok((audiences, seconds)) } else { Err(causes.0) }
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn decoded(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
