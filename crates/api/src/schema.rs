//! Schema pieces that schemars does not know: validation rules in CEL, quantities, null handling.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    ValidationRule,
};
use schemars::{Schema, SchemaGenerator, json_schema};
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

/// What Kubernetes' own generator writes for a quantity.
const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// For `schema_with` on a `Quantity`, whose own schema accepts any text and describes the format in
/// forty lines.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "pattern": QUANTITY_PATTERN })
}

/// For `schema_with` on a value of any shape.
pub(crate) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const CONDITION_REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// A derived definition as it is to be installed: its roots finished, with the rule on the object's
/// name if the kind has one, and with what else a kind does to its own.
pub(crate) fn finish_crd(
    mut crd: CustomResourceDefinition,
    name: Option<ValidationRule>,
    own: impl Fn(&mut JSONSchemaProps),
) -> CustomResourceDefinition {
    let versions = crd.spec.versions.iter_mut();
    let roots = versions.filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for root in roots {
        finish(root);
        own(root);
        root.x_kubernetes_validations = name.clone().map(|rule| vec![rule]);
    }
    crd
}

/// What the root of every definition has in common: no nulls, no title that only repeats the kind,
/// and conditions, one of each type, with the limits that Kubernetes sets for them and a derive does
/// not know.
fn finish(root: &mut JSONSchemaProps) {
    forbid_null(root);
    root.title = None;
    let Some(conditions) = conditions_of(root) else { return };
    conditions.x_kubernetes_list_type = Some("map".to_owned());
    conditions.x_kubernetes_list_map_keys = Some(vec!["type".to_owned()]);
    if let Some(JSONSchemaPropsOrArray::Schema(condition)) = &mut conditions.items
        && let Some(condition) = &mut condition.properties
    {
        let mut limit = |field: &str, limit: fn(&mut JSONSchemaProps)| {
            if let Some(field) = condition.get_mut(field) {
                limit(field);
            }
        };
        limit("type", |field| {
            field.max_length = Some(316);
            field.pattern = Some(CONDITION_TYPE.to_owned());
        });
        limit("status", |field| {
            field.enum_ = Some(["True", "False", "Unknown"].map(|word| JSON(word.into())).into());
        });
        limit("reason", |field| {
            field.min_length = Some(1);
            field.max_length = Some(1024);
            field.pattern = Some(CONDITION_REASON.to_owned());
        });
        limit("message", |field| field.max_length = Some(32768));
        limit("observedGeneration", |field| field.minimum = Some(0.0));
    }
}

fn conditions_of(root: &mut JSONSchemaProps) -> Option<&mut JSONSchemaProps> {
    let status = root.properties.as_mut()?.get_mut("status")?;
    status.properties.as_mut()?.get_mut("conditions")
}

/// Makes every field non-nullable.
///
/// The derive marks optional fields nullable, and the API server then keeps explicit nulls, which
/// rules trip over. Without the mark it drops them, and `field: null` means "not set".
fn forbid_null(schema: &mut JSONSchemaProps) {
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

/// The rule at the root of a schema as kube-cel reads it: there `oldSelf` is a value or null, at the
/// API server an optional.
#[cfg(test)]
pub(crate) fn for_kube_cel(mut schema: serde_json::Value) -> serde_json::Value {
    if let Some(rule) = schema.pointer_mut("/x-kubernetes-validations/0/rule") {
        *rule = rule
            .as_str()
            .unwrap_or_default()
            .replace("oldSelf.hasValue()", "oldSelf != null")
            .into();
    }
    schema
}
