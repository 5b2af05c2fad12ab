//! The keys and values of the tokens that a sequence has so far.

use super::Shape;
use crate::Error;

#[derive(Debug)]
pub struct Cache {
    pub(super) layers: Vec<Seen>,
    pub(super) length: usize,
    width: usize,
}

/// One token after the other, each with the values of all heads.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) keys: Vec<f32>,
    pub(super) values: Vec<f32>,
}

impl Cache {
    pub(super) fn new(shape: &Shape) -> Self {
        let layers = (0..shape.layers).map(|_| Seen::default()).collect();
        Self { layers, length: 0, width: shape.kv_width() }
    }

    /// In tokens.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Forgets what is after so many tokens.
    pub fn truncate(&mut self, tokens: usize) {
        self.length = self.length.min(tokens);
        for seen in &mut self.layers {
            seen.keys.truncate(self.length * self.width);
            seen.values.truncate(self.length * self.width);
        }
    }

    /// Takes room for so many more tokens, and for some after them so that it is not copied each time.
    pub fn reserve(&mut self, tokens: usize) -> Result<(), Error> {
        let more = tokens.saturating_mul(self.width);
        let full = |_| Error::Room { tokens };
        for seen in &mut self.layers {
            seen.keys.try_reserve(more).map_err(full)?;
            seen.values.try_reserve(more).map_err(full)?;
        }
        Ok(())
    }
}
