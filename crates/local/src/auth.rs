//! Who asks, and what it may do.
use std::collections::BTreeMap;
use jiff::Timestamp;
use serde_json::Value;
use crate::{builtin::Resource, error::Cause};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
    pub uid: String,
    pub extra: BTreeMap<String, Vec<String>>,
}
impl User {
    pub fn admin() -> User { User { name: "windlass-admin".into(), groups: vec!["system:masters".into()], ..User::default() } }
}
pub struct Rbac;
impl Rbac {
    pub fn new<'a>(_: impl IntoIterator<Item = &'a Value>) -> Rbac { Rbac }
    pub fn allows(&self, _: &User, _: &Attributes<'_>) -> bool { true }
}
pub struct Attributes<'a> { pub verb: &'a str, pub target: Target<'a> }
pub enum Target<'a> {
    Resource { group: &'a str, resource: &'a str, subresource: &'a str, namespace: &'a str, name: &'a str },
    Path(&'a str),
}
pub fn denial(_: &User, _: &Attributes<'_>) -> String { String::new() }
pub enum Impersonation { None, As(User), Forbidden { resource: &'static str, name: String, text: String }, Incomplete }
pub fn impersonation<'a>(_: &User, _: impl IntoIterator<Item = (&'a str, &'a str)>, _: &Rbac) -> Impersonation { Impersonation::None }
pub enum Escalation { Forbidden(String), NoRole { kind: String, name: String } }
pub fn escalation(_: &Rbac, _: &User, _: &Resource, _: &str, _: &Value, _: Option<&Value>) -> Result<(), Escalation> { Ok(()) }
pub struct Reviewer<'a> {
    pub user: &'a User,
    pub rbac: &'a Rbac,
    pub authenticate: &'a dyn Fn(&str, &[String]) -> Option<(User, Vec<String>)>,
    pub time: &'a str,
    pub namespace: &'a str,
}
pub enum Refusal { Invalid(Vec<Cause>), BadRequest(String) }
pub fn review(_: &str, body: Value, _: &Reviewer<'_>) -> Result<Value, Refusal> { Ok(body) }
pub struct Tokens;
pub struct TokenRequest { pub namespace: String, pub account: String, pub account_uid: String, pub audiences: Vec<String>, pub seconds: i64, pub bound: Option<Bound> }
pub struct Bound { pub kind: String, pub name: String, pub uid: String }
pub struct Issued { pub token: String, pub expires: Timestamp }
pub struct Claims { pub namespace: String, pub account: String, pub account_uid: String, pub audiences: Vec<String>, pub bound: Option<Bound> }
impl Claims {
    pub fn holds(&self, _: Option<&Value>, _: Option<&Value>) -> bool { true }
    pub fn user(&self) -> User { User::default() }
}
pub enum Error {}
impl Tokens {
    pub fn is_admin(&self, _: &str) -> bool { true }
    pub fn check(&self, _: &str, _: &[String], _: Timestamp) -> Option<Claims> { None }
    pub fn issue(&self, _: &TokenRequest, now: Timestamp) -> Result<Issued, Error> { Ok(Issued { token: String::new(), expires: now }) }
    pub fn jwks(&self) -> Value { Value::Null }
    pub fn configuration(_: &str) -> Value { Value::Null }
}
pub fn token_request(_: &Value) -> Result<(Vec<String>, i64), Vec<Cause>> { Ok((Vec::new(), 0)) }
pub fn bootstrap() -> Vec<Value> { Vec::new() }

pub struct Certificates { pub authority: String, pub chain: Vec<Vec<u8>>, pub key: Vec<u8> }
impl Certificates { pub fn load_or_create(_: &std::path::Path, _: Timestamp) -> Result<Self, Error> { Ok(Self { authority: String::new(), chain: Vec::new(), key: Vec::new() }) } }
impl Tokens { pub fn load_or_create(_: &std::path::Path) -> Result<Self, Error> { Ok(Self) }  pub fn admin(&self) -> &str { "" } }
