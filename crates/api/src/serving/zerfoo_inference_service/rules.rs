//! Validation rules in CEL, worded like the reconciler's own.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;
use schemars::Schema;

use crate::schema::Rule;

/// What a model reference looks like. A leading `-` would be read by the server as a flag.
pub const MODEL_REF_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._/-]*$";

/// What a quantisation looks like; like a model reference it becomes an argument.
pub const QUANT_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";

const DURATION_PATTERN: &str = "^[-+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

pub(super) fn spec() -> Vec<Rule> {
    vec![Rule::with_value(
        "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= 0 \
         || self.maxReplicas <= 0 || self.minReplicas <= self.maxReplicas",
        "'minReplicas (%d) must be <= maxReplicas (%d)'\
         .format([self.minReplicas, self.maxReplicas])",
    )]
}

/// `what` names the field in the texts: `modelRef` or `canary modelRef`.
pub(super) fn model_ref(what: &str) -> Vec<Rule> {
    vec![
        Rule::new("self != ''", format!("{what} is required")),
        Rule::new(
            format!("self == '' || self.matches('{MODEL_REF_PATTERN}')"),
            format!("{what} must match {MODEL_REF_PATTERN}"),
        ),
        Rule::new("!self.contains('..')", format!("{what} must not contain ..")),
    ]
}

pub(super) fn replicas() -> Vec<Rule> {
    vec![Rule::new("self >= 1", "replicas must be >= 1")]
}

pub(super) fn canary_weight() -> Vec<Rule> {
    vec![Rule::with_value(
        "self >= 0 && self <= 100",
        "'canary weight must be 0-100, got %d'.format([self])",
    )]
}

pub(super) fn health_check_path() -> Vec<Rule> {
    vec![
        Rule::new("self != ''", "healthCheck path is required"),
        Rule::new("self == '' || self.startsWith('/')", "healthCheck path must start with /"),
    ]
}

/// A positive duration. The two rules do not fail together, so that a malformed text gets one
/// message.
pub(super) fn duration(what: &str) -> Vec<Rule> {
    vec![
        Rule::new(
            format!("type(self) == int || self.matches('{DURATION_PATTERN}')"),
            format!("{what} must be a duration such as 10s or 1m30s"),
        ),
        Rule::new(
            format!(
                "type(self) == int ? self > 0 : \
                 (!self.matches('{DURATION_PATTERN}') || duration(self) > duration('0s'))"
            ),
            format!("{what} must be > 0"),
        ),
    ]
}

pub(super) fn quantity(what: &str) -> Vec<Rule> {
    vec![Rule::new(
        "self == '' || (isQuantity(self) && quantity(self).isGreaterThan(quantity('0')))",
        format!("{what} must be a positive quantity or empty"),
    )]
}

pub(super) fn absolute_path(what: &str) -> Vec<Rule> {
    vec![Rule::new("self.startsWith('/')", format!("{what} must start with /"))]
}

pub(super) fn auth() -> Vec<Rule> {
    vec![Rule::new(
        "has(self.apiKeySecretRef) != (has(self.allowNoAuth) && self.allowNoAuth)",
        "auth needs either apiKeySecretRef or allowNoAuth: true",
    )]
}

pub(super) fn cache() -> Vec<Rule> {
    vec![Rule::new(
        "[has(self.emptyDir), has(self.persistentVolumeClaim), has(self.hostPath)]\
         .filter(set, set).size() <= 1",
        "cache may use only one of emptyDir, persistentVolumeClaim and hostPath",
    )]
}

/// `<name>-primary` names a Service, so the name must be a DNS-1035 label with room for that.
///
/// Asked of new objects only: a rule at the root is evaluated on each write, that of the status
/// included, so an object with such a name from before the rule could never be told about it.
pub(super) fn name() -> ValidationRule {
    ValidationRule {
        rule: "oldSelf.hasValue() || (self.metadata.name.size() <= 55 \
               && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))"
            .to_owned(),
        optional_old_self: Some(true),
        message: Some("metadata.name must be a DNS-1035 label of at most 55 characters".to_owned()),
        ..Default::default()
    }
}

/// The Rust field has a default so that old objects stay readable; users must still give one.
pub(super) fn require_model_ref(schema: &mut Schema) {
    if let Some(model_ref) =
        schema.pointer_mut("/properties/modelRef").and_then(serde_json::Value::as_object_mut)
    {
        model_ref.remove("default");
    }
    let required =
        schema.ensure_object().entry("required").or_insert_with(|| Vec::<String>::new().into());
    if let Some(required) = required.as_array_mut() {
        required.push("modelRef".into());
    }
}
