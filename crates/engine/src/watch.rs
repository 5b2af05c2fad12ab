//! Keeps a cache current and tells which objects have changed.

mod backoff;

use std::{collections::HashSet, sync::Arc};

use futures::{StreamExt, stream};
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};

use self::backoff::SoonThenPatient;
use crate::{
    cache::{Cache, Change, Versions},
    error::chain,
    kind::{Kind, ObjectKey, Scope},
    metrics::Metrics,
    object::{Object, Watched},
};

/// Objects of one page of a listing. A page is in memory as a whole, and at the start those of all
/// kinds are so at once.
const PAGE: u32 = 100;

/// Which objects to watch.
#[derive(Clone, Debug)]
pub struct Scoped {
    pub kind: Kind,
    /// Label selector; `None` for all objects.
    pub selector: Option<String>,
    /// Empty for all namespaces.
    pub namespaces: Vec<String>,
}

pub struct Watcher {
    pub client: Client,
    pub scope: Scoped,
    pub cache: Arc<Cache>,
    pub metrics: Metrics,
}

impl Watcher {
    /// Watches for ever. `synced` is called once everything that exists has been seen,
    /// `changed` for each object that is new, changed or gone.
    pub async fn run(self, synced: impl Fn() + Send, changed: impl Fn(&Object) + Send) {
        self.cache.open(&self.scope.kind);
        let mut unsynced = 0;
        let streams: Vec<_> = self
            .places()
            .into_iter()
            .map(|(namespace, api)| {
                unsynced += 1;
                let config = watcher::Config {
                    label_selector: self.scope.selector.clone(),
                    page_size: Some(PAGE),
                    ..watcher::Config::default()
                };
                watcher::watcher(api, config)
                    .backoff(SoonThenPatient::default())
                    .map(move |event| (namespace.clone(), event))
                    .boxed()
            })
            .collect();
        let mut streams = stream::select_all(streams);
        let mut listings = Listings::default();
        while let Some((namespace, event)) = streams.next().await {
            match event {
                Ok(event) => {
                    if self.take(namespace.as_deref(), event, &mut listings, &changed) {
                        unsynced -= 1;
                        if unsynced == 0 {
                            self.cache.listed(&self.scope.kind);
                            synced();
                        }
                    }
                }
                Err(error) => {
                    self.metrics.watch_restarted(&self.scope.kind);
                    let error = chain(&error);
                    tracing::warn!(kind = %self.scope.kind, error, "watch interrupted");
                }
            }
        }
    }

    fn places(&self) -> Vec<(Option<String>, Api<Watched>)> {
        let resource = self.scope.kind.api_resource();
        if self.scope.kind.scope == Scope::Cluster || self.scope.namespaces.is_empty() {
            return vec![(None, Api::all_with(self.client.clone(), &resource))];
        }
        let namespaced = |namespace: &String| {
            let api = Api::namespaced_with(self.client.clone(), namespace, &resource);
            (Some(namespace.clone()), api)
        };
        self.scope.namespaces.iter().map(namespaced).collect()
    }

    /// Returns whether this finished the first listing of that namespace.
    fn take(
        &self,
        namespace: Option<&str>,
        event: Event<Watched>,
        listings: &mut Listings,
        changed: &impl Fn(&Object),
    ) -> bool {
        let kind = &self.scope.kind;
        match event {
            Event::Init => {
                let listing = Listing { before: self.cache.versions(kind), seen: HashSet::new() };
                listings.begin(namespace, listing);
                false
            }
            Event::InitApply(watched) => {
                let object = Arc::new(Object::from(watched));
                let before = listings.saw(namespace, &object.key);
                if self.cache.put_listed(kind, object.clone(), before) == Change::New {
                    changed(&object);
                }
                false
            }
            Event::Apply(watched) => {
                let object = Arc::new(Object::from(watched));
                if self.cache.put(kind, object.clone()) == Change::New {
                    changed(&object);
                }
                false
            }
            Event::Delete(watched) => {
                let object = Arc::new(Object::from(watched));
                self.cache.remove(kind, object.clone());
                changed(&object);
                false
            }
            Event::InitDone => {
                let (listing, first) = listings.finish(namespace);
                for gone in self.cache.retain(kind, namespace, &listing.seen, &listing.before) {
                    changed(&gone);
                }
                first
            }
        }
    }
}

/// Listings under way, by namespace: a relisting must also find out what has gone meanwhile.
#[derive(Default)]
struct Listings {
    open: Vec<(Option<String>, Listing)>,
    done: HashSet<Option<String>>,
}

#[derive(Default)]
struct Listing {
    before: Versions,
    seen: HashSet<ObjectKey>,
}

impl Listings {
    fn begin(&mut self, namespace: Option<&str>, listing: Listing) {
        self.open.retain(|(open, _)| open.as_deref() != namespace);
        self.open.push((namespace.map(str::to_owned), listing));
    }

    /// Returns what was known when the listing began.
    fn saw(&mut self, namespace: Option<&str>, key: &ObjectKey) -> &Versions {
        let at = self.open.iter().position(|(open, _)| open.as_deref() == namespace);
        let at = at.unwrap_or_else(|| {
            self.begin(namespace, Listing::default());
            self.open.len() - 1
        });
        let (_, listing) = &mut self.open[at];
        listing.seen.insert(key.clone());
        &listing.before
    }

    fn finish(&mut self, namespace: Option<&str>) -> (Listing, bool) {
        let position = self.open.iter().position(|(open, _)| open.as_deref() == namespace);
        let listing = position.map(|at| self.open.swap_remove(at).1).unwrap_or_default();
        (listing, self.done.insert(namespace.map(str::to_owned)))
    }
}
