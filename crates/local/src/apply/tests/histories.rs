//! What a real kube-apiserver 1.36.3 made of random writes by three managers, told step by step: the
//! functions here must make the same of them.

use serde_json::{Value, json};

use super::*;
use crate::{builtin, patch};

static HISTORIES: &str = include_str!("histories.json");

/// One write and what the server answered.
struct Step<'a> {
    typed: Typed<'a>,
    api_version: &'a str,
    operation: &'a str,
    manager: &'a str,
    force: bool,
    body: &'a Value,
    code: u64,
    result: &'a Value,
}

impl Step<'_> {
    fn run(&self, live: Option<&Value>) -> Result<(), String> {
        match self.operation {
            "apply" | "apply-status" => self.apply(live),
            "create" | "merge-status" => self.tracked(live, self.result),
            "update" => {
                let mut new = self.result.clone();
                take_managed(&mut new);
                // An empty list does not outlive the reading of a custom object.
                let is_custom = self.api_version == "ex.io/v1";
                let entries = self.body["metadata"].get("managedFields");
                if let Some(entries) = entries.filter(|given| !is_custom || **given != json!([])) {
                    new["metadata"]["managedFields"] = entries.clone();
                }
                self.tracked(live, &new)
            }
            "merge" => {
                let mut patched = live.cloned().unwrap_or_default();
                patch::merge(&mut patched, self.body);
                if let (Reset::Status, Some(live)) = (self.reset(), live) {
                    patched = Reset::Status.restore(live, patched);
                }
                contains(self.result, &patched, "")?;
                self.tracked(live, self.result)
            }
            _ => {
                let live = live.ok_or("nothing to patch")?;
                let patched = patch::strategic(live, self.body, self.typed);
                if self.code == 500 {
                    return same("error", &self.result["message"], &text_of(&patched));
                }
                contains(self.result, &patched.map_err(|error| error.to_string())?, "")?;
                self.tracked(Some(live), self.result)
            }
        }
    }

    fn apply(&self, live: Option<&Value>) -> Result<(), String> {
        let time = self.time("Apply");
        let request = Request {
            force: self.force,
            api_version: self.api_version,
            time: &time,
            subresource: self.subresource(),
            reset: self.reset(),
            ..request(self.typed, self.manager, live, self.body)
        };
        let merged = apply(request);
        if self.code == 409 {
            return same("error", &self.result["message"], &text_of(&merged));
        }
        let merged = merged.map_err(|error| error.to_string())?;
        contains(self.result, &merged, "")?;
        if self.api_version == "ex.io/v1" {
            // The custom kind has one default, and nothing else is filled in.
            let is_extra =
                |path: &str| contains(&merged[path], &without_defaults(&self.result[path]), path);
            ["spec", "status"].into_iter().try_for_each(is_extra)?;
        } else {
            self.read_and_defaulted(&merged)?;
        }
        same_entries(self.result, &merged)
    }

    /// Whether the object, read and defaulted as one of its kind, is what the server stored.
    fn read_and_defaulted(&self, object: &Value) -> Result<(), String> {
        let kind = &self.result["kind"];
        let resource = builtin::RESOURCES
            .iter()
            .find(|resource| {
                kind == resource.kind.as_ref() && self.api_version == resource.api_version()
            })
            .ok_or("not served")?;
        let read = builtin::decode(resource, object.clone(), self.typed);
        let mut object = read.map_err(|unfit| unfit.read)?.object;
        builtin::default(resource, &mut object);
        for (name, theirs) in self.result.as_object().into_iter().flatten() {
            let (mut ours, mut theirs) = (object[name].clone(), theirs.clone());
            if name == "spec" || name == "metadata" {
                // Set later, when the object is stored.
                let later = [
                    "clusterIP",
                    "clusterIPs",
                    "ipFamilies",
                    "ipFamilyPolicy",
                    "managedFields",
                    "resourceVersion",
                    "generation",
                    "uid",
                    "creationTimestamp",
                    "namespace",
                ];
                for value in [&mut ours, &mut theirs] {
                    if let Some(fields) = value.as_object_mut() {
                        fields.retain(|name, _| !later.contains(&name.as_str()));
                    }
                }
            }
            same(name, &theirs, &ours)?;
        }
        Ok(())
    }

    fn tracked(&self, live: Option<&Value>, new: &Value) -> Result<(), String> {
        let mut new = new.clone();
        if self.operation != "update" {
            take_managed(&mut new);
        }
        if let (None, Some(spec)) = (live, new.get_mut("spec").and_then(Value::as_object_mut)) {
            // Allocated after the owners are recorded.
            let allocated = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
            spec.retain(|name, _| !allocated.contains(&name.as_str()));
        }
        let time = self.time("Update");
        let writer = Update {
            api_version: self.api_version,
            time: &time,
            subresource: self.subresource(),
            reset: self.reset(),
            ..writer(self.typed, self.manager)
        };
        same_entries(self.result, &update(writer, live, new))
    }

    fn subresource(&self) -> Option<&'static str> {
        self.operation.ends_with("-status").then_some("status")
    }

    fn reset(&self) -> Reset {
        if self.subresource().is_some() { Reset::AllButStatus } else { Reset::Status }
    }

    /// The time that the server gave the entry of this step.
    fn time(&self, operation: &str) -> String {
        let entries = self.result["metadata"]["managedFields"].as_array();
        let entry = entries.into_iter().flatten().find(|entry| {
            entry["manager"] == self.manager
                && entry["operation"] == operation
                && entry.get("subresource").and_then(Value::as_str) == self.subresource()
        });
        // Without one, what else was recorded in this step is the youngest.
        let youngest =
            entries.into_iter().flatten().filter_map(|entry| entry["time"].as_str()).max();
        let time = entry.and_then(|entry| entry["time"].as_str()).or(youngest);
        time.unwrap_or_default().to_owned()
    }
}

