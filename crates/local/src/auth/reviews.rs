//! Questions about users and rights, answered on the spot.

use serde_json::{Map, Value, json};

use super::{Attributes, Rbac, Target, User};
use crate::{
    builtin::{
        causes::{Causes, Path},
        object::{at, items, text},
    },
    error::Cause,
};

/// Who bears a token, and for which of the audiences asked for.
pub type Authenticate<'a> = dyn Fn(&str, &[String]) -> Option<(User, Vec<String>)> + 'a;

/// What answers need to know.
pub struct Reviewer<'a> {
    pub user: &'a User,
    pub rbac: &'a Rbac,
    pub authenticate: &'a Authenticate<'a>,
    /// Now, in RFC 3339.
    pub time: &'a str,
    /// Of the request's path, for the one review that has one.
    pub namespace: &'a str,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Invalid(Vec<Cause>),
    BadRequest(String),
}

/// The review with its status. `kind` is one that the table of resources marks as a question.
pub fn review(kind: &str, mut body: Value, by: &Reviewer<'_>) -> Result<Value, Refusal> {
    let status = match kind {
        "SelfSubjectReview" => {
            body = with_time(body, by.time);
            json!({ "userInfo": user_info(by.user) })
        }
        "TokenReview" => token(&body, by)?,
        "SelfSubjectRulesReview" => {
            let status = rules(&body, by)?;
            body["spec"] = json!({});
            status
        }
        "SelfSubjectAccessReview" => access(&body, by.user, by)?,
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let user = subject(&body, by)?;
            access(&body, &user, by)?
        }
        other => return Err(Refusal::BadRequest(format!("{other} is not a review"))),
    };
    if !body.is_object() {
        body = Value::Object(Map::new());
    }
    body["status"] = status;
    Ok(body)
}

fn with_time(mut body: Value, time: &str) -> Value {
    if let Some(map) = body.as_object_mut() {
        let meta = map.entry("metadata").or_insert_with(|| json!({}));
        if meta.is_object() {
            meta["creationTimestamp"] = time.into();
        }
    }
    body
}

fn user_info(user: &User) -> Value {
    let mut info = Map::new();
    for (field, value) in [("username", &user.name), ("uid", &user.uid)] {
        if !value.is_empty() {
            info.insert(field.to_owned(), value.as_str().into());
        }
    }
    if !user.groups.is_empty() {
        info.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra".to_owned(), json!(user.extra));
    }
    Value::Object(info)
}

fn texts(value: &Value, path: &[&str]) -> Vec<String> {
    items(value, path).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn token(body: &Value, by: &Reviewer<'_>) -> Result<Value, Refusal> {
    let token = text(body, &["spec", "token"]);
    if token.is_empty() {
        return Err(Refusal::BadRequest(
            "token is required for TokenReview in authentication".to_owned(),
        ));
    }
    Ok(match (by.authenticate)(token, &texts(body, &["spec", "audiences"])) {
        None => json!({ "user": {}, "error": "invalid bearer token" }),
        Some((user, audiences)) => json!({
            "authenticated": true,
            "user": user_info(&user),
            "audiences": audiences,
        }),
    })
}

fn rules(body: &Value, by: &Reviewer<'_>) -> Result<Value, Refusal> {
    let namespace = text(body, &["spec", "namespace"]);
    if namespace.is_empty() {
        return Err(Refusal::BadRequest("no namespace on request".to_owned()));
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    if by.user.is_in(super::MASTERS) {
        resources.push(json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
        paths.push(json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
    }
    for rule in by.rbac.rules(by.user, namespace) {
        if !rule.resources.is_empty() {
            let mut shown = json!({
                "verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources,
            });
            if !rule.names.is_empty() {
                shown["resourceNames"] = json!(rule.names);
            }
            resources.push(shown);
        }
        if !rule.urls.is_empty() {
            paths.push(json!({ "verbs": rule.verbs, "nonResourceURLs": rule.urls }));
        }
    }
    Ok(json!({ "resourceRules": resources, "nonResourceRules": paths, "incomplete": false }))
}

fn subject(body: &Value, by: &Reviewer<'_>) -> Result<User, Refusal> {
    let mut causes = Causes::default();
    let user = User {
        name: text(body, &["spec", "user"]).to_owned(),
        groups: texts(body, &["spec", "groups"]),
        uid: text(body, &["spec", "uid"]).to_owned(),
        ..User::default()
    };
    if user.name.is_empty() && user.groups.is_empty() {
        let detail = "at least one of user or group must be specified";
        causes.invalid(&Path::new("spec.user"), "", detail);
    }
    let asked = text(body, &["spec", "resourceAttributes", "namespace"]);
    if !by.namespace.is_empty() && asked != by.namespace {
        let detail = "must match metadata.namespace";
        causes.invalid(&Path::new("spec.resourceAttributes.namespace"), asked, detail);
    }
    if causes.0.is_empty() { Ok(user) } else { Err(Refusal::Invalid(causes.0)) }
}

fn access(body: &Value, user: &User, by: &Reviewer<'_>) -> Result<Value, Refusal> {
    let none = Value::Null;
    let spec = at(body, &["spec"]).unwrap_or(&none);
    let resource = at(spec, &["resourceAttributes"]);
    let path = at(spec, &["nonResourceAttributes"]);
    let wish = match (resource, path) {
        (Some(wish), None) => Attributes {
            verb: text(wish, &["verb"]),
            target: Target::Resource {
                group: text(wish, &["group"]),
                resource: text(wish, &["resource"]),
                subresource: text(wish, &["subresource"]),
                namespace: text(wish, &["namespace"]),
                name: text(wish, &["name"]),
            },
        },
        (None, Some(wish)) => {
            Attributes { verb: text(wish, &["verb"]), target: Target::Path(text(wish, &["path"])) }
        }
        _ => {
            let mut causes = Causes::default();
            let field =
                if resource.is_some() { "nonResourceAttributes" } else { "resourceAttributes" };
            let (value, rule) = match path {
                Some(_) => ("cannot be specified in combination with", "resourceAttributes"),
                None => (
                    "exactly one of",
                    "nonResourceAttributes or resourceAttributes must be specified",
                ),
            };
            let path = Path::new(format!("spec.{field}"));
            causes.invalid(&path, Value::Null, &format!("{value} {rule}"));
            return Err(Refusal::Invalid(causes.0));
        }
    };
    Ok(match by.rbac.reason(user, &wish) {
        None => match by.rbac.trouble(user, &wish) {
            None => json!({ "allowed": false }),
            Some(reason) => json!({ "allowed": false, "reason": reason }),
        },
        Some(reason) if reason.is_empty() => json!({ "allowed": true }),
        Some(reason) => json!({ "allowed": true, "reason": reason }),
    })
}
