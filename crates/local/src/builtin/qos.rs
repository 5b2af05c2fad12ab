//! How well a pod says what it needs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    object::{entries, items},
    quantity::Quantity,
};

/// `Guaranteed` if every container's limits for processor and memory are also its requests,
/// `BestEffort` if no container says anything of the two.
pub(crate) fn class(pod: &Value) -> &'static str {
    let (mut any, mut all) = (false, true);
    for list in ["containers", "initContainers"] {
        for container in items(pod, &["spec", list]) {
            let limits = amounts(container, "limits");
            let mut requests = limits.clone();
            requests.extend(amounts(container, "requests"));
            any |= !requests.is_empty();
            all &= limits.len() == 2 && limits == requests;
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn amounts<'a>(container: &'a Value, list: &str) -> BTreeMap<&'a str, i128> {
    let amounts = entries(container, &["resources", list]);
    let amounts = amounts.filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
    let amounts = amounts.filter_map(|(name, amount)| {
        Some((name.as_str(), Quantity::parse(amount.as_str()?).ok()?.nano()))
    });
    amounts.filter(|(_, nano)| *nano > 0).collect()
}
