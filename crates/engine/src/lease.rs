//! Leader election: of several operators only the holder of the Lease acts.
//!
//! The holder renews well before others may take over, and gives up before they may: whoever cannot
//! renew in time stops acting at once, even if it cannot reach the API to say so.

use std::{sync::Arc, time::Duration};

use futures::future::{join_all, select_all};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;

use crate::error::chain;

/// Where time comes from; a function, so that tests and the simulation can set it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

#[derive(Clone)]
pub struct Election {
    pub client: Client,
    pub clock: Clock,
    pub namespace: String,
    pub name: String,
    /// This operator, unlike any other.
    pub identity: String,
    pub timing: Timing,
}

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long others respect a lease that is not renewed.
    pub duration: Duration,
    /// How long the holder goes on trying to renew before it stops acting.
    pub deadline: Duration,
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// What was last seen of somebody else's lease. Their clock is not trusted: a lease is over when it
/// has not changed for its duration by our own clock.
#[derive(Debug, Default)]
struct Rival {
    version: String,
    since: Option<Instant>,
}

/// What came of one try to take or renew the lease.
enum Attempt {
    Held,
    Rival,
    /// Somebody wrote the lease in between; who holds it now is not known.
    Raced,
}

impl Election {
    /// Returns once the lease is held, with the moment from which it counts.
    pub async fn acquire(&self) -> Instant {
        let mut rival = Rival::default();
        loop {
            // Others count from the moment of writing, which is before the answer and after this.
            let asked = Instant::now();
            let attempt =
                tokio::time::timeout(self.timing.deadline, self.attempt(&mut rival)).await;
            match attempt {
                Ok(Ok(Attempt::Held)) => return asked,
                Ok(Ok(Attempt::Rival | Attempt::Raced)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.name, error = %chain(&error), "cannot take the lease");
                }
                Err(_) => tracing::warn!(lease = %self.name, "taking the lease took too long"),
            }
            tokio::time::sleep(self.timing.retry).await;
        }
    }

    /// Renews for as long as possible; returns when the lease is lost. `since` is when it was taken.
    pub async fn hold(&self, since: Instant) {
        let mut renewed = since;
        loop {
            let end = renewed + self.timing.deadline;
            tokio::time::sleep_until((Instant::now() + self.timing.retry).min(end)).await;
            let asked = Instant::now();
            match tokio::time::timeout_at(end, self.attempt(&mut Rival::default())).await {
                Ok(Ok(Attempt::Held)) => renewed = asked,
                Ok(Ok(Attempt::Raced)) => {}
                Ok(Ok(Attempt::Rival)) => {
                    tracing::error!(lease = %self.name, "somebody else holds the lease");
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(lease = %self.name, error = %chain(&error), "cannot renew the lease");
                }
                Err(_) => {
                    tracing::error!(lease = %self.name, "the lease could not be renewed in time");
                    return;
                }
            }
        }
    }

    /// Lets the next operator take over at once.
    pub async fn release(&self) {
        let result = async {
            let Some(mut lease) = self.api().get_opt(&self.name).await? else { return Ok(()) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() == Some(&self.identity) {
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                self.api().replace(&self.name, &PostParams::default(), &lease).await?;
            }
            Ok::<_, kube::Error>(())
        };
        if let Err(error) = result.await {
            tracing::warn!(lease = %self.name, error = %chain(&error), "cannot give the lease back");
        }
    }

    async fn attempt(&self, rival: &mut Rival) -> Result<Attempt, kube::Error> {
        let Some(mut lease) = self.api().get_opt(&self.name).await? else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    namespace: Some(self.namespace.clone()),
                    ..Default::default()
                },
                spec: Some(self.renewed(None)),
            };
            return written(self.api().create(&PostParams::default(), &lease).await);
        };
        if !self.may_take(&lease, rival) {
            return Ok(Attempt::Rival);
        }
        lease.spec = Some(self.renewed(lease.spec.as_ref()));
        // The version read above goes along: of two takers one gets a conflict.
        written(self.api().replace(&self.name, &PostParams::default(), &lease).await)
    }

    fn may_take(&self, lease: &Lease, rival: &mut Rival) -> bool {
        let spec = lease.spec.as_ref();
        match spec.and_then(|spec| spec.holder_identity.as_deref()) {
            None | Some("") => true,
            Some(holder) if holder == self.identity => true,
            Some(_) => {
                let version = lease.metadata.resource_version.clone().unwrap_or_default();
                if rival.version != version {
                    *rival = Rival { version, since: Some(Instant::now()) };
                }
                let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(15);
                let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                rival.since.is_some_and(|since| since.elapsed() > duration)
            }
        }
    }

    fn renewed(&self, old: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime((self.clock)());
        let ours =
            old.filter(|spec| spec.holder_identity.as_deref() == Some(self.identity.as_str()));
        let transitions = old.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.timing.duration.as_secs()).ok(),
            acquire_time: ours.and_then(|spec| spec.acquire_time.clone()).or(Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(match (old, ours) {
                (Some(_), None) => transitions + 1,
                _ => transitions,
            }),
            ..Default::default()
        }
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// Leases that are held together or not at all: one's own, and those of operators it replaces.
pub struct Leases(pub Vec<Election>);

impl Leases {
    /// Returns once all are held, with the moments from which they count.
    pub async fn acquire(&self) -> Vec<Instant> {
        while !self.acquire_in_turn().await {}
        // Held already, so this only renews: the first may have waited long for the last.
        join_all(self.0.iter().map(Election::acquire)).await
    }

    /// Always in the same order, so that two operators cannot wait for each other. Fails if one was
    /// lost while another was waited for.
    async fn acquire_in_turn(&self) -> bool {
        let mut since = Vec::new();
        for election in &self.0 {
            tokio::select! {
                moment = election.acquire() => since.push(moment),
                () = self.hold(&since) => return false,
            }
        }
        true
    }

    /// Returns when one of those that `since` speaks of is lost.
    pub async fn hold(&self, since: &[Instant]) {
        let holding: Vec<_> =
            self.0.iter().zip(since).map(|(e, at)| Box::pin(e.hold(*at))).collect();
        if holding.is_empty() {
            return std::future::pending().await;
        }
        select_all(holding).await;
    }

    /// Lets the next operator take over at once.
    pub async fn release(&self) {
        join_all(self.0.iter().map(Election::release)).await;
    }
}

fn written<T>(answer: Result<T, kube::Error>) -> Result<Attempt, kube::Error> {
    match answer {
        Ok(_) => Ok(Attempt::Held),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Attempt::Raced),
        Err(error) => Err(error),
    }
}
