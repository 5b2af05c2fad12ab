//! `windlass up` as a process, with pods that run.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use windlass_tests::{cluster::binary, wait};

use super::{Desk, Line, problem_with};
use crate::{case, server::kubectl};

#[test]
fn kubectl_sees_what_pods_of_windlass_up_have_done() {
    let Some(kubectl) = kubectl() else { return };
    let folder = tempfile::tempdir().unwrap();
    let up = Up::start(folder.path());
    let desk = Desk::new("up", &up.state.join("kubeconfig"), &kubectl);
    let lines: Vec<Line> = case::parse(&case::folder().join("transcript/up.yaml"));
    for line in &lines {
        let ask = || problem_with(line, &desk.run(line)).map_or(Ok(()), Err);
        // What follows a line that went wrong would only repeat it.
        match line.eventually {
            true => wait::blocking(&line.sh, ask),
            false => ask().unwrap_or_else(|problem| panic!("{problem}\nlog: {}", up.log())),
        }
    }
}

struct Up {
    child: Child,
    state: PathBuf,
    log: PathBuf,
}

impl Up {
    /// Until it says that it is up. One image has a rule: it is the shell.
    fn start(folder: &Path) -> Self {
        let (state, log) = (folder.join("state"), folder.join("log"));
        let mut child = command(folder)
            .args(["up", "--image-rule", "example.com/shell:*=/bin/sh", "--dir"])
            .arg(&state)
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let up = Self { child, state, log };
        // The last of the lines that it greets with; if it fails, they end.
        let is_up = said.any(|line| line.unwrap().starts_with("Ctrl-C"));
        assert!(is_up, "it is not up: {}", up.log());
        up
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

/// Without the user's own directories.
fn command(folder: &Path) -> Command {
    let mut command = Command::new(binary());
    command.env_remove("XDG_STATE_HOME").env_remove("XDG_RUNTIME_DIR").env("HOME", folder);
    command.stdin(Stdio::null());
    command
}

impl Drop for Up {
    fn drop(&mut self) {
        // So that its pods end with it.
        let down = command(&self.state).arg("down").arg("--dir").arg(&self.state).output();
        if !down.is_ok_and(|down| down.status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
