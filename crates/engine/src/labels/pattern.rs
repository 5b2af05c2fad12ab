//! Patterns on label keys, with the meaning Go's `path.Match` gives them.

/// A pattern that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Any run without `/`.
    Star,
    /// One character other than `/`.
    Any,
    Literal(char),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Pattern {
    /// None for a malformed pattern.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' => Token::Star,
                '?' => Token::Any,
                '[' => class(&mut rest)?,
                '\\' => Token::Literal(rest.next()?),
                other => Token::Literal(other),
            });
        }
        Some(Self(tokens))
    }

    /// Whether the whole text matches.
    ///
    /// Go looks for the leftmost match of what follows a star and never reconsiders an earlier star,
    /// so one place to return to is enough.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut token, mut at) = (0, 0);
        let mut last_star: Option<(usize, usize)> = None;
        loop {
            match self.0.get(token) {
                Some(Token::Star) => {
                    last_star = Some((token, at));
                    token += 1;
                    continue;
                }
                None if at == text.len() => return true,
                Some(single) if text.get(at).is_some_and(|c| single.accepts(*c)) => {
                    token += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            // Give the last star one more character and try again behind it.
            let Some((star, reached)) = last_star else { return false };
            match text.get(reached) {
                Some('/') | None => return false,
                Some(_) => {
                    last_star = Some((star, reached + 1));
                    (token, at) = (star + 1, reached + 1);
                }
            }
        }
    }
}

impl Token {
    fn accepts(&self, c: char) -> bool {
        match self {
            Self::Star | Self::Any => c != '/',
            Self::Literal(literal) => *literal == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The rest of a class, after its opening bracket.
fn class(rest: &mut Chars<'_>) -> Option<Token> {
    let negated = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while ranges.is_empty() || rest.next_if_eq(&']').is_none() {
        let low = class_char(rest)?;
        let high = if rest.next_if_eq(&'-').is_some() { class_char(rest)? } else { low };
        ranges.push((low, high));
    }
    Some(Token::Class { negated, ranges })
}

fn class_char(rest: &mut Chars<'_>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        other => Some(other),
    }
}
