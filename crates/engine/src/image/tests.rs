use super::*;

#[test]
fn references_fall_into_registry_repository_name_and_tag() {
    let digest = format!("ghcr.io/org/app:v1@sha256:ABCDEF{}", "0".repeat(58));
    for (text, registry, repository, name, tag) in [
        ("nginx", "docker-io", "nginx", "nginx", "latest"),
        ("team/app:v1.2.0", "docker-io", "team/app", "app", "v1-2-0"),
        ("ghcr.io/Org/My_App:1", "ghcr-io", "Org/My_App", "my-app", "1"),
        ("localhost/app", "localhost", "app", "app", "latest"),
        ("registry:5000/a/b:t", "registry-5000", "a/b", "b", "t"),
        (&digest, "ghcr-io", "org/app", "app", "abcdef"),
    ] {
        let want = ImageRef {
            registry: registry.into(),
            repository: repository.into(),
            name: name.into(),
            tag: tag.into(),
        };
        assert_eq!(ImageRef::parse(text).unwrap(), want);
    }
}

#[test]
fn what_is_no_reference_is_refused() {
    for text in ["", "a b", "a//b", "ghcr.io/", "app:", "/app", "app@sha256:12", "app@abcdef012"] {
        assert!(ImageRef::parse(text).is_err(), "{text:?}");
    }
}
