use serde_json::json;

use super::*;
use crate::object::Object;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("ns"), name)
}

/// The next key if there is one now.
async fn next_now(queue: &Queue) -> Option<String> {
    let next = tokio::time::timeout(Duration::from_millis(1), queue.next());
    next.await.ok().map(|key| key.name)
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_only_once() {
    let queue = Queue::default();
    queue.add(key("a"));
    queue.add(key("a"));
    queue.add(key("b"));
    assert_eq!(queue.depth(), 2);
    assert_eq!(next_now(&queue).await.as_deref(), Some("a"));
    assert_eq!(next_now(&queue).await.as_deref(), Some("b"));
    assert_eq!(next_now(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_running_key_is_not_handed_out_again_until_done() {
    let queue = Queue::default();
    queue.add(key("a"));
    assert_eq!(next_now(&queue).await.as_deref(), Some("a"));
    queue.add(key("a"));
    assert_eq!(next_now(&queue).await, None);
    queue.done(&key("a"), Again::OnEvent, &Delays::default(), |_| false);
    assert_eq!(next_now(&queue).await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_comes_when_its_time_has_come() {
    let queue = Queue::default();
    queue.add_after(key("a"), Duration::from_secs(60));
    assert_eq!(next_now(&queue).await, None);
    let started = Instant::now();
    assert_eq!(queue.next().await, key("a"));
    assert!(started.elapsed() >= Duration::from_secs(59));
}

#[tokio::test(start_paused = true)]
async fn an_event_brings_a_delayed_key_forward() {
    let queue = Queue::default();
    queue.add_after(key("a"), Duration::from_secs(60));
    queue.add(key("a"));
    assert_eq!(next_now(&queue).await.as_deref(), Some("a"));
    queue.done(&key("a"), Again::OnEvent, &Delays::default(), |_| false);
    assert_eq!(next_now(&queue).await, None);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(next_now(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_sooner_of_two_delays_wins() {
    let queue = Queue::default();
    queue.add_after(key("a"), Duration::from_secs(60));
    queue.add_after(key("a"), Duration::from_secs(5));
    queue.add_after(key("a"), Duration::from_secs(30));
    let started = Instant::now();
    queue.next().await;
    assert!(started.elapsed() < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_later_and_later_up_to_a_limit() {
    let (queue, delays) = (Queue::default(), Delays::default());
    queue.add(key("a"));
    let mut waits = Vec::new();
    for _ in 0..14 {
        let started = Instant::now();
        queue.next().await;
        waits.push(started.elapsed());
        queue.done(&key("a"), Again::Backoff, &delays, |_| false);
    }
    assert!(waits[1] <= delays.first && waits[1] >= delays.first / 2, "{waits:?}");
    assert!(waits.windows(2).skip(1).take(8).all(|pair| pair[0] < pair[1]), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= delays.longest), "{waits:?}");
    queue.next().await;
    queue.done(&key("a"), Again::OnEvent, &delays, |_| false);
    queue.add(key("a"));
    queue.next().await;
    queue.done(&key("a"), Again::Backoff, &delays, |_| false);
    let started = Instant::now();
    queue.next().await;
    assert!(started.elapsed() <= delays.first, "success starts the count anew");
}

#[tokio::test(start_paused = true)]
async fn what_only_a_person_can_mend_is_looked_at_now_and_then() {
    let (queue, delays) = (Queue::default(), Delays::default());
    queue.add(key("a"));
    for _ in 0..6 {
        queue.next().await;
        queue.done(&key("a"), Again::Slowly, &delays, |_| false);
        let started = Instant::now();
        queue.next().await;
        let waited = started.elapsed();
        assert!(
            waited >= delays.slow.0 - Duration::from_millis(5) && waited <= delays.slow.1,
            "{waited:?}"
        );
        queue.done(&key("a"), Again::Slowly, &delays, |_| false);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_during_a_failing_pass_is_not_lost() {
    let (queue, delays) = (Queue::default(), Delays::default());
    queue.add(key("a"));
    for _ in 0..12 {
        queue.next().await;
        queue.done(&key("a"), Again::Backoff, &delays, |_| false);
    }
    queue.next().await;
    queue.add(key("a"));
    queue.done(&key("a"), Again::Backoff, &delays, |_| false);
    let started = Instant::now();
    queue.next().await;
    assert!(started.elapsed() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn every_waiting_worker_gets_a_key() {
    let queue = std::sync::Arc::new(Queue::default());
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.name })
        })
        .collect();
    tokio::task::yield_now().await;
    for name in ["a", "b", "c", "d"] {
        queue.add(key(name));
    }
    let mut got = Vec::new();
    for worker in workers {
        got.push(worker.await.unwrap());
    }
    got.sort();
    assert_eq!(got, ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_does_not_wait_for_a_busy_worker() {
    let queue = std::sync::Arc::new(Queue::default());
    let (sender, mut taken) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..2 {
        let (queue, sender) = (queue.clone(), sender.clone());
        tokio::spawn(async move {
            loop {
                sender.send(queue.next().await.name).unwrap();
                // Busy for good: its key is never done.
                std::future::pending::<()>().await;
            }
        });
    }
    tokio::task::yield_now().await;
    queue.add_after(key("later"), Duration::from_secs(5));
    tokio::task::yield_now().await;
    queue.add(key("now"));
    assert_eq!(taken.recv().await.as_deref(), Some("now"));
    let later = tokio::time::timeout(Duration::from_secs(6), taken.recv()).await;
    assert_eq!(later.unwrap().as_deref(), Some("later"));
}

#[tokio::test(start_paused = true)]
async fn back_off_does_not_sleep_through_a_known_moment() {
    let (queue, delays) = (Queue::default(), Delays::default());
    queue.add(key("a"));
    for _ in 0..10 {
        queue.next().await;
        queue.done(&key("a"), Again::Backoff, &delays, |_| false);
    }
    queue.next().await;
    queue.done(&key("a"), Again::BackoffWithin(Duration::from_secs(4)), &delays, |_| false);
    let started = Instant::now();
    queue.next().await;
    assert!(started.elapsed() <= Duration::from_secs(4));
}

#[tokio::test]
async fn what_a_pass_wrote_itself_is_no_reason_for_another() {
    let version = |number: &str| {
        let metadata = json!({ "name": "c", "uid": "u", "resourceVersion": number });
        Version::of(&Object::from_value(json!({ "metadata": metadata })).unwrap())
    };
    let (queue, ours) = (Queue::default(), version("7"));
    let pass = async |causes: &[Version]| {
        queue.add(key("a"));
        assert_eq!(queue.next().await, key("a"));
        for cause in causes {
            queue.add_for(key("a"), cause.clone());
        }
        queue.done(&key("a"), Again::OnEvent, &Delays::default(), |version| *version == ours);
        queue.depth()
    };
    assert_eq!(pass(std::slice::from_ref(&ours)).await, 0);
    assert_eq!(pass(&[ours.clone(), version("8")]).await, 1);
}
