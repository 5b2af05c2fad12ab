//! Borders inside the crates: pure steps, separate domains, an engine without domain nouns.

use super::{File, Finding, has_word, lines_naming};

const DOMAINS: [&str; 4] = ["artifact", "model_service", "aim", "inference_service"];

/// Nouns of the domains, in lower case.
const DOMAIN_WORDS: [&str; 12] = [
    "zerfoo",
    "vllm",
    "kserve",
    "llm-d",
    "otterscale",
    "silogen",
    "canary",
    "modelservice",
    "model_service",
    "inferenceservice",
    "inference_service",
    "servingruntime",
];

/// Interface strings every object carries, whatever its domain: allowed in one file only.
const SHARED_NAMES: [&str; 3] = ["aim.eai.amd.com", "aim.silogen.ai", "aim_"];
const SHARED_NAMES_FILE: &str = "crates/engine/src/names.rs";

/// Compose, plan, status and the objects compute; they neither wait nor talk to a cluster.
pub(super) fn pure_steps(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_pure(&file.path)) {
        for (line, code) in file.code() {
            if has_word(code, "tokio") {
                findings.push(file.finding(line, "a pure step must not use tokio"));
            }
        }
        for line in lines_naming(file, "kube", "Client") {
            findings.push(file.finding(line, "a pure step must not use kube::Client"));
        }
    }
    findings
}

fn is_pure(path: &str) -> bool {
    let Some(path) = path.strip_suffix(".rs") else { return false };
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("crates"), Some("domains")) => {
            parts.any(|part| ["compose", "plan", "status", "objects"].contains(&part))
        }
        (Some("crates"), Some("engine")) => parts.any(|part| {
            ["state", "conditions", "plan"].contains(&part) || part.starts_with("health")
        }),
        _ => false,
    }
}

/// What two domains share belongs beside them, not in one of them.
pub(super) fn domains_apart(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some(domain) = domain_of(&file.path) else { continue };
        for other in DOMAINS.iter().filter(|other| **other != domain) {
            for line in lines_naming(file, "crate", other) {
                let message = format!("the domain {domain} must not use the domain {other}");
                findings.push(file.finding(line, message));
            }
        }
    }
    findings
}

fn domain_of(path: &str) -> Option<&str> {
    let path = path.strip_prefix("crates/domains/src/")?.strip_suffix(".rs")?;
    path.split('/').next().filter(|first| DOMAINS.contains(first))
}

/// Comments count too: the engine serves any domain and need not know of one.
pub(super) fn engine_knows_no_domain(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("crates/engine/src/")) {
        for (index, line) in file.text.lines().enumerate() {
            let mut line = line.to_lowercase();
            if file.path == SHARED_NAMES_FILE {
                for name in SHARED_NAMES {
                    line = line.replace(name, "");
                }
            }
            let shared = SHARED_NAMES.iter().filter(|name| starts_word(&line, name));
            let words = DOMAIN_WORDS.iter().filter(|word| line.contains(**word));
            if let Some(word) = shared.chain(words).next() {
                let message = format!("the engine must not know the domain word {word:?}");
                findings.push(file.finding(index + 1, message));
            }
        }
    }
    findings
}

/// `claim_` is a word of its own, not our `aim_`.
fn starts_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::{super::file, *};

    fn found(rule: fn(&[File]) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
        let mut lines: Vec<usize> =
            rule(&[file(path, text)]).iter().map(|finding| finding.line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn pure_steps_neither_wait_nor_talk() {
        let text = "use kube::{Api, Client};\n// tokio is named here only\nuse tokio::sync;\n";
        for (path, want) in [
            ("crates/domains/src/aim/plan.rs", &[1, 3][..]),
            ("crates/domains/src/aim/objects/service.rs", &[1, 3]),
            ("crates/domains/src/aim/fetch.rs", &[]),
            ("crates/engine/src/state.rs", &[1, 3]),
            ("crates/engine/src/health/pods.rs", &[1, 3]),
            ("crates/engine/src/health_pods.rs", &[1, 3]),
            ("crates/engine/src/apply.rs", &[]),
            ("crates/windlass/src/plan.rs", &[]),
        ] {
            assert_eq!(found(pure_steps, path, text), want, "{path}");
        }
    }

    #[test]
    fn a_domain_uses_no_other() {
        let text = "use crate::aim::reasons;\nuse crate::{artifact, labels};\nuse windlass_api::aim::Model;\n";
        for (path, want) in [
            ("crates/domains/src/aim.rs", &[2][..]),
            ("crates/domains/src/artifact/plan.rs", &[1]),
            ("crates/domains/src/model_service/plan.rs", &[1, 2]),
            ("crates/domains/src/lib.rs", &[]),
        ] {
            assert_eq!(found(domains_apart, path, text), want, "{path}");
        }
    }

    #[test]
    fn the_engine_knows_no_domain() {
        let text = "/// As KServe does.\nconst DOMAIN: &str = \"aim.eai.amd.com\";\nlet claim_x = 1;\n\"AIM_CACHE\"\n";
        for (path, want) in [
            ("crates/engine/src/plan.rs", &[1, 2, 4][..]),
            ("crates/engine/src/names.rs", &[1]),
            ("crates/domains/src/aim/plan.rs", &[]),
        ] {
            assert_eq!(found(engine_knows_no_domain, path, text), want, "{path}");
        }
    }
}
