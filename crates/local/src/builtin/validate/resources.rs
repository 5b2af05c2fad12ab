//! Requests and limits.

use serde_json::Value;

use super::names;
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, entries},
    quantity::Quantity,
};

pub(super) fn requirements(container: &Value, path: &Path, causes: &mut Causes) {
    for list in ["limits", "requests"] {
        for (name, amount) in entries(container, &["resources", list]) {
            let item = path.child(list).key(name);
            self::name(name, &item, causes);
            let Some(amount) = amount.as_str().and_then(|text| Quantity::parse(text).ok()) else {
                continue;
            };
            self::amount(name, amount, &item, causes);
            if list == "requests" {
                against_limit(container, name, amount, path, causes);
            }
        }
    }
}

fn name(name: &str, path: &Path, causes: &mut Causes) {
    let problems = names::qualified(name);
    for problem in &problems {
        causes.invalid(path, name, problem);
    }
    if problems.is_empty() && !name.contains('/') && !is_standard(name) {
        causes.invalid(path, name, "must be a standard resource type or fully qualified");
        causes.invalid(path, name, "must be a standard resource for containers");
    }
}

fn is_standard(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

fn amount(name: &str, amount: Quantity, path: &Path, causes: &mut Causes) {
    if amount.nano() < 0 {
        let detail = "must be greater than or equal to 0";
        causes.invalid(path, amount.to_string(), detail);
    }
    if !is_divisible(name) && amount.nano() % 1_000_000_000 != 0 {
        causes.invalid(path, amount.to_string(), "must be an integer");
    }
}

/// Devices and the like come in whole numbers, and one cannot promise more of them than there are.
fn is_divisible(name: &str) -> bool {
    !name.contains('/') || name.starts_with("kubernetes.io/")
}

fn against_limit(
    container: &Value,
    name: &str,
    amount: Quantity,
    path: &Path,
    causes: &mut Causes,
) {
    let overcommit = is_divisible(name) && !name.starts_with("hugepages-");
    let limit = at(container, &["resources", "limits", name]).and_then(Value::as_str);
    let Some(limit) = limit.and_then(|text| Quantity::parse(text).ok()) else {
        if !overcommit {
            let detail = "Limit must be set for non overcommitable resources";
            causes.required(&path.child("limits"), detail);
        }
        return;
    };
    if !overcommit && amount.nano() != limit.nano() {
        let detail = format!("must be equal to {name} limit of {limit}");
        causes.invalid(&path.child("requests"), amount.to_string(), &detail);
    } else if amount > limit {
        let detail = format!("must be less than or equal to {name} limit of {limit}");
        causes.invalid(&path.child("requests"), amount.to_string(), &detail);
    }
}
