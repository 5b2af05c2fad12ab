//! The processes of this machine, as `/proc` shows them. Where there is none, nothing is found.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use super::{
    held::Held,
    mark::{self, Mark},
    record::Identity,
};

/// Killed processes are gone within moments, unless the machine is very busy or they wait for a disk.
/// Until then they hold what they have opened, be it the store.
const PATIENCE: Duration = Duration::from_secs(20);
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

/// Those that are marked by a limit, by that limit.
pub fn runs() -> BTreeMap<u64, Vec<i32>> {
    let mut runs: BTreeMap<u64, Vec<i32>> = BTreeMap::new();
    for pid in pids() {
        if let Some(limit) = mark::limit_of(pid) {
            runs.entry(limit).or_default().push(pid);
        }
    }
    runs
}

/// Those of one run that have not ended.
pub fn marked(mark: &Mark) -> Vec<i32> {
    let marks = std::slice::from_ref(mark);
    let lives = |pid: &i32| Stat::read(*pid).is_some_and(|stat| !stat.is_dead);
    pids().filter(|pid| mark::carries_any(*pid, marks) && lives(pid)).collect()
}

/// Ends everything that carries the mark of the run, wherever it went.
pub fn end_marked(token: &str) {
    end_all(&[(token, None)]);
}

/// Ends what runs have left: their groups if their processes still lead them, and everything that
/// carries their marks. Comes back when all of it is gone.
pub fn end_all(runs: &[(&str, Option<&Identity>)]) {
    let until = Instant::now() + PATIENCE;
    let marks: Vec<Mark> = runs.iter().map(|(token, _)| Mark::of(token)).collect();
    let is_marked = |pid: i32| {
        mark::carries_any(pid, &marks) && Stat::read(pid).is_some_and(|stat| !stat.is_dead)
    };
    loop {
        let is_late = Instant::now() > until;
        let led = runs.iter().zip(&marks);
        let led = led.filter_map(|((_, leader), mark)| Some((mark, (*leader)?)));
        // All of them, and not only until one is left.
        let led = led.filter(|(mark, leader)| end_group(leader, mark, is_late)).count();
        let marked = pids().filter(|pid| end_if(*pid, || is_marked(*pid))).count();
        if led + marked == 0 {
            return;
        }
        if is_late {
            tracing::warn!("killed processes do not go away");
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Ends the group of a process that still leads it, itself last: as long as it is there, no other
/// group has its number. It is halted, so that it makes no more. Whether there was something to end.
fn end_group(leader: &Identity, mark: &Mark, is_late: bool) -> bool {
    let Some(held) = Held::of(leader.pid) else { return false };
    // A mark of somebody else's says that it is not ours after all.
    if !lives(leader) || mark.is_another_on(leader.pid) {
        return false;
    }
    held.send(Signal::STOP);
    let is_member = |pid: i32| {
        Stat::read(pid).is_some_and(|stat| !stat.is_dead && stat.group == leader.pid)
            && lives(leader)
    };
    let others = pids().filter(|pid| *pid != leader.pid);
    let ended = others.filter(|pid| end_if(*pid, || is_member(*pid))).count();
    if ended == 0 || is_late {
        held.send(Signal::KILL);
    }
    true
}

/// Ends a process of which this is true while it is held. So no other is ever taken for it.
fn end_if(pid: i32, is_meant: impl Fn() -> bool) -> bool {
    // Most are somebody else's and need not be held.
    if !is_meant() {
        return false;
    }
    match Held::of(pid) {
        Some(held) if is_meant() => {
            held.send(Signal::KILL);
            true
        }
        _ => false,
    }
}

/// Of all but this one, which carries the mark of another while it makes it.
fn pids() -> impl Iterator<Item = i32> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let all = fs::read_dir("/proc").into_iter().flatten();
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(move |pid| *pid != own)
}

fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Asks the program in a sandbox to end: the oldest child of the first process in it, which is the
/// child of the one outside. False as long as there is none.
pub fn terminate_inside(outer: i32) -> bool {
    let child = |parent: i32| {
        let all = pids().filter_map(|pid| Some((pid, Stat::read(pid)?)));
        let children = all.filter(|(_, stat)| stat.parent == parent && !stat.is_dead);
        children.min_by_key(|(pid, stat)| (stat.start, *pid)).map(|(pid, _)| pid)
    };
    let Some((first, program)) = child(outer).and_then(|first| Some((first, child(first)?))) else {
        return false;
    };
    let Some(held) = Held::of(program) else { return false };
    let is_meant = Stat::read(program).is_some_and(|stat| stat.parent == first);
    if is_meant {
        held.send(Signal::TERM);
    }
    is_meant
}

struct Stat {
    parent: i32,
    group: i32,
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
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some(Self { parent, group, start, is_dead: matches!(state, "Z" | "X") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_start() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.group, stat.start, stat.is_dead), (7, 4711, false));
        assert!(Stat::parse("7 (a) Z").is_none());
        assert!(Stat::parse("").is_none());
    }

    fn sleeper(token: &str) -> std::process::Child {
        use std::os::unix::process::CommandExt;
        // It has a child that does not carry the token.
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "env -i sleep 4701 & exec sleep 4702"]).process_group(0);
        Mark::of(token).spawn(&mut shell).unwrap()
    }

    fn members(group: i32) -> usize {
        let is_member = |pid: &i32| Stat::read(*pid).is_some_and(|stat| stat.group == group);
        pids().filter(is_member).count()
    }

    #[test]
    fn a_number_that_has_come_to_stand_for_another_is_spared() {
        let mut child = sleeper("held");
        let pid = i32::try_from(child.id()).unwrap();
        // True as long as it is looked for, and no more when it is held.
        let asked = std::cell::Cell::new(0);
        let once = || asked.replace(asked.get() + 1) == 0;
        assert!(!end_if(pid, once));
        assert_eq!(asked.get(), 2);
        assert!(child.try_wait().unwrap().is_none());
        // Nor does a group end whose leader is marked otherwise, or was another process.
        let identity = identify(pid).unwrap();
        assert!(!end_group(&identity, &Mark::of("other"), true));
        assert!(!end_group(&Identity { start: 1, ..identity.clone() }, &Mark::of("held"), true));
        assert!(child.try_wait().unwrap().is_none());
        end_all(&[("held", Some(&identity))]);
        child.wait().unwrap();
    }

    #[test]
    fn a_group_ends_with_those_in_it_that_are_not_marked() {
        let mut child = sleeper("group");
        let pid = i32::try_from(child.id()).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while members(pid) < 2 {
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
        let identity = identify(pid).unwrap();
        end_all(&[("group", Some(&identity))]);
        assert!(!lives(&identity));
        child.wait().unwrap();
        while members(pid) > 0 {
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
    }

    #[test]
    fn this_process_is_itself_and_no_other() {
        let own = identify(std::process::id().try_into().unwrap()).unwrap();
        assert!(lives(&own));
        assert!(!lives(&Identity { start: own.start + 1, ..own.clone() }));
        assert!(!lives(&Identity { boot: "another".into(), ..own.clone() }));
    }
}
