//! Who we are to a registry: the files that docker and kit keep.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

use helper::Helper;

mod helper;

/// Never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    Basic {
        user: String,
        password: String,
    },
    /// To be exchanged for a token.
    Identity(String),
    /// A token itself.
    Token(String),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential")
    }
}

/// A credential and the file that it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub credential: Credential,
    pub source: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    auths: BTreeMap<String, Auth>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cred_helpers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creds_store: Option<String>,
    /// What others keep in the file.
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Auth {
    #[serde(skip_serializing_if = "String::is_empty")]
    auth: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    password: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    identitytoken: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    registrytoken: String,
}

/// The first of the files that knows the registry. What cannot be read is told and passed over.
pub fn find(files: &[PathBuf], registry: &str) -> Option<Found> {
    files.iter().find_map(|file| {
        let config = match read(file) {
            Ok(config) => config,
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "cannot read credentials");
                return None;
            }
        };
        let credential = in_config(&config, registry)?;
        Some(Found { credential, source: file.clone() })
    })
}

/// As it stands in the header of a request.
pub fn header(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

fn read(file: &Path) -> io::Result<Config> {
    match fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Config::default()),
        Err(error) => Err(error),
    }
}

fn in_config(config: &Config, registry: &str) -> Option<Credential> {
    for (name, helper) in config.helpers(registry) {
        match helper.get(registry) {
            Ok(Some(credential)) => return Some(credential),
            Ok(None) => {}
            Err(error) => tracing::warn!(helper = name, %error, "the credential helper has failed"),
        }
    }
    config.auths.iter().find(|(key, _)| is_same(key, registry)).and_then(|(_, auth)| auth.read())
}

impl Config {
    /// The one of the registry, then the one of all.
    fn helpers(&self, registry: &str) -> impl Iterator<Item = (&str, Helper)> {
        let own = self.cred_helpers.iter().find(|(key, _)| is_same(key, registry));
        let own = own.map(|(_, name)| name);
        let all = self.creds_store.iter().filter(move |name| own != Some(*name));
        let names = own.into_iter().chain(all);
        names.filter_map(|name| Some((name.as_str(), Helper::named(name)?)))
    }
}

impl Auth {
    fn read(&self) -> Option<Credential> {
        if !self.registrytoken.is_empty() {
            return Some(Credential::Token(self.registrytoken.clone()));
        }
        if !self.identitytoken.is_empty() {
            return Some(Credential::Identity(self.identitytoken.clone()));
        }
        if !self.username.is_empty() {
            let (user, password) = (self.username.clone(), self.password.clone());
            return Some(Credential::Basic { user, password });
        }
        let text = BASE64_STANDARD.decode(self.auth.trim()).ok()?;
        let text = String::from_utf8(text).ok()?;
        let (user, password) = text.trim_end_matches('\0').split_once(':')?;
        // Without a user the password is a token to be exchanged.
        Some(match user.is_empty() {
            true => Credential::Identity(password.to_owned()),
            false => Credential::Basic { user: user.to_owned(), password: password.to_owned() },
        })
    }
}

/// Keys may have a scheme and a path.
fn is_same(key: &str, registry: &str) -> bool {
    let host = |text: &str| {
        let text = text.strip_prefix("https://").or(text.strip_prefix("http://")).unwrap_or(text);
        let host = text.split('/').next().unwrap_or(text).to_ascii_lowercase();
        match host.as_str() {
            "docker.io" | "registry-1.docker.io" => "index.docker.io".to_owned(),
            _ => host,
        }
    };
    host(key) == host(registry)
}

/// Keeps a password: with the helper of the registry where the file names one, and otherwise in the file,
/// for its owner's eyes only.
pub fn keep(file: &Path, registry: &str, user: &str, password: &str) -> io::Result<()> {
    let mut config = read(file)?;
    config.auths.retain(|key, _| !is_same(key, registry));
    let helper = config.helpers(registry).next();
    let stored = helper.map(|(name, helper)| {
        helper.store(registry, user, password).map_err(|error| failed(name, &error))
    });
    let is_with_helper = stored.transpose()?.is_some();
    // Without a user it is a token to be exchanged, which others know by its own name.
    let auth = match user.is_empty() {
        // As docker does it: whoever looks into the file learns that there is something.
        _ if is_with_helper => Auth::default(),
        true => Auth { identitytoken: password.to_owned(), ..Auth::default() },
        false => {
            let auth = BASE64_STANDARD.encode(format!("{user}:{password}"));
            Auth { auth, ..Auth::default() }
        }
    };
    config.auths.insert(registry.to_owned(), auth);
    crate::whole::write(file, &serde_json::to_vec_pretty(&config).map_err(io::Error::other)?)
}

