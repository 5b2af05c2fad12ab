//! What a path asks for.

/// A path, taken apart. Nothing is looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// `/api` or `/apis`.
    Roots {
        core: bool,
    },
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` or `/apis/<group>/<version>`.
    Version {
        group: String,
        version: String,
    },
    Resource(Resource),
    /// Anything else.
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    /// Empty for the cluster or for all namespaces.
    pub(super) namespace: String,
    pub(super) plural: String,
    pub(super) name: String,
    pub(super) subresource: String,
}

pub(super) fn parse(path: &str) -> Path {
    let Some(parts) = split(path) else { return Path::Other };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let owned = |text: &str| text.to_owned();
    match parts.as_slice() {
        ["api"] => Path::Roots { core: true },
        ["apis"] => Path::Roots { core: false },
        ["api", version] => Path::Version { group: String::new(), version: owned(version) },
        ["apis", group] => Path::Group(owned(group)),
        ["apis", group, version] => Path::Version { group: owned(group), version: owned(version) },
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] if !group.is_empty() => resource(group, version, rest),
        _ => Path::Other,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Path {
    let new = |namespace: &str, plural: &str, name: &str, subresource: &str| {
        Path::Resource(Resource {
            group: group.into(),
            version: version.into(),
            namespace: namespace.into(),
            plural: plural.into(),
            name: name.into(),
            subresource: subresource.into(),
        })
    };
    match rest {
        // The namespace itself, not what is in it.
        ["namespaces", name, subresource @ ("status" | "finalize")] => {
            new("", "namespaces", name, subresource)
        }
        ["namespaces", namespace, plural] => new(namespace, plural, "", ""),
        ["namespaces", namespace, plural, name] => new(namespace, plural, name, ""),
        ["namespaces", namespace, plural, name, subresource] => {
            new(namespace, plural, name, subresource)
        }
        [plural] => new("", plural, "", ""),
        [plural, name] => new("", plural, name, ""),
        [plural, name, subresource] => new("", plural, name, subresource),
        _ => Path::Other,
    }
}

/// The parts between the slashes, decoded. `None` if one of them could not be a name: those that
/// climb, hold a slash or are empty.
fn split(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/')
        .map(|part| {
            let part = String::from_utf8(decode(part, false)?).ok()?;
            let odd = part.is_empty() || part == "." || part == ".." || part.contains(['/', '\0']);
            (!odd).then_some(part)
        })
        .collect()
}

/// Undoes percent encoding; in a query a plus is a space. `None` if it is broken.
pub(super) fn decode(text: &str, query: bool) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if query => b' ',
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let resource = |[group, version, namespace, plural, name, subresource]: [&str; 6]| {
            Path::Resource(Resource {
                group: group.into(),
                version: version.into(),
                namespace: namespace.into(),
                plural: plural.into(),
                name: name.into(),
                subresource: subresource.into(),
            })
        };
        for (path, want) in [
            ("/api", Path::Roots { core: true }),
            ("/apis/", Path::Roots { core: false }),
            ("/apis/apps", Path::Group("apps".into())),
            ("/api/v1/pods", resource(["", "v1", "", "pods", "", ""])),
            ("/api/v1/namespaces", resource(["", "v1", "", "namespaces", "", ""])),
            ("/api/v1/namespaces/a", resource(["", "v1", "", "namespaces", "a", ""])),
            ("/api/v1/namespaces/a/status", resource(["", "v1", "", "namespaces", "a", "status"])),
            ("/api/v1/namespaces/a/pods", resource(["", "v1", "a", "pods", "", ""])),
            ("/api/v1/namespaces/a/pods/p/log", resource(["", "v1", "a", "pods", "p", "log"])),
            ("/apis/apps/v1/deployments", resource(["apps", "v1", "", "deployments", "", ""])),
            (
                "/apis/apps/v1/namespaces/a/deployments/d%2Dx/scale",
                resource(["apps", "v1", "a", "deployments", "d-x", "scale"]),
            ),
            ("/api/v1/nodes/n/status", resource(["", "v1", "", "nodes", "n", "status"])),
        ] {
            assert_eq!(parse(path), want, "{path}");
        }
    }

    #[test]
    fn what_climbs_is_no_path() {
        for path in [
            "",
            "/",
            "//",
            "/api//v1",
            "/api/v1/../secrets",
            "/api/v1/namespaces/%2e%2e/secrets",
            "/api/v1/namespaces/a%2Fb/secrets",
            "/api/v1/%zz",
            "/api/v1/%",
            "/api/v1/%ff",
            "/etc/passwd",
            "/api/v1/namespaces/a/pods/p/proxy/x/y",
            "/apis/%00/v1/x",
        ] {
            assert_eq!(parse(path), Path::Other, "{path}");
        }
    }
}
