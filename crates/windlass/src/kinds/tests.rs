use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    flags: Flags,
}

fn settings(arguments: &[&str]) -> Result<Settings, String> {
    let line = Line::try_parse_from(["windlass"].iter().chain(arguments));
    line.map(|line| line.flags.inference_service().settings).map_err(|error| error.to_string())
}

#[test]
fn without_flags_the_settings_are_those_of_the_kind() {
    assert_eq!(settings(&[]), Ok(Settings::default()));
    assert_eq!(Flags::default().inference_service().settings, Settings::default());
}

#[test]
fn directories_of_nodes_are_a_list_that_may_be_empty() {
    for (flag, want) in [
        ("--host-path-prefixes=/a", &["/a"][..]),
        ("--host-path-prefixes=/a, /b/c", &["/a", "/b/c"]),
        ("--host-path-prefixes=", &[]),
    ] {
        assert_eq!(settings(&[flag]).unwrap().host_path_prefixes, want, "{flag}");
    }
    for flag in ["--host-path-prefixes=a", "--host-path-prefixes=/a/../b"] {
        assert!(settings(&[flag]).unwrap_err().contains("must start with / and not contain .."));
    }
}

#[test]
fn the_flags_of_model_services_have_the_defaults_of_the_kind() {
    let line = Line::try_parse_from(["windlass"]).unwrap();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let want = windlass_domains::model_service::Settings { version, ..Default::default() };
    for flags in [line.flags, Flags::default()] {
        assert_eq!(flags.model_service.domain(&flags.kit_image).settings, want);
    }
    let error = Line::try_parse_from(["windlass", "--provider=isto"]).err().unwrap().to_string();
    assert!(error.contains("the provider must be istio, gke or none"), "{error}");
}
