//! Validation rules in CEL.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

use crate::schema::Rule;

/// The longest name of a new artifact.
pub const MAX_NAME: usize = 63;

/// What is said of a longer one.
pub const LONG_NAME: &str = "metadata.name must be at most 63 characters, because it is the value \
                             of a label on the Job and its pods";

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
        rule: format!("oldSelf.hasValue() || self.metadata.name.size() <= {MAX_NAME}"),
        message: Some(LONG_NAME.to_owned()),
        optional_old_self: Some(true),
        ..Default::default()
    }
}
