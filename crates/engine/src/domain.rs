//! What a kind must say about itself to be reconciled: the contract between engine and domains.

use std::future::Future;

use jiff::Timestamp;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    conditions::ConditionUpdate,
    events::EventNote,
    fetch::Reader,
    health::ComponentHealth,
    kind::{Kind, Scope, TypedScope},
    labels::LabelRules,
    plan::Plan,
    state::{Manual, State},
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

    /// Addresses outside of the API's resources, with what is done there: for passing on the right,
    /// as nobody may grant what they do not hold.
    fn url_rights(&self) -> Vec<(&'static str, &'static [&'static str])> {
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

    /// Whether the object has something that must be cleaned up before it may go. Asked only if the
    /// identity has a finalizer, which is put on and taken off accordingly.
    fn needs_finalizer(&self, _object: &Self::Object) -> bool {
        true
    }

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
    /// Field manager.
    pub controller: &'static str,
    /// Value of the `managed-by` label; controllers that work on the same objects may share one.
    pub managed_by: &'static str,
    pub events: EventSource,
    /// The label key that carries the parent's name on each child; empty if only the owner tells.
    pub name_label: &'static str,
    /// The label key that carries the parent's namespace on children that lie in none.
    pub namespace_label: Option<&'static str>,
    /// Values of the component label that children have, where several controllers share a
    /// `managed-by` value; empty if that value says enough.
    pub components: &'static [&'static str],
    pub finalizer: Option<&'static str>,
    /// Finalizer that the domain puts on children which must not go before it has read them. The
    /// plan takes it off again; where no parent is left to plan for, the engine does.
    pub hold: Option<&'static str>,
    /// Field managers under which a predecessor wrote the children with plain updates.
    pub predecessors: &'static [&'static str],
    /// Whether the status of the kind has the field `status` for the overall state in one word.
    pub state_word: bool,
}

/// Who speaks in events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    pub controller: &'static str,
    /// What it says it was doing; by default the type of the condition it speaks of.
    pub action: Option<&'static str>,
    /// Whether it tells of fields of children that were set back; they are always in the log.
    pub corrections: bool,
}

/// A kind whose objects belong to parents of the domain, or are read by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub kind: Kind,
    pub need: Need,
    pub access: Access,
    pub whose: Whose,
}

/// Which objects of a kind are watched, and whom they wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those with the labels of the domain's children; they wake their parent.
    Ours,
    /// All of them; they wake also those whose last pass has asked for them.
    Anyones,
    /// All of them; they wake also those whose last pass has asked for them by their names. Who has
    /// looked through all of them is not woken, and has to find out about new ones by itself.
    Named,
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
    pub scope: Scope,
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
    /// What has happened since the stored status, said as soon as the new one is stored.
    pub news: Vec<EventNote>,
    /// The domain judges by itself: only infrastructure errors of the components still count.
    pub manual: Option<Manual>,
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
