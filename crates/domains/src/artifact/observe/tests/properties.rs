//! Whatever a Job, its pods and their events say, there is an observation, and always the same.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateWaiting, ContainerStatus, PodStatus,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;

fn time() -> impl Strategy<Value = Option<Time>> {
    of((-100_000_i64..100_000).prop_map(|seconds| Time(now() - SignedDuration::from_secs(seconds))))
}

/// Any text, some of it long, some of it what containers really say.
fn text() -> impl Strategy<Value = Option<String>> {
    of(prop_oneof![
        ".*",
        "[ \\n]*sha256:[a-f0-9]{0,70}[ \\n]*",
        "\\PC{0,40}".prop_map(|text| text.repeat(60)),
        Just(String::new()),
    ])
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    of(prop_oneof![
        3 => proptest::sample::select(words).prop_map(str::to_owned),
        1 => ".{0,20}",
    ])
}

fn count() -> impl Strategy<Value = Option<i32>> {
    of(prop_oneof![Just(0), Just(1), any::<i32>()])
}

prop_compose! {
    fn condition()(
        type_ in proptest::sample::select(&["Failed", "Complete", "Suspended", "FailureTarget"][..]),
        status in proptest::sample::select(&["True", "False", "Unknown"][..]),
        message in text(),
        reason in word(&["BackoffLimitExceeded", "DeadlineExceeded"]),
        last_transition_time in time(),
    ) -> JobCondition {
        JobCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            message,
            reason,
            last_transition_time,
            ..Default::default()
        }
    }
}

prop_compose! {
    fn status()(
        active in count(),
        succeeded in count(),
        failed in count(),
        conditions in of(vec(condition(), 0..3)),
        completion_time in time(),
        start_time in time(),
    ) -> JobStatus {
        JobStatus {
            active, succeeded, failed, conditions, completion_time, start_time,
            ..Default::default()
        }
    }
}

fn state() -> impl Strategy<Value = Option<ContainerState>> {
    let reasons = &["OOMKilled", "Error", "Completed", "ImagePullBackOff", "ContainerCreating"][..];
    let waiting = (word(reasons), text()).prop_map(|(reason, message)| ContainerState {
        waiting: Some(ContainerStateWaiting { reason, message }),
        ..Default::default()
    });
    let running = time().prop_map(|started_at| ContainerState {
        running: Some(ContainerStateRunning { started_at }),
        ..Default::default()
    });
    let ended = (word(reasons), text(), time(), any::<i32>()).prop_map(
        |(reason, message, finished_at, exit_code)| ContainerState {
            terminated: Some(ContainerStateTerminated {
                reason,
                message,
                finished_at,
                exit_code,
                ..Default::default()
            }),
            ..Default::default()
        },
    );
    of(prop_oneof![waiting, running, ended, Just(ContainerState::default())])
}

prop_compose! {
    fn arbitrary_pod()(
        phase in word(&["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
        reason in word(&["Evicted"]),
        message in text(),
        states in of(vec(state(), 0..3)),
        has_status in proptest::bool::weighted(0.9),
        uid in 0..2,
    ) -> Pod {
        let containers = states.map(|states| {
            let status = |state| ContainerStatus { state, ..Default::default() };
            states.into_iter().map(status).collect()
        });
        let status = PodStatus {
            phase, reason, message, container_statuses: containers, ..Default::default()
        };
        let mut pod = Pod { status: has_status.then_some(status), ..Default::default() };
        pod.metadata.uid = Some(format!("u{uid}"));
        pod
    }
}

prop_compose! {
    fn arbitrary_event()(
        reason in word(&["FailedCreate", "FailedMount", "FailedScheduling", "Pulling"]),
        message in text(),
        last_timestamp in time(),
        uid in 0..2,
    ) -> Event {
        let mut event = Event { reason, message, last_timestamp, ..Default::default() };
        event.involved_object.kind = Some("Pod".to_owned());
        event.involved_object.uid = Some(format!("u{uid}"));
        event
    }
}

proptest! {
    #[test]
    fn observing_is_total_deterministic_and_within_its_bounds(
        status in of(status()),
        pods in vec(arbitrary_pod(), 0..4),
        events in vec(arbitrary_event(), 0..3),
    ) {
        let job = Job { status, ..first_job(json!(null)) };
        let evidence = Evidence { job: Some(&job), pods: &pods, events: &events, now: now() };
        let observation = observe(evidence);
        prop_assert_eq!(&observation, &observe(evidence));
        prop_assert!(observation.message.len() <= 1024);
        prop_assert!(!observation.message.is_empty());
        prop_assert!(observation.digest.is_empty() || observation.phase == Phase::Succeeded);
        prop_assert!(observation.digest.is_empty() || is_digest(&observation.digest));
        let ready = match observation.phase {
            Phase::Succeeded => Status::True,
            Phase::Failed => Status::False,
            Phase::Pending | Phase::Running => Status::Unknown,
        };
        prop_assert_eq!(observation.ready, ready);
        // A result never turns up while the Job says that none of its pods has ended.
        let counts = job.status.unwrap_or_default();
        let ended = counts.succeeded > Some(0)
            || counts.failed > Some(0)
            || counts.conditions.iter().flatten().any(|c| c.type_ == "Failed" && c.status == "True");
        prop_assert!(ended || !observation.phase.is_terminal());
    }

    #[test]
    fn the_order_of_pods_does_not_matter_where_their_times_differ(
        at in proptest::collection::btree_set(0_i64..1000, 2..5),
    ) {
        let job = first_job(complete(0));
        let pod = |at: &i64| ended_pod(&job, "Succeeded", &format!("sha256:{at:064x}"), *at);
        let mut pods: Vec<Pod> = at.iter().map(pod).collect();
        let forwards = seen(&job, &pods);
        pods.reverse();
        prop_assert_eq!(&forwards, &seen(&job, &pods));
        let newest = at.first().copied().unwrap_or_default();
        prop_assert_eq!(forwards.digest, format!("sha256:{newest:064x}"));
    }
}
