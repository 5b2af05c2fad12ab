//! The thread of an engine.

use std::{collections::VecDeque, sync::mpsc::Receiver};

use tokio::sync::mpsc::UnboundedSender;

use super::{Event, Limits, Request, kept::Kept, sequence::Sequence, stats::Stats};
use crate::{Model, network::Chunk};

/// How many tokens of prompts are computed in one step while nobody gets an answer.
const PROMPT_PART: usize = 128;
/// And while somebody does, who waits for it.
const PROMPT_PART_BESIDE: usize = 16;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) events: UnboundedSender<Event>,
}

impl Job {
    /// The most tokens that it may come to.
    fn most(&self) -> usize {
        self.request.prompt.len().saturating_add(self.request.max_tokens)
    }
}

pub(super) struct Worker<'a> {
    model: &'a Model,
    limits: Limits,
    stats: &'a Stats,
    waiting: VecDeque<Job>,
    running: Vec<Sequence>,
    kept: Kept,
    /// In tokens.
    room: usize,
}

impl<'a> Worker<'a> {
    pub(super) fn new(model: &'a Model, limits: Limits, stats: &'a Stats) -> Self {
        let limits = Limits { sequences: limits.sequences.max(1), ..limits };
        let room = limits.room(model.network.shape());
        let kept = Kept::new(limits.sequences);
        Self { model, limits, stats, waiting: VecDeque::new(), running: Vec::new(), kept, room }
    }

    /// Until nobody can hand over a job any more.
    pub(super) fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            if self.running.is_empty() && self.waiting.is_empty() {
                match jobs.recv() {
                    Ok(job) => self.waiting.push_back(job),
                    Err(_) => return,
                }
            }
            self.waiting.extend(jobs.try_iter());
            self.admit();
            self.step();
            self.clear_away();
            self.tell();
        }
    }

    fn admit(&mut self) {
        let stats = self.stats;
        self.waiting.retain(|job| {
            let gone = job.events.is_closed();
            if gone {
                stats.leaves_queue();
            }
            !gone
        });
        self.clear_away();
        while self.running.len() < self.limits.sequences {
            let taken: usize = self.running.iter().map(Sequence::most).sum();
            let Some(job) = self.waiting.pop_front_if(|job| {
                let all = taken.saturating_add(job.most());
                all <= self.room || taken == 0
            }) else {
                break;
            };
            let cache = self.kept.take(&job.request.prompt);
            self.kept.shrink(self.room.saturating_sub(taken.saturating_add(job.most())));
            let cache = cache.unwrap_or_else(|| self.model.network.cache());
            self.running.push(Sequence::new(cache, job));
            // In this order, so that at no moment it is counted nowhere.
            self.tell();
            self.stats.leaves_queue();
        }
        self.tell();
    }

    /// What is over makes room, but may be of use to the next.
    fn clear_away(&mut self) {
        for sequence in self.running.extract_if(.., |sequence| sequence.is_over()) {
            if let Some((tokens, cache)) = sequence.into_cache() {
                self.kept.keep(tokens, cache);
            }
        }
    }

    fn tell(&self) {
        let cached = self.running.iter().map(Sequence::cached).sum();
        self.stats.runs(self.running.len(), cached);
    }

    /// A token for each that answers; prompts get what room there is, those first that need least of it.
    fn plan(&mut self) {
        let (answering, mut prompts): (Vec<_>, Vec<_>) =
            self.running.iter_mut().partition(|sequence| sequence.answers());
        let mut room = if answering.is_empty() { PROMPT_PART } else { PROMPT_PART_BESIDE };
        for sequence in answering {
            sequence.plan(1);
        }
        prompts.sort_by_key(|sequence| sequence.left());
        for sequence in prompts {
            let part = sequence.plan(room);
            room -= part;
            self.stats.computed(part, 0);
        }
    }

    fn step(&mut self) {
        self.plan();
        let mut chunks: Vec<Chunk<'_>> = self.running.iter_mut().map(Sequence::chunk).collect();
        let wanting: Vec<bool> = chunks.iter().map(|chunk| chunk.wants_logits).collect();
        let logits = match self.model.network.forward(&mut chunks) {
            Ok(logits) => logits,
            Err(error) => {
                tracing::error!(%error, "a step has failed");
                self.running.iter_mut().for_each(|sequence| sequence.fail(&error.to_string()));
                return;
            }
        };
        self.stats.computed(0, logits.len());
        let wanting = self.running.iter_mut().zip(wanting).filter(|(_, wants)| *wants);
        for ((sequence, _), mut logits) in wanting.zip(logits) {
            sequence.advance(&self.model.tokenizer, &mut logits);
        }
    }
}
