//! Runs every tier of tests that this machine can, and counts them.
//!
//! The tests of the tier "real API" share one control plane, which they are told by environment:
//! `WINDLASS_TEST_KUBECONFIG`, `WINDLASS_TEST_AUDIT_LOG` and, for the program under test,
//! `WINDLASS_BIN`. Where it cannot be had they are skipped aloud; `WINDLASS_REQUIRE=real-api`
//! makes that a failure. The same scenarios run on the embedded API, which each starts for itself.
//! One that finds that it cannot run writes so into the file `WINDLASS_TEST_NOTES`.

mod junit;
mod nextest;
mod report;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::{
    cluster::{
        Assets, ControlPlane, NodeAssets, Options, apply_own_crds, ensure_crds, ensure_helm,
        ensure_kserve,
    },
    scratch::Folder,
    tidy::{File, tracked_files},
    workspace::{build, project_root, target_folder},
};
use report::{Counts, Report, Tier};

/// CRDs every scenario may rely on; others are applied by the tests that are about them.
const SHARED_CRDS: [&str; 5] =
    ["gateway-api", "inference-extension", "istio", "kserve", "prometheus-operator"];

/// Whoever has more has them all above.
const MOST_FAILURES: usize = 10;

/// Whether `WINDLASS_REQUIRE`, a list with commas, names this tier.
pub fn required(tier: &str) -> bool {
    let required = env::var("WINDLASS_REQUIRE").unwrap_or_default();
    required.split(',').any(|name| name.trim() == tier)
}

/// Runs the tests with `arguments` for nextest; true if all that had to run passed.
pub fn run(arguments: &[String]) -> Result<bool> {
    let nextest = nextest::find_or_install()?;
    let binary = build()?;
    let real_api = RealApi::start(&binary);
    let folder = Folder::new("test")?;
    let notes = folder.path().join("notes");
    let mut environment = vec![("WINDLASS_BIN", binary), ("WINDLASS_TEST_NOTES", notes.clone())];
    let mut profile = nextest::WITHOUT_REAL_API;
    if let Ok(real_api) = &real_api {
        profile = nextest::EVERYTHING;
        environment.extend(real_api.environment());
    }
    let outcome = nextest.run(profile, arguments, &environment)?;
    let mut report = Report::default();
    for suite in &outcome.suites {
        report.add(Tier::of(&suite.name), suite.counts);
    }
    // Where everything ran nobody has written it.
    report.take_notes(&fs::read_to_string(notes).unwrap_or_default());
    match real_api {
        Ok(real_api) => real_api.stop(outcome.passed)?,
        Err(reason) => {
            let tests = if arguments.is_empty() { nextest.count_real_api()? } else { 0 };
            let reason = format!("{reason:#}");
            report.leave_out(Tier::RealApi, tests, required("real-api"), &reason);
        }
    }
    if !arguments.is_empty() {
        report.chosen();
    } else if has_doc_tests(&tracked_files(&project_root())?) {
        report.add(Tier::Pure, doc_tests()?);
    }
    // At the end, where one looks first: nextest has told of them in the middle of all others.
    for failure in outcome.failures.iter().take(MOST_FAILURES) {
        println!("failed: {failure}");
    }
    print!("{report}");
    Ok(outcome.passed && report.total().failed == 0)
}

/// The control plane that all tests of a run share.
struct RealApi {
    plane: ControlPlane,
    dir: PathBuf,
}

impl RealApi {
    fn start(binary: &Path) -> Result<RealApi> {
        let assets = Assets::ensure()?;
        ensure_crds(&SHARED_CRDS)?;
        // Only the tests of the chart, of the demo and of KServe need these, and say so if they cannot
        // run.
        let extras = [ensure_helm().err(), NodeAssets::ensure().err(), ensure_kserve().err()];
        for extra in extras.into_iter().flatten() {
            eprintln!("xtask: {extra:#}");
        }
        let dir = target_folder()?.join(format!("real-api-{}", std::process::id()));
        let options = Options { audit_log: true, ..Options::in_dir(&dir) };
        let plane = ControlPlane::start(&assets, options)?;
        plane.apply_crds(&SHARED_CRDS)?;
        // Once for all: hundreds of tests that each apply them would spend most of their time on it.
        apply_own_crds(&assets, &plane.kubeconfig(), &definitions(binary)?)?;
        Ok(RealApi { plane, dir })
    }

    fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [
            ("WINDLASS_TEST_KUBECONFIG", self.plane.kubeconfig()),
            ("WINDLASS_TEST_AUDIT_LOG", self.plane.audit_log()),
        ]
    }

    /// Ends the control plane; its logs are kept when they may explain a failure.
    fn stop(self, passed: bool) -> Result<()> {
        self.plane.stop();
        if !passed {
            println!("logs of the control plane: {}", self.dir.display());
            return Ok(());
        }
        fs::remove_dir_all(&self.dir)
            .with_context(|| format!("cannot remove {}", self.dir.display()))
    }
}

/// Our own CRDs, as the program prints them.
fn definitions(binary: &Path) -> Result<String> {
    let output = Command::new(binary).arg("crds").stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", binary.display()))?;
    ensure!(output.status.success(), "cannot print the CRDs: {}", output.status);
    String::from_utf8(output.stdout).context("cannot read the CRDs")
}

/// Whether a library has an example that would be compiled. Asking costs nothing; running the
/// documentation tool over every library does.
fn has_doc_tests(files: &[File]) -> bool {
    let libraries = files.iter().filter(|file| {
        let in_library = file.path.starts_with("crates/") || file.path.starts_with("xtask/");
        in_library && file.path.contains("/src/") && file.path.ends_with(".rs")
    });
    libraries.into_iter().any(|file| has_example(&file.text))
}

fn has_example(text: &str) -> bool {
    let mut open = false;
    for line in text.lines().map(str::trim_start) {
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(fence) = doc.and_then(|doc| doc.trim().strip_prefix("```")) else { continue };
        let runs = ["", "rust", "no_run", "should_panic", "compile_fail"];
        if !open && runs.contains(&fence.split(',').next().unwrap_or_default()) {
            return true;
        }
        open = !open;
    }
    false
}

fn doc_tests() -> Result<Counts> {
    let output = Command::new("cargo")
        .args(["test", "--quiet", "--doc", "--workspace", "--locked", "--no-fail-fast"])
        .current_dir(project_root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run `cargo test --doc`")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts = doc_test_counts(&text);
    if !output.status.success() {
        print!("{text}");
        // A library whose examples do not even start has no line of counts.
        counts.failed = counts.failed.max(1);
    }
    Ok(counts)
}

/// Adds up lines like `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn doc_test_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines().filter(|line| line.starts_with("test result: ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = |word: &str| {
            let at = words.iter().position(|found| found.trim_end_matches(';') == word)?;
            words.get(at.checked_sub(1)?)?.parse::<usize>().ok()
        };
        counts.passed += before("passed").unwrap_or(0);
        counts.failed += before("failed").unwrap_or(0);
        counts.skipped += before("ignored").unwrap_or(0);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_examples_that_compile_count_as_doc_tests() {
        for (text, want) in [
            ("/// ```\n/// let x = 1;\n/// ```\n", true),
            ("//! ```no_run\n//! ```\n", true),
            ("/// ```text\n/// a -> b\n/// ```\nfn f() {}\n", false),
            ("// ```\n", false),
        ] {
            assert_eq!(has_example(text), want, "{text}");
        }
    }

    #[test]
    fn results_of_doc_tests_add_up() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured\n";
        assert_eq!(doc_test_counts(text), Counts { passed: 4, failed: 2, skipped: 1 });
    }
}
