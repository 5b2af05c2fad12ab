//! Documents that repeat what the program says are compared with it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{fs, process::Command};

use xtask::workspace::{binary, project_root};

#[test]
fn every_flag_of_the_operator_is_documented() {
    let output = Command::new(binary().unwrap()).args(["operator", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let page = fs::read_to_string(project_root().join("docs/operating.md")).unwrap();
    let words = help.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c)));
    let is_name = |word: &&str| word.starts_with("--") || word.starts_with("WINDLASS_");
    let names: Vec<&str> = words.filter(is_name).collect();
    assert!(names.len() > 20, "{help}");
    for name in names.iter().filter(|name| !["--help", "--version"].contains(name)) {
        assert!(page.contains(&format!("`{name}`")), "docs/operating.md does not know {name}");
    }
}
