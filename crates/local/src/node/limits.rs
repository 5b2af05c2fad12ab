//! Limits of containers, where the system lets us set them: a control group of version 2 for each
//! run. Elsewhere they are only written down.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Container;

use crate::builtin::quantity::Quantity;

const ROOT: &str = "/sys/fs/cgroup";
/// Where this process goes: a group with limits inside must have no processes of its own.
const OWN: &str = "windlass";
/// What the names of the groups of runs begin with.
const RUN: &str = "run-";
/// For those who were killed to go.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// In microseconds.
const PERIOD: i128 = 100_000;
/// An exit code that says it was killed.
const KILLED: i32 = 137;

/// The group beneath which runs have theirs, if there is one.
#[derive(Debug, Default)]
pub struct Limits(Option<PathBuf>);

impl Limits {
    /// Looks whether the group of this process is its own to divide. Only then is anything changed.
    pub fn find() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
        let Some(own) = own else { return Self(None) };
        let dir = Path::new(ROOT).join(own);
        match divide(&dir, std::process::id()) {
            Ok(()) => {
                sweep(&dir);
                Self(Some(dir))
            }
            Err(error) => {
                tracing::debug!(%error, "limits of containers are not enforced here");
                Self(None)
            }
        }
    }

    /// The group for a run, unless there can be none.
    pub fn group(&self, id: &str, container: &Container) -> Option<Group> {
        let dir = self.0.as_ref()?.join(format!("{RUN}{id}"));
        let made = fs::create_dir(&dir).and_then(|()| {
            let group = Group(dir.clone());
            for (file, value) in settings(container) {
                fs::write(dir.join(file), value)?;
            }
            Ok(group)
        });
        made.inspect_err(|error| tracing::warn!(%error, "cannot set the limits of a container"))
            .ok()
    }
}

/// Moves the process one group down, so that its group can have others with limits beside it.
fn divide(dir: &Path, pid: u32) -> io::Result<()> {
    let known = fs::read_to_string(dir.join("cgroup.controllers"))?;
    for wanted in ["cpu", "memory"] {
        if !known.split_whitespace().any(|name| name == wanted) {
            return Err(io::Error::other(format!("no controller {wanted}")));
        }
    }
    let own = dir.join(OWN);
    match fs::create_dir(&own) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let divided = fs::write(own.join("cgroup.procs"), pid.to_string())
        .and_then(|()| fs::write(dir.join("cgroup.subtree_control"), "+cpu +memory"));
    if divided.is_err() {
        // Somebody else lives in this group: everything stays as it was.
        let _ = fs::write(dir.join("cgroup.procs"), pid.to_string());
        let _ = fs::remove_dir(&own);
    }
    divided
}

/// Files of a group with what goes into them.
fn settings(container: &Container) -> Vec<(&'static str, String)> {
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let limit = |name: &str| {
        let text = &limits?.get(name)?.0;
        Quantity::parse(text).ok().map(|quantity| quantity.nano()).filter(|nano| *nano > 0)
    };
    let mut settings = vec![("memory.oom.group", "1".to_owned())];
    if let Some(memory) = limit("memory") {
        settings.push(("memory.max", (memory / 1_000_000_000).max(1).to_string()));
    }
    if let Some(cpu) = limit("cpu") {
        let quota = (cpu.saturating_mul(PERIOD) / 1_000_000_000).max(1_000);
        settings.push(("cpu.max", format!("{quota} {PERIOD}")));
    }
    settings
}

/// The group of one run. It goes with its holder, and takes along who is still in it.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn add(&self, pid: i32) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }

    /// The run ended because it wanted more memory than it may have.
    pub fn was_too_large(&self, code: i32) -> bool {
        let events = fs::read_to_string(self.0.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        code == KILLED && kills.is_some_and(|count| count.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        end(&self.0);
    }
}

/// Ends everything in a group, which may be gone already.
pub fn end(group: &Path) {
    // Nothing but a group of a run is ever touched.
    let is_run = group.file_name().and_then(|name| name.to_str());
    if !is_run.is_some_and(|name| name.starts_with(RUN)) || !group.starts_with(ROOT) {
        return;
    }
    let _ = fs::write(group.join("cgroup.kill"), "1");
    if is_removed(group) {
        return;
    }
    // Who was killed is gone in a moment. If there is no thread to be had, the next start sweeps.
    let group = group.to_owned();
    let wait = move || {
        let until = Instant::now() + PATIENCE;
        while !is_removed(&group) && Instant::now() < until {
            thread::sleep(PAUSE);
        }
    };
    let _ = thread::Builder::new().name("limits".into()).spawn(wait);
}

/// A group with processes in it stays.
fn is_removed(group: &Path) -> bool {
    match fs::remove_dir(group) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(()) => true,
    }
}

/// Removes what earlier runs have left.
fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(RUN) {
            is_removed(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity as Text,
    };

    use super::*;

    fn container(limits: &[(&str, &str)]) -> Container {
        let limits = limits.iter().map(|(name, text)| ((*name).into(), Text((*text).into())));
        Container {
            resources: Some(ResourceRequirements {
                limits: Some(limits.collect()),
                ..ResourceRequirements::default()
            }),
            ..Container::default()
        }
    }

    #[test]
    fn limits_become_settings_of_a_group() {
        let text = |limits: &[(&str, &str)]| {
            let all = settings(&container(limits)).into_iter().skip(1);
            all.map(|(file, value)| format!("{file}={value}")).collect::<Vec<_>>().join(" ")
        };
        for (limits, want) in [
            (&[][..], ""),
            (&[("memory", "1Gi")], "memory.max=1073741824"),
            (&[("cpu", "1500m")], "cpu.max=150000 100000"),
            (&[("cpu", "1m")], "cpu.max=1000 100000"),
            (&[("memory", "many"), ("cpu", "0")], ""),
        ] {
            assert_eq!(text(limits), want, "{limits:?}");
        }
    }

    #[test]
    fn a_group_that_is_not_ours_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        assert!(divide(dir.path(), 1).is_err(), "not a group");
        fs::write(dir.path().join("cgroup.controllers"), "cpuset pids\n").unwrap();
        assert!(divide(dir.path(), 1).is_err(), "without what we need");
        assert!(!dir.path().join(OWN).exists());
        fs::write(dir.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        fs::create_dir(dir.path().join("cgroup.subtree_control")).unwrap();
        assert!(divide(dir.path(), 7).is_err(), "in use by others");
        assert_eq!(fs::read_to_string(dir.path().join("cgroup.procs")).unwrap(), "7");
    }

    #[test]
    fn groups_that_earlier_runs_have_left_empty_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["run-1", "run-2/used", "windlass", "mine"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        sweep(dir.path());
        for (name, want) in [("run-1", false), ("run-2", true), ("windlass", true), ("mine", true)]
        {
            assert_eq!(dir.path().join(name).exists(), want, "{name}");
        }
    }

    #[test]
    fn a_run_that_was_killed_for_its_memory_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let group = Group(dir.path().join("g"));
        fs::create_dir(group.path()).unwrap();
        for (events, code, want) in [
            ("oom 0\noom_kill 0\n", 137, false),
            ("oom 1\noom_kill 2\n", 137, true),
            ("oom 1\noom_kill 2\n", 1, false),
            ("", 137, false),
        ] {
            fs::write(group.path().join("memory.events"), events).unwrap();
            assert_eq!(group.was_too_large(code), want, "{events:?} {code}");
        }
        drop(group);
        assert!(dir.path().join("g").exists(), "only groups of runs are removed");
    }
}
