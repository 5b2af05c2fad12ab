//! The texts by which long lists are continued.

mod json;

use base64::{
    DecodeError, Engine,
    alphabet::URL_SAFE,
    engine::general_purpose::{GeneralPurpose, NO_PAD},
};
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;

/// Where a page begins, in a text that clients hand back.
#[derive(Debug, PartialEq, Default, Serialize)]
pub(super) struct Token {
    v: String,
    /// -1: at the newest state.
    rv: i64,
    /// Without the namespace where only that is listed.
    start: String,
}

const VERSION: &str = "meta.k8s.io/v1";
/// As lenient as Go's.
const TEXT: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

impl Token {
    pub(super) fn new(rv: i64, start: String) -> Self {
        Self { v: VERSION.into(), rv, start }
    }

    pub(super) fn print(&self) -> String {
        TEXT.encode(serde_json::to_string(self).unwrap_or_default())
    }

    /// The state that is meant; `None` for the newest.
    pub(super) fn version(&self) -> Option<u64> {
        u64::try_from(self.rv).ok()
    }

    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |why: &str| {
            Error::BadRequest(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = TEXT.decode(text).map_err(|error| invalid(&not_base64(text, &error)))?;
        let token = Self::read(&bytes).map_err(|why| invalid(&why))?;
        match &token {
            Self { v, .. } if v != VERSION => {
                Err(invalid(&format!("server does not recognize this encoded version {v}")))
            }
            Self { rv: 0, .. } => {
                Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)"))
            }
            Self { start, .. } if start.is_empty() => {
                Err(invalid("encoded start key empty (version meta.k8s.io/v1)"))
            }
            Self { start, .. } if !is_clean(start) => Err(invalid(start)),
            _ => Ok(token),
        }
    }

    /// As Go reads it: the case of names does not matter, null is nothing, and of several mistakes
    /// the first is told.
    fn read(bytes: &[u8]) -> Result<Self, String> {
        if let Some(problem) = json::problem(bytes) {
            return Err(problem);
        }
        let mut token = Self::default();
        let fields = match json::fields(bytes)? {
            Ok(fields) => fields,
            Err(Value::Null) => return Ok(token),
            Err(other) => {
                let into = "Go value of type storage.continueToken";
                return Err(format!("json: cannot unmarshal {} into {into}", kind(&other)));
            }
        };
        let mut wrong = None;
        for (name, value) in fields {
            let name = name.to_lowercase();
            let told = |got: &str, type_: &str| {
                let into = format!("Go struct field continueToken.{name} of type {type_}");
                Some(format!("json: cannot unmarshal {got} into {into}"))
            };
            let problem = match (&*name, value) {
                ("v" | "rv" | "start", Value::Null) => None,
                ("v", Value::String(text)) => {
                    token.v = text;
                    None
                }
                ("start", Value::String(text)) => {
                    token.start = text;
                    None
                }
                ("v" | "start", other) => told(kind(&other), "string"),
                ("rv", Value::Number(number)) => match number.as_i64() {
                    Some(rv) => {
                        token.rv = rv;
                        None
                    }
                    None => told(&format!("number {number}"), "int64"),
                },
                ("rv", other) => told(kind(&other), "int64"),
                _ => None,
            };
            wrong = wrong.or(problem);
        }
        wrong.map_or(Ok(token), Err)
    }

    /// The first key of the page.
    pub(super) fn key(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.start.strip_prefix('/').unwrap_or(&self.start))
    }
}

/// A token as it would be handed out.
pub(crate) fn reread_token(text: &str) -> Result<String, Error> {
    Token::parse(text).map(|token| token.print())
}

/// Whether a path leads nowhere but down, by the shortest way.
fn is_clean(start: &str) -> bool {
    let path = start.strip_prefix('/').unwrap_or(start);
    path.is_empty() || !path.split('/').any(|part| matches!(part, "" | "." | ".."))
}

/// In the words of Go.
fn not_base64(text: &str, error: &DecodeError) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) => *at,
        _ => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {at}")
}

/// As Go calls it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_their_text() {
        let token = Token::new(7, "a/b\0".into());
        assert_eq!(Token::parse(&token.print()).unwrap(), token);
        for broken in ["", "%%%", "YWJj", &TEXT.encode(r#"{"v":"x","rv":1,"start":""}"#)] {
            assert!(matches!(Token::parse(broken), Err(Error::BadRequest(_))), "{broken}");
        }
    }

    #[test]
    fn a_page_begins_inside_what_is_listed() {
        for (start, want) in [("b\0", "n/b\0"), ("/b\0", "n/b\0"), ("a/b", "n/a/b")] {
            let token = Token::parse(&Token::new(7, start.into()).print()).unwrap();
            assert_eq!(token.key("n/"), want);
        }
        for start in ["../x", "a/../b", "a//b", "a/", "./a", "//"] {
            let refused = Token::parse(&Token::new(7, start.into()).print()).unwrap_err();
            let want = format!("invalid continue token: continue key is not valid: {start}");
            assert_eq!(refused.to_string(), want);
        }
    }

    #[test]
    fn fields_of_other_types_are_told_as_go_tells_them() {
        let of = |got: &str, field: &str, type_: &str| {
            let into = format!("Go struct field continueToken.{field} of type {type_}");
            format!("json: cannot unmarshal {got} into {into}")
        };
        let whole = |got: &str| {
            format!("json: cannot unmarshal {got} into Go value of type storage.continueToken")
        };
        for (text, want) in [
            ("[]", whole("array")),
            ("\"x\"", whole("string")),
            ("7", whole("number")),
            ("true", whole("bool")),
            (r#"{"rv":"7"}"#, of("string", "rv", "int64")),
            (r#"{"rv":1.5}"#, of("number 1.5", "rv", "int64")),
            (r#"{"v":7}"#, of("number", "v", "string")),
            (r#"{"start":[]}"#, of("array", "start", "string")),
            (r#"{"start":1,"rv":"a"}"#, of("number", "start", "string")),
            (r#"{"RV":{}}"#, of("object", "rv", "int64")),
        ] {
            assert_eq!(Token::read(text.as_bytes()), Err(want), "{text}");
        }
        let read = |text: &str| Token::read(text.as_bytes()).unwrap();
        assert_eq!(
            read(r#"{"RV":5,"rv":null,"x":[{}],"start":"a","start":"b"}"#),
            Token { v: String::new(), rv: 5, start: "b".into() }
        );
        assert_eq!(read("null"), Token::default());
    }
}
