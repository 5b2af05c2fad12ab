//! By what a process is known as part of a run, wherever it goes: a variable in its environment and,
//! on Linux, a limit that nobody else has use for. Who clears its environment, leaves its session and
//! loses its parent still has the limit.

use std::{
    fs, io,
    ops::Range,
    process::{self, Child, Command},
};

use sha2::{Digest, Sha256};

/// The variable with the token of the run.
const VARIABLE: &str = "WINDLASS_RUN";
/// As `/proc` calls the time that a process may run without a pause, if it is one of real time.
const LIMIT: &str = "Max realtime timeout";

/// Of the limits that mark. No number of microseconds that begins as these do comes to an end.
const MARKS: Range<u64> = 1 << 62..1 << 63;
/// With fewer numbers than that two runs might have the same.
const FEWEST: u64 = 250_000;

/// What the processes of one run carry.
#[derive(Clone, Debug)]
pub struct Mark {
    token: String,
    /// None where no limit can mark.
    limit: Option<u64>,
}

impl Mark {
    /// Commands run beside a container have its token and a number, and the same limit.
    pub fn of(token: &str) -> Self {
        Self::among(marks(highest()), token)
    }

    fn among(marks: Option<Range<u64>>, token: &str) -> Self {
        let run = token.split('.').next().unwrap_or(token);
        let hash = Sha256::digest(run.as_bytes());
        let first = hash.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte));
        let limit = marks.map(|marks| marks.start + (first >> 2) % (marks.end - marks.start));
        Self { token: token.to_owned(), limit }
    }

    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Makes a process that carries it from its first moment.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.env(VARIABLE, &self.token);
        with_limit(self.limit, || command.spawn())
    }

    /// Whether a process carries that of another run.
    pub fn is_another_on(&self, pid: i32) -> bool {
        limit_of(pid).is_some_and(|limit| Some(limit) != self.limit)
            || token_of(pid).is_some_and(|found| !self.is_named(&found))
    }

    fn is_named(&self, found: &str) -> bool {
        let rest = found.strip_prefix(&*self.token);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Whether a process is of one of these runs.
pub fn carries_any(pid: i32, marks: &[Mark]) -> bool {
    let limit = limit_of(pid);
    let has_limit = |mark: &Mark| limit.is_some() && limit == mark.limit;
    marks.iter().any(has_limit)
        || token_of(pid).is_some_and(|found| marks.iter().any(|mark| mark.is_named(&found)))
}

/// The token a process was started with, if that can be seen.
fn token_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut all = environment.split(|byte| *byte == 0);
    let token = all.find_map(|one| one.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(token.to_vec()).ok()
}

/// The limit of a process, if that marks it.
pub fn limit_of(pid: i32) -> Option<u64> {
    let marks = marks(highest())?;
    let limit = soft_limit(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)?;
    marks.contains(&limit).then_some(limit)
}

/// Whether a process would have a limit that marks it, and would show it.
pub fn is_shown() -> bool {
    let own = i32::try_from(process::id()).unwrap_or_default();
    let mark = Mark::of("shown");
    mark.limit.is_some() && with_limit(mark.limit, || limit_of(own)) == mark.limit
}

/// The limits that mark. Where there is a highest one, those below it have to do: who does not run in
/// real time has no use for them either, and who does has at least half of the time.
fn marks(highest: Option<u64>) -> Option<Range<u64>> {
    let marks = highest.filter(|highest| *highest < MARKS.end).map(|highest| highest / 2..highest);
    let marks = marks.unwrap_or(MARKS);
    (marks.end - marks.start >= FEWEST).then_some(marks)
}

fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(LIMIT))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// What a limit may be set to without rights, if not to anything.
#[cfg(target_os = "linux")]
fn highest() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};

    getrlimit(Resource::Rttime).maximum
}

#[cfg(not(target_os = "linux"))]
fn highest() -> Option<u64> {
    None
}

