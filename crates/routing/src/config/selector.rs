//! Label selectors.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A Kubernetes LabelSelector. An empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expression {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Selector {
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| expression.matches(labels))
    }

    /// Lists of values stand with the operators that read them, and only with those.
    pub(super) fn is_valid(&self) -> bool {
        self.match_expressions.iter().all(|expression| match expression.operator {
            Operator::In | Operator::NotIn => !expression.values.is_empty(),
            Operator::Exists | Operator::DoesNotExist => expression.values.is_empty(),
        })
    }
}

impl Expression {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_select_as_in_kubernetes() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let expression = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, want) in [
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (expression("In", "a", &["0", "1"]), true),
            (expression("In", "b", &["1"]), false),
            (expression("NotIn", "a", &["1"]), false),
            (expression("NotIn", "b", &["1"]), true),
            (expression("Exists", "a", &[]), true),
            (expression("DoesNotExist", "a", &[]), false),
        ] {
            let parsed: Selector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(parsed.matches(&labels), want, "{selector}");
        }
    }
}
