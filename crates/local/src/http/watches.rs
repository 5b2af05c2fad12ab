//! How many watches a client has open.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::error::Error;

const MOST: usize = 512;

#[derive(Clone, Default)]
pub(super) struct Watches(Arc<Mutex<HashMap<String, usize>>>);

/// One open watch; dropping it makes room.
pub(super) struct Open {
    watches: Watches,
    user: String,
}

impl Watches {
    pub(super) fn enter(&self, user: &str) -> Result<Open, Error> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(user.to_owned()).or_default();
        if *count >= MOST {
            let text =
                format!("user {user:?} has {MOST} watches open, which is the most there may be");
            return Err(Error::TooMany(text));
        }
        *count += 1;
        Ok(Open { watches: self.clone(), user: user.to_owned() })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut open = self.watches.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_a_limited_number_of_watches() {
        let watches = Watches::default();
        let mut open: Vec<_> = (0..MOST).map(|_| watches.enter("a").unwrap()).collect();
        let refused = watches.enter("a").err().unwrap().to_string();
        let want = "user \"a\" has 512 watches open, which is the most there may be";
        assert_eq!(refused, format!("too many requests, please try again later: {want}"));
        assert!(watches.enter("b").is_ok());
        open.pop();
        assert!(watches.enter("a").is_ok());
        drop(open);
        assert!(watches.0.lock().unwrap().is_empty());
    }
}
