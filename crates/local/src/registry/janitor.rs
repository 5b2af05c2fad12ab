//! What happens after a change without anybody asking: dependents follow their owners, content
//! follows its namespace, instances follow their definition, tokens their account, what every
//! namespace has comes back, and old events go.
//!
//! It reads every change, and at the start looks at every object once, so nothing is missed by a
//! stop in between.

mod claims;
mod collect;
mod definition;
mod namespace;
mod tokens;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, timeout_at};

use super::{Registry, Target, check::NAMESPACES};
use crate::{
    error::Error,
    store::{Change, Key, Mode, Object, Transaction},
};

const EVENTS: &str = "/events";
/// How long events are kept.
const EVENT_AGE: SignedDuration = SignedDuration::from_hours(1);
/// How often old ones are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// What may have something to do after a change.
#[derive(Default)]
struct Work {
    objects: BTreeSet<Key>,
    namespaces: BTreeSet<String>,
    /// Resources of which an object has gone.
    emptied: BTreeSet<Arc<str>>,
    tokens: Vec<tokens::Gone>,
}

/// Tidies until the store stops.
pub async fn tend(registry: Arc<Registry>) {
    let start = registry.store.read().version();
    let mut cursor = registry.store.follow(start);
    registry.tidy(registry.everything()).await;
    let mut sweep = Instant::now() + SWEEP;
    loop {
        // Changes that never pause must not put it off.
        if sweep <= Instant::now() {
            registry.sweep_events().await;
            sweep = Instant::now() + SWEEP;
        }
        match timeout_at(sweep, cursor.next(None)).await {
            Ok(Ok(changes)) if changes.is_empty() => return,
            Ok(Ok(changes)) => {
                let work = registry.work(&changes);
                registry.tidy(work).await;
            }
            // We were too slow for the history: everything is looked at again.
            Ok(Err(_)) => {
                cursor = registry.store.follow(registry.store.read().version());
                registry.tidy(registry.everything()).await;
            }
            Err(_) => {}
        }
    }
}

impl Registry {
    fn everything(&self) -> Work {
        let state = self.store.read();
        let mut work = Work::default();
        for resource in state.resources() {
            let keys = state.list(resource, "");
            let keys = keys.map(|(name, _)| Key { resource: resource.clone(), name: name.clone() });
            work.objects.extend(keys);
        }
        let namespaces = state.list(NAMESPACES, "").map(|(_, found)| found.meta("name").to_owned());
        work.namespaces.extend(namespaces);
        work
    }

    fn work(&self, changes: &[Change]) -> Work {
        let state = self.store.read();
        let mut work = Work::default();
        for change in changes {
            work.objects.insert(change.key.clone());
            work.tokens.extend(tokens::Gone::of(change));
            let objects = change.old.iter().chain(&change.new);
            for owner in objects.clone().flat_map(|object| collect::owners(object)) {
                work.objects.extend(state.find_uid(owner.uid).cloned());
            }
            // Owners that go, or are about to, concern those who name them.
            for object in objects {
                if change.new.is_none() || object.is_deleting() {
                    work.objects.extend(state.dependents(object.uid()).cloned());
                }
            }
            if change.new.is_none() {
                work.emptied.insert(change.key.resource.clone());
            }
            let namespace = match &*change.key.resource {
                NAMESPACES => change.key.name(),
                _ => change.key.namespace(),
            };
            work.namespaces.insert(namespace.to_owned());
        }
        work
    }

    async fn tidy(self: &Arc<Self>, work: Work) {
        for gone in work.tokens {
            self.strike_off(gone).await;
        }
        for key in &work.objects {
            self.collect(key).await;
            self.release_storage(key).await;
            self.tend_tokens(key).await;
            if *key.resource == *super::catalog::DEFINITIONS {
                self.clean_up(key).await;
            }
        }
        for resource in &work.emptied {
            self.clean_up_after(resource).await;
        }
        for namespace in &work.namespaces {
            self.empty_namespace(namespace).await;
            self.furnish_again(namespace).await;
        }
    }

    async fn sweep_events(self: &Arc<Self>) {
        let old = |object: &Object, now: Timestamp| {
            let last = ["lastTimestamp", "eventTime", "firstTimestamp"];
            let times = last.iter().filter_map(|name| object.value().get(name)?.as_str());
            let times = times.chain([object.meta("creationTimestamp")]);
            let newest = times.filter_map(|time| time.parse::<Timestamp>().ok()).max();
            newest.is_some_and(|time| now.duration_since(time) > EVENT_AGE)
        };
        let now = self.store.now();
        let keys: Vec<_> = {
            let state = self.store.read();
            let gone = state.list(EVENTS, "").filter(|(_, event)| old(event, now));
            gone.map(|(name, _)| Key { resource: EVENTS.into(), name: name.clone() }).collect()
        };
        if keys.is_empty() {
            return;
        }
        self.quietly(move |_, tx| {
            keys.iter().for_each(|key| {
                tx.remove(key);
            });
            Ok(())
        })
        .await;
    }

    /// A change that nobody waits for. It is tried again with the next change that concerns it.
    async fn quietly(
        self: &Arc<Self>,
        change: impl FnOnce(&Arc<Self>, &mut Transaction<'_>) -> Result<(), Error> + Send + 'static,
    ) {
        match self.change(Mode::Store, change).await {
            Ok(()) | Err(Error::NotFound(_)) => {}
            Err(error) => tracing::warn!(%error, "cannot tidy up"),
        }
    }

    /// Whatever is stored there, as a target of deletion.
    fn target_of(&self, key: &Key) -> Option<Target> {
        Some(Target {
            served: self.catalog().stored(&key.resource)?.clone(),
            namespace: key.namespace().to_owned(),
            name: key.name().to_owned(),
            subresource: String::new(),
        })
    }
}
