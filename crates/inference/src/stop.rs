//! Texts at which an answer ends, though they may arrive in parts.

#[cfg(test)]
mod tests;

#[derive(Debug, Default)]
pub struct Stops {
    texts: Vec<String>,
    /// What may be the beginning of such a text.
    held: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Passed {
    /// May be told.
    Text(String),
    /// May be told, and is the end.
    Last(String),
}

impl Stops {
    /// Empty texts are nowhere and everywhere, and left out.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let texts = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Self { texts, held: String::new() }
    }

    pub fn push(&mut self, text: &str) -> Passed {
        self.held.push_str(text);
        let found = self.texts.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        if let Some(at) = found {
            self.held.truncate(at);
            return Passed::Last(std::mem::take(&mut self.held));
        }
        let doubtful = self.held.len() - self.beginning();
        let rest = self.held.split_off(doubtful);
        Passed::Text(std::mem::replace(&mut self.held, rest))
    }

    /// What was held back, when nothing more comes.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// The length of the longest end of what is held that begins one of the texts.
    fn beginning(&self) -> usize {
        let longest = self.texts.iter().map(String::len).max().unwrap_or(0);
        let ends = self.held.char_indices().map(|(at, _)| &self.held[at..]);
        ends.filter(|end| end.len() < longest)
            .find(|end| self.texts.iter().any(|text| text.starts_with(end)))
            .map_or(0, str::len)
    }
}
