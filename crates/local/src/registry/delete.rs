//! The way out: grace, finalizers and policies.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    Answer, ListOptions, Registry, Target,
    body::{metadata_mut, set},
    update::raise_generation,
};
use crate::{
    crd,
    error::{Error, Subject},
    store::{Mode, Object, Transaction},
};

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";

#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub grace: Option<i64>,
    pub policy: Option<Policy>,
    pub uid: Option<String>,
    pub version: Option<String>,
}

/// What becomes of those that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Background,
    Foreground,
    Orphan,
}

pub(super) enum Deleted {
    /// Its last content, and the version of its end.
    Gone(Arc<Object>, u64),
    /// What it is now, and the version that it had.
    Stays(Arc<Object>, u64),
}

const KEPT_PODS: &str = "child pods are preserved by default when jobs are deleted; set \
    propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this \
    warning";

impl Registry {
    pub async fn delete(
        self: &Arc<Self>,
        target: Target,
        options: DeleteOptions,
        mode: Mode,
    ) -> Result<Answer, Error> {
        let warns = target.served.is("batch", "jobs") && options.policy.is_none();
        let served = target.served.clone();
        let deleted =
            self.change(mode, move |registry, tx| registry.delete_in(tx, &target, &options));
        let body = match deleted.await? {
            Deleted::Stays(object, before) => {
                let mut shown = served.show(&object);
                // Nobody ever gets the version that it would have had.
                if mode == Mode::Try {
                    shown["metadata"]["resourceVersion"] = before.to_string().into();
                }
                shown
            }
            Deleted::Gone(object, version) if served.resource.delete_shows_object => {
                let mut shown = served.show(&object);
                if mode == Mode::Store {
                    shown["metadata"]["resourceVersion"] = version.to_string().into();
                }
                shown
            }
            Deleted::Gone(object, _) => success(&served.subject(object.meta("name")), object.uid()),
        };
        let warnings = warns.then(|| KEPT_PODS.to_owned()).into_iter().collect();
        Ok(Answer { warnings, ..Answer::of(body) })
    }

