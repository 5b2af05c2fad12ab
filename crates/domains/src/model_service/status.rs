//! The status fields that are this kind's own.

use serde_json::{Map, Value};
use windlass_api::model::model_service::{ModelServiceStatus, Phase};
use windlass_engine::domain::Overall;

use super::compose::Observed;
use super::health::{self, roles};
use super::names::Role;

pub(super) fn status(observed: &Observed, overall: &Overall) -> Map<String, Value> {
    let roles = roles::roles(observed);
    let phase = match health::verdict(observed, &roles).phase {
        // The pods are as wanted, but something else could not be written.
        Phase::Ready if !overall.ready => Phase::Running,
        phase => phase,
    };
    let of = |wanted: Role| roles.iter().find(|role| role.role == wanted);
    // A zero has always been left out.
    let count = |number: Option<i32>| number.filter(|number| *number != 0);
    let status = ModelServiceStatus {
        phase: Some(phase.as_str().to_owned()),
        decode_ready: count(of(Role::Decode).map(|role| role.ready)),
        decode_replicas: count(of(Role::Decode).map(|role| role.desired)),
        prefill_ready: count(of(Role::Prefill).map(|role| role.ready)),
        prefill_replicas: count(of(Role::Prefill).map(|role| role.desired)),
        ..Default::default()
    };
    // A struct of plain fields always becomes a map.
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
