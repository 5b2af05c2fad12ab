//! Signals are heard whatever a command waits for.

use std::fs::{self, File};

use rustix::process::{Pid, Signal, kill_process};

use crate::{wait, world::World};

#[test]
fn k30_who_waits_for_a_lock_can_be_told_to_end() {
    let world = World::new();
    world.kit(&["pack", "model", "-t", "tiny"]).well();
    let lock = File::options().write(true).open(world.path("kitops/windlass/lock")).unwrap();
    lock.lock().unwrap();
    for (arguments, signal, want) in [
        (&["list"][..], Signal::TERM, 143),
        (&["store", "fsck"], Signal::INT, 130),
        (&["unpack", "tiny", "-d", "out"], Signal::TERM, 143),
    ] {
        let mut running = world.begin(arguments);
        let pid = running.pid();
        wait::blocking("a command that waits", || {
            let locks = fs::read_to_string("/proc/locks").unwrap();
            let is_waiting = |line: &str| {
                let mut words = line.split_whitespace();
                words.any(|word| word == "->") && words.any(|word| word == pid.to_string())
            };
            if locks.lines().any(is_waiting) { Ok(()) } else { Err(locks) }
        });
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
        let code = wait::blocking("its end", || running.code().ok_or("it goes on"));
        assert_eq!(code, want, "{arguments:?}");
    }
}

#[test]
fn who_packs_ends_at_once_and_leaves_nothing_when_told_to() {
    let world = World::new();
    world.write("large/Kitfile", b"model: {path: model.bin}\n");
    // More than is packed in the time.
    let large = File::create(world.path("large/model.bin")).unwrap();
    large.set_len(100 << 30).unwrap();
    let scratch = world.path("kitops/cache/pack");
    let written = || {
        let files = fs::read_dir(&scratch).into_iter().flatten().flatten();
        files.map(|file| file.metadata().map_or(0, |found| found.len())).sum::<u64>()
    };
    for compression in ["none", "zstd"] {
        let flag = format!("--compression={compression}");
        let running = world.begin(&["pack", "large", &flag, "-t", "large"]);
        wait::blocking("some of the layer", || if written() > 0 { Ok(()) } else { Err("nothing") });
        assert_eq!(running.terminate(), Some(143), "{compression}");
        let left = fs::read_dir(&scratch).unwrap().count();
        assert_eq!(left, 0, "{compression}");
    }
}
