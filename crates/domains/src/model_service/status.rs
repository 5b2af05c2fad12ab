//! The status fields that are this kind's own.

use serde_json::{Map, Value};
use windlass_api::model::model_service::{ModelService, ModelServiceStatus, Phase};
use windlass_engine::domain::Overall;

use super::compose::Observed;
use super::health::{self, roles};
use super::names::Role;

pub(super) fn status(
    object: &ModelService,
    observed: &Observed,
    overall: &Overall,
) -> Map<String, Value> {
    let roles = roles::roles(observed);
    let phase = match health::verdict(observed, &roles).phase {
        // The pods are as wanted, but something else could not be written.
        Phase::Ready if !overall.ready => Phase::Running,
        phase => phase,
    };
    let before = object.status.clone().unwrap_or_default();
    let of = |wanted: Role| roles.iter().find(|role| role.role == wanted);
    let (decode, prefill) = (of(Role::Decode), of(Role::Prefill));
    let status = ModelServiceStatus {
        phase: Some(phase.as_str().to_owned()),
        decode_ready: count(decode.map(|role| role.ready), before.decode_ready),
        decode_replicas: count(decode.map(|role| role.desired), before.decode_replicas),
        prefill_ready: count(prefill.map(|role| role.ready), before.prefill_ready),
        prefill_replicas: count(prefill.map(|role| role.desired), before.prefill_replicas),
        ..Default::default()
    };
    // A struct of plain fields always becomes a map.
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A zero has always been left out. But a number that the operator before us wrote would stay if it
/// were left out, so what was there once is written.
fn count(number: Option<i32>, before: Option<i32>) -> Option<i32> {
    let number = number.unwrap_or_default();
    (number != 0 || before.is_some()).then_some(number)
}
