//! The ReplicaSet that a Deployment makes of its template.

use std::{collections::BTreeMap, fmt::Write};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use sha2::{Digest, Sha256};

use super::{
    DESIRED_REPLICAS, HASH, MAX_REPLICAS, REVISION,
    sets::{comparable, desired, slack},
};
use crate::controllers::reference;

const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// How many characters of earlier revisions are kept.
const HISTORY_LENGTH: usize = 2000;
/// What belongs to the Deployment alone.
const OWN: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];
/// Letters and digits that names may have and that cannot be taken for others, nor make words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const HASH_LENGTH: usize = 10;
const NAME_LENGTH: usize = 253;

/// With this size and revision, in a name that follows from the template.
pub(super) fn replica_set(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    replicas: i64,
    revision: i64,
) -> ReplicaSet {
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = hash(&spec.template, collisions);
    let mut template = spec.template.clone();
    let meta = template.metadata.get_or_insert_default();
    meta.labels.get_or_insert_default().insert(HASH.to_owned(), hash.clone());
    let labels = meta.labels.clone();
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH.to_owned(), hash.clone());
    let mut annotations = annotations(deployment, &BTreeMap::new(), revision);
    annotations.extend(sizes(spec));
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(name(&deployment.name_any(), &hash)),
            namespace: deployment.namespace(),
            labels,
            annotations: Some(annotations),
            owner_references: Some(vec![reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(i32::try_from(replicas).unwrap_or(i32::MAX)),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        ..ReplicaSet::default()
    }
}

fn name(deployment: &str, hash: &str) -> String {
    let room = NAME_LENGTH - 1 - hash.len();
    let end = deployment.floor_char_boundary(room);
    format!("{}-{hash}", deployment.get(..end).unwrap_or(deployment))
}

fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut text = comparable(template).to_string();
    if let Some(collisions) = collisions {
        // Writing to a string cannot fail.
        let _ = write!(text, "#{collisions}");
    }
    let digest = Sha256::digest(text.as_bytes());
    let letter = |byte: &u8| ALPHABET.get(usize::from(*byte) % ALPHABET.len()).copied();
    digest.iter().take(HASH_LENGTH).filter_map(letter).map(char::from).collect()
}

/// By which the next look tells a scaling from a rollout.
pub(super) fn sizes(spec: &DeploymentSpec) -> [(String, String); 2] {
    let desired = desired(spec);
    let most = desired.saturating_add(slack(spec).surge);
    [(DESIRED_REPLICAS.into(), desired.to_string()), (MAX_REPLICAS.into(), most.to_string())]
}

/// Of the newest set: those of the Deployment, and a revision that is never lowered. A set that
/// becomes the newest again remembers what it was before.
pub(super) fn annotations(
    deployment: &Deployment,
    known: &BTreeMap<String, String>,
    revision: i64,
) -> BTreeMap<String, String> {
    let mut all = known.clone();
    let copied = deployment.annotations().iter().filter(|(key, _)| !OWN.contains(&key.as_str()));
    all.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    let before = known.get(REVISION).filter(|before| !before.is_empty());
    let number = before.map_or(Some(0), |before| before.parse::<i64>().ok());
    // A revision that somebody made unreadable is left alone.
    if number.is_some_and(|number| number < revision) {
        all.insert(REVISION.to_owned(), revision.to_string());
        if let Some(before) = before {
            all.insert(HISTORY.to_owned(), history(known.get(HISTORY), before));
        }
    }
    all
}

/// The oldest ones go when there is no room.
fn history(known: Option<&String>, revision: &str) -> String {
    let mut all: Vec<&str> = known.map_or("", String::as_str).split(',').collect();
    all.retain(|known| !known.is_empty());
    all.push(revision);
    let mut text = all.join(",");
    while text.len() > HISTORY_LENGTH
        && let Some((_, rest)) = text.split_once(',')
    {
        text = rest.to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn deployment() -> Deployment {
        from_value(json!({
            "metadata": {"name": "d", "namespace": "ns", "uid": "u", "annotations": {
                "note": "x", REVISION: "7", "kubectl.kubernetes.io/last-applied-configuration": "{}",
            }},
            "spec": {"replicas": 4, "minReadySeconds": 5, "selector": {"matchLabels": {"a": "b"}},
                "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}},
        }))
        .unwrap()
    }

    #[test]
    fn a_set_is_the_template_under_a_name_of_its_own() {
        let deployment = deployment();
        let spec = deployment.spec.as_ref().unwrap();
        let set = replica_set(&deployment, spec, 2, 3);
        let hash = set.labels()[HASH].clone();
        assert_eq!(hash.len(), 10);
        assert!(hash.bytes().all(|byte| ALPHABET.contains(&byte)), "{hash}");
        let want = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": format!("d-{hash}"), "namespace": "ns",
                "labels": {"a": "b", HASH: hash},
                "annotations": {"note": "x", REVISION: "3", DESIRED_REPLICAS: "4",
                    MAX_REPLICAS: "5"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d",
                    "uid": "u", "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {"replicas": 2, "minReadySeconds": 5,
                "selector": {"matchLabels": {"a": "b", HASH: hash}},
                "template": {"metadata": {"labels": {"a": "b", HASH: hash}},
                    "spec": {"containers": []}}},
        });
        assert_eq!(serde_json::to_value(&set).unwrap(), want);
        let mut collided = deployment.clone();
        collided.status.get_or_insert_default().collision_count = Some(1);
        assert_ne!(replica_set(&collided, spec, 2, 3).name_any(), set.name_any());
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(name(&"x".repeat(253), "bcdfghjklm").len(), 253);
        assert_eq!(name("d", "bcdfghjklm"), "d-bcdfghjklm");
    }

    #[test]
    fn revisions_rise_and_are_remembered() {
        let plain = |known: &[(&str, &str)], revision| {
            let known = known.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            let all = annotations(&Deployment::default(), &known, revision);
            (all.get(REVISION).cloned(), all.get(HISTORY).cloned())
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(plain(&[], 1), (text("1"), None));
        assert_eq!(plain(&[(REVISION, "1")], 3), (text("3"), text("1")));
        assert_eq!(plain(&[(REVISION, "3"), (HISTORY, "1")], 5), (text("5"), text("1,3")));
        assert_eq!(plain(&[(REVISION, "5")], 5), (text("5"), None));
        assert_eq!(plain(&[(REVISION, "9")], 5), (text("9"), None));
        assert_eq!(plain(&[(REVISION, "x")], 5), (text("x"), None));
        let long = vec!["1234"; 400].join(",");
        assert_eq!(history(Some(&long), "5").len(), 1996);
    }
}
