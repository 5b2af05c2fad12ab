//! Many watchers of one kind, and how long a write takes to reach the last of them.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::{AsyncBufReadExt, StreamExt};
use kube::Client;
use serde_json::Value;
use tokio::{sync::Notify, task::JoinSet, time::timeout};

use super::{
    arguments::Arguments,
    objects::{Kind, marker},
};

const PATIENCE: Duration = Duration::from_secs(30);
/// Writes before the first that counts: connections and caches are cold.
const WARM_UP: u32 = 20;

/// What the watchers have seen of the newest write.
#[derive(Default)]
struct Board {
    seen: Mutex<Seen>,
    changed: Notify,
}

#[derive(Default)]
struct Seen {
    mark: u32,
    watchers: u32,
    last: Option<Instant>,
}

impl Board {
    fn note(&self, mark: u32) {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.mark != mark {
            *seen = Seen { mark, watchers: 0, last: None };
        }
        seen.watchers += 1;
        seen.last = Some(now);
        self.changed.notify_one();
    }

    /// When the last of so many watchers had the write.
    async fn last(&self, mark: u32, watchers: u32) -> Instant {
        loop {
            {
                let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(last) = seen.last
                    && seen.mark == mark
                    && seen.watchers == watchers
                {
                    return last;
                }
            }
            self.changed.notified().await;
        }
    }
}

/// From the sending of each write until the last watcher had it. Not from its answer, which may come
/// later than the news of it.
pub(super) async fn measure(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    arguments: &Arguments,
) -> Result<Vec<Duration>> {
    let board = Arc::new(Board::default());
    let mut watchers = JoinSet::new();
    for _ in 0..arguments.watchers {
        watch(client, kind, namespace, &board, &mut watchers).await?;
    }
    let mut times = Vec::new();
    for mark in 1..=WARM_UP + arguments.samples {
        let request = kind.mark(namespace, 0, mark)?;
        let sent = Instant::now();
        client.request_text(request).await.context("cannot write for the watchers")?;
        let last = timeout(PATIENCE, board.last(mark, arguments.watchers)).await;
        let Ok(last) = last else { bail!("a watcher did not see a write within {PATIENCE:?}") };
        if mark > WARM_UP {
            times.push(last.duration_since(sent));
        }
    }
    Ok(times)
}

/// Starts a watcher that notes every mark; the watch stands when this returns.
async fn watch(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    board: &Arc<Board>,
    watchers: &mut JoinSet<()>,
) -> Result<()> {
    let path = kind.path(namespace);
    let get = |path: String| http::Request::get(path).body(Vec::new());
    let request = get(format!("{path}?limit=1")).context("cannot make a request")?;
    let list: Value = client.request(request).await.context("cannot list")?;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let request = get(format!("{path}?watch=1&resourceVersion={version}"));
    let request = request.context("cannot make a request")?;
    let stream = client.request_stream(request).await.context("cannot watch")?;
    let board = board.clone();
    watchers.spawn(async move {
        let mut lines = Box::pin(stream).lines();
        let mut mark = 1;
        // Marks come in order, and each of them once.
        while let Some(Ok(line)) = lines.next().await {
            if line.contains(&marker(mark)) {
                board.note(mark);
                mark += 1;
            }
        }
    });
    Ok(())
}
