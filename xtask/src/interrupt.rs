//! Ctrl-C.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, bail};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};

/// Ctrl-C, noticed instead of obeyed, so that what was started is also ended. A second one ends this
/// process at once.
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    pub(crate) fn listen() -> Result<Interrupted> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and only sets it.
            flag::register_conditional_shutdown(signal, 130, flag.clone())
                .and_then(|_| flag::register(signal, flag.clone()))
                .context("cannot listen for Ctrl-C")?;
        }
        Ok(Interrupted(flag))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() {
            bail!("interrupted");
        }
        Ok(())
    }
}
