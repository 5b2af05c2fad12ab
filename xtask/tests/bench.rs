//! The benchmark, small and with debug builds: whether it measures, not how fast. Tier "real API".
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use xtask::{
    cluster::Assets,
    test::required,
    workspace::{binary, project_root, target_folder},
};

/// Whether its programs are there; if not, the test is skipped aloud.
fn can_run() -> bool {
    match Assets::find() {
        Ok(_) => true,
        Err(reason) if required("real-api") => panic!("real-api is required: {reason:#}"),
        Err(reason) => {
            println!("skipped: {reason:#}");
            false
        }
    }
}

fn start(more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["bench", "converge", "--debug", "--services", "2", "--rest", "1"])
        // The others take longer to install than all the rest.
        .args(["--crds", "gateway-api", "--manifest"])
        .arg(project_root().join("examples/zerfoo-canary.yaml"))
        .args(more)
        .env("WINDLASS_BIN", binary().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn folder_of(bench: &Child) -> PathBuf {
    target_folder().unwrap().join(format!("bench-{}", bench.id()))
}

/// Processes that have the text in their command line.
fn processes_with(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap();
    let lines = entries.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

#[test]
fn a_run_prints_one_line_of_json() {
    if !can_run() {
        return;
    }
    let bench = start(&["--foreign", "3"]);
    let folder = folder_of(&bench);
    let output = bench.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!folder.exists() && processes_with(&folder.to_string_lossy()) == 0);

    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["kind"], "ZerfooInferenceService");
    assert_eq!((&report["services"], &report["rest_seconds"]), (&2.into(), &1.into()));
    assert_eq!(report["children_per_service"], 6.0, "{report}");
    assert_eq!(
        (&report["writes_at_rest"], &report["writes_after_restart"]),
        (&0.into(), &0.into())
    );
    for positive in ["writer_seconds", "operator_seconds", "ratio", "cpu_seconds", "peak_memory_mb"]
    {
        assert!(report[positive].as_f64().unwrap() > 0.0, "{positive}: {report}");
    }
    // Each child and the status, at least.
    assert!(report["writes_per_service"].as_f64().unwrap() >= 7.0, "{report}");
    assert!(report["requests_per_service_by_verb"]["patch"].as_f64().unwrap() >= 1.0, "{report}");
    assert_eq!(report["foreign"]["objects"], 3);
    assert!(report["foreign"]["growth_mb"].is_number(), "{report}");
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    if !can_run() {
        return;
    }
    let mut bench = start(&[]);
    let folder = folder_of(&bench);
    let mut lines = BufReader::new(bench.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("starting a fresh API server")));
    assert!(folder.is_dir());
    let kill = format!("kill -INT {}", bench.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let said: Vec<String> = lines.collect();
    let status = bench.wait().unwrap();
    assert_eq!(status.code(), Some(1), "{said:?}");
    assert_eq!(said, ["xtask: interrupted"]);
    assert!(!folder.exists() && processes_with(&folder.to_string_lossy()) == 0);
}

#[test]
fn starts_are_measured_with_and_without_a_store() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["bench", "up", "--debug", "--starts", "2", "--objects", "5", "--rest", "0"])
        .env("WINDLASS_BIN", binary().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["starts"], &report["objects"]), (&2.into(), &5.into()));
    for part in ["fresh", "existing"] {
        let figures = &report[part];
        let answered = &figures["start_to_first_answer_ms"];
        assert!(answered["median"].as_f64().unwrap() > 0.0, "{report}");
        assert!(answered["worst"].as_f64() >= answered["median"].as_f64(), "{report}");
        assert!(figures["start_to_ready_ms"]["median"].is_number(), "{report}");
        assert!(figures["idle_rss_mb"].as_f64().unwrap() > 1.0, "{report}");
    }
}

#[test]
fn both_api_servers_are_measured_in_one_run() {
    if !can_run() {
        return;
    }
    let bench = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["bench", "api", "--debug", "--objects", "3", "--changes", "1"])
        .args(["--watchers", "4", "--samples", "5", "--rounds", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = folder_of(&bench);
    let output = bench.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!folder.exists() && processes_with(&folder.to_string_lossy()) == 0);

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["objects"], &report["applies"]), (&12.into(), &24.into()));
    for server in ["real", "embedded"] {
        let figures = &report[server];
        for positive in ["applies_per_second", "memory_mb"] {
            assert!(figures[positive].as_f64().unwrap() > 0.0, "{positive}: {report}");
        }
        assert_eq!(figures["applies_per_second_by_round"].as_array().unwrap().len(), 2);
    }
    assert!(report["ratio"]["memory"].as_f64().unwrap() > 0.0, "{report}");
    assert!(said.contains("applies per second") && said.contains("wanted"), "{said}");
}
