//! Limits of containers, where the system lets us set them: a control group of version 2 for each
//! run. Elsewhere they are only written down.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Container;
use tokio::runtime::Handle;

use crate::builtin::quantity::Quantity;

const ROOT: &str = "/sys/fs/cgroup";
/// Where this process goes: a group with limits inside must have no processes of its own.
const OWN: &str = "windlass";
/// What the names of the groups of runs begin with.
const RUN: &str = "run-";
/// In microseconds.
const PERIOD: i128 = 100_000;
/// An exit code that says it was killed.
pub const KILLED: i32 = 137;
/// Killed processes leave their group within moments.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(2);
/// A process that makes others all the time is caught up with sooner than that.
const GENERATIONS: usize = 16;

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
    let mut settings = vec![("memory.oom.group", "1".to_owned())];
    if let Some(memory) = limit(container, "memory") {
        settings.push(("memory.max", (memory / 1_000_000_000).max(1).to_string()));
    }
    if let Some(cpu) = limit(container, "cpu") {
        let quota = (cpu.saturating_mul(PERIOD) / 1_000_000_000).max(1_000);
        settings.push(("cpu.max", format!("{quota} {PERIOD}")));
    }
    settings
}

/// What a container may have, in billionths. Nothing if that makes no sense.
pub fn limit(container: &Container, name: &str) -> Option<i128> {
    let limits = container.resources.as_ref()?.limits.as_ref()?;
    let quantity = Quantity::parse(&limits.get(name)?.0).ok()?;
    Some(quantity.nano()).filter(|nano| *nano > 0)
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

    /// Takes in those too that a process has made before it was in the group itself. `of_run` looks
    /// at the whole machine.
    pub fn gather(&self, of_run: impl Fn() -> Vec<i32>) -> io::Result<()> {
        for _ in 0..GENERATIONS {
            let members = fs::read_to_string(self.0.join("cgroup.procs"))?;
            let members: BTreeSet<i32> =
                members.lines().filter_map(|line| line.parse().ok()).collect();
            let outside: Vec<i32> =
                of_run().into_iter().filter(|pid| !members.contains(pid)).collect();
            if outside.is_empty() {
                return Ok(());
            }
            // One that is gone needs no group.
            outside.into_iter().for_each(|pid| drop(self.add(pid)));
        }
        Ok(())
    }

    /// The run ended because it wanted more memory than it may have.
    pub fn was_too_large(&self, code: i32) -> bool {
        let events = fs::read_to_string(self.0.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        code == KILLED && kills.is_some_and(|count| count.trim() != "0")
    }
}

impl Drop for Group {
    /// Mostly nobody is in it any more. Otherwise it takes its time, and that is not for a thread that
    /// others wait for.
    fn drop(&mut self) {
        let group = self.0.clone();
        match Handle::try_current() {
            Ok(runtime) if is_run(&group) && remove(&group).is_err() => {
                kill(&group);
                drop(runtime.spawn_blocking(move || end(&group)));
            }
            Ok(_) => {}
            Err(_) => end(&group),
        }
    }
}

/// Ends everything in a group, which may be gone already, and comes back when that is over.
pub fn end(group: &Path) {
    if !is_run(group) {
        return;
    }
    kill(group);
    let until = Instant::now() + PATIENCE;
    // As long as somebody is in it, it cannot be removed.
    while let Err(error) = remove(group) {
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        if Instant::now() > until {
            tracing::warn!(%error, group = %group.display(), "cannot remove a control group");
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Nothing but a group of a run is ever touched.
fn is_run(group: &Path) -> bool {
    let name = group.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(RUN)) && group.starts_with(ROOT)
}

fn kill(group: &Path) {
    let _ = fs::write(group.join("cgroup.kill"), "1");
}

/// With the groups that the run has made inside.
fn remove(group: &Path) -> io::Result<()> {
    for entry in fs::read_dir(group)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

/// Removes what earlier runs have left.
fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(RUN) {
            // One that is in use stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity as Text,
    };

    use super::*;
    use crate::node::{mark::Mark, processes};

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
    fn a_run_has_a_group_with_its_limits() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits(Some(dir.path().to_owned()));
        let group = limits.group("7", &container(&[("memory", "1Ki"), ("cpu", "2")])).unwrap();
        group.add(4711).unwrap();
        for (file, want) in [
            ("memory.max", "1024"),
            ("memory.oom.group", "1"),
            ("cpu.max", "200000 100000"),
            ("cgroup.procs", "4711"),
        ] {
            let found = fs::read_to_string(dir.path().join("run-7").join(file)).unwrap();
            assert_eq!(found, want, "{file}");
        }
        assert!(limits.group("7", &container(&[])).is_none(), "it is there already");
        assert!(Limits(None).group("7", &container(&[])).is_none());
    }

    /// A group of version 2 for a test; `None` says aloud that there can be none.
    fn real_group() -> Option<PathBuf> {
        let roots = [ROOT, "/sys/fs/cgroup/unified"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists());
        let dir = root.map(|root| root.join(format!("windlass-test-{}", std::process::id())));
        let made = dir.filter(|dir| fs::create_dir(dir).is_ok());
        if made.is_none() {
            #[allow(clippy::print_stderr, reason = "who runs the tests should know")]
            {
                eprintln!("skipped: no writable control groups of version 2");
            }
        }
        made
    }

    #[test]
    fn the_end_of_a_group_leaves_nothing_of_it() {
        let Some(dir) = real_group() else { return };
        let group = Group(dir.join("run-1"));
        fs::create_dir_all(group.path().join("inside")).unwrap();
        // Its child leaves the group of processes, and knows nothing of it.
        let script = "read go; env -i setsid sleep 4711 & exec sleep 4712";
        let mut shell = std::process::Command::new("sh");
        let mut child =
            shell.args(["-c", script]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        group.add(child.id().try_into().unwrap()).unwrap();
        io::Write::write_all(&mut child.stdin.take().unwrap(), b"\n").unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let members = || fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
        while members().lines().count() < 2 {
            assert!(Instant::now() < until, "{}", members());
            thread::yield_now();
        }
        let members: Vec<String> = members().lines().map(str::to_owned).collect();
        let path = group.path().to_owned();
        drop(group);
        assert!(!path.exists());
        child.wait().unwrap();
        let alive = |pid: &&String| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
        };
        assert_eq!(members.iter().filter(alive).count(), 0, "{members:?}");
        fs::remove_dir(dir).unwrap();
    }

    #[test]
    fn who_was_made_before_its_parent_was_in_the_group_is_taken_in() {
        let Some(dir) = real_group() else { return };
        let group = Group(dir.join("run-2"));
        fs::create_dir(group.path()).unwrap();
        let mark = Mark::of("gathered");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "(env -i $(command -v setsid) sleep 4713 &); exec sleep 4714"]);
        let mut child = mark.spawn(&mut shell).unwrap();
        let of_run = || processes::marked(&mark);
        let until = Instant::now() + Duration::from_secs(10);
        while of_run().len() < 2 {
            assert!(Instant::now() < until);
            thread::yield_now();
        }
        group.add(child.id().try_into().unwrap()).unwrap();
        group.gather(of_run).unwrap();
        let members = fs::read_to_string(group.path().join("cgroup.procs")).unwrap();
        assert_eq!(members.lines().count(), 2, "{members}");
        drop(group);
        child.wait().unwrap();
        assert!(of_run().is_empty());
        fs::remove_dir(dir).unwrap();
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
