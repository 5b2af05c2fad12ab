//! Single rules of roles.

use serde_json::Value;

use super::User;
use crate::builtin::object::items;

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    pub verb: &'a str,
    pub target: Target<'a>,
}

impl<'a> Attributes<'a> {
    /// Empty for what is of the whole cluster.
    pub fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Resource {
        group: &'a str,
        resource: &'a str,
        /// Empty: the object itself.
        subresource: &'a str,
        /// Empty: the whole cluster.
        namespace: &'a str,
        /// Empty: no single object.
        name: &'a str,
    },
    /// A path outside of resources.
    Path(&'a str),
}

/// Says that the user may not, without naming the object.
pub fn denial(user: &User, wish: &Attributes<'_>) -> String {
    let (user, verb) = (&user.name, wish.verb);
    match wish.target {
        Target::Path(path) => format!("User {user:?} cannot {verb} path {path:?}"),
        Target::Resource { group, resource, subresource, namespace, .. } => {
            let full = joined(resource, subresource);
            let scope = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            format!("User {user:?} cannot {verb} resource {full:?} in API group {group:?} {scope}")
        }
    }
}

fn joined(resource: &str, subresource: &str) -> String {
    if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") }
}

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) groups: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) urls: Vec<String>,
    pub(super) verbs: Vec<String>,
}

impl Rule {
    pub(super) fn read(rule: &Value) -> Rule {
        let list = |field: &str| {
            let texts = items(rule, &[field]).iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        Rule {
            groups: list("apiGroups"),
            resources: list("resources"),
            names: list("resourceNames"),
            urls: list("nonResourceURLs"),
            verbs: list("verbs"),
        }
    }

    pub(super) fn allows(&self, wish: &Attributes<'_>) -> bool {
        if !matches_any(&self.verbs, wish.verb) {
            return false;
        }
        match wish.target {
            Target::Path(path) => self.urls.iter().any(|url| covers_url(url, path)),
            Target::Resource { group, resource, subresource, name, .. } => {
                matches_any(&self.groups, group)
                    && covers_resource(&self.resources, &joined(resource, subresource))
                    && (self.names.is_empty() || self.names.iter().any(|own| own == name))
            }
        }
    }

    /// Whether whoever has this rule has the other one too, which is of [`Rule::parts`].
    pub(super) fn covers(&self, part: &Rule) -> bool {
        let all = |own: &[String], part: &[String]| {
            own.iter().any(|item| item == "*") || part.iter().all(|item| own.contains(item))
        };
        let names = if part.names.is_empty() {
            self.names.is_empty()
        } else {
            self.names.is_empty() || part.names.iter().all(|name| self.names.contains(name))
        };
        names
            && all(&self.verbs, &part.verbs)
            && all(&self.groups, &part.groups)
            && part.resources.iter().all(|resource| covers_resource(&self.resources, resource))
            && part.urls.iter().all(|path| self.urls.iter().any(|url| covers_url(url, path)))
    }

    /// The same rights, each with one verb and one thing to do it to.
    pub(super) fn parts(&self) -> Vec<Rule> {
        let mut parts = Vec::new();
        let names: Vec<Vec<String>> = match &self.names[..] {
            [] => vec![Vec::new()],
            names => names.iter().map(|name| vec![name.clone()]).collect(),
        };
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    parts.extend(names.iter().map(|names| Rule {
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        verbs: vec![verb.clone()],
                        names: names.clone(),
                        ..Rule::default()
                    }));
                }
            }
        }
        for url in &self.urls {
            for verb in &self.verbs {
                let (urls, verbs) = (vec![url.clone()], vec![verb.clone()]);
                parts.push(Rule { urls, verbs, ..Rule::default() });
            }
        }
        parts
    }

    /// As messages of refused grants print it.
    fn describe(&self) -> String {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let fields = fields.iter().filter(|(_, list)| !list.is_empty());
        let fields: Vec<_> =
            fields.map(|(name, list)| format!("{name}:{}", go_list(list))).collect();
        format!("{{{}}}", fields.join(", "))
    }
}

/// A list as Go prints it with quotes: `["a" "b"]`.
pub(super) fn go_list(list: &[String]) -> String {
    let quoted: Vec<_> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Parts of rules, those of one resource together, one a line.
pub(super) fn describe(parts: &[Rule]) -> String {
    let mut together: Vec<Rule> = Vec::new();
    for part in parts {
        let same = |rule: &&mut Rule| {
            rule.groups == part.groups
                && rule.resources == part.resources
                && rule.names == part.names
                && rule.urls == part.urls
        };
        match together.iter_mut().find(same) {
            Some(rule) if part.urls.is_empty() => rule.verbs.extend(part.verbs.iter().cloned()),
            _ => together.push(part.clone()),
        }
    }
    let mut lines: Vec<_> = together.iter().map(Rule::describe).collect();
    lines.sort();
    lines.dedup();
    lines.join("\n")
}

fn matches_any(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

/// `full` is `resource` or `resource/subresource`.
fn covers_resource(list: &[String], full: &str) -> bool {
    list.iter().any(|item| {
        item == "*"
            || item == full
            || match (item.strip_prefix("*/"), full.split_once('/')) {
                (Some(own), Some((_, subresource))) => own == subresource,
                _ => false,
            }
    })
}

fn covers_url(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}