fn without_defaults(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "protocol");
            fields.map(|(name, value)| (name.clone(), without_defaults(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_defaults).collect(),
        scalar => scalar.clone(),
    }
}

fn text_of<E: ToString>(result: &Result<Value, E>) -> Value {
    result.as_ref().map_or_else(|error| json!(error.to_string()), |_| json!("no error"))
}

fn same(what: &str, want: &Value, got: &Value) -> Result<(), String> {
    if want == got { Ok(()) } else { Err(format!("{what}: want {want}\n   got {got}")) }
}

fn same_entries(want: &Value, got: &Value) -> Result<(), String> {
    let [want, got] = [want, got].map(|object| object["metadata"]["managedFields"].clone());
    same("managedFields", &want, &got)
}

/// Whether all that ours holds is in theirs, lists in the same order. Theirs has defaults besides.
fn contains(theirs: &Value, ours: &Value, path: &str) -> Result<(), String> {
    match (theirs, ours) {
        (_, Value::Null) => Ok(()),
        (_, Value::Object(map)) if map.values().all(Value::is_null) => Ok(()),
        (_, Value::Array(list)) if list.is_empty() => Ok(()),
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, value) in ours {
                let path = format!("{path}.{name}");
                let changes = [
                    ".metadata.managedFields",
                    ".metadata.resourceVersion",
                    ".metadata.generation",
                    ".spec.sessionAffinityConfig",
                ];
                if !changes.contains(&path.as_str())
                    && !name.starts_with('$')
                    && value != ""
                    && *value != false
                    && *value != 0
                {
                    contains(theirs.get(name).unwrap_or(&Value::Null), value, &path)?;
                }
            }
            let is_exact = [
                ".data",
                ".binaryData",
                ".metadata.labels",
                ".metadata.annotations",
                ".spec.template.metadata.labels",
                ".spec.template.spec.nodeSelector",
            ];
            if is_exact.contains(&path)
                && theirs.len() != ours.iter().filter(|(_, v)| !v.is_null()).count()
            {
                return Err(format!("{path}: want {theirs:?}, got {ours:?}"));
            }
            Ok(())
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            let pairs = theirs.iter().zip(ours).enumerate();
            pairs.into_iter().try_for_each(|(index, (theirs, ours))| {
                contains(theirs, ours, &format!("{path}[{index}]"))
            })
        }
        _ => same(path, theirs, ours),
    }
}

#[test]
fn random_histories_end_as_on_a_real_server() {
    let histories: Value = serde_json::from_str(HISTORIES).unwrap();
    let mut failures = Vec::new();
    let mut count = 0;
    for (number, history) in histories.as_array().unwrap().iter().enumerate() {
        let [api_version, kind] = ["apiVersion", "kind"].map(|key| history[key].as_str().unwrap());
        let typed = crate::types::builtin().kind(api_version, kind).unwrap_or_else(widget);
        let mut live: Option<&Value> = None;
        for (index, step) in history["steps"].as_array().unwrap().iter().enumerate() {
            let step = Step {
                typed,
                api_version,
                operation: step["op"].as_str().unwrap(),
                manager: step["manager"].as_str().unwrap(),
                force: step["force"] == true,
                body: &step["body"],
                code: step["code"].as_u64().unwrap(),
                result: &step["result"],
            };
            let told = matches!(
                (step.operation, step.code),
                (_, 200 | 201) | ("apply" | "apply-status", 409) | ("strategic", 500)
            );
            // Which of the two Kubernetes does first is left to chance.
            let patches = |name: &str| step.body["metadata"].get(name).is_some();
            let is_chance = patches("finalizers") && patches("$deleteFromPrimitiveList/finalizers");
            if told && !is_chance {
                count += 1;
                if let Err(problem) = step.run(live) {
                    let live = live.cloned().unwrap_or_default();
                    failures.push(format!(
                        "history {number} step {index}: {kind} {} by {}: {problem}\n  body {}\n  live {live}",
                        step.operation, step.manager, step.body
                    ));
                }
            }
            if matches!(step.code, 200 | 201) {
                live = Some(step.result);
            }
        }
    }
    assert!(count > 0);
    let shown: Vec<_> = failures.iter().take(3).cloned().collect();
    assert!(failures.is_empty(), "{} of {count} steps:\n{}", failures.len(), shown.join("\n"));
}
