//! Tests that do not run here say so.

use std::{
    env,
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

/// Says that this test does not run, and why.
pub fn note(reason: &str) {
    eprintln!("skipped: {reason}");
    let Ok(path) = std::env::var("WINDLASS_TEST_NOTES") else { return };
    let thread = std::thread::current();
    let test = std::env::var("NEXTEST_TEST_NAME").ok();
    let test = test.as_deref().or(thread.name()).unwrap_or_default();
    let binary = std::env::var("NEXTEST_BINARY_ID").unwrap_or_default();
    let line = format!("{binary}\t{test}\t{}\n", reason.replace(['\n', '\t'], " "));
    // Tests run at once; a short line is written as one.
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
}

/// A program of the machine that some tests are about. Without it they say so aloud, or fail where
/// `WINDLASS_REQUIRE` names it.
pub fn program(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&folders).chain([Path::new("/usr/bin").to_owned()]);
    let found = places.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()));
    if found.is_none() {
        missing(name, &format!("there is no {name}"));
    }
    found
}

/// Says aloud what is not here, or fails where `WINDLASS_REQUIRE` names it.
pub fn missing(name: &str, reason: &str) {
    let required = env::var("WINDLASS_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|required| required.trim() == name);
    assert!(!is_required, "{reason}, and WINDLASS_REQUIRE names {name}");
    note(reason);
}
