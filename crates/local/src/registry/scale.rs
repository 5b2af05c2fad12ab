//! `/scale`: how many copies, whatever the kind.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    Answer, Body, PatchKind, Registry, Source, Target, Write,
    body::meta,
    create::Owners,
    patch::{patched, refused},
    read::at,
    update::From,
};
use crate::{
    error::{CauseReason, Error},
    store::{Object, Transaction},
    types,
};

/// Where the numbers are, as names from the object's root.
struct Paths {
    wanted: Vec<String>,
    seen: Vec<String>,
    selector: Option<Vec<String>>,
}

fn paths(target: &Target) -> Option<Paths> {
    let split = |path: &str| {
        path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    match &target.served.source {
        Source::Builtin(_) => Some(Paths {
            wanted: split("spec.replicas"),
            seen: split("status.replicas"),
            selector: None,
        }),
        Source::Custom(custom) => {
            let scale = custom.version().scale.as_ref()?;
            Some(Paths {
                wanted: split(&scale.spec_replicas),
                seen: split(&scale.status_replicas),
                selector: scale.label_selector.as_deref().map(split),
            })
        }
    }
}

fn number(object: &Value, path: &[String]) -> i64 {
    let path: Vec<_> = path.iter().map(String::as_str).collect();
    at(object, &path).and_then(Value::as_i64).unwrap_or_default()
}

impl Registry {
    pub async fn get_scale(&self, target: &Target) -> Result<Value, Error> {
        let object = self.get(target, None).await?;
        show(target, &object)
    }

    pub async fn update_scale(
        self: &Arc<Self>,
        target: Target,
        body: Body,
        write: Write,
    ) -> Result<Answer, Error> {
        self.change(write.mode, move |registry, tx| {
            let Some(old) = tx.get(&target.key()) else {
                return Err(Error::NotFound(target.subject()));
            };
            let body = registry.set_scale(tx, &target, &old, &body.value, &write)?;
            Ok(Answer::of(body))
        })
        .await
    }

    pub(super) fn patch_scale(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        old: &Arc<Object>,
        kind: PatchKind,
        body: &Body,
        write: &Write,
    ) -> Result<Answer, Error> {
        let before = show(target, old)?;
        let typed = types::builtin().kind("autoscaling/v1", "Scale");
        let typed = typed.unwrap_or(target.served.typed());
        let scale = patched(&before, kind, &body.value, typed)?;
        Ok(Answer::of(self.set_scale(tx, target, old, &scale, write)?))
    }

    /// An apply owns the one field of the object itself.
    pub(super) fn apply_scale(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        body: &Body,
        write: &Write,
        force: bool,
    ) -> Result<Answer, Error> {
        let (old, paths) = (tx.get(&target.key()), paths(target));
        let (Some(old), Some(paths)) = (old, paths) else {
            return Err(Error::NotFound(target.subject()));
        };
        let served = &target.served;
        let mut config = json!({
            "apiVersion": served.api_version,
            "kind": served.resource.kind,
            "metadata": {"name": target.name},
        });
        if let Some(replicas) = body.value.pointer("/spec/replicas") {
            put(&mut config, &paths.wanted, replicas.clone());
        }
        target.name_config(&mut config)?;
        let live = Some(old.clone());
        let applied = self.applied(tx, target, &live, &config, write, force);
        let (mut object, _) =
            applied.map_err(|error| as_scale(target, refused(target, &body.value, error)))?;
        served.default(&mut object);
        self.update_in(tx, target, &old, object, write, Owners::Applied, From::Patch)?;
        Ok(Answer::of(show(target, &tx.get(&target.key()).unwrap_or(old))?))
    }

    fn set_scale(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        old: &Arc<Object>,
        scale: &Value,
        write: &Write,
    ) -> Result<Value, Error> {
        let Some(paths) = paths(target) else { return Err(Error::NotFound(target.subject())) };
        let replicas = check(target, scale)?;
        let mut object = target.served.show(old);
        if let Some(metadata) = super::body::metadata_mut(&mut object) {
            let version = meta(scale, "resourceVersion");
            metadata.insert("resourceVersion".into(), version.into());
            let uid = meta(scale, "uid");
            if !uid.is_empty() {
                metadata.insert("uid".into(), uid.into());
            }
        }
        put(&mut object, &paths.wanted, replicas.into());
        self.update_in(tx, target, old, object, write, Owners::Compare, From::Put)?;
        show(target, &tx.get(&target.key()).unwrap_or_else(|| old.clone()))
    }
}

/// Who else owns the number owns it in terms of a scale.
fn as_scale(target: &Target, error: Error) -> Error {
    let Error::Owned { text, conflicts } = error else { return error };
    let own = format!(" using {}", target.served.api_version);
    let shown = |text: String| text.replace(&own, " using autoscaling/v1");
    let conflicts = conflicts.into_iter().map(|(message, field)| (shown(message), field));
    Error::Owned { conflicts: conflicts.collect(), text: shown(text) }
}

/// The number that is asked for.
fn check(target: &Target, scale: &Value) -> Result<i64, Error> {
    let cannot = |why: &str| {
        Error::BadRequest(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"))
    };
    if !scale.is_object() || scale.get("kind").is_some_and(|kind| kind != "Scale") {
        return Err(cannot("the body is of another kind"));
    }
    let name = meta(scale, "name");
    if !name.is_empty() && name != target.name {
        return Err(Error::BadRequest(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    let replicas = match scale.pointer("/spec/replicas") {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().ok_or_else(|| cannot("spec.replicas is not a number"))?,
    };
    if !(0..=i64::from(i32::MAX)).contains(&replicas) {
        let message = format!("Invalid value: {replicas}: must be greater than or equal to 0");
        return Err(target.invalid(CauseReason::Invalid, "spec.replicas", message));
    }
    Ok(replicas)
}

fn show(target: &Target, object: &Object) -> Result<Value, Error> {
    let Some(paths) = paths(target) else { return Err(Error::NotFound(target.subject())) };
    let value = target.served.show(object);
    let metadata = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata = metadata.into_iter().filter_map(|field| {
        Some((field.to_owned(), value.pointer("/metadata")?.get(field)?.clone()))
    });
    let metadata: Map<String, Value> = metadata.collect();
    let mut spec = Map::new();
    let wanted = number(&value, &paths.wanted);
    if wanted != 0 {
        spec.insert("replicas".into(), wanted.into());
    }
    let mut status = Map::new();
    status.insert("replicas".into(), number(&value, &paths.seen).into());
    let selector = match &paths.selector {
        None => value.pointer("/spec/selector").map(selector_text),
        Some(path) => {
            let path: Vec<_> = path.iter().map(String::as_str).collect();
            at(&value, &path).and_then(Value::as_str).map(str::to_owned)
        }
    };
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        status.insert("selector".into(), selector.into());
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }))
}

/// A label selector as clients would type it.
fn selector_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let rules = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let rules = rules.filter_map(|rule| {
        let key = rule.get("key")?.as_str()?;
        let values = rule.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<_> = values.filter_map(Value::as_str).collect();
        Some(match rule.get("operator")?.as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        })
    });
    labels.chain(rules).collect::<Vec<_>>().join(",")
}

/// Sets a value, making the maps on the way.
fn put(object: &mut Value, path: &[String], value: Value) {
    let mut here = object;
    for name in path {
        if !here.is_object() {
            *here = Map::new().into();
        }
        let Some(map) = here.as_object_mut() else { return };
        here = map.entry(name.clone()).or_insert(Value::Null);
    }
    *here = value;
}
