//! The smaller subresources: binding and eviction of pods, the end of namespaces.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Answer, Body, DeleteOptions, Registry, Target, Write,
    body::meta,
    create::Owners,
    update::{Before, From},
};
use crate::{
    builtin,
    error::{CauseReason, Error, Subject},
    store::{Mode, Object},
    types,
};

impl Registry {
    /// Gives a pod its node, once.
    pub async fn bind(
        self: &Arc<Self>,
        target: Target,
        body: Body,
        write: Write,
    ) -> Result<Answer, Error> {
        let body = read_binding(body.value)?;
        let node = body.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            let message = "Required value".into();
            return Err(target.invalid(CauseReason::Required, "target.name", message));
        }
        let node = node.to_owned();
        let wanted = ["uid", "resourceVersion"].map(|field| meta(&body, field).to_owned());
        self.change(write.mode, move |_, tx| {
            let Some(old) = tx.get(&target.key()) else {
                return Err(Error::NotFound(target.subject()));
            };
            let conflict = |text: String| Error::Conflict {
                subject: Subject::new("", "pods/binding", &target.name),
                text,
            };
            check_pod(&target, &old, &wanted)?;
            if old.is_deleting() {
                return Err(conflict(format!(
                    "pod {} is being deleted, cannot be assigned to a host",
                    target.name
                )));
            }
            let bound = old.value().pointer("/spec/nodeName").and_then(Value::as_str);
            if let Some(bound) = bound.filter(|bound| !bound.is_empty()) {
                let text = format!("pod {} is already assigned to node {bound:?}", target.name);
                return Err(conflict(text));
            }
            let gates = old.value().pointer("/spec/schedulingGates").and_then(Value::as_array);
            if gates.is_some_and(|gates| !gates.is_empty()) {
                let text = format!("pod {} has non-empty .spec.schedulingGates", target.name);
                return Err(conflict(text));
            }
            let mut pod = old.value().clone();
            pod["spec"]["nodeName"] = node.into();
            let scheduled = json!({
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": null,
                "lastTransitionTime": Self::time(tx),
            });
            let conditions = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
            match conditions {
                Some(conditions) => {
                    conditions.retain(|known| known["type"] != "PodScheduled");
                    conditions.push(scheduled);
                }
                None => pod["status"]["conditions"] = json!([scheduled]),
            }
            tx.put(&target.key(), pod);
            Ok(Answer { created: true, ..Answer::of(done()) })
        })
        .await
    }

    /// A deletion that a disruption budget could refuse, if there were something behind it.
    pub async fn evict(
        self: &Arc<Self>,
        target: Target,
        options: DeleteOptions,
        mode: Mode,
    ) -> Result<Answer, Error> {
        self.delete(target, options, mode).await?;
        Ok(Answer { created: true, ..Answer::of(done()) })
    }

    /// `/finalize`: only the finalizers in the spec of a namespace count.
    pub async fn finalize(
        self: &Arc<Self>,
        target: Target,
        body: Body,
        write: Write,
    ) -> Result<Answer, Error> {
        let decoded = target.served.decode(body)?;
        let warnings = target.served.judge(decoded.problems, write.validation)?;
        let wanted = decoded.object;
        self.change(write.mode, move |registry, tx| {
            let Some(old) = tx.get(&target.key()) else {
                return Err(Error::NotFound(target.subject()));
            };
            let before = Before::of(&target.served, &old);
            let mut new = before.shown.clone();
            let finalizers = wanted.pointer("/spec/finalizers").cloned();
            new["spec"]["finalizers"] = finalizers.unwrap_or_else(|| json!([]));
            for field in ["uid", "resourceVersion"] {
                new["metadata"][field] = meta(&wanted, field).into();
            }
            let owners = Owners::Compare;
            let body = registry.update_in(tx, &target, before, new, &write, owners, From::Put)?;
            Ok(Answer { created: false, body, warnings })
        })
        .await
    }
}

/// A binding may say of which pod it is, and in which state.
fn check_pod(target: &Target, old: &Object, [uid, version]: &[String; 2]) -> Result<(), Error> {
    let found = old.version().to_string();
    for (what, wanted, found) in [("UID", uid, old.uid()), ("ResourceVersion", version, &found)] {
        if !wanted.is_empty() && wanted != found {
            // Kubernetes tells of its storage here.
            let text = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/pods/{}/{}, \
                 ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in \
                 precondition: {wanted}, {what} in object meta: {found}",
                target.namespace, target.name
            );
            return Err(Error::Conflict { subject: target.subject(), text });
        }
    }
    Ok(())
}

fn read_binding(body: Value) -> Result<Value, Error> {
    const KIND: &str = "Binding";
    let unreadable = |text| {
        let kind = format!("{KIND} in version \"v1\" cannot be handled as a {KIND}");
        Error::BadRequest(format!("{kind}: {text}"))
    };
    let typed = types::builtin().kind("v1", KIND).ok_or(Error::NoSuchResource)?;
    Ok(builtin::decode_kind("v1", KIND, body, typed).map_err(unreadable)?.object)
}

/// Success with nothing to add.
fn done() -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    })
}
