//! Names given as flags, refused before anything is done with them.

/// A namespace or another name that must be a DNS label.
pub(crate) fn dns_label(text: &str) -> Result<String, String> {
    if text.len() <= 63 && has_form_of_label(text) {
        return Ok(text.to_owned());
    }
    Err("must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit".to_owned())
}

fn has_form_of_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edge = |c: Option<char>| c.is_some_and(|c| inner(c) && c != '-');
    text.chars().all(inner) && edge(text.chars().next()) && edge(text.chars().last())
}

/// Dot-separated labels, as for the names of most objects. Kubernetes limits only the whole, not each
/// of them.
pub(crate) fn dns_subdomain(text: &str) -> Result<String, String> {
    if text.len() <= 253 && text.split('.').all(has_form_of_label) {
        return Ok(text.to_owned());
    }
    Err("must be at most 253 of a-z, 0-9, - and ., each part between dots beginning and ending with a \
         letter or digit"
        .to_owned())
}

/// An image reference: anything but nothing and white space.
pub(crate) fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err("must be an image reference".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_what_is_none() {
        for (text, label, subdomain) in [
            ("a", true, true),
            ("windlass-system", true, true),
            ("a.b", false, true),
            ("", false, false),
            ("Bad_NS", false, false),
            ("-a", false, false),
            ("a-", false, false),
            ("a..b", false, false),
        ] {
            assert_eq!(dns_label(text).is_ok(), label, "{text}");
            assert_eq!(dns_subdomain(text).is_ok(), subdomain, "{text}");
        }
        assert!(dns_label(&"a".repeat(64)).is_err());
        assert!(dns_subdomain(&"a".repeat(64)).is_ok());
        assert!(dns_subdomain(&"a".repeat(254)).is_err());
    }
}
