//! The fields of an `HTTPRoute` that decide about requests, as its definition has them.

use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteSpec {
    pub hostnames: Vec<String>,
    pub rules: Vec<RuleSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleSpec {
    pub matches: Vec<MatchSpec>,
    pub filters: Vec<FilterSpec>,
    pub timeouts: TimeoutsSpec,
    pub backend_refs: Vec<BackendSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MatchSpec {
    pub path: Option<PathSpec>,
    pub method: Option<String>,
    pub headers: Vec<ValueSpec>,
    pub query_params: Vec<ValueSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathSpec {
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub value: Option<String>,
}

/// A header or a query parameter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueSpec {
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TimeoutsSpec {
    pub request: Option<String>,
    pub backend_request: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendSpec {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub namespace: Option<String>,
    pub name: String,
    pub port: Option<u16>,
    pub weight: Option<u32>,
    pub filters: Vec<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilterSpec {
    #[serde(rename = "type")]
    pub type_: String,
    pub url_rewrite: Option<RewriteSpec>,
    pub request_header_modifier: Option<ModifierSpec>,
    pub response_header_modifier: Option<ModifierSpec>,
    pub request_redirect: Option<RedirectSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RewriteSpec {
    pub hostname: Option<String>,
    pub path: Option<PathChangeSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathChangeSpec {
    #[serde(rename = "type")]
    pub type_: String,
    pub replace_full_path: Option<String>,
    pub replace_prefix_match: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RedirectSpec {
    pub scheme: Option<String>,
    pub hostname: Option<String>,
    pub path: Option<PathChangeSpec>,
    pub port: Option<u16>,
    pub status_code: Option<u16>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModifierSpec {
    pub set: Vec<HeaderSpec>,
    pub add: Vec<HeaderSpec>,
    pub remove: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderSpec {
    pub name: String,
    pub value: String,
}
