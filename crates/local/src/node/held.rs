//! Signals to a process that is held: its number may come to stand for another one, the hold does not.

use rustix::{
    io::{Errno, Result},
    process::{Pid, Signal, kill_process},
};

pub(super) enum Held {
    #[cfg(target_os = "linux")]
    By(std::os::fd::OwnedFd),
    /// Where the system cannot do it.
    Number(Pid),
}

impl Held {
    /// Whoever has this number now. What is known of it has to be asked again afterwards.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        Self::from(pid, open(pid))
    }

    /// Only the system's word that there is none counts. An old system, one that does not let us, or
    /// one without room for another file leaves at least the number.
    fn from(pid: Pid, opened: Result<Self>) -> Option<Self> {
        match opened {
            Ok(held) => Some(held),
            Err(Errno::SRCH) => None,
            Err(_) => Some(Self::Number(pid)),
        }
    }

    /// It may have gone a moment ago, which is just as well.
    pub(super) fn send(&self, signal: Signal) {
        let _ = match self {
            #[cfg(target_os = "linux")]
            Self::By(held) => rustix::process::pidfd_send_signal(held, signal),
            Self::Number(pid) => kill_process(*pid, signal),
        };
    }
}

#[cfg(target_os = "linux")]
fn open(pid: Pid) -> Result<Held> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map(Held::By)
}

#[cfg(not(target_os = "linux"))]
fn open(_: Pid) -> Result<Held> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_gone_only_if_the_system_says_so() {
        for (error, is_gone) in [
            (Errno::SRCH, true),
            (Errno::NOSYS, false),
            (Errno::PERM, false),
            (Errno::MFILE, false),
            (Errno::NFILE, false),
            (Errno::NOMEM, false),
        ] {
            assert_eq!(Held::from(Pid::INIT, Err(error)).is_none(), is_gone, "{error}");
        }
    }
}
