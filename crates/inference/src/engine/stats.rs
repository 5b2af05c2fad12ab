//! Figures about an engine, for whoever picks one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

#[derive(Debug)]
pub(super) struct Stats {
    room: usize,
    running: AtomicUsize,
    waiting: AtomicUsize,
    cached: AtomicUsize,
    prompt_tokens: AtomicU64,
    answer_tokens: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub running: usize,
    pub waiting: usize,
    /// From 0 to 1: how much of the room for tokens is taken.
    pub cache_usage: f64,
    /// Since the start.
    pub prompt_tokens: u64,
    pub answer_tokens: u64,
}

impl Stats {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            cached: AtomicUsize::new(0),
            prompt_tokens: AtomicU64::new(0),
            answer_tokens: AtomicU64::new(0),
        }
    }

    pub(super) fn waits(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    pub(super) fn leaves_queue(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    pub(super) fn runs(&self, running: usize, cached: usize) {
        self.running.store(running, Relaxed);
        self.cached.store(cached, Relaxed);
    }

    pub(super) fn computed(&self, prompt: usize, answer: usize) {
        self.prompt_tokens.fetch_add(prompt as u64, Relaxed);
        self.answer_tokens.fetch_add(answer as u64, Relaxed);
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            running: self.running.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            cache_usage: self.cached.load(Relaxed) as f64 / self.room as f64,
            prompt_tokens: self.prompt_tokens.load(Relaxed),
            answer_tokens: self.answer_tokens.load(Relaxed),
        }
    }
}
