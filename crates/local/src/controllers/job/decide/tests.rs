use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, from_value, json};

use super::*;

const NOW: &str = "2026-01-01T00:01:00Z";

fn job(spec: &Value, status: &Value) -> Job {
    let mut body = json!({
        "metadata": {"name": "j", "uid": "j"},
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 1,
            "template": {"spec": {"containers": [], "restartPolicy": "Never"}}},
        "status": {"startTime": "2026-01-01T00:00:00Z"},
    });
    json_patch::merge(&mut body, &json!({"spec": spec, "status": status}));
    from_value(body).unwrap()
}

/// As `a:Running` says, with `!` behind it if it has been counted, with `-` if it is deleted, with
/// `?` if it has no node.
fn pod(text: &str) -> Arc<Pod> {
    let (name, rest) = text.split_once(':').unwrap();
    let phase = rest.trim_end_matches(['!', '-', '?']);
    let finalizers = if rest.contains('!') { json!([]) } else { json!([FINALIZER]) };
    let deleted = rest.contains('-').then_some("2026-01-01T00:00:50Z");
    let node = (!rest.contains('?')).then_some("n");
    Arc::new(
        from_value(json!({
            "metadata": {"name": name, "uid": name, "finalizers": finalizers,
                "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": deleted},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": phase, "containerStatuses": [{"name": "c", "image": "",
                "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:40Z"}}}]},
        }))
        .unwrap(),
    )
}

fn pods(text: &str) -> Vec<Arc<Pod>> {
    text.split_whitespace().map(pod).collect()
}

fn decide(job: &Job, pods: &[Arc<Pod>]) -> Decision {
    let spec = job.spec.as_ref().unwrap();
    let now = NOW.parse().unwrap();
    Known { job, spec, pods, backoff: Backoff::default(), now }.decide()
}

fn told(work: &Work) -> String {
    let names = |pods: &[Arc<Pod>]| {
        pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect::<Vec<_>>().join(" ")
    };
    match work {
        Work::None => "nothing".to_owned(),
        Work::Create(count) => format!("create {count}"),
        Work::End(pods) => format!("end {}", names(pods)),
        Work::Drop(pods) => format!("drop {}", names(pods)),
    }
}

#[test]
fn pods_are_made_up_to_what_is_left_to_do() {
    for (case, spec, status, given, want) in [
        ("the first", json!({}), json!({}), "", "create 1"),
        ("enough run", json!({}), json!({}), "a:Running", "nothing"),
        ("done", json!({}), json!({}), "a:Succeeded", "nothing"),
        ("counted before", json!({}), json!({"succeeded": 1}), "a:Succeeded!", "nothing"),
        (
            "several",
            json!({"parallelism": 3, "completions": 5}),
            json!({}),
            "a:Running",
            "create 2",
        ),
        (
            "near the end",
            json!({"parallelism": 3, "completions": 5}),
            json!({"succeeded": 4}),
            "",
            "create 1",
        ),
        (
            "fewer at once",
            json!({"parallelism": 1, "completions": 5}),
            json!({}),
            "b:Running a:Pending",
            "drop a",
        ),
        ("any success", json!({"parallelism": 2, "completions": null}), json!({}), "", "create 2"),
        (
            "after any success",
            json!({"parallelism": 2, "completions": null}),
            json!({}),
            "a:Succeeded b:Running",
            "nothing",
        ),
        ("suspended", json!({"suspend": true}), json!({}), "a:Running", "drop a"),
        ("suspended at rest", json!({"suspend": true}), json!({}), "", "nothing"),
        ("none at once", json!({"parallelism": 0}), json!({}), "", "nothing"),
        (
            "deleted ones are replaced",
            json!({"backoffLimit": 9}),
            json!({}),
            "a:Running!-",
            "create 1",
        ),
        (
            "or not before their end",
            json!({"podReplacementPolicy": "Failed"}),
            json!({}),
            "a:Running-",
            "nothing",
        ),
    ] {
        let decision = decide(&job(&spec, &status), &pods(given));
        assert_eq!((told(&decision.work), decision.end), (want.to_owned(), None), "{case}");
    }
}