/// A new process has the limits of the one that makes it, so this one has it for that long. Where it
/// may not, the environment has to do.
#[cfg(target_os = "linux")]
fn with_limit<T>(limit: Option<u64>, spawn: impl FnOnce() -> T) -> T {
    use std::sync::{Mutex, PoisonError};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let Some(limit) = limit else { return spawn() };
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let own = getrlimit(Resource::Rttime);
    let marked = Rlimit { current: Some(limit), maximum: own.maximum };
    let is_set = setrlimit(Resource::Rttime, marked)
        .inspect_err(|error| tracing::debug!(%error, "cannot mark a process by a limit"));
    let spawned = spawn();
    if is_set.is_ok()
        && let Err(error) = setrlimit(Resource::Rttime, own)
    {
        tracing::warn!(%error, "cannot set back a limit");
    }
    spawned
}

#[cfg(not(target_os = "linux"))]
fn with_limit<T>(_: Option<u64>, spawn: impl FnOnce() -> T) -> T {
    spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_from_the_line_that_has_it() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max realtime priority     0                    0                    \n\
                      Max realtime timeout      4711                 unlimited            us        \n";
        assert_eq!(soft_limit(limits), Some(4711));
        assert_eq!(soft_limit(&limits.replace("4711", "unlimited")), None);
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn a_token_names_its_run_and_the_commands_beside_it() {
        let mark = Mark::of("a");
        for (found, want) in [("a", true), ("a.1", true), ("ab", false), ("", false)] {
            assert_eq!(mark.is_named(found), want, "{found}");
        }
    }

    #[test]
    fn runs_have_marks_of_their_own_and_commands_beside_them_the_same() {
        // Far beyond any time, and not what stands for none at all, if that is allowed.
        for (highest, want) in [
            (None, 1 << 62..1 << 63),
            (Some(1 << 63), 1 << 62..1 << 63),
            (Some(1 << 62), 1 << 61..1 << 62),
            (Some(1_000_000), 500_000..1_000_000),
        ] {
            let of = |token| Mark::among(marks(highest), token).limit.unwrap();
            let (one, beside, other) = (of("a"), of("a.1"), of("b"));
            assert_eq!(one, beside);
            assert_ne!(one, other);
            assert!([one, other].iter().all(|limit| want.contains(limit)), "{highest:?}");
        }
        for highest in [0, 1, 200_000] {
            assert_eq!(Mark::among(marks(Some(highest)), "a").limit, None, "{highest}");
        }
    }

    /// Runs a test of these where no limit may be higher.
    fn is_passed_below(highest: u64, test: &str) -> bool {
        let mut command = Command::new("prlimit");
        command.arg(format!("--rttime={highest}:{highest}"));
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("node::mark::tests::{test}")]);
        let said = command.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(text.contains("running 1 test"), "{text}");
        said.status.success()
    }

    #[test]
    fn a_mark_can_be_seen_where_limits_of_this_kind_are() {
        assert!(is_shown());
    }

    #[test]
    fn where_there_is_a_highest_limit_marks_are_below_it() {
        assert!(is_passed_below(
            1_000_000,
            "a_process_carries_the_mark_and_this_one_does_not_keep_it"
        ));
        assert!(is_passed_below(1_000_000, "a_mark_can_be_seen_where_limits_of_this_kind_are"));
        assert!(!is_passed_below(1000, "a_mark_can_be_seen_where_limits_of_this_kind_are"));
    }

    #[test]
    fn a_process_carries_the_mark_and_this_one_does_not_keep_it() {
        let mark = Mark::of("carried");
        let mut command = Command::new("sleep");
        let mut child = mark.spawn(command.arg("4716")).unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let carries = |token: &str, pid| carries_any(pid, &[Mark::of(token)]);
        assert!(carries("carried", pid));
        assert!(!mark.is_another_on(pid));
        assert!(Mark::of("other").is_another_on(pid));
        assert!(!carries("carries", pid));
        assert!(!carries("carried", std::process::id().try_into().unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
