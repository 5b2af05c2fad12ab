//! Selectors of labels inside objects.

use serde_json::Value;

use super::{meta, names};
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, entries, items, text},
};

/// What is wrong with a selector.
pub(super) fn check(selector: &Value, path: &Path, causes: &mut Causes) {
    meta::labels(selector, &["matchLabels"], &path.child("matchLabels"), causes);
    let expressions = items(selector, &["matchExpressions"]);
    for (index, expression) in expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = items(expression, &["values"]);
        let operator = text(expression, &["operator"]);
        match operator {
            "In" | "NotIn" if values.is_empty() => causes.required(
                &path.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "Exists" | "DoesNotExist" if !values.is_empty() => causes.forbidden(
                &path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                causes.invalid(&path.child("operator"), other, "not a valid selector operator");
            }
        }
        let key = text(expression, &["key"]);
        for problem in names::qualified(key) {
            causes.invalid(&path.child("key"), key, &problem);
        }
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            for problem in names::label_value(value) {
                causes.invalid(&path.child("values").index(index), value, &problem);
            }
        }
    }
}

/// Whether the selector names nothing and so would match everything.
pub(crate) fn is_empty(selector: &Value) -> bool {
    entries(selector, &["matchLabels"]).next().is_none()
        && items(selector, &["matchExpressions"]).is_empty()
}

/// Whether it matches these labels.
pub(crate) fn matches(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| at(labels, &[key])).and_then(Value::as_str);
    let equal = entries(selector, &["matchLabels"])
        .all(|(key, value)| label(key).is_some() && label(key) == value.as_str());
    equal
        && items(selector, &["matchExpressions"]).iter().all(|expression| {
            let found = label(text(expression, &["key"]));
            let listed = || {
                let values = items(expression, &["values"]).iter().filter_map(Value::as_str);
                found.is_some_and(|found| values.into_iter().any(|value| value == found))
            };
            match text(expression, &["operator"]) {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}
