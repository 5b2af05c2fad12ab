//! Validation rules in CEL, worded like the reconciler's own.
//!
//! They refuse only what never worked: names that make invalid children, ports that two processes of
//! one pod would fight for, and prefill pods that nothing hands a prompt to.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

use crate::schema::Rule;

pub(super) fn spec() -> Vec<Rule> {
    vec![
        Rule::new(
            "!has(self.prefill) || has(self.routingProxy)",
            "prefill needs routingProxy, which hands prompts over to the prefill pods",
        ),
        Rule::new(
            "!has(self.routingProxy) || !has(self.routingProxy.targetPort) \
             || !has(self.engine.port) || self.routingProxy.targetPort != self.engine.port",
            "routingProxy targetPort must differ from engine port, which the proxy itself uses",
        ),
        Rule::new(
            "!has(self.inferencePool) || !has(self.inferencePool.endpointPicker.port) \
             || !(self.inferencePool.endpointPicker.port in [9003, 9090])",
            "inferencePool endpointPicker port must not be 9003 or 9090, which the endpoint picker \
             uses for health and metrics",
        ),
    ]
}

/// `<name>-epp` names a Service, with `m-` before it if the name begins with a digit. Runs of dashes
/// become one, so a name that has some may be longer; the reconciler looks closely.
pub(super) fn name() -> ValidationRule {
    ValidationRule {
        rule: "self.metadata.name.size() <= 63 && (self.metadata.name.contains('--') \
               || self.metadata.name.size() <= (self.metadata.name.matches('^[0-9]') ? 57 : 59))"
            .to_owned(),
        message: Some(
            "metadata.name must have at most 59 characters, or 57 if it begins with a digit"
                .to_owned(),
        ),
        ..Default::default()
    }
}
