//! Standing for somebody else, so that one can try out their rights.

use super::{ACCOUNT_PREFIX, AUTHENTICATED, Attributes, Rbac, Target, User, denial};

/// What came of the request to stand for somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impersonation {
    /// Nobody asked for it.
    None,
    As(User),
    /// The caller may not; the subject (as in `users "x"`) and why.
    Forbidden {
        resource: &'static str,
        name: String,
        text: String,
    },
    /// Groups and the like were given without a user.
    Incomplete,
}

/// Reads the request's headers, as name and value.
pub fn impersonation(
    caller: &User,
    headers: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    rbac: &Rbac,
) -> Impersonation {
    let mut wanted = User::default();
    let mut asked = false;
    for (name, value) in headers {
        let (name, value) = (name.as_ref().to_ascii_lowercase(), value.as_ref());
        let Some(part) = name.strip_prefix("impersonate-") else { continue };
        match part {
            "user" => wanted.name = value.to_owned(),
            "group" => wanted.groups.push(value.to_owned()),
            "uid" => wanted.uid = value.to_owned(),
            other => match other.strip_prefix("extra-") {
                Some(key) => wanted.extra.entry(key.to_owned()).or_default().push(value.to_owned()),
                None => continue,
            },
        }
        asked = true;
    }
    if !asked {
        return Impersonation::None;
    }
    if wanted.name.is_empty() {
        return Impersonation::Incomplete;
    }
    match refused(caller, &wanted, rbac) {
        Some(refusal) => refusal,
        None => Impersonation::As(completed(wanted)),
    }
}

fn refused(caller: &User, wanted: &User, rbac: &Rbac) -> Option<Impersonation> {
    let User { name, groups, uid, extra } = wanted;
    let account = name.strip_prefix(ACCOUNT_PREFIX).and_then(|account| account.split_once(':'));
    let who = match account {
        Some((namespace, name)) => ("", "serviceaccounts", "", namespace, name),
        None => ("", "users", "", "", name.as_str()),
    };
    let authentication = "authentication.k8s.io";
    let mut wishes = vec![who];
    wishes.extend(groups.iter().map(|group| ("", "groups", "", "", group.as_str())));
    if !uid.is_empty() {
        wishes.push((authentication, "uids", "", "", uid));
    }
    for (key, values) in extra {
        let values = values
            .iter()
            .map(|value| (authentication, "userextras", key.as_str(), "", value.as_str()));
        wishes.extend(values);
    }
    wishes.into_iter().find_map(|(group, resource, subresource, namespace, name)| {
        let target = Target::Resource { group, resource, subresource, namespace, name };
        let wish = Attributes { verb: "impersonate", target };
        (!rbac.allows(caller, &wish)).then(|| Impersonation::Forbidden {
            resource,
            name: name.to_owned(),
            text: denial(caller, &wish),
        })
    })
}

/// With the groups that the user would have had by signing in itself.
fn completed(mut user: User) -> User {
    let account =
        user.name.strip_prefix(ACCOUNT_PREFIX).and_then(|account| account.split_once(':'));
    if let (true, Some((namespace, name))) = (user.groups.is_empty(), account) {
        user.groups = User::account(namespace, name, "").groups;
    }
    let known = user.is_in(AUTHENTICATED) || user.is_in("system:unauthenticated");
    if !known && user.name != "system:anonymous" {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}