#[test]
fn a_job_fails_by_too_many_failures_or_by_time() {
    let restarted = |count: i32| {
        let mut pod = (*pod("a:Running")).clone();
        let status = pod.status.as_mut().unwrap();
        status.container_statuses.as_mut().unwrap()[0].restart_count = count;
        vec![Arc::new(pod)]
    };
    let in_place = |limit: i32| json!({"backoffLimit": limit, "template": {"spec": {"restartPolicy": "OnFailure"}}});
    let (limit, deadline) = (Some("BackoffLimitExceeded"), Some("DeadlineExceeded"));
    for (case, spec, status, pods, want) in [
        ("one is allowed", json!({}), json!({}), pods("a:Failed"), None),
        ("two are not", json!({}), json!({}), pods("a:Failed b:Failed c:Running"), limit),
        ("those before count", json!({}), json!({"failed": 1}), pods("a:Failed b:Failed!"), limit),
        ("deleted ones too", json!({}), json!({"failed": 1}), pods("a:Running-"), limit),
        (
            "named ones too",
            json!({}),
            json!({"failed": 1, "uncountedTerminatedPods": {"failed": ["a"]}}),
            pods("a:Failed"),
            limit,
        ),
        ("restarts", in_place(2), json!({}), restarted(2), limit),
        ("fewer restarts", in_place(2), json!({}), restarted(1), None),
        ("no restarts", in_place(0), json!({}), restarted(0), None),
        ("one restart", in_place(0), json!({}), restarted(1), limit),
        ("in time", json!({"activeDeadlineSeconds": 61}), json!({}), pods("a:Running"), None),
        ("too late", json!({"activeDeadlineSeconds": 60}), json!({}), pods("a:Running"), deadline),
        (
            "no time passes in a pause",
            json!({"activeDeadlineSeconds": 1, "suspend": true}),
            json!({}),
            pods(""),
            None,
        ),
    ] {
        let decision = decide(&job(&spec, &status), &pods);
        let reason = decision.end.as_ref().and_then(|end| end.reason.as_deref());
        assert_eq!(reason, want, "{case}");
        if want.is_some() {
            assert!(matches!(decision.work, Work::End(_)), "{case}");
            assert_eq!(decision.end.unwrap().type_, conditions::FAILURE_TARGET, "{case}");
        }
    }
}

#[test]
fn a_deleted_pod_that_never_had_a_node_has_failed() {
    let job = job(&json!({"podReplacementPolicy": "Failed"}), &json!({}));
    let spec = job.spec.as_ref().unwrap();
    for (given, want) in [("a:Pending-?", true), ("a:Pending-", false), ("a:Pending?", false)] {
        let pods = pods(given);
        let now = NOW.parse().unwrap();
        let known = Known { job: &job, spec, pods: &pods, backoff: Backoff::default(), now };
        assert_eq!(known.is_failed(&pods[0]), want, "{given}");
        let account = known.account(&known.decide(), 0);
        assert_eq!(!account.release.is_empty(), want, "{given}");
    }
}

#[test]
fn a_replacement_waits_after_a_failure() {
    let decision = decide(&job(&json!({"backoffLimit": 6}), &json!({})), &pods("a:Failed"));
    assert_eq!(told(&decision.work), "create 1", "20 s have passed since");
    let both =
        decide(&job(&json!({"backoffLimit": 6}), &json!({})), &pods("a:Failed b:Failed c:Failed"));
    assert_eq!(
        (told(&both.work), both.again),
        ("nothing".into(), Some(SignedDuration::from_secs(20)))
    );
}

#[test]
fn a_known_end_is_pursued() {
    let met = json!({"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]});
    let decision = decide(&job(&json!({}), &met), &pods("a:Running"));
    assert_eq!(told(&decision.work), "end a");
    assert_eq!(decision.end.unwrap().type_, "SuccessCriteriaMet");
}

#[test]
fn the_start_is_noted_once_and_not_in_a_pause() {
    let never = json!({"startTime": null});
    let start = |spec: Value, status: &Value| {
        decide(&job(&spec, status), &[]).start_time.map(|time| time.0.to_string())
    };
    assert_eq!(start(json!({}), &never).as_deref(), Some(NOW));
    assert_eq!(start(json!({"suspend": true}), &never), None);
    assert_eq!(start(json!({}), &json!({})).as_deref(), Some("2026-01-01T00:00:00Z"));
}
