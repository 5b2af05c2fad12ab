//! How much room a value takes in an object, as the API server stores it.

use serde_json::{Number, Value};

use crate::aim::names::go_string;

/// What the record of who has set what takes for one name, the name itself aside.
const RECORDED: usize = r#""f:":{".":{}},"#.len();

/// Of a value that is recorded field by field.
pub(super) fn bytes(value: &Value) -> usize {
    length(value, true)
}

/// The length of the JSON that Go writes, and of the names that are recorded beside it. A list is recorded
/// as one.
fn length(value: &Value, is_recorded: bool) -> usize {
    let recorded = |name: &str| match is_recorded {
        true => text(name) - "\"\"".len() + RECORDED,
        false => 0,
    };
    let commas = |count: usize| count.saturating_sub(1);
    match value {
        Value::Null | Value::Bool(true) => "null".len(),
        Value::Bool(false) => "false".len(),
        Value::Number(number) => self::number(number),
        Value::String(text) => self::text(text),
        Value::Array(items) => {
            let items_length: usize = items.iter().map(|item| length(item, false)).sum();
            "[]".len() + items_length + commas(items.len())
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                text(name) + ":".len() + length(value, is_recorded) + recorded(name)
            };
            "{}".len() + fields.iter().map(field).sum::<usize>() + commas(fields.len())
        }
    }
}

fn text(text: &str) -> usize {
    go_string(text).len()
}

/// Whatever is no whole number of 64 bits is a float, and has an exponent only far from 1.
fn number(number: &Number) -> usize {
    match (number.as_i64(), number.as_f64()) {
        (None, Some(float)) => {
            let is_plain = float == 0.0 || (1e-6..1e21).contains(&float.abs());
            let sign = usize::from(float.abs() >= 1.0);
            if is_plain { format!("{float}").len() } else { format!("{float:e}").len() + sign }
        }
        _ => number.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lengths_are_those_of_what_go_writes() {
        for (value, text) in [
            (json!([]), "[]"),
            (json!([1, -1, 0, i64::MIN]), "[1,-1,0,-9223372036854775808]"),
            (json!([1.0, -0.0, 0.5, 1e20]), "[1,-0,0.5,100000000000000000000]"),
            (json!([u64::MAX]), "[18446744073709552000]"),
            (json!([0.000_001, 1e-10, -1.5e21]), "[0.000001,1e-10,-1.5e+21]"),
            (json!([true, false, null]), "[true,false,null]"),
            (json!("<é\u{1}\n\u{2028}\""), r#""\u003cé\u0001\n\u2028\"""#),
            (json!([{ "a&": { "b": [] }, "c": {} }]), r#"[{"a\u0026":{"b":[]},"c":{}}]"#),
        ] {
            assert_eq!(length(&value, false), text.len(), "{text}");
        }
    }

    #[test]
    fn names_are_recorded_outside_of_lists() {
        let recorded = |name: &str| name.len() + RECORDED;
        for (value, names) in [
            (json!({ "a": { "bc": 1 } }), recorded("a") + recorded("bc")),
            (json!({ "a": [{ "bc": 1 }] }), recorded("a")),
            (json!({ "<": 1 }), recorded("<") + 5),
            (json!([{ "a": 1 }]), 0),
        ] {
            assert_eq!(bytes(&value), length(&value, false) + names, "{value}");
        }
    }
}
