//! One request while it runs.

use tokio::sync::mpsc::UnboundedSender;

use super::{Event, Reason, Request, work::Job};
use crate::{
    Tokenizer,
    network::{Cache, Chunk},
    sample::Sampler,
    stop::{Passed, Stops},
    tokenizer::Utf8Stream,
};

pub(super) struct Sequence {
    /// The prompt and the answer so far.
    tokens: Vec<u32>,
    prompt: usize,
    max_tokens: usize,
    ignore_end: bool,
    cache: Cache,
    sampler: Sampler,
    characters: Utf8Stream,
    stops: Stops,
    events: UnboundedSender<Event>,
    over: bool,
    failed: bool,
    /// How many tokens the step at hand computes.
    part: usize,
}

impl Sequence {
    pub(super) fn new(cache: Cache, job: Job) -> Self {
        let Request { prompt, max_tokens, sampling, stops, ignore_end } = job.request;
        Self {
            cache,
            sampler: Sampler::new(sampling, &prompt),
            characters: Utf8Stream::default(),
            stops: Stops::new(stops),
            prompt: prompt.len(),
            tokens: prompt,
            max_tokens,
            ignore_end,
            events: job.events,
            over: false,
            failed: false,
            part: 0,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over || self.events.is_closed()
    }

    pub(super) fn cached(&self) -> usize {
        self.cache.length()
    }

    /// The most tokens that it may come to.
    pub(super) fn most(&self) -> usize {
        self.prompt.saturating_add(self.max_tokens)
    }

    /// What it has computed, with the tokens that it is of.
    pub(super) fn into_cache(mut self) -> Option<(Vec<u32>, Cache)> {
        self.tokens.truncate(self.cache.length());
        (!self.failed).then_some((self.tokens, self.cache))
    }

    pub(super) fn answers(&self) -> bool {
        self.tokens.len() > self.prompt
    }

    /// How many tokens are not computed yet.
    pub(super) fn left(&self) -> usize {
        self.tokens.len() - self.cache.length()
    }

    /// How much is computed in this step: a part of the prompt, of at most so many tokens, or the last
    /// token of the answer.
    pub(super) fn plan(&mut self, room: usize) -> usize {
        self.part = self.left().min(room);
        if let Err(error) = self.cache.reserve(self.part) {
            self.part = 0;
            self.fail(&error.to_string());
        }
        self.part
    }

    pub(super) fn chunk(&mut self) -> Chunk<'_> {
        let from = self.cache.length();
        let to = from + self.part;
        let wants_logits = self.part > 0 && to == self.tokens.len();
        Chunk { tokens: &self.tokens[from..to], cache: &mut self.cache, wants_logits }
    }

    /// Takes the next token.
    pub(super) fn advance(&mut self, tokenizer: &Tokenizer, logits: &mut [f32]) {
        // A network may have more rows than there are tokens, so that it is a round number.
        let tokens = logits.len().min(tokenizer.size());
        let Some(token) = self.sampler.next(&mut logits[..tokens]) else {
            return self.fail("the model gives no numbers");
        };
        self.tokens.push(token);
        let ends = tokenizer.ends(token) && !self.ignore_end;
        let bytes = if ends { &[] } else { tokenizer.bytes(token) };
        let text = self.characters.push(bytes);
        let (mut text, stopped) = match self.stops.push(&text) {
            Passed::Text(text) => (text, false),
            Passed::Last(text) => (text, true),
        };
        let reason = if ends || stopped {
            Some(Reason::Stop)
        } else if self.tokens.len() - self.prompt >= self.max_tokens {
            Some(Reason::Length)
        } else {
            None
        };
        if reason.is_some() && !stopped {
            text += &self.last();
        }
        self.tell(Event::Text { text, tokens: 1 });
        if let Some(reason) = reason {
            self.over = true;
            self.tell(Event::Finished(reason));
        }
    }

    pub(super) fn fail(&mut self, why: &str) {
        (self.over, self.failed) = (true, true);
        self.tell(Event::Failed(why.to_owned()));
    }

    /// What was held back, and is no beginning of anything any more.
    fn last(&mut self) -> String {
        let rest = self.characters.finish();
        match self.stops.push(&rest) {
            Passed::Text(text) => text + &self.stops.finish(),
            Passed::Last(text) => text,
        }
    }

    /// Nobody may be there to hear it, which the next step sees.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}
