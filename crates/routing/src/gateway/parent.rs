//! Whether a route may hang on a parent, and under which names it is then reached.

use serde::Deserialize;

use super::route::Hostname;

pub(super) const GROUP: &str = "gateway.networking.k8s.io";

/// As a route names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParentRef {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub namespace: Option<String>,
    pub name: String,
    pub section_name: Option<String>,
    pub port: Option<u16>,
}

/// A `Gateway`, as far as routes are concerned.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpec {
    pub gateway_class_name: String,
    pub listeners: Vec<ListenerSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSpec {
    pub name: String,
    pub hostname: Option<String>,
    pub port: u16,
    pub protocol: String,
    pub allowed_routes: AllowedSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllowedSpec {
    pub namespaces: NamespacesSpec,
    pub kinds: Vec<KindSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespacesSpec {
    pub from: Option<String>,
    pub selector: SelectorSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectorSpec {
    pub match_labels: std::collections::BTreeMap<String, String>,
    pub match_expressions: Vec<ExpressionSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExpressionSpec {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KindSpec {
    pub group: Option<String>,
    pub kind: String,
}

/// The route that asks to be accepted.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    pub namespace: &'a str,
    /// The labels of its namespace.
    pub labels: &'a std::collections::BTreeMap<String, String>,
    pub hostnames: &'a [String],
}

/// Why not, in the words of the condition `Accepted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NoMatchingParent,
    NotAllowedByListeners,
    NoMatchingListenerHostname,
}

impl Refusal {
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoMatchingParent => "NoMatchingParent",
            Self::NotAllowedByListeners => "NotAllowedByListeners",
            Self::NoMatchingListenerHostname => "NoMatchingListenerHostname",
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Self::NoMatchingParent => "the gateway has no such listener",
            Self::NotAllowedByListeners => "no listener allows routes of this kind and namespace",
            Self::NoMatchingListenerHostname => {
                "no listener has a hostname in common with the route"
            }
        }
    }
}

impl ParentRef {
    pub fn is_gateway(&self) -> bool {
        self.group.as_deref().unwrap_or(GROUP) == GROUP
            && self.kind.as_deref().unwrap_or("Gateway") == "Gateway"
    }
}

/// How a route hangs on a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// Under which names it is reached; none means any.
    pub hostnames: Vec<String>,
    /// The names of the listeners.
    pub listeners: Vec<String>,
}

/// Whether the gateway takes the route.
pub fn accept(
    applicant: Applicant<'_>,
    parent: &ParentRef,
    gateway: (&str, &GatewaySpec),
) -> Result<Attached, Refusal> {
    let (namespace, spec) = gateway;
    let is_meant = |listener: &&ListenerSpec| {
        parent.section_name.as_ref().is_none_or(|name| *name == listener.name)
            && parent.port.is_none_or(|port| port == listener.port)
            && listener.is_served()
    };
    let meant: Vec<_> = spec.listeners.iter().filter(is_meant).collect();
    if meant.is_empty() {
        return Err(Refusal::NoMatchingParent);
    }
    let allowed: Vec<_> =
        meant.into_iter().filter(|listener| listener.allows(applicant, namespace)).collect();
    if allowed.is_empty() {
        return Err(Refusal::NotAllowedByListeners);
    }
    let mut attached = Attached::default();
    let mut any = false;
    for listener in allowed {
        let Some(common) = common(listener.hostname.as_deref(), applicant.hostnames) else {
            continue;
        };
        any |= common.is_empty();
        attached.hostnames.extend(common);
        attached.listeners.push(listener.name.clone());
    }
    if attached.listeners.is_empty() {
        return Err(Refusal::NoMatchingListenerHostname);
    }
    if any {
        attached.hostnames.clear();
    }
    attached.hostnames.sort_unstable();
    attached.hostnames.dedup();
    Ok(attached)
}

impl ListenerSpec {
    pub fn is_served(&self) -> bool {
        matches!(self.protocol.as_str(), "HTTP" | "HTTPS")
    }

    /// Whether it wants routes of the kind that there is here.
    pub fn takes_http(&self) -> bool {
        let kinds = &self.allowed_routes.kinds;
        kinds.is_empty() || kinds.iter().any(KindSpec::is_http)
    }

    /// Whether it wants routes of no other kind.
    pub fn takes_only_http(&self) -> bool {
        self.allowed_routes.kinds.iter().all(KindSpec::is_http)
    }

    fn allows(&self, applicant: Applicant<'_>, namespace: &str) -> bool {
        let namespaces = &self.allowed_routes.namespaces;
        let from = match namespaces.from.as_deref().unwrap_or("Same") {
            "All" => true,
            "Same" => applicant.namespace == namespace,
            "Selector" => namespaces.selector.matches(applicant.labels),
            _ => false,
        };
        from && self.takes_http()
    }
}

impl KindSpec {
    fn is_http(&self) -> bool {
        self.kind == "HTTPRoute" && self.group.as_deref().unwrap_or(GROUP) == GROUP
    }
}

impl SelectorSpec {
    fn matches(&self, labels: &std::collections::BTreeMap<String, String>) -> bool {
        let equal = self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        let holds = |expression: &ExpressionSpec| {
            let value = labels.get(&expression.key);
            let listed = value.is_some_and(|value| expression.values.contains(value));
            match expression.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        };
        equal && self.match_expressions.iter().all(holds)
    }
}

/// The names that listener and route have in common, the narrower of each two. Nothing if they have
/// none; an empty list if neither names any.
fn common(listener: Option<&str>, route: &[String]) -> Option<Vec<String>> {
    let Some(listener) = listener.filter(|name| !name.is_empty()) else {
        return Some(route.to_vec());
    };
    if route.is_empty() {
        return Some(vec![listener.to_owned()]);
    }
    let narrower = |name: &String| {
        if covers(listener, name) {
            return Some(name.clone());
        }
        covers(name, listener).then(|| listener.to_owned())
    };
    let names: Vec<String> = route.iter().filter_map(narrower).collect();
    (!names.is_empty()).then_some(names)
}

fn covers(wide: &str, narrow: &str) -> bool {
    let (wide, narrow) = (Hostname::of(wide), Hostname::of(narrow));
    match (&wide, &narrow) {
        (_, Hostname::Exact(name)) => wide.matches(name),
        (Hostname::Wildcard(wide), Hostname::Wildcard(narrow)) => narrow.ends_with(wide.as_str()),
        (Hostname::Exact(_), Hostname::Wildcard(_)) => false,
    }
}

#[cfg(test)]
mod tests;
