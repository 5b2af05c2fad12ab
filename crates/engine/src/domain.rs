//! What a kind must say about itself to be reconciled: the contract between engine and domains.

use std::future::Future;

use jiff::Timestamp;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    conditions::{ConditionSet, ConditionUpdate},
    events::EventNote,
    fetch::Reader,
    health::ComponentHealth,
    kind::{Kind, TypedScope},
    labels::LabelRules,
    plan::Plan,
    state::State,
};

/// The steps of one kind. Only `fetch` waits; everything else is a function of data.
pub trait Domain: Send + Sync + 'static {
    type Object: Resource<DynamicType = (), Scope: TypedScope>
        + DeserializeOwned
        + Clone
        + Send
        + Sync
        + 'static;
    /// Answers of the API as they came, failures included as values.
    type Fetched: Send;
    /// What the answers mean for this object.
    type Observed: Send + Sync;

    fn identity(&self) -> Identity;

    /// The kinds of the children and of what else wakes this object.
    fn watches(&self) -> Vec<Watch>;

    /// What `fetch` reads beside the watched kinds.
    fn rights(&self) -> Vec<Right> {
        Vec::new()
    }

    fn fetch(
        &self,
        reader: &dyn Reader,
        object: &Self::Object,
    ) -> impl Future<Output = Self::Fetched> + Send;

    fn compose(
        &self,
        object: &Self::Object,
        fetched: Self::Fetched,
        now: Timestamp,
    ) -> Self::Observed;

    fn plan(&self, object: &Self::Object, observed: &Self::Observed) -> Plan;

    fn health(&self, object: &Self::Object, observed: &Self::Observed) -> Health;

    /// The domain's own status fields; `status`, `conditions` and `observedGeneration` are the engine's.
    fn status(
        &self,
        object: &Self::Object,
        observed: &Self::Observed,
        overall: &Overall,
    ) -> Map<String, Value>;

    /// What remains to be done before a deleted object may go. Asked only if the identity has a finalizer.
    fn cleanup(&self, _object: &Self::Object, _observed: &Self::Observed) -> Cleanup {
        Cleanup::Done
    }

    /// Which labels of the parent its children inherit.
    fn label_rules(&self, _observed: &Self::Observed) -> LabelRules {
        LabelRules::default()
    }
}

/// The names under which a domain appears in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Field manager, event source and `managed-by` value.
    pub controller: &'static str,
    /// The label key that carries the parent's name on each child.
    pub name_label: &'static str,
    pub finalizer: Option<&'static str>,
}

/// A kind whose objects belong to parents of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub kind: Kind,
    pub need: Need,
    pub access: Access,
}

/// What the operator does with objects of a kind; the shipped rights follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Made, changed and deleted by us.
    Write,
    /// Only looked at.
    Read,
}

/// A right beyond those that follow from the watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    pub group: &'static str,
    pub resource: &'static str,
    pub verbs: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Required,
    /// The API may be missing, appear and go while the operator runs.
    Optional,
}

/// How the parts of an object are.
#[derive(Clone, Debug, Default)]
pub struct Health {
    pub components: Vec<ComponentHealth>,
    /// Conditions of the domain beside the components'.
    pub conditions: Vec<ConditionUpdate>,
    /// Said once for each generation of the object.
    pub notices: Vec<EventNote>,
    /// The domain judges by itself: only infrastructure errors of the components still count.
    pub manual: Option<ManualStatus>,
}

#[derive(Clone, Debug)]
pub struct ManualStatus {
    pub state: State,
    pub conditions: ConditionSet,
}

/// The engine's verdict, for the domain's own fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overall {
    pub state: State,
    pub ready: bool,
    pub message: String,
}

pub enum Cleanup {
    Done,
    /// Carry this out and ask again when something changes.
    Pending(Plan),
}
