//! Reads an expression into steps. Texts of errors are those of kubectl.

/// Filters within filters.
const MAX_DEPTH: usize = 4;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Field(String),
    /// Everything directly below.
    Wildcard,
    /// Everything below, and the thing itself.
    Recursive,
    Index(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: Option<i64>,
    },
    Union(Vec<Step>),
    Filter(Box<Filter>),
    Text(String),
    Int(i64),
    Float(f64),
    Flag(bool),
    /// A bare word, which nothing understands.
    Identifier(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub(super) left: Vec<Step>,
    /// Without one, the left side need only exist. Whether there is such an operator shows when it
    /// is used.
    pub(super) comparison: Option<(String, Vec<Step>)>,
}

pub(super) fn parse(text: &str) -> Result<Vec<Step>, String> {
    Parser { rest: text }.path(0)
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    /// Steps up to the end of the text or, in a filter, up to what ends a side of it.
    fn path(&mut self, depth: usize) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        loop {
            let Some(c) = self.peek() else {
                return if depth == 0 { Ok(steps) } else { Err("unterminated filter".into()) };
            };
            if depth > 0 && ends_side(c) {
                return Ok(steps);
            }
            if self.skip("[?(") {
                steps.push(self.filter(depth + 1)?);
                continue;
            }
            if self.skip("..") {
                if steps.last() == Some(&Step::Recursive) {
                    return Err("invalid multiple recursive descent".into());
                }
                steps.push(Step::Recursive);
                if self.peek().is_some_and(is_word) {
                    steps.push(self.field(depth));
                }
                continue;
            }
            match c {
                '\r' | '\n' if depth == 0 => return Err("unclosed action".into()),
                '\r' | '\n' => return Err("unterminated filter".into()),
                ' ' | '@' | '$' => self.advance(c),
                '[' => {
                    self.advance(c);
                    steps.push(self.brackets()?);
                }
                '"' | '\'' => {
                    self.advance(c);
                    steps.push(Step::Text(self.quoted(c)?));
                }
                '.' => {
                    self.advance(c);
                    steps.push(self.field(depth));
                }
                '+' | '-' | '0'..='9' => steps.push(self.number()?),
                c if is_word(c) => steps.push(self.identifier(depth)),
                c => return Err(unrecognized(c)),
            }
        }
    }

    fn filter(&mut self, depth: usize) -> Result<Step, String> {
        if depth > MAX_DEPTH {
            return Err(format!("filters nested deeper than {MAX_DEPTH}"));
        }
        let before = self.rest;
        let left = self.path(depth)?;
        let left_is_blank = before.len() == self.rest.len();
        let operator = self.take_while(|c| matches!(c, '!' | '<' | '>' | '='));
        let comparison = match operator.chars().next() {
            None => None,
            Some(c) => {
                let before = self.rest;
                let right = self.path(depth)?;
                if left_is_blank || before.len() == self.rest.len() {
                    return Err(unrecognized(c));
                }
                Some((operator.to_owned(), right))
            }
        };
        match self.peek() {
            Some(')') => self.advance(')'),
            Some(c) => return Err(unrecognized(c)),
            None => return Err("unterminated filter".into()),
        }
        if !self.skip("]") {
            return Err("unclosed array expect ]".into());
        }
        Ok(Step::Filter(Box::new(Filter { left, comparison })))
    }

    /// What follows a dot; a backslash takes the meaning from the character after it.
    fn field(&mut self, depth: usize) -> Step {
        let mut escaped = false;
        let name = self.take_while(|c| {
            let ends = !escaped && ends_name(c, depth);
            escaped = !escaped && c == '\\';
            !ends
        });
        if name == "*" { Step::Wildcard } else { Step::Field(name.replace('\\', "")) }
    }

    fn identifier(&mut self, depth: usize) -> Step {
        match self.take_while(|c| !ends_name(c, depth)) {
            "true" => Step::Flag(true),
            "false" => Step::Flag(false),
            name => Step::Identifier(name.to_owned()),
        }
    }

    fn number(&mut self) -> Result<Step, String> {
        let mut first = true;
        let text = self.take_while(|c| {
            let sign = first && matches!(c, '+' | '-');
            first = false;
            sign || c == '.' || c.is_ascii_digit()
        });
        if let Ok(int) = text.parse() {
            return Ok(Step::Int(int));
        }
        let float = text.parse().ok().filter(|float: &f64| float.is_finite());
        float.map(Step::Float).ok_or_else(|| format!("cannot parse number {text}"))
    }

    /// The rest of a literal text after its opening quote.
    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| *c != '\n') {
            self.advance(c);
            if c == quote {
                return Ok(text);
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let Some(escaped) = self.peek() else { break };
            self.advance(escaped);
            text.push(match escaped {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '\\' | '\'' | '"' => escaped,
                _ => return Err(format!("unquote string \\{escaped} error invalid syntax")),
            });
        }
        Err("unterminated quoted string".into())
    }

    /// The rest after an opening bracket: indices, slices and quoted keys, separated by commas.
    fn brackets(&mut self) -> Result<Step, String> {
        let text = self.rest;
        let mut items: Vec<&str> = Vec::new();
        let mut from = 0;
        let mut quote = None;
        let mut escaped = false;
        for (at, c) in text.char_indices() {
            match (c, quote) {
                ('\n', _) => break,
                (_, Some(_)) if escaped => escaped = false,
                ('\\', Some(_)) => escaped = true,
                (c, Some(open)) if c == open => quote = None,
                (_, Some(_)) => {}
                (',' | ']', None) => {
                    items.push(&text[from..at]);
                    from = at + 1;
                    if c == ']' {
                        self.rest = &text[from..];
                        return union(&items);
                    }
                }
                ('\'' | '"', None) if text[from..at].bytes().all(|byte| byte == b' ') => {
                    quote = Some(c);
                }
                _ => {}
            }
        }
        Err("unterminated array".into())
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn advance(&mut self, over: char) {
        self.rest = &self.rest[over.len_utf8()..];
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let found = self.rest.strip_prefix(prefix);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

fn union(items: &[&str]) -> Result<Step, String> {
    match items {
        [item] => selector(item),
        items => {
            let steps = items.iter().map(|item| selector(item.trim_matches(' ')));
            Ok(Step::Union(steps.collect::<Result<_, _>>()?))
        }
    }
}

/// One entry between brackets.
fn selector(text: &str) -> Result<Step, String> {
    if let Some(key) = quoted_key(text.trim_matches(' ')) {
        return Ok(Step::Field(key.replace('\\', "")));
    }
    if text == "*" {
        return Ok(Step::Slice { start: None, end: None, step: None });
    }
    let parts: Vec<&str> = text.split(':').collect();
    let well_formed = |part: &&str| {
        part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(well_formed) {
        return Err(format!("invalid array index {text}"));
    }
    let bound = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => {
            part.parse().map(Some).map_err(|_| format!("array index {part} is not a number"))
        }
    };
    let start = bound(0)?;
    if parts.len() == 1 {
        return Ok(Step::Index(start.unwrap_or_default()));
    }
    Ok(Step::Slice { start, end: bound(1)?, step: bound(2)? })
}

fn quoted_key(text: &str) -> Option<&str> {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"'))
}

/// What ends the left or the right side of a filter.
fn ends_side(c: char) -> bool {
    matches!(c, ')' | '!' | '<' | '>' | '=')
}

fn ends_name(c: char, depth: usize) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
        || (depth > 0 && ends_side(c))
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn unrecognized(c: char) -> String {
    let code = format!("unrecognized character in action: U+{:04X}", u32::from(c));
    if c.is_control() { code } else { format!("{code} '{c}'") }
}
