//! Who has asked for what: an object that is nobody's child wakes those whose last pass has read it,
//! or would have if it had existed.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    domain::{Watch, Whose},
    fetch::Notes,
    kind::{Kind, ObjectKey},
};

/// The questions of a controller's objects about what others own.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The kinds about which questions are kept, and which of them: all, or those by name.
    kinds: HashMap<Kind, Whose>,
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
        let others = watches.iter().filter(|watch| watch.whose != Whose::Ours);
        let kinds = others.map(|watch| (watch.kind.clone(), watch.whose)).collect();
        Self { kinds, state: Mutex::default() }
    }

    /// Those who want to know that this object has changed.
    pub(crate) fn askers(&self, kind: &Kind, key: &ObjectKey) -> HashSet<ObjectKey> {
        if !self.kinds.contains_key(kind) {
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

/// Takes note of what one object asks for.
pub(crate) struct Asking<'r> {
    asked: &'r Asked,
    asker: &'r ObjectKey,
    questions: Mutex<HashSet<Question>>,
}

impl<'r> Asking<'r> {
    pub(crate) fn new(asked: &'r Asked, asker: &'r ObjectKey) -> Self {
        Self { asked, asker, questions: Mutex::default() }
    }

    /// What earlier passes have asked for no longer counts.
    pub(crate) fn done(self) {
        let questions = self.questions.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.asked.lock().keep(self.asker, questions);
    }

    fn note(&self, question: Question) {
        self.asked.note(self.asker, &question);
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).insert(question);
    }
}

impl Notes for Asking<'_> {
    fn one(&self, kind: &Kind, key: &ObjectKey) {
        if self.asked.kinds.contains_key(kind) {
            self.note(Question::One(kind.clone(), key.clone()));
        }
    }

    fn all(&self, kind: &Kind, namespace: Option<&str>) {
        if self.asked.kinds.get(kind) == Some(&Whose::Anyones) {
            self.note(Question::All(kind.clone(), namespace.map(str::to_owned)));
        }
    }
}

#[cfg(test)]
mod tests;
