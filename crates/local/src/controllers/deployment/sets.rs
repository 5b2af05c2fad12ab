//! The ReplicaSets of a Deployment, and what is counted in them.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetStatus},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::ResourceExt;
use serde_json::Value;

use super::{HASH, MAX_REPLICAS, REVISION};

/// One of them, with the size that is planned for it.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) object: Arc<ReplicaSet>,
    pub(super) replicas: i64,
}

/// The one with the template of today, and all others from old to young.
#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    pub(super) new: Option<Set>,
    pub(super) old: Vec<Set>,
}

impl Set {
    pub(super) fn new(object: Arc<ReplicaSet>) -> Self {
        let replicas = object.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        Self { object, replicas: replicas.into() }
    }

    pub(super) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn is_active(&self) -> bool {
        self.replicas > 0
    }

    fn status(&self, count: impl FnOnce(&ReplicaSetStatus) -> i32) -> i64 {
        self.object.status.as_ref().map_or(0, count).into()
    }

    pub(super) fn actual(&self) -> i64 {
        self.status(|status| status.replicas)
    }

    pub(super) fn available(&self) -> i64 {
        self.status(|status| status.available_replicas.unwrap_or_default())
    }

    pub(super) fn ready(&self) -> i64 {
        self.status(|status| status.ready_replicas.unwrap_or_default())
    }

    pub(super) fn annotated(&self, name: &str) -> Option<i64> {
        self.object.annotations().get(name)?.parse::<i32>().ok().map(i64::from)
    }

    pub(super) fn revision(&self) -> i64 {
        let revision = self.object.annotations().get(REVISION);
        revision.and_then(|revision| revision.parse().ok()).unwrap_or_default()
    }

    /// What was the most for all of them together when this one was scaled.
    pub(super) fn max_before(&self) -> Option<i64> {
        self.annotated(MAX_REPLICAS).filter(|most| *most > 0)
    }
}

impl Sets {
    pub(super) fn of(deployment: &Deployment, mut all: Vec<Arc<ReplicaSet>>) -> Self {
        all.sort_by_key(|set| (set.metadata.creation_timestamp.clone(), set.name_any()));
        let wanted = deployment.spec.as_ref().map(|spec| &spec.template);
        let is_new = |set: &Arc<ReplicaSet>| {
            let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
            template.zip(wanted).is_some_and(|(template, wanted)| same_template(template, wanted))
        };
        let new = all.iter().position(is_new).map(|index| Set::new(all.remove(index)));
        Self { new, old: all.into_iter().map(Set::new).collect() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Set> + Clone {
        self.old.iter().chain(&self.new)
    }

    pub(super) fn sum(&self, count: impl Fn(&Set) -> i64) -> i64 {
        self.all().map(count).sum()
    }

    /// `None` if one of them does not say.
    pub(super) fn terminating(&self) -> Option<i64> {
        let each = self.all().filter_map(|set| {
            let status = set.object.status.as_ref()?;
            let is_seen = status.observed_generation.unwrap_or_default() != 0;
            match status.terminating_replicas {
                None if !is_seen => None,
                said => Some(said.map(i64::from)),
            }
        });
        each.sum()
    }
}

/// The label of the hash is not part of what a user asks for.
pub(super) fn same_template(one: &PodTemplateSpec, other: &PodTemplateSpec) -> bool {
    one == other || comparable(one) == comparable(other)
}

pub(super) fn comparable(template: &PodTemplateSpec) -> Value {
    let mut value = serde_json::to_value(template).unwrap_or_default();
    if let Some(labels) = value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH);
    }
    prune(&mut value);
    value
}

/// Nothing and an empty list mean the same.
fn prune(value: &mut Value) {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            fields.retain(|_, value| !is_nothing(value));
        }
        Value::Array(all) => all.iter_mut().for_each(prune),
        _ => {}
    }
}

pub(super) fn desired(spec: &DeploymentSpec) -> i64 {
    spec.replicas.unwrap_or(1).into()
}

pub(super) fn is_rolling(spec: &DeploymentSpec) -> bool {
    let kind = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    kind != Some("Recreate")
}

/// How many pods there may be beyond the wanted ones, and how many of those may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slack {
    pub(super) surge: i64,
    pub(super) unavailable: i64,
}

pub(super) fn slack(spec: &DeploymentSpec) -> Slack {
    if !is_rolling(spec) {
        return Slack { surge: 0, unavailable: 0 };
    }
    let desired = desired(spec);
    let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref());
    let unavailable = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    let surge = portion(surge, desired, Round::Up);
    let unavailable = match portion(unavailable, desired, Round::Down) {
        // Nothing could ever move.
        0 if surge == 0 => 1,
        unavailable => unavailable,
    };
    Slack { surge, unavailable: unavailable.min(desired) }
}

#[derive(Clone, Copy)]
enum Round {
    Up,
    Down,
}

/// A number, or so many percent of the whole.
fn portion(value: Option<&IntOrString>, whole: i64, round: Round) -> i64 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => i64::from(*number),
        Some(IntOrString::String(text)) => {
            let percent = text.strip_suffix('%').and_then(|text| text.parse::<i32>().ok());
            let product = i64::from(percent.unwrap_or_default()).saturating_mul(whole);
            match round {
                Round::Up => product.saturating_add(99).div_euclid(100),
                Round::Down => product.div_euclid(100),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn surge_rounds_up_and_unavailable_down() {
        for (replicas, surge, unavailable, want) in [
            (4, json!("25%"), json!("25%"), (1, 1)),
            (10, json!("25%"), json!("25%"), (3, 2)),
            (1, json!("25%"), json!("25%"), (1, 0)),
            (3, json!(0), json!("1%"), (0, 1)),
            (3, json!(2), json!(0), (2, 0)),
            (2, json!(0), json!(5), (0, 2)),
            (0, json!("25%"), json!("25%"), (0, 0)),
            (3, json!("x"), json!("y"), (0, 1)),
        ] {
            let spec = json!({"replicas": replicas, "selector": {}, "template": {}, "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            }});
            let slack = slack(&from_value(spec.clone()).unwrap());
            assert_eq!((slack.surge, slack.unavailable), want, "{spec}");
        }
    }

    #[test]
    fn templates_are_the_same_but_for_the_hash_and_for_nothing() {
        let template = |value: Value| from_value::<PodTemplateSpec>(value).unwrap();
        let plain = template(json!({"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}));
        let hashed = template(json!({"metadata": {"labels": {"a": "b", HASH: "x"}},
            "spec": {"containers": [{"name": "c", "image": "i", "env": []}]}}));
        let other = template(json!({"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "j"}]}}));
        assert!(same_template(&plain, &hashed));
        assert!(!same_template(&plain, &other));
    }
}
