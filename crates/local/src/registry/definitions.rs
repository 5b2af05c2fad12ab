//! Custom resource definitions as objects: their names are judged and told in their status.

use serde_json::Value;

use super::catalog::DEFINITIONS;
use crate::{crd, store::Transaction};

/// Sets the status by the names that other definitions have taken.
pub(super) fn accept(tx: &Transaction<'_>, definition: &mut Value) {
    let name = super::body::meta(definition, "name").to_owned();
    let others = tx.list(DEFINITIONS, "");
    let others: Vec<_> = others
        .iter()
        .filter(|(_, other)| other.meta("name") != name)
        .map(|(_, other)| other.value())
        .collect();
    let time = super::seconds(tx.now());
    definition["status"] = crd::accept_names(definition, &others, &time);
}
