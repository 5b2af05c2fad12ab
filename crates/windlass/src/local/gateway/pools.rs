//! The pickers of pools: whom they choose from, and how busy those are.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::task::{AbortHandle, JoinSet};
use windlass_routing::{
    gateway::{assemble::Assembled, backends::PoolKey},
    scrape::{self, Settings},
};

/// How often endpoints are asked while nobody asks anything of them.
const IDLE: Duration = Duration::from_secs(10);

/// Those that are read at the moment; none is any longer when this is dropped.
#[derive(Default)]
pub(super) struct Pools {
    tasks: JoinSet<()>,
    /// With what their pickers were made of.
    read: HashMap<PoolKey, (Option<Arc<str>>, AbortHandle)>,
}

impl Pools {
    pub(super) fn set(&mut self, assembled: &Assembled) {
        let pools = &assembled.routing.backends.pools;
        self.read.retain(|key, (config, task)| {
            let stays = pools.get(key).is_some_and(|pool| pool.config == *config);
            if !stays {
                task.abort();
            }
            stays
        });
        while self.tasks.try_join_next().is_some() {}
        let picker = |key: &PoolKey| pools.get(key).map(|pool| &pool.picker);
        for (key, objectives) in &assembled.objectives {
            if let Some(picker) = picker(key) {
                picker.set_objectives(objectives.clone());
            }
        }
        for (key, rewrites) in &assembled.rewrites {
            if let Some(picker) = picker(key) {
                picker.set_rewrites(rewrites.clone());
            }
        }
        for (key, endpoints) in &assembled.endpoints {
            let Some(pool) = pools.get(key) else { continue };
            pool.picker.set_endpoints(endpoints.clone());
            self.read.entry(key.clone()).or_insert_with(|| {
                let settings = Settings { idle: IDLE, ..Settings::default() };
                let reading = scrape::run(pool.picker.clone(), settings);
                (pool.config.clone(), self.tasks.spawn(reading))
            });
        }
    }
}
