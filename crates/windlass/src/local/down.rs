//! `windlass down`.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use clap::Args;
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};

use super::{
    home,
    lock::{self, Holder},
};

/// More than `up` gives its pods and the passes that have begun.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    home: home::Flags,
}

/// That nothing runs is what was wanted, so it is no failure.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let dir = flags.home.path()?;
    if let Some(holder) = lock::holder(&dir)? {
        return end(&dir, holder);
    }
    // Whoever names no directory may mean the one that `up --ephemeral` has made.
    let others = if flags.home.is_usual() { home::ephemeral() } else { Vec::new() };
    match others.as_slice() {
        [] => println!("nothing is up on {}", dir.display()),
        [(dir, holder)] => end(dir, *holder)?,
        several => {
            let commands: Vec<_> = several.iter().map(|(dir, _)| home::down(dir)).collect();
            anyhow::bail!("several are up; end one by\n{}", commands.join("\n"));
        }
    }
    Ok(())
}

fn end(dir: &Path, holder: Holder) -> anyhow::Result<()> {
    let process = holder.process.ok_or_else(|| {
        anyhow!("what is up on {} cannot be seen from here, as out of a container", dir.display())
    })?;
    terminate(process)?;
    await_end(dir, holder)?;
    println!("ended process {process}, which was up on {}", dir.display());
    Ok(())
}

fn terminate(process: Pid) -> anyhow::Result<()> {
    match kill_process(process, Signal::TERM) {
        // It has ended by itself.
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot end process {process}")),
    }
}

/// Killing it outright would leave its pods behind.
fn patience_ended(process: Pid, dir: &Path) -> String {
    let (patience, dir) = (PATIENCE.as_secs(), dir.display());
    format!(
        "process {process} on {dir} was told to end and has not in {patience} s; `kill {process}` \
         tells it once more, and then it ends its pods at once"
    )
}

fn await_end(dir: &Path, holder: Holder) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while lock::holder(dir)? == Some(holder) {
        if Instant::now() > end {
            let Some(process) = holder.process else { break };
            return Err(anyhow!(patience_ended(process, dir)));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_kill_what_has_pods() {
        let text = patience_ended(Pid::INIT, Path::new("/state"));
        assert!(text.contains("`kill 1`"), "{text}");
    }
}
