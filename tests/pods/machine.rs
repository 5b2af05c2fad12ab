//! What is there on this machine, whatever the API says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The variable in which most processes of pods carry a token.
const TOKEN: &str = "WINDLASS_RUN=";
/// Of the pod, also as an argument of those that have no variables.
const POD: &str = "HOSTNAME=";

/// A living process of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) pod: String,
    /// Empty where it cannot be seen.
    pub(crate) token: String,
}

/// All processes of pods of this world, by whatever leads to its folders: their variables, their
/// arguments or where they are. What the node itself knows them by plays no part.
pub(crate) fn processes(world: &Path) -> Vec<Process> {
    let pods = world.join("state/pods");
    let pods = pods.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let process = |pid: i32| {
        // Of one that has ended nothing is left to read.
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let words = [read("environ"), read("cmdline")].concat();
        let words = String::from_utf8_lossy(&words);
        let place = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        if !words.contains(pods) && !place.to_string_lossy().starts_with(pods) {
            return None;
        }
        let word = |name| words.split('\0').find_map(|one| one.strip_prefix(name));
        let owned = |name| word(name).unwrap_or_default().to_owned();
        Some(Process { pid, pod: owned(POD), token: owned(TOKEN) })
    };
    pids.filter_map(process).collect()
}

/// None of one that has ended. Each is 0 where its leader is outside of what this process can see,
/// as in a container; `getsid` of rustix takes that for impossible and panics.
pub(crate) fn group_and_session(pid: i32) -> Option<(i32, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may have anything in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(2).map(|field| field.parse().ok());
    Some((fields.next()??, fields.next()??))
}

/// Processes that have a path among their variables or arguments.
pub(crate) fn mentioning(path: &Path) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mentions = |pid: &i32| {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let words = [read("environ"), read("cmdline")].concat();
        String::from_utf8_lossy(&words).contains(path.to_str().unwrap())
    };
    pids.filter(mentions).collect()
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
