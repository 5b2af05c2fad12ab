//! The demo on a control plane, run to its end. Tier "real API".
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; clippy exempts only the test functions themselves"
)]

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use xtask::{
    cluster::{Assets, NodeAssets},
    test::required,
    workspace::{binary, target_folder},
};

/// Whether its programs are there; if not, the test is skipped aloud.
fn can_run() -> bool {
    match Assets::find().and_then(|_| NodeAssets::find()) {
        Ok(_) => true,
        Err(reason) if required("real-api") => panic!("real-api is required: {reason:#}"),
        Err(reason) => {
            println!("skipped: {reason:#}");
            false
        }
    }
}

/// Processes that have the text in their command line.
fn processes_with(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap();
    let lines = entries.filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

#[test]
fn the_demo_on_a_cluster_shows_ready_examples_and_leaves_nothing_behind() {
    if !can_run() {
        return;
    }
    let mut demo = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["demo", "--cluster"])
        .env("WINDLASS_BIN", binary().unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = target_folder().unwrap().join(format!("demo-{}", demo.id()));
    let mut said = String::new();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    for line in lines.by_ref().map(Result::unwrap) {
        said += &format!("{line}\n");
        if line.contains("it runs until Ctrl-C") {
            break;
        }
    }
    let folder_was_there = folder.is_dir();
    // As at a terminal. Nothing may block on a full pipe meanwhile, so the rest is read too.
    let kill = format!("kill -INT {}", demo.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    said.extend(lines.map(|line| line.unwrap() + "\n"));
    let status = demo.wait().unwrap();

    assert!(status.success(), "{status}\n{said}");
    assert!(folder_was_there, "{said}");
    for want in ["ZerfooInferenceService/llama-simple  Ready", "1/1 available", "ready after"] {
        assert!(said.contains(want), "{want}\n{said}");
    }
    assert!(!folder.exists(), "{}", folder.display());
    assert_eq!(processes_with(&folder.to_string_lossy()), 0);
}
