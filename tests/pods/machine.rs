//! What is there on this machine, whatever the API says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The variable by which processes of pods are known.
const MARK: &str = "WINDLASS_RUN=";

/// A living process of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) pod: String,
    pub(crate) token: String,
}

/// All processes of pods of this world: their variables name its folders.
pub(crate) fn processes(world: &Path) -> Vec<Process> {
    let world = world.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let process = |pid: i32| {
        // Of one that has ended nothing is left to read.
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let environment = String::from_utf8_lossy(&environment);
        let variable = |name| environment.split('\0').find_map(|one| one.strip_prefix(name));
        let token = variable(MARK).filter(|_| environment.contains(world))?;
        let pod = variable("HOSTNAME=").unwrap_or_default();
        Some(Process { pid, pod: pod.to_owned(), token: token.to_owned() })
    };
    pids.filter_map(process).collect()
}

/// How many processes each pod has.
pub(crate) fn by_pod(processes: &[Process]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for process in processes {
        *counts.entry(process.pod.clone()).or_default() += 1;
    }
    counts
}

/// The addresses at which one of the processes listens.
pub(crate) fn listeners(pids: impl IntoIterator<Item = i32>) -> BTreeSet<String> {
    let sockets: BTreeSet<String> = pids.into_iter().flat_map(sockets).collect();
    let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/net/{name}")));
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // The state of one that listens, and its number among the open files.
            let ours = fields[3] == "0A" && sockets.contains(fields[9]);
            ours.then(|| fields[1].to_owned())
        })
        .collect()
}

fn sockets(pid: i32) -> Vec<String> {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let number = |file: fs::DirEntry| {
        let target = fs::read_link(file.path()).ok()?;
        let inside = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
        Some(inside)
    };
    files.filter_map(|file| number(file.ok()?)).collect()
}

/// What pods have of the disk, and what they should not have.
pub(crate) fn files_of_pods(world: &Path) -> Vec<PathBuf> {
    let dirs = ["state/pods", "state/run/pods", "state/volumes", "tmp", "home"];
    let inside = |dir: &str| {
        let dir = world.join(dir);
        names(&dir).into_iter().map(move |name| dir.join(name)).collect::<Vec<_>>()
    };
    dirs.into_iter().flat_map(inside).collect()
}

/// What is directly in a directory, by name.
pub(crate) fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
