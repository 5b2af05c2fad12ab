//! Whether a pod may run on a node.

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Taint, Toleration,
};

use super::resources::{Amounts, shortages};

/// In the words of the scheduler.
const UNSCHEDULABLE: &str = "node(s) were unschedulable";
const AFFINITY: &str = "node(s) didn't match Pod's node affinity/selector";
const TAINT: &str = "node(s) had untolerated taint(s)";
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// Nothing that ends on the node would help.
    Never(&'static str),
    /// There may be room when others have gone.
    Full(Vec<String>),
}

impl Misfit {
    pub(super) fn reasons(&self) -> Vec<String> {
        match self {
            Misfit::Never(reason) => vec![(*reason).to_owned()],
            Misfit::Full(reasons) => reasons.clone(),
        }
    }
}

/// `free` is what others have left of the node, `wanted` what the pod asks for.
pub(super) fn fit(pod: &Pod, node: &Node, free: &Amounts, wanted: &Amounts) -> Result<(), Misfit> {
    let Some(spec) = &pod.spec else { return Ok(()) };
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let node_spec = node.spec.as_ref();
    if node_spec.and_then(|node| node.unschedulable) == Some(true) {
        let taint = Taint {
            key: UNSCHEDULABLE_TAINT.into(),
            effect: "NoSchedule".into(),
            ..Default::default()
        };
        if !is_tolerated(&taint, tolerations) {
            return Err(Misfit::Never(UNSCHEDULABLE));
        }
    }
    let taints = node_spec.and_then(|node| node.taints.as_deref()).unwrap_or_default();
    if taints.iter().any(|taint| repels(taint) && !is_tolerated(taint, tolerations)) {
        return Err(Misfit::Never(TAINT));
    }
    if !is_selected(spec, node) {
        return Err(Misfit::Never(AFFINITY));
    }
    match shortages(free, wanted) {
        short if short.is_empty() => Ok(()),
        short => Err(Misfit::Full(short)),
    }
}

fn repels(taint: &Taint) -> bool {
    matches!(&*taint.effect, "NoSchedule" | "NoExecute")
}

fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| {
        let effect = toleration.effect.as_deref().unwrap_or_default();
        let key = toleration.key.as_deref().unwrap_or_default();
        let value = toleration.value.as_deref().unwrap_or_default();
        let same = match toleration.operator.as_deref().unwrap_or("Equal") {
            "Exists" => true,
            "Equal" => value == taint.value.as_deref().unwrap_or_default(),
            _ => false,
        };
        (effect.is_empty() || effect == taint.effect)
            && (key.is_empty() || key == taint.key)
            && same
    })
}

fn is_selected(spec: &PodSpec, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let mut simple = spec.node_selector.iter().flatten();
    let required =
        spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref()).and_then(
            |affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref(),
        );
    simple.all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
        && required.is_none_or(|required| any_term(required, node))
}

fn any_term(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| is_met(term, node))
}

/// A term that says nothing is met by no node.
fn is_met(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label = |requirement: &NodeSelectorRequirement| {
        let labels = node.metadata.labels.as_ref();
        holds(requirement, labels.and_then(|labels| labels.get(&requirement.key)))
    };
    let field = |requirement: &NodeSelectorRequirement| {
        let name = node.metadata.name.as_ref().filter(|_| requirement.key == "metadata.name");
        holds(requirement, name)
    };
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(label)
        && fields.iter().all(field)
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let compared = || -> Option<std::cmp::Ordering> {
        let bound: i64 = values.first()?.parse().ok()?;
        let value: i64 = value?.parse().ok()?;
        Some(value.cmp(&bound))
    };
    match &*requirement.operator {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}
