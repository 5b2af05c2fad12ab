//! Who has asked for what: an object that is nobody's child wakes those whose last pass has read it,
//! or would have if it had existed.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;

use crate::{
    domain::{Watch, Whose},
    error::Error,
    fetch::{Reader, Selector},
    health::pods::LogKey,
    kind::{Kind, ObjectKey},
    object::Object,
};

/// The questions of a controller's objects about what others own.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The kinds about which questions are kept.
    kinds: HashSet<Kind>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    askers: HashMap<Question, HashSet<ObjectKey>>,
    questions: HashMap<ObjectKey, HashSet<Question>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Question {
    One(Kind, ObjectKey),
    /// All objects of a kind, or those of a namespace.
    All(Kind, Option<String>),
}

impl Asked {
    pub(crate) fn new(watches: &[Watch]) -> Self {
        let others = watches.iter().filter(|watch| watch.whose == Whose::Anyones);
        Self { kinds: others.map(|watch| watch.kind.clone()).collect(), state: Mutex::default() }
    }

    /// Those who want to know that this object has changed.
    pub(crate) fn askers(&self, kind: &Kind, key: &ObjectKey) -> HashSet<ObjectKey> {
        if !self.kinds.contains(kind) {
            return HashSet::new();
        }
        let state = self.lock();
        let questions = [
            Question::One(kind.clone(), key.clone()),
            Question::All(kind.clone(), key.namespace.clone()),
            Question::All(kind.clone(), None),
        ];
        questions
            .iter()
            .filter_map(|question| state.askers.get(question))
            .flatten()
            .cloned()
            .collect()
    }

    pub(crate) fn forget(&self, asker: &ObjectKey) {
        self.lock().keep(asker, HashSet::new());
    }

    /// Noted before the answer is known: if the object changes meanwhile, the asker is told.
    fn note(&self, asker: &ObjectKey, question: &Question) {
        let mut state = self.lock();
        state.askers.entry(question.clone()).or_default().insert(asker.clone());
        state.questions.entry(asker.clone()).or_default().insert(question.clone());
    }

    // A panic elsewhere while the lock was held can only leave a question too many behind.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, asker: &ObjectKey, questions: HashSet<Question>) {
        let known = self.questions.remove(asker).unwrap_or_default();
        for outdated in known.difference(&questions) {
            if let Some(askers) = self.askers.get_mut(outdated) {
                askers.remove(asker);
                if askers.is_empty() {
                    self.askers.remove(outdated);
                }
            }
        }
        if !questions.is_empty() {
            self.questions.insert(asker.clone(), questions);
        }
    }
}

/// Reads for one object through another reader, and takes note of what it asks for.
pub(crate) struct Asking<'r> {
    reader: &'r dyn Reader,
    asked: &'r Asked,
    asker: &'r ObjectKey,
    questions: Mutex<HashSet<Question>>,
}

impl<'r> Asking<'r> {
    pub(crate) fn new(reader: &'r dyn Reader, asked: &'r Asked, asker: &'r ObjectKey) -> Self {
        Self { reader, asked, asker, questions: Mutex::default() }
    }

    /// What earlier passes have asked for no longer counts.
    pub(crate) fn done(self) {
        let questions = self.questions.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.asked.lock().keep(self.asker, questions);
    }

    fn note(&self, kind: &Kind, question: impl FnOnce() -> Question) {
        if self.asked.kinds.contains(kind) {
            let question = question();
            self.asked.note(self.asker, &question);
            self.questions.lock().unwrap_or_else(PoisonError::into_inner).insert(question);
        }
    }

    fn note_all(&self, kind: &Kind, namespace: Option<&str>) {
        self.note(kind, || Question::All(kind.clone(), namespace.map(str::to_owned)));
    }
}

impl Reader for Asking<'_> {
    fn get<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, Error>> {
        self.note(kind, || Question::One(kind.clone(), key.clone()));
        self.reader.get(kind, key)
    }

    fn list<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        self.note_all(kind, namespace);
        self.reader.list(kind, namespace, selector)
    }

    fn list_now<'a>(
        &'a self,
        kind: &'a Kind,
        namespace: Option<&'a str>,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<Arc<Object>>, Error>> {
        self.note_all(kind, namespace);
        self.reader.list_now(kind, namespace, selector)
    }

    fn log<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<String, Error>> {
        self.reader.log(key)
    }

    fn output<'a>(&'a self, key: &'a LogKey) -> BoxFuture<'a, Result<Vec<u8>, Error>> {
        self.reader.output(key)
    }

    fn serves(&self, kind: &Kind) -> bool {
        self.reader.serves(kind)
    }
}

#[cfg(test)]
mod tests;
