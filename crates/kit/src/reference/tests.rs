use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn a_host_is_what_has_a_dot_or_a_colon() {
    for (text, registry, repository, version) in [
        ("tiny", LOCAL, "tiny", "latest"),
        ("org/tiny:v1", LOCAL, "org/tiny", "v1"),
        ("ghcr.io/org/tiny", "ghcr.io", "org/tiny", "latest"),
        ("127.0.0.1:5000/a/b/c:v2", "127.0.0.1:5000", "a/b/c", "v2"),
        ("host:5000/m", "host:5000", "m", "latest"),
        ("localhost/m:x", LOCAL, "m", "x"),
        ("localhost:5000/m:x", "localhost:5000", "m", "x"),
    ] {
        let reference = Reference::parse(text).unwrap();
        assert_eq!(
            (reference.registry(), reference.repository()),
            (registry, repository),
            "{text}"
        );
        assert_eq!(*reference.version(), Version::Tag(Tag::parse(version).unwrap()), "{text}");
    }
}

#[test]
fn a_digest_goes_before_a_tag_and_stands_for_itself() {
    let digest = Version::Digest(DIGEST.parse().unwrap());
    let named = Reference::parse(&format!("ghcr.io/a/b:v1@{DIGEST}")).unwrap();
    assert_eq!((named.version(), named.to_string()), (&digest, format!("ghcr.io/a/b@{DIGEST}")));
    let bare = Reference::parse(DIGEST).unwrap();
    assert_eq!((bare.registry(), bare.repository()), (LOCAL, UNNAMED));
    assert_eq!(*bare.version(), digest);
}

#[test]
fn several_tags_may_follow() {
    let (first, others) = Reference::parse_with_tags("r.io/m:a,b,c").unwrap();
    assert_eq!(first.to_string(), "r.io/m:a");
    assert_eq!(others, [Tag::parse("b").unwrap(), Tag::parse("c").unwrap()]);
}

#[test]
fn what_no_registry_would_take_is_refused() {
    for text in [
        "",
        ":tag",
        "a/",
        "/a",
        "a//b",
        "a/../b",
        "-a",
        "a-",
        "a._b",
        "a___b",
        "a:b:c",
        "a:",
        "a:t,",
        "a b",
        "r.io:99999/a",
        "r.io:/a",
        "a@sha256:00",
        "é",
    ] {
        assert!(Reference::parse(text).is_err(), "{text:?}");
    }
    let error = Reference::parse("r.io/Org/Model").unwrap_err();
    assert_eq!(error.to_string(), "repository (Org/Model) name must be lowercase");
}
