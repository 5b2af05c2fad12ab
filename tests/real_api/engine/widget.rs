//! Kinds of the tests' own, whose objects say themselves what is to be planned and reported.

use std::{
    collections::HashMap,
    marker::PhantomData,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount},
        rbac::v1::{ClusterRole, Role, RoleBinding},
    },
};
use kube::{CustomResource, Resource, ResourceExt};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use windlass_engine::{
    conditions::ConditionSet,
    domain::{Access, Cleanup, Domain, EventSource, Health, Identity, Need, Overall, Watch, Whose},
    error::{Category, Error},
    fetch::{self, Fetched, Reader},
    health::{ComponentHealth, Dependency},
    kind::{Kind, ObjectKey, TypedScope},
    labels::LabelRules,
    plan::{Desired, Look, Ownership, Plan, Release, Removal, Strategy, Turn, When},
    state::{FailureWords, Manual, State},
    status,
};
use windlass_tests::until;

pub(super) const CONTROLLER: &str = "widget-controller";
pub(super) const NAME_LABEL: &str = "test.windlass.dev/widget.name";
pub(super) const NAMESPACE_LABEL: &str = "test.windlass.dev/widget.namespace";
pub(super) const FINALIZER: &str = "test.windlass.dev/clean-up";
pub(super) const PREDECESSOR: &str = "predecessor";
pub(super) const HOLD: &str = "test.windlass.dev/hold";

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Widget", namespaced)]
#[kube(schema = "disabled")]
pub(super) struct WidgetSpec {
    #[serde(flatten)]
    orders: Orders,
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "ClusterWidget")]
#[kube(schema = "disabled")]
pub(super) struct ClusterWidgetSpec {
    #[serde(flatten)]
    orders: Orders,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Orders {
    owned: Vec<Value>,
    shared: Vec<Value>,
    delete_before: Vec<Value>,
    delete_after: Vec<Value>,
    release: Vec<Value>,
    requeue_millis: Option<u64>,
    components: Vec<Component>,
    /// Upstream: Secrets that have to exist.
    secrets: Vec<String>,
    manual: Option<Component>,
    /// To be deleted, and gone, before the object itself may go.
    clean_up: Vec<Value>,
    /// There is nothing to clean up, so no finalizer is needed.
    no_finalizer: bool,
    /// Patterns of labels that the children inherit.
    inherit: Vec<String>,
    /// The second look waits until this ConfigMap is as here: somebody edits it in the midst of a pass.
    edited: Option<Value>,
    panics: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Component {
    name: String,
    state: Option<State>,
    /// Printed name of an error category.
    error: Option<String>,
    reason: String,
    message: String,
}

/// Both kinds are the same but for their scope.
pub(super) trait Ordered:
    Resource<DynamicType = (), Scope: TypedScope> + DeserializeOwned + Clone + Send + Sync + 'static
{
    fn orders(&self) -> &Orders;
}

impl Ordered for Widget {
    fn orders(&self) -> &Orders {
        &self.spec.orders
    }
}

impl Ordered for ClusterWidget {
    fn orders(&self) -> &Orders {
        &self.spec.orders
    }
}

/// How often each object has been looked at, and how often judged at the end of a pass.
#[derive(Clone, Default)]
pub(super) struct Passes(Arc<Mutex<HashMap<String, (usize, usize)>>>);

impl Passes {
    pub(super) fn looks(&self, name: &str) -> usize {
        self.0.lock().unwrap().get(name).map_or(0, |counts| counts.0)
    }

    pub(super) fn verdicts(&self, name: &str) -> usize {
        self.0.lock().unwrap().get(name).map_or(0, |counts| counts.1)
    }
}

pub(super) struct WidgetDomain<K> {
    pub(super) finalizer: Option<&'static str>,
    pub(super) passes: Passes,
    pub(super) kind: PhantomData<fn() -> K>,
}

#[derive(Default)]
pub(super) struct Seen {
    missing: Vec<String>,
    remaining: Vec<Value>,
    inherit: Vec<String>,
}

impl<K: Ordered> Domain for WidgetDomain<K> {
    type Object = K;
    type Fetched = Seen;
    type Observed = Seen;

    fn identity(&self) -> Identity {
        Identity {
            controller: CONTROLLER,
            managed_by: CONTROLLER,
            events: EventSource { controller: CONTROLLER, action: None, corrections: true },
            name_label: NAME_LABEL,
            namespace_label: Some(NAMESPACE_LABEL),
            components: &[],
            finalizer: self.finalizer,
            hold: Some(HOLD),
            predecessors: &[PREDECESSOR],
            state_word: true,
        }
    }

    fn watches(&self) -> Vec<Watch> {
        let watch =
            |kind| Watch { kind, need: Need::Required, access: Access::Write, whose: Whose::Ours };
        vec![
            watch(Kind::of::<ServiceAccount>()),
            watch(Kind::of::<Role>()),
            watch(Kind::of::<RoleBinding>()),
            watch(Kind::of::<ConfigMap>()),
            watch(Kind::of::<PersistentVolumeClaim>()),
            watch(Kind::of::<Service>()),
            watch(Kind::of::<Deployment>()),
            watch(Kind::of::<Job>()),
        ]
    }

    async fn fetch(&self, reader: &dyn Reader, object: &K) -> Seen {
        let namespace = object.namespace();
        let mut seen = Seen::default();
        for name in &object.orders().secrets {
            let found = fetch::exists::<Secret>(reader, namespace.as_deref(), name).await;
            if matches!(found, Fetched::Missing) {
                seen.missing.push(name.clone());
            }
        }
        for body in &object.orders().clean_up {
            let (kind, key) = address(body, namespace.as_deref());
            if reader.get(&kind, &key).await.unwrap().is_some() {
                seen.remaining.push(body.clone());
            }
        }
        if let Some(edited) = &object.orders().edited
            && self.passes.looks(&object.name_any()) == 1
        {
            let (kind, key) = address(edited, namespace.as_deref());
            until("the edit", || async {
                let live = reader.get(&kind, &key).await.unwrap().map(|live| live.value());
                live.filter(|live| live["data"] == edited["data"]).ok_or("not yet".to_owned())
            })
            .await;
        }
        seen
    }

    fn compose(&self, object: &K, fetched: Seen, _now: Timestamp) -> Seen {
        self.passes.0.lock().unwrap().entry(object.name_any()).or_default().0 += 1;
        assert!(!object.orders().panics, "the object wants a panic");
        Seen { inherit: object.orders().inherit.clone(), ..fetched }
    }

    fn plan(&self, object: &K, _observed: &Seen) -> Plan {
        let orders = object.orders();
        let namespace = object.namespace();
        let mut plan = Plan::default();
        for (bodies, ownership) in
            [(&orders.owned, Ownership::Owned), (&orders.shared, Ownership::Shared)]
        {
            let desired = |body: &Value| desired(body, namespace.as_deref(), ownership);
            plan.apply.extend(bodies.iter().map(desired));
        }
        for (bodies, when) in
            [(&orders.delete_before, When::BeforeApply), (&orders.delete_after, When::AfterApply)]
        {
            let removal = |body: &Value| removal(body, namespace.as_deref(), when);
            plan.delete.extend(bodies.iter().map(removal));
        }
        let release = |body: &Value| {
            let (kind, key) = address(body, namespace.as_deref());
            Release { kind, key }
        };
        plan.release.extend(orders.release.iter().map(release));
        if let Some(millis) = orders.requeue_millis {
            plan.requeue_after(Duration::from_millis(millis));
        }
        plan
    }

    fn health(&self, object: &K, observed: &Seen) -> Health {
        let missing = observed.missing.iter().map(|name| {
            let error = Error::missing_upstream("SecretNotFound", format!("no Secret {name}"));
            ComponentHealth::new("Secrets").failed_with(vec![error]).depends(Dependency::Upstream)
        });
        let orders = object.orders();
        Health {
            components: orders.components.iter().map(Component::health).chain(missing).collect(),
            manual: orders.manual.as_ref().map(Component::manual),
            ..Health::default()
        }
    }

    fn status(&self, object: &K, _observed: &Seen, overall: &Overall) -> Map<String, Value> {
        self.passes.0.lock().unwrap().entry(object.name_any()).or_default().1 += 1;
        Map::from_iter([("message".to_owned(), json!(overall.message))])
    }

    fn needs_finalizer(&self, object: &K) -> bool {
        !object.orders().no_finalizer
    }

    fn cleanup(&self, object: &K, observed: &Seen) -> Cleanup {
        if observed.remaining.is_empty() {
            return Cleanup::Done;
        }
        let namespace = object.namespace();
        let removal = |body| removal(body, namespace.as_deref(), When::AfterApply);
        let delete = observed.remaining.iter().map(removal).collect();
        Cleanup::Pending(Plan { delete, ..Plan::default() })
    }

    fn label_rules(&self, observed: &Seen) -> LabelRules {
        let patterns = observed.inherit.clone();
        LabelRules { enabled: !patterns.is_empty(), patterns, ..LabelRules::default() }
    }
}

impl Component {
    fn health(&self) -> ComponentHealth {
        let health = ComponentHealth::new(self.name.as_str());
        if let Some(category) = &self.error {
            let error = Error::new(category_of(category), &self.reason, &self.message);
            return health.failed_with(vec![error]);
        }
        health.with_state(self.state.unwrap_or(State::Ready), &self.reason, &self.message)
    }

    fn manual(&self) -> Manual {
        let mut conditions = ConditionSet::default();
        let say = match self.state {
            None | Some(State::Ready) => status::ready,
            Some(State::Degraded) => status::degraded,
            Some(State::Failed) => status::failed,
            Some(State::NotAvailable) => status::not_available,
            _ => status::progressing,
        };
        let state = say(&mut conditions, &self.reason, &self.message);
        Manual { state, conditions, failures: FailureWords::default() }
    }
}

fn category_of(name: &str) -> Category {
    let all = [
        Category::Infrastructure,
        Category::Auth,
        Category::MissingDownstream,
        Category::MissingUpstream,
        Category::InvalidSpec,
        Category::ResourceExhaustion,
        Category::Unknown,
    ];
    all.into_iter().find(|category| category.as_str() == name).unwrap()
}

fn desired(body: &Value, namespace: Option<&str>, ownership: Ownership) -> Desired {
    let (kind, key) = address(body, namespace);
    let strategy = Strategy::of(&kind);
    Desired {
        kind,
        key,
        body: body.clone(),
        ownership,
        strategy,
        turn: Turn::OfItsKind,
        note: None,
    }
}

fn removal(body: &Value, namespace: Option<&str>, when: When) -> Removal {
    let (kind, key) = address(body, namespace);
    Removal { kind, key, when, how: Look::First }
}

/// In the parent's namespace unless the object says otherwise.
fn address(body: &Value, namespace: Option<&str>) -> (Kind, ObjectKey) {
    let kind = kind_of(body["kind"].as_str().unwrap());
    let metadata = &body["metadata"];
    let namespace = metadata["namespace"].as_str().or(namespace);
    let namespace = namespace.filter(|_| kind.scope == NamespaceResourceScope::SCOPE);
    (kind, ObjectKey::new(namespace, metadata["name"].as_str().unwrap()))
}

fn kind_of(name: &str) -> Kind {
    match name {
        "ServiceAccount" => Kind::of::<ServiceAccount>(),
        "Role" => Kind::of::<Role>(),
        "RoleBinding" => Kind::of::<RoleBinding>(),
        "ConfigMap" => Kind::of::<ConfigMap>(),
        "PersistentVolumeClaim" => Kind::of::<PersistentVolumeClaim>(),
        "Service" => Kind::of::<Service>(),
        "Deployment" => Kind::of::<Deployment>(),
        "Job" => Kind::of::<Job>(),
        "ClusterRole" => Kind::of::<ClusterRole>(),
        other => panic!("no kind {other}"),
    }
}

/// What a cluster needs to know of both kinds: nothing is refused, and conditions are told apart.
pub(super) fn definitions() -> [Value; 2] {
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let text = json!({ "type": "string" });
    let condition = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "required": ["type"], "properties": { "type": text },
    });
    let conditions = json!({
        "type": "array", "items": condition,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    });
    let mut status = free.clone();
    status["properties"] = json!({ "conditions": conditions });
    let schema = json!({ "type": "object", "properties": { "spec": free, "status": status } });
    [("Widget", "Namespaced"), ("ClusterWidget", "Cluster")].map(|(kind, scope)| {
        let plural = format!("{}s", kind.to_lowercase());
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.test.windlass.dev") },
            "spec": {
                "group": "test.windlass.dev", "scope": scope,
                "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": { "status": {} }, "schema": { "openAPIV3Schema": schema },
                }],
            },
        })
    })
}
