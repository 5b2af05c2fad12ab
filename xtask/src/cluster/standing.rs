//! One control plane that outlives the command that started it, for work by hand.
//!
//! What runs is written down in `<cache>/cluster/state.json`. A process id is believed only while
//! the process under it is still our program with our folder: ids are used again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    Assets, ControlPlane, Lifetime, NodeAssets, Options, apply_crds, control_plane::kubectl,
    ensure_crds, nodes, wait_until,
};
use crate::cache;

/// What [`up`] should bring up.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Fake nodes, on which pods become ready without running.
    pub nodes: bool,
    /// Names of third-party CRDs.
    pub crds: Vec<String>,
}

/// Starts the standing control plane, or what is still missing of it, and says how to use it.
pub fn up(wanted: &Wanted) -> Result<()> {
    let assets = Assets::ensure()?;
    let node_assets = if wanted.nodes { Some(NodeAssets::ensure()?) } else { None };
    let names: Vec<&str> = wanted.crds.iter().map(String::as_str).collect();
    // Before anything is started, so that a misspelt name changes nothing.
    ensure_crds(&names)?;
    let _lock = cache::Lock::take("cluster")?;
    let dir = folder()?;
    let mut state = match State::read(&dir)? {
        Some(state) if state.lacks().is_empty() => state,
        Some(state) => {
            println!("{} ended; starting anew", state.lacks().join(", "));
            state.end()?;
            start(&assets, &dir)?
        }
        None => start(&assets, &dir)?,
    };
    if let Some(node_assets) = node_assets
        && !state.has("kwok")
    {
        let kubectl = kubectl(&assets, &state.kubeconfig());
        for process in nodes::start(&node_assets, &dir, Lifetime::Detached, kubectl)? {
            state.entries.push(Entry { name: process.name().into(), pid: process.pid() });
            state.write()?;
            process.release();
        }
    }
    apply_crds(&assets, &state.kubeconfig(), &names)?;
    println!("running: {}", state.names().join(", "));
    println!("use it:  export KUBECONFIG={}", state.kubeconfig().display());
    println!("         export PATH={}:$PATH", folder_of(&assets.kubectl).display());
    println!("end it:  cargo xtask cluster down");
    Ok(())
}

/// Ends exactly the processes [`up`] started and removes their data.
pub fn down() -> Result<()> {
    let _lock = cache::Lock::take("cluster")?;
    match State::read(&folder()?)? {
        Some(state) => {
            let running = state.running();
            state.end()?;
            println!(
                "ended: {}",
                if running.is_empty() { "nothing ran".into() } else { running.join(", ") }
            );
        }
        None => println!("nothing to end: no control plane is up"),
    }
    Ok(())
}

/// Prints what runs; true if all that was started does.
pub fn status() -> Result<bool> {
    let Some(state) = State::read(&folder()?)? else {
        println!("down: `cargo xtask cluster up` starts a control plane");
        return Ok(false);
    };
    for entry in &state.entries {
        let word = if state.runs(entry) { "runs" } else { "ended" };
        println!("{:<24} {word:<6} pid {}", entry.name, entry.pid);
    }
    println!("kubeconfig: {}", state.kubeconfig().display());
    Ok(state.lacks().is_empty())
}

fn folder() -> Result<PathBuf> {
    Ok(cache::dir()?.join("cluster"))
}

fn folder_of(program: &Path) -> &Path {
    program.parent().unwrap_or(program)
}

fn start(assets: &Assets, dir: &Path) -> Result<State> {
    let options = Options { lifetime: Lifetime::Detached, ..Options::in_dir(dir) };
    let plane = ControlPlane::start(assets, options)?;
    let dir = dir.canonicalize().with_context(|| format!("cannot resolve {}", dir.display()))?;
    let entries = plane.processes();
    let entries = entries.into_iter().map(|(name, pid)| Entry { name: name.into(), pid }).collect();
    let state = State { dir, entries };
    // Written before the processes are let go: a failure here must not leave strays.
    state.write()?;
    plane.release();
    Ok(state)
}

