//! Stack for rules. Whoever reads, runs or drops an expression does so level by level, and how deep
//! a rule nests is its author's choice.

use std::thread;

use serde_json::Value;

/// As many characters as Kubernetes takes.
const LONGEST: usize = 100_000;
/// How often a rule may put an expression into another one.
const MOST_LINKS: usize = 1000;
/// So many go on any stack.
const FEW_LINKS: usize = 8;
/// Enough for the most. Only what is used of it is ever taken from the system.
const STACK: usize = 256 << 20;

/// Whether a rule nests too deeply for a stack as threads have it. The error is why it is refused.
pub(super) fn is_deep(text: &str) -> Result<bool, String> {
    let length = text.chars().count();
    if length > LONGEST {
        return Err(format!(
            "expression code point size exceeds limit: size: {length}, limit {LONGEST}"
        ));
    }
    let links = links(text);
    match links > MOST_LINKS {
        true => Err(format!("the expression has {links} parts, the most is {MOST_LINKS}")),
        false => Ok(links > FEW_LINKS),
    }
}

/// How much there may be of rules in one definition, in characters. Reading a rule takes long, and
/// other writes wait for it.
const MOST_RULES: usize = 256 * 1024;
/// What each rule counts for besides its text.
const RULE: usize = 64;

/// Whether the rules of a definition can be read in good time.
pub(super) fn check_amount(spec: &Value) -> Result<(), String> {
    let (mut amount, mut left) = (0, vec![spec]);
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                let texts = ["rule", "messageExpression"].iter();
                let texts = texts.filter_map(|name| fields.get(*name)?.as_str());
                amount += texts.map(|text| text.len() + RULE).sum::<usize>();
                left.extend(fields.values());
            }
            _ => {}
        }
    }
    match amount > MOST_RULES {
        true => Err(format!("the rules come to {amount} characters, the most is {MOST_RULES}")),
        false => Ok(()),
    }
}

/// At least as many as the levels of the expression. What is in strings counts too: to tell those
/// apart one would have to read the rule. Chains of `&&`, `||` and `!` stay flat.
fn links(text: &str) -> usize {
    let mut count = text.matches("in").count();
    let mut last = ' ';
    for c in text.chars() {
        let opens = matches!(c, '.' | '[' | '(' | '{' | '+' | '-' | '*' | '/' | '%' | '?');
        let compares = matches!(c, '<' | '>' | '=') && !matches!(last, '<' | '>' | '=');
        count += usize::from(opens || compares);
        last = c;
    }
    count
}

/// Does the work where there is room for it. `None` if the system has none, or if the work panics.
pub(super) fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let roomy = thread::Builder::new().name("rules".into()).stack_size(STACK);
        roomy.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_never_taken_for_less_than_it_is() {
        for (text, want) in [
            ("self.a", 1),
            ("self.a == 1 && self.b != 2", 4),
            ("self.all(x, x in [1, 2])", 4),
            ("a <= b", 1),
            ("- - 1", 2),
            ("a ? b : c", 1),
            ("true && !true || true", 0),
        ] {
            assert_eq!(links(text), want, "{text}");
        }
        assert_eq!(is_deep("self.a == self.b"), Ok(false));
        assert_eq!(is_deep(&"(".repeat(100)), Ok(true));
        assert!(is_deep(&format!("self{}", ".a".repeat(1001))).is_err());
        assert!(is_deep(&" ".repeat(100_001)).is_err());
    }
}
