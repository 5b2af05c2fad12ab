//! Caches of sequences that are over: the next question of a chat begins as the last one did, and many
//! prompts begin alike.

use std::{collections::VecDeque, iter::zip};

use crate::network::Cache;

pub(super) struct Kept {
    /// How many there may be.
    places: usize,
    /// The oldest first, with the tokens that it was made of.
    caches: VecDeque<(Vec<u32>, Cache)>,
}

impl Kept {
    pub(super) fn new(places: usize) -> Self {
        Self { places, caches: VecDeque::new() }
    }

    pub(super) fn keep(&mut self, tokens: Vec<u32>, cache: Cache) {
        if cache.length() == 0 {
            return;
        }
        if self.caches.len() == self.places {
            self.caches.pop_front();
        }
        self.caches.push_back((tokens, cache));
    }

    /// What is known already of a prompt. Its last token is not, as it is asked what follows it.
    pub(super) fn take(&mut self, prompt: &[u32]) -> Option<Cache> {
        let prompt = prompt.split_last()?.1;
        let shared = |tokens: &[u32]| zip(tokens, prompt).take_while(|(a, b)| a == b).count();
        let known = self.caches.iter().enumerate().map(|(at, (tokens, _))| (shared(tokens), at));
        let (shared, at) = known.max().filter(|(shared, _)| *shared > 0)?;
        let (_, mut cache) = self.caches.remove(at)?;
        cache.truncate(shared);
        Some(cache)
    }

    /// Forgets the oldest until all have no more than so many tokens.
    pub(super) fn shrink(&mut self, room: usize) {
        let mut tokens: usize = self.caches.iter().map(|(tokens, _)| tokens.len()).sum();
        while tokens > room {
            let Some((oldest, _)) = self.caches.pop_front() else { return };
            tokens -= oldest.len();
        }
    }
}
