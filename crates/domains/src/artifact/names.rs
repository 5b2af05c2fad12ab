//! Every name, label and annotation of the children; nothing else makes them up.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};
use windlass_api::model::artifact::ArtifactKind;
use windlass_engine::labels::owner_label;

use super::run::Run;

/// Field manager and `managed-by` value, shared with the other kinds of the group.
pub const CONTROLLER: &str = "model-operator";
pub const EVENT_SOURCE: &str = "artifact-controller";
/// Carries the artifact's name on every child.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
pub const COMPONENT: &str = "model-artifact";

/// Keeps a finished Job until its result is stored.
pub const HOLD: &str = "windlass.dev/result";
/// Which generation of the artifact a child was made for.
pub const GENERATION_ANNOTATION: &str = "model.otterscale.io/generation";
/// On an artifact: a new value runs a failed one again. On a child: the value it was made for.
pub const RETRY_ANNOTATION: &str = "windlass.dev/retry";

pub(super) const JOB_NAME_LABEL: &str = "batch.kubernetes.io/job-name";
const PART_OF: &str = "otterscale-system";

/// What the API server leaves of a prefix when it makes up the rest of a name.
const MAX_PREFIX: usize = 58;
const SUFFIX: usize = 5;
/// The letters of such a rest: no vowels and nothing that reads like one, so no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Names of the children of one artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    namespace: Option<String>,
    name: String,
    uid: String,
}

impl Names {
    pub(super) fn of<K: ArtifactKind>(artifact: &K) -> Self {
        let metadata = artifact.meta();
        Self {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    pub(super) fn claim(&self) -> String {
        format!("{}-workspace", self.name)
    }

    /// Looks as if the API server had made it up, but is the same each time: a second attempt to
    /// make the Job of a run finds the first.
    pub(super) fn job(&self, run: &Run) -> String {
        let mut name = format!("{}-", self.name);
        name.truncate(name.floor_char_boundary(MAX_PREFIX));
        let Self { uid, .. } = self;
        let identity = match run {
            Run { generation, retry: None } => format!("{uid}/{generation}"),
            Run { generation, retry: Some(retry) } => format!("{uid}/{generation}/{retry}"),
        };
        let letters = Sha256::digest(identity).into_iter().take(SUFFIX);
        let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
        name.extend(letters.map(letter));
        name
    }

    /// What all children have, whichever version of the operator made them.
    pub(super) fn selector(&self) -> BTreeMap<String, String> {
        [
            (NAME_LABEL, owner_label(&self.name).as_str()),
            ("app.kubernetes.io/component", COMPONENT),
            ("app.kubernetes.io/part-of", PART_OF),
            ("app.kubernetes.io/managed-by", CONTROLLER),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
    }

    pub(super) fn labels(&self, version: &str) -> BTreeMap<String, String> {
        let mut labels = self.selector();
        if !version.is_empty() {
            labels.insert("app.kubernetes.io/version".to_owned(), version.to_owned());
        }
        labels
    }

    pub(super) fn metadata(&self, name: String, version: &str, run: &Run) -> ObjectMeta {
        ObjectMeta {
            name: Some(name),
            namespace: self.namespace.clone(),
            labels: Some(self.labels(version)),
            annotations: Some(run.annotations()),
            ..Default::default()
        }
    }
}
