//! Schema pieces that schemars does not know: validation rules in CEL and null handling.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde::Serialize;

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_expression: Option<String>,
}

impl Rule {
    pub(crate) fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: Some(message.into()), message_expression: None }
    }

    /// The message is itself an expression, for texts that quote the value. It must use `format`:
    /// the API server takes the result of `string()` for unbounded and refuses the cost.
    pub(crate) fn with_value(rule: impl Into<String>, expression: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: None, message_expression: Some(expression.into()) }
    }
}

/// Makes every field non-nullable.
///
/// The derive marks optional fields nullable, and the API server then keeps explicit nulls, which
/// rules trip over. Without the mark it drops them, and `field: null` means "not set".
pub(crate) fn forbid_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        forbid_null(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => forbid_null(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(forbid_null),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        forbid_null(values);
    }
}

/// Drops the descriptions of all that lies more than `depth` fields below.
///
/// Those of Kubernetes' own types are long, and `kubectl apply` keeps the whole definition in an
/// annotation, which must not be larger than 256 KiB.
pub(crate) fn describe_down_to(schema: &mut JSONSchemaProps, depth: usize) {
    let below = depth.checked_sub(1);
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        if below.is_none() {
            property.description = None;
        }
        describe_down_to(property, below.unwrap_or_default());
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        items.description = None;
        describe_down_to(items, below.unwrap_or_default());
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        values.description = None;
        describe_down_to(values, below.unwrap_or_default());
    }
}
