//! The processes of this machine, as `/proc` shows them. Where there is none, nothing is found.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::record::Identity;

/// The variable in which a process carries the token of its run.
pub const MARK: &str = "WINDLASS_RUN";
/// Killed processes are gone within moments, unless the machine is very busy.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// What tells a live process from any other, now and later.
pub fn identify(pid: i32) -> Option<Identity> {
    let stat = Stat::read(pid)?;
    Some(Identity { pid, start: stat.start, boot: boot()? })
}

/// This very process still lives.
pub fn lives(known: &Identity) -> bool {
    let same = identify(known.pid).is_some_and(|found| found == *known);
    same && Stat::read(known.pid).is_some_and(|stat| !stat.is_dead)
}

/// Ends everything that carries the token, wherever it went.
pub fn end_marked(token: &str) {
    end_all(&[(token, None)]);
}

/// Ends what runs have left: their groups if their processes still lead them, and everything that
/// carries their tokens. Comes back when all of it is gone.
pub fn end_all(runs: &[(&str, Option<&Identity>)]) {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut left = false;
        for (token, process) in runs {
            let Some(process) = process else { continue };
            // A token of somebody else's says that it is not ours after all.
            if lives(process) && token_of(process.pid).is_none_or(|found| is_of(&found, token)) {
                left = true;
                if let Some(pid) = Pid::from_raw(process.pid) {
                    // It may have gone a moment ago, which is just as well.
                    let _ = kill_process_group(pid, Signal::KILL);
                }
            }
        }
        for pid in marked(runs) {
            left = true;
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if !left {
            return;
        }
        if Instant::now() > until {
            tracing::warn!("killed processes do not go away");
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// All living processes that carry one of the tokens.
fn marked(runs: &[(&str, Option<&Identity>)]) -> Vec<i32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: &i32| {
        token_of(*pid).is_some_and(|found| runs.iter().any(|(token, _)| is_of(&found, token)))
            && Stat::read(*pid).is_some_and(|stat| !stat.is_dead)
    };
    pids.filter(ours).collect()
}

/// The token a process was started with, if that can be seen.
fn token_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut all = environment.split(|byte| *byte == 0);
    let token = all.find_map(|one| one.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(token.to_vec()).ok()
}

/// Commands run beside a container have its token and a number.
fn is_of(found: &str, token: &str) -> bool {
    found.strip_prefix(token).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

struct Stat {
    start: u64,
    is_dead: bool,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field is a name in parentheses, which may hold anything.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let start = fields.nth(18)?.parse().ok()?;
        Some(Self { start, is_dead: matches!(state, "Z" | "X") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_start() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.start, stat.is_dead), (4711, false));
        assert!(Stat::parse("7 (a) Z").is_none());
        assert!(Stat::parse("").is_none());
    }

    #[test]
    fn this_process_is_itself_and_no_other() {
        let own = identify(std::process::id().try_into().unwrap()).unwrap();
        assert!(lives(&own));
        assert!(!lives(&Identity { start: own.start + 1, ..own.clone() }));
        assert!(!lives(&Identity { boot: "another".into(), ..own.clone() }));
    }
}
