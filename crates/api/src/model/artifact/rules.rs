//! Validation rules in CEL.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

use crate::schema::Rule;

pub(super) fn source() -> Vec<Rule> {
    vec![Rule::new(
        "[has(self.huggingFace)].filter(x, x).size() == 1",
        "exactly one source must be specified",
    )]
}

/// Asked of new objects only. A rule at the root is evaluated on each write, that of the status
/// included, so an object with a long name from before the rule could never be told about it.
pub(super) fn name() -> ValidationRule {
    ValidationRule {
        rule: "oldSelf.hasValue() || self.metadata.name.size() <= 63".to_owned(),
        message: Some(
            "metadata.name must be at most 63 characters, because it is the value of a label on \
             the Job and its pods"
                .to_owned(),
        ),
        optional_old_self: Some(true),
        ..Default::default()
    }
}
