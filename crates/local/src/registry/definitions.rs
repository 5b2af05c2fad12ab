//! Custom resource definitions as objects: their names are judged and told in their status.

use serde_json::Value;

use super::{Served, catalog::DEFINITIONS};
use crate::{apply, crd, store::Transaction};

/// Who owns the status.
const MANAGER: &str = "kube-apiserver";

/// Sets the status by the names that other definitions have taken.
pub(super) fn accept(tx: &Transaction<'_>, served: &Served, definition: &mut Value) {
    let name = super::body::meta(definition, "name").to_owned();
    let others = tx.list(DEFINITIONS, "");
    let others: Vec<_> = others
        .iter()
        .filter(|(_, other)| other.meta("name") != name)
        .filter_map(|(_, other)| other.part().ok())
        .collect();
    let time = super::seconds(tx.now());
    let status = crd::accept_names(definition, &others, &time);
    let mut before = definition.take();
    if before.get("status").is_none() {
        before["status"] = served.typed().zero()["status"].take();
    }
    // Which versions are stored is not a matter of names.
    before["status"]["storedVersions"] = status["storedVersions"].clone();
    *definition = with_status(served, &before, status, &time);
}

/// Says that instances are being deleted.
pub(super) fn tell_deletion(served: &Served, definition: &Value, time: &str) -> Value {
    with_status(served, definition, crd::terminating(definition, true, time), time)
}

fn with_status(served: &Served, before: &Value, status: Value, time: &str) -> Value {
    let mut after = before.clone();
    after["status"] = status;
    let update = apply::Update {
        typed: served.typed(),
        manager: MANAGER,
        subresource: Some("status"),
        api_version: &served.api_version,
        time,
        reset: apply::Reset::AllButStatus,
    };
    apply::update(update, Some(before), after)
}
