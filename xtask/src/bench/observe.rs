//! When the operator is done, seen with little work: one watch on the parents, one look at the
//! children at the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, stream::BoxStream};
use kube::{
    Api,
    api::{DynamicObject, ListParams},
    runtime::watcher::{self, Event},
};
use serde_json::Value;
use tokio::time::timeout_at;

use super::objects::{Objects, name, type_of};

/// Long enough for the operator to look again at what it wrote, and to write the status once more.
const QUIET: Duration = Duration::from_secs(2);
/// For an operator that is never quiet.
const LONGEST_QUIET: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(250);

/// The statuses of the parents as they are written.
pub(super) struct Statuses {
    events: BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>,
    seen: Seen,
}

impl Statuses {
    /// Returns once the watch stands.
    pub(super) async fn watch(parents: Api<DynamicObject>) -> Result<Self> {
        let mut events = watcher::watcher(parents, watcher::Config::default()).boxed();
        let mut seen = Seen::default();
        while let Some(event) = events.next().await {
            match event.context("cannot watch the objects")? {
                Event::InitApply(object) => seen.note(&object, Instant::now()),
                Event::InitDone => return Ok(Self { events, seen }),
                _ => {}
            }
        }
        bail!("cannot watch the objects: the watch ended")
    }

    /// When the last status was written, once each parent has one of its newest generation and all
    /// children exist.
    pub(super) async fn last(
        mut self,
        objects: &Objects,
        children: &[&Value],
        deadline: Duration,
        mut check: impl FnMut() -> Result<()>,
    ) -> Result<Instant> {
        let started = Instant::now();
        let mut ticks_of_waiting = 0;
        let mut complete: Option<Complete> = None;
        loop {
            self.listen(TICK).await?;
            check()?;
            if complete.is_none() && self.seen.all_current() {
                match missing(objects, children).await? {
                    None => complete = Some(Complete::at(ticks_of_waiting)),
                    Some(child) if started.elapsed() > deadline => {
                        bail!("{child} was not made within {} s", deadline.as_secs())
                    }
                    Some(_) => ticks_of_waiting += 1,
                }
            }
            if let (Some(complete), Some(status)) = (&complete, self.seen.last_change) {
                let last = complete.waited_for.map_or(status, |seen| seen.max(status));
                if last.elapsed() > QUIET || complete.since.elapsed() > LONGEST_QUIET {
                    return Ok(last);
                }
            } else if started.elapsed() > deadline {
                let (current, all) = self.seen.progress();
                bail!("{current} of {all} objects have a status after {} s", deadline.as_secs());
            }
        }
    }

    /// Notes what is written during that time.
    async fn listen(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while let Ok(event) = timeout_at(end.into(), self.events.next()).await {
            match event {
                Some(Ok(Event::Apply(object) | Event::InitApply(object))) => {
                    self.seen.note(&object, Instant::now());
                }
                // A watch that breaks is taken up again by itself.
                Some(_) => {}
                None => bail!("the watch on the objects ended"),
            }
            // An event that is there already is handed out even after the end.
            if Instant::now() >= end {
                break;
            }
        }
        Ok(())
    }
}

/// All children were there.
struct Complete {
    since: Instant,
    /// Set if children came later than the last status, which no good operator does.
    waited_for: Option<Instant>,
}

impl Complete {
    fn at(ticks_of_waiting: u32) -> Self {
        let since = Instant::now();
        Self { since, waited_for: (ticks_of_waiting > 0).then_some(since) }
    }
}

#[derive(Default)]
struct Seen {
    /// By name of the parent: its status, and whether that is of its newest generation.
    statuses: BTreeMap<String, (Value, bool)>,
    last_change: Option<Instant>,
}

impl Seen {
    fn note(&mut self, object: &DynamicObject, now: Instant) {
        let status = object.data.get("status").cloned().unwrap_or_default();
        let current = is_current(&status, object.metadata.generation);
        let entry = self.statuses.entry(object.metadata.name.clone().unwrap_or_default());
        let (known, was_current) = entry.or_default();
        if *known != status {
            self.last_change = Some(now);
        }
        (*known, *was_current) = (status, current);
    }

    fn all_current(&self) -> bool {
        self.statuses.values().all(|(_, current)| *current)
    }

    fn progress(&self) -> (usize, usize) {
        (self.statuses.values().filter(|(_, current)| *current).count(), self.statuses.len())
    }
}

/// Some kinds do not say which generation their status is of.
fn is_current(status: &Value, generation: Option<i64>) -> bool {
    let written = status.as_object().is_some_and(|fields| !fields.is_empty());
    let observed = status["observedGeneration"].as_i64();
    written && (observed.is_none() || observed == generation)
}

/// A child that does not exist.
async fn missing(objects: &Objects, children: &[&Value]) -> Result<Option<String>> {
    let mut by_type: BTreeMap<_, Vec<&Value>> = BTreeMap::new();
    for child in children {
        by_type.entry(type_of(child)).or_default().push(child);
    }
    for ((_, kind), wanted) in by_type {
        let Some(first) = wanted.first() else { continue };
        let list = objects.api(first)?.list_metadata(&ListParams::default()).await;
        let list = list.with_context(|| format!("cannot list objects of the kind {kind}"))?;
        let there: BTreeSet<&str> =
            list.items.iter().filter_map(|object| object.metadata.name.as_deref()).collect();
        if let Some(child) = wanted.iter().find(|child| !there.contains(name(child))) {
            return Ok(Some(format!("{kind} {}", name(child))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, generation: i64, status: Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "a/v1", "kind": "X",
            "metadata": {"name": name, "generation": generation}, "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_status_counts_if_it_is_of_the_newest_generation() {
        for (status, want) in [
            (Value::Null, false),
            (json!({}), false),
            (json!({"phase": "Pending"}), true),
            (json!({"observedGeneration": 1}), false),
            (json!({"observedGeneration": 2}), true),
        ] {
            assert_eq!(is_current(&status, Some(2)), want, "{status}");
        }
    }

    #[test]
    fn only_a_changed_status_moves_the_end() {
        let mut seen = Seen::default();
        let first = Instant::now();
        let at = |seconds| first + Duration::from_secs(seconds);
        seen.note(&object("a", 1, Value::Null), at(0));
        assert_eq!((seen.last_change, seen.all_current()), (None, false));
        seen.note(&object("a", 1, json!({"observedGeneration": 1})), at(1));
        seen.note(&object("a", 1, json!({"observedGeneration": 1})), at(2));
        assert_eq!((seen.last_change, seen.all_current()), (Some(at(1)), true));
        seen.note(&object("b", 1, Value::Null), at(3));
        assert_eq!(seen.progress(), (1, 2));
    }
}
