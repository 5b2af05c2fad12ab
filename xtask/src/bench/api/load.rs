//! Appliers that send one request after the other, many at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use kube::Client;

use super::{
    arguments::Arguments,
    objects::{Kind, Ready},
};
use crate::bench::objects::AT_ONCE;

/// Makes the objects and changes them; how many applies that were, and how long they took.
pub(super) async fn apply(
    client: &Client,
    kinds: &[Kind],
    namespace: &str,
    arguments: &Arguments,
) -> Result<(u32, Duration)> {
    let mut applies = 0;
    let mut time = Duration::ZERO;
    // Everything is made before it is changed, as an object must be there to be changed.
    for change in 0..=arguments.changes {
        let mut requests = Vec::new();
        for number in 0..arguments.objects {
            for kind in kinds {
                requests.push(kind.apply(namespace, number, change)?);
                applies += 1;
            }
        }
        time += send(client, requests).await?;
    }
    Ok((applies, time))
}

/// From the first request to the last answer.
async fn send(client: &Client, requests: Vec<Ready>) -> Result<Duration> {
    let requests = Arc::new(requests);
    let next = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let appliers = (0..AT_ONCE).map(|_| {
        let (client, requests, next) = (client.clone(), requests.clone(), next.clone());
        tokio::spawn(async move {
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                client.request_text(request.clone()).await.context("cannot apply")?;
            }
            anyhow::Ok(())
        })
    });
    for outcome in try_join_all(appliers).await.context("an applier ended early")? {
        outcome?;
    }
    Ok(started.elapsed())
}
