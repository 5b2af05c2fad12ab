//! How a registry wants to be asked: the `WWW-Authenticate` header.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// The first one that is known; Bearer goes before Basic.
pub(super) fn parse<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut known: Vec<Challenge> = headers.filter_map(parse_one).collect();
    known.sort_by_key(|challenge| *challenge == Challenge::Basic);
    known.into_iter().next()
}

fn parse_one(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (None, None, None);
    for (key, value) in parameters(rest) {
        match key.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            "scope" => scope = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer { realm: realm?, service, scope })
}

/// `key="value"` pairs; a value in quotes may have commas.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches([' ', ',']);
    while let Some((key, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((key.trim().to_owned(), value.trim().to_owned()));
        rest = after.trim_start_matches([' ', ',']);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_understood_however_it_is_written() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        };
        for (header, want) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a/token\",service=\"r.io\",scope=\"repository:m:pull,push\"",
                Some(bearer("https://a/token", Some("r.io"), Some("repository:m:pull,push"))),
            ),
            ("bearer service=r.io, realm=https://a", Some(bearer("https://a", Some("r.io"), None))),
            ("Bearer service=\"x\"", None),
            ("Negotiate", None),
            ("Bearer realm=\"unfinished", Some(bearer("unfinished", None, None))),
            ("", None),
        ] {
            assert_eq!(parse([header].into_iter()), want, "{header}");
        }
        let both = ["Basic realm=\"x\"", "Bearer realm=\"y\""];
        assert_eq!(parse(both.into_iter()), Some(bearer("y", None, None)));
    }

    proptest::proptest! {
        #[test]
        fn no_header_is_too_strange(header in "(Bearer|Basic|)[ a-z=\",;\\\\é]{0,40}") {
            if let Some(Challenge::Bearer { realm, .. }) = parse([header.as_str()].into_iter()) {
                proptest::prop_assert!(header.contains(&realm));
            }
        }
    }
}
