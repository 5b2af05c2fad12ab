//! Merge, JSON and strategic merge patches.

mod strategic;
#[cfg(test)]
mod tests;

use json_patch::{AddOperation, PatchOperation, jsonptr::Pointer};
use serde::Deserialize;
use serde_json::Value;

use crate::types::Typed;

/// As many as Kubernetes allows in one JSON patch.
const MOST_OPERATIONS: usize = 10_000;
/// As much as Kubernetes lets the copies of one JSON patch add.
const MOST_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// How deep an object may be; deeper ones would exhaust the stack of whoever walks them.
const MOST_DEPTH: usize = 128;
/// How many values one JSON patch may walk over or shift: every other write waits for it.
const MOST_WORK: usize = 10_000_000;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The body is no patch of this kind.
    #[error("error decoding patch: {0}")]
    Decode(String),
    /// A JSON patch does not fit the object.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
    #[error(
        "Request entity too large: The allowed maximum operations in a JSON patch is \
         {MOST_OPERATIONS}, got {0}"
    )]
    TooLarge(usize),
    /// A strategic patch that contradicts the types, in Kubernetes' words.
    #[error("{0}")]
    Strategic(String),
}

/// RFC 7386.
pub fn merge(target: &mut Value, patch: &Value) {
    json_patch::merge(target, patch);
}

/// RFC 6902.
pub fn json(target: &Value, operations: &Value) -> Result<Value, Error> {
    let Value::Array(operations) = operations else {
        return Err(Error::Decode("a JSON patch is a list of operations".into()));
    };
    if let Some(wrong) = operations.iter().find(|operation| !operation.is_object()) {
        return Err(Error::Decode(format!("an operation is a map, got {wrong}")));
    }
    if operations.len() > MOST_OPERATIONS {
        return Err(Error::TooLarge(operations.len()));
    }
    let mut patched = target.clone();
    let mut copied = 0;
    let mut work = MOST_WORK;
    for operation in operations {
        let operation = PatchOperation::deserialize(operation).map_err(|_| Error::Rejected)?;
        // Before it is done: what is too deep cannot even be dropped.
        afford(&patched, &operation, &mut work).ok_or(Error::Rejected)?;
        if let PatchOperation::Copy(copy) = &operation {
            let value = copy.from.resolve(&patched).map_err(|_| Error::Rejected)?;
            copied += value.to_string().len();
            if copied > MOST_COPIED_BYTES {
                return Err(Error::Rejected);
            }
        }
        let operation = match operation {
            PatchOperation::Replace(replace) if is_missing(&patched, &replace.path) => {
                PatchOperation::Add(AddOperation { path: replace.path, value: replace.value })
            }
            operation => operation,
        };
        json_patch::patch_unsafe(&mut patched, &[operation]).map_err(|_| Error::Rejected)?;
    }
    Ok(patched)
}

/// Takes what the operation costs from `work`. `None` if there is not enough of it left, if the
/// outcome would be too deep, or if there is nothing to move.
fn afford(object: &Value, operation: &PatchOperation, work: &mut usize) -> Option<()> {
    let (value, from) = match operation {
        PatchOperation::Add(add) => (Some(&add.value), None),
        PatchOperation::Replace(replace) => (Some(&replace.value), None),
        PatchOperation::Move(moved) => (Some(moved.from.resolve(object).ok()?), Some(&moved.from)),
        PatchOperation::Copy(copy) => (Some(copy.from.resolve(object).ok()?), Some(&copy.from)),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => (None, None),
    };
    for path in [Some(operation.path()), from.map(|from| &**from)].into_iter().flatten() {
        // What follows in a list makes room or closes up.
        let list = path.parent().and_then(|parent| parent.resolve(object).ok()?.as_array());
        *work = work.checked_sub(list.map_or(0, Vec::len))?;
    }
    let depth = MOST_DEPTH.checked_sub(operation.path().tokens().count())?;
    value.is_none_or(|value| is_within(value, depth, work)).then_some(())
}

/// Kubernetes' strategic merge, which knows the lists of built-in kinds.
pub fn strategic(target: &Value, patch: &Value, typed: Typed<'_>) -> Result<Value, Error> {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
        return Err(Error::Decode("a strategic patch is a map".into()));
    };
    strategic::map(target.clone(), patch, typed).map(Value::Object).map_err(Error::Strategic)
}

/// Whether the path names a member that its map lacks. Kubernetes adds what it cannot replace there.
fn is_missing(object: &Value, path: &Pointer) -> bool {
    let Some((parent, name)) = path.split_back() else { return false };
    let map = parent.resolve(object).ok().and_then(Value::as_object);
    map.is_some_and(|map| !map.contains_key(&*name.decoded()))
}

/// Whether the value nests at most so deep. Each value that is looked at is taken from `work`.
fn is_within(value: &Value, depth: usize, work: &mut usize) -> bool {
    let Some(left) = work.checked_sub(1) else { return false };
    *work = left;
    match value {
        Value::Array(items) => {
            depth > 0 && items.iter().all(|item| is_within(item, depth - 1, work))
        }
        Value::Object(map) => {
            depth > 0 && map.values().all(|item| is_within(item, depth - 1, work))
        }
        _ => true,
    }
}
