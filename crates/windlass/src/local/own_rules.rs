//! Images that need no rule of the user: our own, the one that packs models by default, and what we can
//! stand in for.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::Path,
};

use windlass_domains::{artifact::DEFAULT_KIT_IMAGE, model_service};
use windlass_local::node::images::{PathMode, Rule, find_executable};

/// What a laptop says of the way to hubs and registries. The address of a proxy may hold a password: who
/// has the proxy has to say it.
const NETWORK: [&str; 8] = [
    "HF_ENDPOINT",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
];

/// Runs a script that calls `kit`, which is the program that runs; its path is before the script.
const WITH_KIT: &str = r#"kit() { "$0" kit "$@"; }; eval "$1""#;

/// All versions of an image are the same program: there is no other here.
pub(super) fn own_rules() -> Vec<Rule> {
    let kit = repository(DEFAULT_KIT_IMAGE);
    let defaults = model_service::Settings::default();
    let picker = repository(&defaults.default_epp_image);
    let shell = shell(&env::var("PATH").unwrap_or_default());
    let script = [shell, "-c", WITH_KIT, "{windlass}"];
    let instead_of = |program| ["{windlass}", "instead-of", program, "--host", "{podIP}"];
    // They are known here alone: elsewhere the images of those systems are.
    let (zerfoo, aim) = ("ghcr.io/windlass/zerfoo", "ghcr.io/windlass/aim");
    let rules: [(&str, &[&str], &[&str]); 7] = [
        // A command takes the place of what the image would start, which is the same.
        (crate::install::REPOSITORY, &["windlass"], &["{windlass}"]),
        (crate::install::REPOSITORY, &[], &["{windlass}"]),
        (kit, &["/bin/sh", "-c"], &script),
        (kit, &["kit"], &["{windlass}", "kit"]),
        (picker, &[], &instead_of("picker")),
        (zerfoo, &[], &instead_of("zerfoo")),
        (aim, &[], &instead_of("aim")),
    ];
    let versions = |(image, command, argv): (&str, &[&str], &[&str])| {
        [":*", "@*"].map(|version| rule(format!("{image}{version}"), command, argv))
    };
    // Whatever image has it: a GGUF model is answered for, and of another the pod says that it is none.
    let vllm =
        rule("*".to_owned(), &["vllm", "serve"], &["{windlass}", "serve", "--host", "{podIP}"]);
    [vllm].into_iter().chain(rules.into_iter().flat_map(versions)).collect()
}

fn repository(image: &str) -> &str {
    let name = image.rfind('/').map_or(0, |slash| slash + 1);
    let end = image[name..].find([':', '@']).map_or(image.len(), |end| name + end);
    &image[..end]
}

fn rule(pattern: String, command: &[&str], argv: &[&str]) -> Rule {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Rule {
        pattern,
        command: words(command),
        argv: words(argv),
        cmd: Vec::new(),
        env: BTreeMap::new(),
        inherit: BTreeSet::from(NETWORK.map(str::to_owned)),
        path: PathMode::default(),
    }
}

/// The shell of the image knows `pipefail`. Not every `sh` does, but every bash, and where there is no
/// bash it is usually busybox, which the image has too.
fn shell(path: &str) -> &'static str {
    match find_executable("bash", path, Path::new("/")) {
        Ok(_) => "bash",
        Err(_) => "sh",
    }
}

#[cfg(test)]
mod tests {
    use windlass_local::node::images::Images;

    use super::*;

    #[test]
    fn what_we_can_stand_in_for_needs_no_rule() {
        let images = Images::new(Path::new("/nowhere"), Vec::new(), own_rules());
        let found = |image: &str, command: &[&str]| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let found = images.find(image, &command);
            found.ok().map(|(rule, _)| (rule.command.len(), rule.argv[1..].join(" ")))
        };
        let serve = Some((2, "serve --host {podIP}".to_owned()));
        let instead_of = |what| Some((0, format!("instead-of {what} --host {{podIP}}")));
        for (image, command, want) in [
            ("vllm/vllm-openai:v0.8.0", &["vllm", "serve"][..], serve.clone()),
            ("ghcr.io/windlass/windlass:0.1.0", &["vllm", "serve"], serve.clone()),
            ("registry.example.com:5000/vllm-cpu", &["vllm", "serve"], serve),
            ("vllm/vllm-openai:v0.8.0", &[], None),
            ("ghcr.io/llm-d/llm-d-inference-scheduler:v0.6.0", &[], instead_of("picker")),
            ("ghcr.io/windlass/zerfoo:0.1.0", &[], instead_of("zerfoo")),
            ("ghcr.io/windlass/aim:0.1.0", &[], instead_of("aim")),
            ("ghcr.io/zerfoo/zerfoo:0.1.0", &[], None),
        ] {
            assert_eq!(found(image, command), want, "{image} {command:?}");
        }
    }

    #[test]
    fn our_images_are_the_program_that_runs() {
        let images = Images::new(Path::new("/nowhere"), Vec::new(), own_rules());
        let digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000";
        for version in [":0.1.0", ":latest", "", digest] {
            let found = |image: &str, command: &[&str]| {
                let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
                let found = images.find(&format!("{image}{version}"), &command);
                found.ok().map(|(rule, _)| (rule.command.len(), rule.argv.clone()))
            };
            let (own, kit) = ("ghcr.io/windlass/windlass", "ghcr.io/kitops-ml/kitops");
            let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(found(own, &["windlass"]), Some((1, argv(&["{windlass}"]))), "{version}");
            assert_eq!(found(own, &[]), Some((0, argv(&["{windlass}"]))), "{version}");
            assert_eq!(found(kit, &["kit"]), Some((1, argv(&["{windlass}", "kit"]))), "{version}");
            let (dropped, script) = found(kit, &["/bin/sh", "-c"]).unwrap();
            assert_eq!((dropped, &script[1..]), (2, &argv(&["-c", WITH_KIT, "{windlass}"])[..]));
            // Nobody knows what else it would start.
            assert_eq!(found(kit, &["/bin/other"]), None, "{version}");
            assert_eq!(found("ghcr.io/windlass/other", &[]), None, "{version}");
        }
    }
}