    /// Answers with what matched.
    pub async fn delete_all(
        self: &Arc<Self>,
        target: Target,
        list: ListOptions,
        options: DeleteOptions,
        mode: Mode,
    ) -> Result<super::Listed, Error> {
        let listed = self.list(&target, &list).await?;
        let objects = listed.objects.clone();
        let deleted = self.change(mode, move |registry, tx| {
            for object in objects {
                let target = Target {
                    name: object.meta("name").to_owned(),
                    namespace: object.meta("namespace").to_owned(),
                    ..target.clone()
                };
                match registry.delete_in(tx, &target, &options) {
                    Ok(_) | Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        deleted.await?;
        Ok(listed)
    }

    pub(super) fn delete_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        options: &DeleteOptions,
    ) -> Result<Deleted, Error> {
        let served = &target.served;
        let Some(old) = tx.get(&target.key()) else {
            return Err(Error::NotFound(target.subject()));
        };
        check_preconditions(target, &old, options)?;
        let before = old.version();
        let mut new = old.to_value(&served.api_version, &served.resource.kind);
        if served.is("", "namespaces") {
            check_namespace(&target.name)?;
            new["status"]["phase"] = "Terminating".into();
        }
        let defined = served.defines();
        if defined && !old.is_deleting() {
            new["status"] = crd::terminating(&new, false, &Self::time(tx));
        }
        let finalizers = finalizers(target, &old, options.policy, defined);
        set_finalizers(&mut new, &finalizers);
        self.begin(tx, target, &old, &mut new, options);
        // A namespace waits for its content, whatever its finalizers.
        let held = !finalizers.is_empty() || served.is("", "namespaces");
        let over = !held && grace(&new) == 0;
        let unchanged = old.to_value(&served.api_version, &served.resource.kind) == new;
        // The last that is seen of a pod is that it had to go; of other objects, what they were.
        let last = match unchanged || over && !served.is("", "pods") {
            true => old,
            false => tx.put(&target.key(), new),
        };
        if !over {
            return Ok(Deleted::Stays(last, before));
        }
        let version = tx.remove(&target.key()).unwrap_or(last.version());
        Ok(Deleted::Gone(last, version))
    }

    /// Sets when the object is to be gone, which later requests can only bring forward.
    fn begin(
        &self,
        tx: &Transaction<'_>,
        target: &Target,
        old: &Object,
        new: &mut Value,
        options: &DeleteOptions,
    ) {
        let wanted = wanted_grace(target, old, options);
        let due = tx.now() + SignedDuration::from_secs(wanted);
        if old.is_deleting() {
            let set_to = old.meta("deletionTimestamp").parse().unwrap_or(due);
            if due >= set_to && !(wanted == 0 && grace(new) > 0) {
                return;
            }
        } else if target.served.resource.has_generation && !target.served.defines() {
            raise_generation(new);
        }
        if let Some(metadata) = metadata_mut(new) {
            set(metadata, "deletionTimestamp", Some(super::seconds(due).into()));
            // Definitions are marked in a way of their own.
            let grace = (!target.served.defines()).then(|| wanted.into());
            set(metadata, "deletionGracePeriodSeconds", grace);
        }
    }
}

/// Seconds that the object is given. Only pods that run somewhere are given any.
fn wanted_grace(target: &Target, old: &Object, options: &DeleteOptions) -> i64 {
    if !target.served.is("", "pods") {
        return 0;
    }
    let text =
        |pointer: &str| old.value().pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let bound = !text("/spec/nodeName").is_empty();
    let finished = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if !bound || finished {
        return 0;
    }
    let own = old.value().pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    // A month is more than anybody waits, and keeps the sum a time.
    options.grace.or(own).unwrap_or(30).clamp(0, 31 * 24 * 3600)
}

fn grace(object: &Value) -> i64 {
    let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    grace.unwrap_or_default()
}

fn finalizers(target: &Target, old: &Object, policy: Option<Policy>, defined: bool) -> Vec<String> {
    let mut kept: Vec<String> = old.finalizers().into_iter().map(str::to_owned).collect();
    if defined && !old.is_deleting() && !kept.iter().any(|name| name == CLEAN_UP) {
        kept.push(CLEAN_UP.into());
    }
    let undecided = !kept.iter().any(|name| name == ORPHAN || name == FOREGROUND);
    let policy = match policy {
        None if undecided && target.served.is("batch", "jobs") => Some(Policy::Orphan),
        policy => policy,
    };
    let Some(policy) = policy else { return kept };
    kept.retain(|name| name != ORPHAN && name != FOREGROUND);
    match policy {
        Policy::Background => {}
        Policy::Orphan => kept.push(ORPHAN.into()),
        Policy::Foreground => kept.push(FOREGROUND.into()),
    }
    kept
}

pub(super) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if let Some(metadata) = metadata_mut(object) {
        let list = (!finalizers.is_empty()).then(|| finalizers.into());
        set(metadata, "finalizers", list);
    }
}

fn check_namespace(name: &str) -> Result<(), Error> {
    match name {
        "default" | "kube-system" | "kube-public" => {
            let text = "this namespace may not be deleted";
            Err(Error::forbidden(Subject::namespace(name), text))
        }
        _ => Ok(()),
    }
}

fn check_preconditions(
    target: &Target,
    old: &Object,
    options: &DeleteOptions,
) -> Result<(), Error> {
    let conflict = |what: &str, given: &str, found: &str, happened: &str| {
        // Here Kubernetes names the kind and leaves the group out.
        let subject = Subject::new("", &target.served.resource.kind, &target.name);
        let text = format!(
            "the {what} in the precondition ({given}) does not match the {what} in record \
             ({found}). The object might have been {happened}"
        );
        Err(Error::Conflict { subject, text })
    };
    if let Some(uid) = &options.uid
        && uid != old.uid()
    {
        return conflict("UID", uid, old.uid(), "deleted and then recreated");
    }
    let found = old.version().to_string();
    match &options.version {
        Some(version) if *version != found => {
            conflict("ResourceVersion", version, &found, "modified")
        }
        _ => Ok(()),
    }
}

/// The answer when there is no object to show.
pub(super) fn success(subject: &Subject, uid: &str) -> Value {
    let mut details = json!({"name": subject.name, "kind": subject.kind, "uid": uid});
    if !subject.group.is_empty() {
        details["group"] = subject.group.as_str().into();
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
