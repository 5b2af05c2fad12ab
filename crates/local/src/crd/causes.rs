//! Causes in Kubernetes' words.

use serde_json::Value;

use super::path::{Path, ROOT};
use crate::error::{Cause, CauseReason};

pub(super) fn required(path: &Path<'_>, detail: &str) -> Cause {
    let message = match detail {
        "" => "Required value".to_owned(),
        detail => format!("Required value: {detail}"),
    };
    Cause { reason: CauseReason::Required, field: path.of_cause(), message }
}

pub(super) fn invalid(path: &Path<'_>, value: &Value, detail: &str) -> Cause {
    let message = format!("Invalid value: {}: {detail}", print(value));
    Cause { reason: CauseReason::Invalid, field: path.of_cause(), message }
}

/// Of an object or list, whose content would be too long to print.
pub(super) fn invalid_whole(path: &Path<'_>, detail: &str) -> Cause {
    let message = format!("Invalid value: {detail}");
    Cause { reason: CauseReason::Invalid, field: path.of_cause(), message }
}

pub(super) fn type_invalid(path: &Path<'_>, wanted: &str, got: &str) -> Cause {
    let message =
        format!("Invalid value: {got:?}: {path} in body must be of type {wanted}: {got:?}");
    Cause { reason: CauseReason::TypeInvalid, field: path.of_cause(), message }
}

pub(super) fn forbidden(path: &Path<'_>, detail: &str) -> Cause {
    let message = format!("Forbidden: {detail}");
    Cause { reason: CauseReason::Forbidden, field: path.of_cause(), message }
}

pub(super) fn duplicate(path: &Path<'_>, value: &Value) -> Cause {
    let message = format!("Duplicate value: {}", print(value));
    Cause { reason: CauseReason::Duplicate, field: path.of_cause(), message }
}

pub(super) fn duplicate_whole(path: &Path<'_>) -> Cause {
    let message = "Duplicate value".to_owned();
    Cause { reason: CauseReason::Duplicate, field: path.of_cause(), message }
}

pub(super) fn not_supported(path: &Path<'_>, value: &Value, supported: &[String]) -> Cause {
    let quoted: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let message =
        format!("Unsupported value: {}: supported values: {}", print(value), quoted.join(", "));
    Cause { reason: CauseReason::NotSupported, field: path.of_cause(), message }
}

pub(super) fn too_long(path: &Path<'_>, most: u64) -> Cause {
    let message = format!("Too long: may not be more than {most} bytes");
    Cause { reason: CauseReason::TooLong, field: path.of_cause(), message }
}

pub(super) fn too_many(path: &Path<'_>, count: usize, most: u64) -> Cause {
    let items = if most == 1 { "item" } else { "items" };
    let message = format!("Too many: {count}: must have at most {most} {items}");
    Cause { reason: CauseReason::TooMany, field: path.of_cause(), message }
}

/// A cause found in a status by itself.
pub(super) fn in_status(cause: Cause) -> Cause {
    let field = match &*cause.field {
        ROOT => "status".to_owned(),
        item if item.starts_with('[') => format!("status{item}"),
        field => format!("status.{field}"),
    };
    Cause { field, ..cause }
}

fn print(value: &Value) -> String {
    value.to_string()
}
