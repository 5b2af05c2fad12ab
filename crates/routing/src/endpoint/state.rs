//! The figures of one endpoint. They are read for every request and never lock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;

/// How busy an endpoint says it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) waiting: u32,
    pub(crate) running: u32,
    /// From 0 to 1, but what the endpoint says is not checked.
    pub(crate) kv: f64,
}

/// Adapters as the endpoint reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lora {
    pub(crate) running: Vec<String>,
    pub(crate) waiting: Vec<String>,
    pub(crate) max: usize,
}

/// Zero where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cache {
    pub(crate) block_size: u32,
    pub(crate) blocks: u32,
}

#[derive(Debug)]
pub(crate) struct State {
    /// A small number that no other endpoint of the pool has.
    pub(crate) slot: usize,
    figures: Figures,
    lora: ArcSwapOption<Lora>,
    gone: AtomicBool,
}

/// One line of the processor's cache, so that endpoints do not disturb each other.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Figures {
    /// Waiting and running.
    requests: AtomicU64,
    kv: AtomicU64,
    /// Nanoseconds since the pool began; zero for never.
    updated: AtomicU64,
    cache: AtomicU64,
    /// Requests that were sent there and are not over.
    open: AtomicU32,
}

impl State {
    pub(crate) fn new(slot: usize) -> Self {
        let lora = ArcSwapOption::default();
        Self { slot, figures: Figures::default(), lora, gone: AtomicBool::new(false) }
    }

    pub(crate) fn load(&self) -> Load {
        let (waiting, running) = halves(self.figures.requests.load(Relaxed));
        Load { waiting, running, kv: f64::from_bits(self.figures.kv.load(Relaxed)) }
    }

    pub(crate) fn set_load(&self, load: Load) {
        self.figures.requests.store(joined(load.waiting, load.running), Relaxed);
        self.figures.kv.store(load.kv.to_bits(), Relaxed);
    }

    pub(crate) fn cache(&self) -> Cache {
        let (block_size, blocks) = halves(self.figures.cache.load(Relaxed));
        Cache { block_size, blocks }
    }

    pub(crate) fn set_cache(&self, cache: Cache) {
        self.figures.cache.store(joined(cache.block_size, cache.blocks), Relaxed);
    }

    pub(crate) fn lora(&self) -> Option<Arc<Lora>> {
        self.lora.load_full()
    }

    pub(crate) fn set_lora(&self, lora: Lora) {
        self.lora.store(Some(Arc::new(lora)));
    }

    /// When the figures were read, since the pool began.
    pub(crate) fn updated(&self) -> Option<Duration> {
        let at = self.figures.updated.load(Relaxed);
        (at != 0).then(|| Duration::from_nanos(at))
    }

    pub(crate) fn set_updated(&self, at: Duration) {
        self.figures
            .updated
            .store(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX).max(1), Relaxed);
    }

    pub(crate) fn open(&self) -> u32 {
        self.figures.open.load(Relaxed)
    }

    pub(crate) fn begin(&self) {
        self.figures.open.fetch_add(1, Relaxed);
    }

    pub(crate) fn end(&self) {
        // Whoever ends has begun, so it does not go below zero.
        self.figures.open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(super) fn set_gone(&self) {
        self.gone.store(true, std::sync::atomic::Ordering::Release);
    }
}

fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn halves(both: u64) -> (u32, u32) {
    ((both >> 32) as u32, both as u32)
}