/// Whether something was known. Whatever fails, the rest of it is forgotten.
pub fn forget(file: &Path, registry: &str) -> io::Result<bool> {
    let mut config = read(file).map_err(|error| at("read", file, &error))?;
    let before = config.auths.len();
    config.auths.retain(|key, _| !is_same(key, registry));
    let mut is_known = config.auths.len() != before;
    let mut erased = Ok(());
    if is_known {
        erased = serde_json::to_vec_pretty(&config)
            .map_err(io::Error::other)
            .and_then(|bytes| crate::whole::write(file, &bytes))
            .map_err(|error| at("change", file, &error));
    }
    for (name, helper) in config.helpers(registry) {
        match helper.erase(registry) {
            Ok(has_known) => is_known |= has_known,
            Err(error) => erased = erased.and_then(|()| Err(failed(name, &error))),
        }
    }
    erased.map(|()| is_known)
}

fn at(attempt: &str, file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {attempt} {}: {error}", file.display()))
}

fn failed(helper: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the credential helper {helper} has failed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn basic(user: &str, password: &str) -> Option<Credential> {
        Some(Credential::Basic { user: user.to_owned(), password: password.to_owned() })
    }

    #[test]
    fn every_form_of_an_entry_is_understood() {
        let config: Config = serde_json::from_str(
            r#"{"auths": {
                "https://r.io/v2/": {"auth": "dTpwOnE="},
                "plain.io:5000": {"username": "u", "password": "p"},
                "identity.io": {"identitytoken": "i", "auth": "dTpw"},
                "token.io": {"registrytoken": "t"},
                "bare.io": {"auth": "OnNlY3JldA=="},
                "broken.io": {"auth": "%%%"},
                "https://index.docker.io/v1/": {"auth": "ZDpk"}
            }, "HttpHeaders": {"a": "b"}}"#,
        )
        .unwrap();
        for (registry, want) in [
            ("r.io", basic("u", "p:q")),
            ("plain.io:5000", basic("u", "p")),
            ("plain.io", None),
            ("identity.io", Some(Credential::Identity("i".to_owned()))),
            ("token.io", Some(Credential::Token("t".to_owned()))),
            ("bare.io", Some(Credential::Identity("secret".to_owned()))),
            ("broken.io", None),
            ("docker.io", basic("d", "d")),
            ("other.io", None),
        ] {
            assert_eq!(in_config(&config, registry), want, "{registry}");
        }
    }

    #[test]
    fn what_is_kept_is_found_and_nothing_else_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials.json");
        fs::write(&file, r#"{"HttpHeaders":{"a":"b"}}"#).unwrap();
        keep(&file, "r.io", "u", "p").unwrap();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "only for its owner");
        let found = find(&[folder.path().join("missing"), file.clone()], "r.io").unwrap();
        assert_eq!((Some(found.credential), found.source), (basic("u", "p"), file.clone()));
        assert!(forget(&file, "r.io").unwrap() && !forget(&file, "r.io").unwrap());
        assert!(fs::read_to_string(&file).unwrap().contains("HttpHeaders"));
        fs::write(&file, "no json").unwrap();
        assert_eq!(find(&[file], "r.io"), None);
    }

    #[test]
    fn a_token_is_kept_under_the_name_that_others_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials.json");
        keep(&file, "r.io", "", "t").unwrap();
        let kept: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(kept, serde_json::json!({"auths": {"r.io": {"identitytoken": "t"}}}));
        let found = find(&[file], "r.io").unwrap().credential;
        assert_eq!(found, Credential::Identity("t".to_owned()));
    }

    #[test]
    fn a_credential_is_never_printed() {
        assert_eq!(format!("{:?}", basic("user", "secret")), "Some(Credential)");
    }
}