#[derive(Debug, PartialEq)]
struct Entry {
    name: String,
    pid: u32,
}

#[derive(Debug, PartialEq)]
struct State {
    dir: PathBuf,
    entries: Vec<Entry>,
}

impl State {
    fn read(dir: &Path) -> Result<Option<State>> {
        let path = dir.join("state.json");
        if !path.exists() {
            return Ok(None);
        }
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let entries = parse(&text).with_context(|| format!("cannot read {}", path.display()))?;
        let dir =
            dir.canonicalize().with_context(|| format!("cannot resolve {}", dir.display()))?;
        Ok(Some(State { dir, entries }))
    }

    fn write(&self) -> Result<()> {
        let entries =
            self.entries.iter().map(|entry| json!({"name": entry.name, "pid": entry.pid}));
        let text = json!({ "processes": entries.collect::<Vec<_>>() }).to_string();
        let path = self.dir.join("state.json");
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    fn running(&self) -> Vec<String> {
        let running = self.entries.iter().filter(|entry| self.runs(entry));
        running.map(|entry| entry.name.clone()).collect()
    }

    fn lacks(&self) -> Vec<String> {
        let ended = self.entries.iter().filter(|entry| !self.runs(entry));
        ended.map(|entry| entry.name.clone()).collect()
    }

    fn runs(&self, entry: &Entry) -> bool {
        let command_line = fs::read(format!("/proc/{}/cmdline", entry.pid)).unwrap_or_default();
        is_ours(&command_line, &entry.name, &self.dir)
    }

    fn end(&self) -> Result<()> {
        // Clients before servers, so that none spends its last second failing.
        for entry in self.entries.iter().rev().filter(|entry| self.runs(entry)) {
            // The shell's own `kill`: a program of that name is not everywhere.
            let status =
                Command::new("sh").arg("-c").arg(format!("kill -9 {}", entry.pid)).status();
            if !status.is_ok_and(|status| status.success()) {
                bail!("cannot kill {} (pid {})", entry.name, entry.pid);
            }
            let what = format!("{} (pid {}) ends", entry.name, entry.pid);
            wait_until(&what, Duration::from_secs(10), || Ok((!self.runs(entry)).then_some(())))?;
        }
        fs::remove_dir_all(&self.dir)
            .with_context(|| format!("cannot remove {}", self.dir.display()))
    }
}

fn parse(text: &str) -> Result<Vec<Entry>> {
    let state: Value = serde_json::from_str(text)?;
    let processes = state["processes"].as_array().context("it names no processes")?;
    let entry = |process: &Value| {
        let pid = process["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())?;
        Some(Entry { name: process["name"].as_str()?.into(), pid })
    };
    processes.iter().map(|process| entry(process).context("a process lacks name or pid")).collect()
}

/// Whether the command line, parts ended by NUL, is of this program on this folder.
fn is_ours(command_line: &[u8], name: &str, dir: &Path) -> bool {
    let line = String::from_utf8_lossy(command_line);
    let program = line.split('\0').next().unwrap_or_default();
    Path::new(program).file_name().is_some_and(|file| file == name)
        && line.contains(&*dir.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_process_id_is_not_taken_for_ours() {
        let dir = Path::new("/cache/cluster");
        for (line, want) in [
            ("/bin/etcd\0--data-dir=/cache/cluster/etcd\0", true),
            ("/bin/etcd\0--data-dir=/elsewhere\0", false),
            ("/bin/vi\0/cache/cluster/etcd\0", false),
            ("", false),
        ] {
            assert_eq!(is_ours(line.as_bytes(), "etcd", dir), want, "{line:?}");
        }
    }

    #[test]
    fn a_state_without_process_ids_is_refused() {
        assert!(parse(r#"{"processes": [{"name": "etcd"}]}"#).is_err());
        let entries = parse(r#"{"processes": [{"name": "etcd", "pid": 7}]}"#).unwrap();
        assert_eq!(entries, [Entry { name: "etcd".into(), pid: 7 }]);
    }
}
