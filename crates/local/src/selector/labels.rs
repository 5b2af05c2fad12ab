//! Selection by labels: `app=web,tier in (a,b),!old`.

use serde_json::{Map, Value};

use super::Error;

/// What the labels of an object must fulfil, all of it. The empty one fits every object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// An absent label is in no list.
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl Labels {
    /// As in the query parameter `labelSelector`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Parser { tokens: tokens(text), next: 0 }.selector()
    }

    /// As in the type LabelSelector; a missing one fits nothing, an empty one everything.
    pub fn of(selector: &Value) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (key, value) in
            selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten()
        {
            all.push(Requirement { key: key.clone(), test: Test::In(vec![text_of(value)]) });
        }
        for expression in
            selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten()
        {
            all.push(Requirement::of(expression)?);
        }
        all.iter().try_for_each(Requirement::check)?;
        Ok(Self(all))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn of(expression: &Value) -> Result<Self, Error> {
        let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let values: Vec<String> = expression
            .get("values")
            .and_then(Value::as_array)
            .map(|values| values.iter().map(text_of).collect())
            .unwrap_or_default();
        let test = match text("operator") {
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::Absent,
            other => {
                return Err(Error(format!("\"{other}\" is not a valid label selector operator")));
            }
        };
        Ok(Self { key: text("key").to_owned(), test })
    }

    fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        let value = labels.and_then(|labels| labels.get(&self.key)).and_then(Value::as_str);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|v| v != value)),
            Test::Above(limit) => number().is_some_and(|n| n > *limit),
            Test::Below(limit) => number().is_some_and(|n| n < *limit),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if let Some(problem) = key_problem(&self.key) {
            return Err(Error(format!("<nil>: Invalid value: {:?}: {problem}", self.key)));
        }
        let (Test::In(values) | Test::NotIn(values)) = &self.test else { return Ok(()) };
        for (index, value) in values.iter().enumerate() {
            if let Some(problem) = value_problem(value) {
                let at = format!("values[{index}][{}]", self.key);
                return Err(Error(format!("{at}: Invalid value: {value:?}: {problem}")));
            }
        }
        Ok(())
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What is wrong with the key of a label.
fn key_problem(key: &str) -> Option<String> {
    const NAME: &str = "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const PREFIX: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            return Some(format!(
                "a valid label key must {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
        None => (None, key),
    };
    match prefix {
        Some("") => return Some("prefix part must be non-empty".to_owned()),
        Some(prefix) if prefix.len() > 253 => {
            return Some("prefix part must be no more than 253 bytes".to_owned());
        }
        Some(prefix) if !prefix.split('.').all(is_dns_label) => {
            return Some(format!("prefix part {PREFIX}"));
        }
        _ => {}
    }
    match name {
        "" => Some(format!("name part must be non-empty; name part must {NAME}")),
        name if name.len() > 63 => Some("name part must be no more than 63 bytes".to_owned()),
        name if !is_name(name) => Some(format!("name part must {NAME}")),
        _ => None,
    }
}

fn value_problem(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!value.is_empty() && !is_name(value)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned()
    })
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(inner))
        && bytes.iter().all(|b| inner(b) || *b == b'-')
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// One of `= == != ! ( ) , > <`, or a run of symbols that is none of them.
    Symbol(String),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self, Self::Symbol(text) if text == symbol)
    }
}

fn tokens(text: &str) -> Vec<Token> {
    const SYMBOLS: &str = "=!(),<>";
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let token = if SYMBOLS.contains(first) {
            let two = rest.get(..2).filter(|two| ["==", "!="].contains(two));
            Token::Symbol(two.unwrap_or(&rest[..first.len_utf8()]).to_owned())
        } else {
            let end = rest.find(|c: char| SYMBOLS.contains(c) || c.is_whitespace());
            Token::Word(rest[..end.unwrap_or(rest.len())].to_owned())
        };
        rest = rest[token.text().len()..].trim_start();
        all.push(token);
    }
    all
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.next).cloned().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn selector(mut self) -> Result<Labels, Error> {
        let mut all = Vec::new();
        if self.peek() == Token::End {
            return Ok(Labels(all));
        }
        let starts = |token: &Token| matches!(token, Token::Word(_)) || token.is("!");
        if !starts(&self.peek()) {
            return Err(found(&self.peek(), ", expected: !, identifier, or 'end of string'"));
        }
        loop {
            let requirement = self.requirement().and_then(|requirement| {
                requirement.check()?;
                Ok(requirement)
            });
            all.push(requirement.map_err(|e| Error(format!("unable to parse requirement: {e}")))?);
            match self.take() {
                Token::End => return Ok(Labels(all)),
                token if token.is(",") => {}
                token => return Err(found(&token, ", expected: ',' or 'end of string'")),
            }
            if !starts(&self.peek()) {
                return Err(found(&self.peek(), ", expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Error> {
        let negated = self.peek().is("!");
        if negated {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            token => return Err(found(&token, ", expected: identifier")),
        };
        if negated {
            return Ok(Requirement { key, test: Test::Absent });
        }
        if self.peek() == Token::End || self.peek().is(",") {
            return Ok(Requirement { key, test: Test::Exists });
        }
        let operator = self.take();
        let test = match operator.text() {
            "in" => Test::In(self.values()?),
            "notin" => Test::NotIn(self.values()?),
            "=" | "==" => Test::In(vec![self.value()?]),
            "!=" => Test::NotIn(vec![self.value()?]),
            ">" => Test::Above(self.number()?),
            "<" => Test::Below(self.number()?),
            _ => return Err(found(&operator, ", expected: in, notin, =, ==, !=, gt, lt")),
        };
        Ok(Requirement { key, test })
    }

    fn value(&mut self) -> Result<String, Error> {
        if self.peek() == Token::End || self.peek().is(",") {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value),
            token => Err(found(&token, ", expected: identifier")),
        }
    }

    fn number(&mut self) -> Result<i64, Error> {
        let value = self.value()?;
        value.parse().map_err(|_| {
            let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
            Error(format!("values[0]: Invalid value: {value:?}: {rule}"))
        })
    }

    /// A list in parentheses; what is missing between commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, Error> {
        let open = self.take();
        if !open.is("(") {
            return Err(found(&open, " expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            let value = match self.peek() {
                Token::Word(value) => {
                    self.take();
                    value
                }
                token if token.is(",") || token.is(")") => String::new(),
                token => return Err(found(&token, ", expected: ',', ')' or identifier")),
            };
            values.push(value);
            match self.take() {
                token if token.is(")") => break,
                token if token.is(",") => {}
                token => return Err(found(&token, ", expected: ',' or ')'")),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

fn found(token: &Token, expected: &str) -> Error {
    Error(format!("found '{}'{expected}", token.text()))
}
