//! What may be a name, a label, a key: each function says what is wrong with one, in words.

pub(crate) const MAX_LABEL: usize = 63;
pub(crate) const MAX_SUBDOMAIN: usize = 253;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// A DNS label.
pub(crate) fn label(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, MAX_LABEL, "characters");
    if !is_label(value) {
        if is_subdomain(value) {
            wrong.push("must not contain dots".to_owned());
        } else {
            let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                        characters or '-', and must start and end with an alphanumeric character";
            wrong.push(pattern(rule, LABEL, &["my-name", "123-abc"]));
        }
    }
    wrong
}

/// DNS labels joined by dots.
pub(crate) fn subdomain(value: &str) -> Vec<String> {
    subdomain_in(value, "characters")
}

fn subdomain_in(value: &str, unit: &str) -> Vec<String> {
    let mut wrong = too_long(value, MAX_SUBDOMAIN, unit);
    if !is_subdomain(value) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                    characters, '-' or '.', and must start and end with an alphanumeric character";
        wrong.push(pattern(rule, &format!("{LABEL}(\\.{LABEL})*"), &["example.com"]));
    }
    wrong
}

/// A label key, a finalizer, an annotation key in lower case.
pub(crate) fn qualified(value: &str) -> Vec<String> {
    let rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                with an alphanumeric character";
    let rule = pattern(rule, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut wrong = Vec::new();
    let mut parts = value.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            }
            if !prefix.is_empty() {
                let parts = subdomain_in(prefix, "bytes");
                wrong.extend(parts.iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => {
            let prefix =
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {prefix}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(too_long(name, MAX_LABEL, "bytes").iter().map(|text| format!("name part {text}")));
    if !is_qualified(name) {
        wrong.push(format!("name part {rule}"));
    }
    wrong
}

pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, MAX_LABEL, "bytes");
    if !value.is_empty() && !is_qualified(value) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, \
                    '-', '_' or '.', and must start and end with an alphanumeric character";
        wrong.push(pattern(rule, &format!("({QUALIFIED})?"), &["MyValue", "my_value", "12345"]));
    }
    wrong
}

/// Of a ConfigMap or a Secret.
pub(crate) fn data_key(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, MAX_SUBDOMAIN, "characters");
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if value.is_empty() || !value.bytes().all(allowed) {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        wrong.push(pattern(rule, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match value {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        other if other.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// Of an environment variable.
pub(crate) fn variable(value: &str) -> Vec<String> {
    let printable = |c: char| c == ' ' || (c.is_ascii_graphic() && c != '=');
    if value.chars().all(printable) {
        return Vec::new();
    }
    let rule = "a valid environment variable name must consist only of printable ASCII characters \
                other than '='";
    vec![rule.to_owned()]
}

pub(crate) fn port_name(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, 15, "characters");
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let mut demand = |holds: bool, text: &str| {
        if !holds {
            wrong.push(text.to_owned());
        }
    };
    demand(
        !value.is_empty() && value.bytes().all(allowed),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    let letter = value.bytes().any(|byte| byte.is_ascii_lowercase());
    demand(letter, "must contain at least one letter (a-z)");
    demand(!value.contains("--"), "must not contain consecutive hyphens");
    let edge = value.starts_with('-') || value.ends_with('-');
    demand(!edge, "must not begin or end with a hyphen");
    wrong
}

/// What may stand between two slashes of a URL.
pub(crate) fn path_segment(value: &str) -> Vec<String> {
    if value == "." || value == ".." {
        return vec![format!("may not be '{value}'")];
    }
    let found = ["/", "%"].into_iter().filter(|part| value.contains(part));
    found.map(|part| format!("may not contain '{part}'")).collect()
}

pub(crate) fn port(number: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&number)).then_some("must be between 1 and 65535, inclusive")
}

pub(crate) fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let rule = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern(rule, "[0-9]+%", &["1%", "93%"])]
}

fn is_label(value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_bounded(value, inner, |byte| inner(byte) || byte == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_qualified(value: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_alphanumeric();
    is_bounded(value, edge, |byte| edge(byte) || b"-_.".contains(&byte))
}

fn is_bounded(value: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            edge(*first) && edge(*last) && bytes.iter().all(|byte| inner(*byte))
        }
        _ => false,
    }
}

fn too_long(value: &str, limit: usize, unit: &str) -> Vec<String> {
    let long = value.len() > limit;
    long.then(|| format!("must be no more than {limit} {unit}")).into_iter().collect()
}

fn pattern(rule: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}
