//! Random histories of one object, written by several managers, leave the same object on both
//! servers: fields, owners, generation, and every answer on the way.
//!
//! `WINDLASS_SEED` replays one history, `WINDLASS_HISTORIES` asks for another number of them. A
//! difference is reported with the fewest steps that show it.
//!
//! Both servers take each step in the same second, so that the times of owners, and the order that
//! follows from them, are compared too. Only if a step lasts into the next second is the history run
//! again; any other difference is a failure the first time it is seen.

mod generate;

use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::Value;
use windlass_tests::wait::pass;

use crate::{
    case::{Names, Step},
    expect::{causes_of, sort},
    normal::{Seen, differ},
    run::{Answer, ask},
    server::Server,
};
use generate::{Kind, Random};

/// Of each kind, unless more are asked for.
const HISTORIES: u64 = 8;
const STEPS: usize = 30;
/// A step is begun only if this much of the second is left.
const ROOM: Duration = Duration::from_millis(350);
/// A machine on which no history gets through in so many runs cannot tell anything.
const RUNS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn random_histories_leave_the_same_objects() {
    // Controllers would write too, each server's at its own time.
    let servers = Server::all_without_controllers().await;
    prepare(&servers).await;
    let seeds = seeds();
    let mut trials = Trials { servers: &servers, count: 0 };
    let mut failures = Vec::new();
    // One failure of each kind says enough.
    for kind in Kind::ALL {
        for &seed in &seeds {
            let history = generate::history(kind, &mut Random::new(seed), STEPS);
            if let Some(difference) = trials.difference(kind, &history).await {
                let history = trials.shrink(kind, history).await;
                let difference = trials.difference(kind, &history).await.unwrap_or(difference);
                let history = describe(&history);
                failures.push(format!("seed {seed}, {kind:?}\n{history}\n{difference}"));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// One history for each of these.
fn seeds() -> Vec<u64> {
    let number =
        |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let now = || u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
    let given = number("WINDLASS_SEED");
    let usual = if given.is_some() { 1 } else { HISTORIES };
    let first = given.unwrap_or_else(now);
    (first..first + number("WINDLASS_HISTORIES").unwrap_or(usual)).collect()
}

/// The namespace and the custom kind that the histories use.
async fn prepare(servers: &[Server]) {
    let names = generate::names("none");
    let namespace = Step {
        request: Some("POST /api/v1/namespaces".to_owned()),
        body: Some(serde_json::json!({ "metadata": { "name": "${ns}" } })),
        ..Step::default()
    };
    let steps = [vec![namespace], crate::case::given("widgets")].concat();
    for server in servers {
        for step in &steps {
            let answer = crate::run::ask_until(server, step, &names).await;
            let code = answer.code;
            assert!((200..300).contains(&code), "{} {code}: {}", server.name(), answer.body);
        }
    }
}

struct Trials<'a> {
    servers: &'a [Server],
    count: usize,
}

impl Trials<'_> {
    /// What differs in a run all of whose steps both servers took in the same second.
    async fn difference(&mut self, kind: Kind, history: &[Step]) -> Option<String> {
        for _ in 0..RUNS {
            match self.run(kind, history).await {
                Ok(difference) => return difference,
                Err(Torn) => continue,
            }
        }
        Some(format!("in none of {RUNS} runs both servers kept to the same seconds"))
    }

    /// Runs a history on an object of its own, up to the first answers that differ.
    async fn run(&mut self, kind: Kind, history: &[Step]) -> Result<Option<String>, Torn> {
        self.count += 1;
        let name = format!("{}{}", kind.prefix(), self.count);
        let mut sides: Vec<Side> =
            self.servers.iter().map(|server| Side::new(server, &name)).collect();
        for (index, step) in history.iter().enumerate() {
            let second = room().await;
            let answers = join_all(sides.iter_mut().map(|side| side.ask(step))).await;
            if Timestamp::now().as_second() != second {
                return Err(Torn);
            }
            let mut places = Vec::new();
            match &answers[..] {
                [one, other] => differ("", one, other, &mut places),
                answers => places.extend(answers.iter().filter_map(breakdown)),
            }
            if !places.is_empty() {
                return Ok(Some(format!("step {}: {}", index + 1, places.join("; "))));
            }
        }
        Ok(None)
    }

    /// Leaves out every step without which there is still a difference.
    async fn shrink(&mut self, kind: Kind, mut history: Vec<Step>) -> Vec<Step> {
        let mut index = history.len();
        while index > 0 {
            index -= 1;
            let mut shorter = history.clone();
            shorter.remove(index);
            if self.difference(kind, &shorter).await.is_some() {
                history = shorter;
                index = index.min(history.len());
            }
        }
        history
    }
}

/// The servers took a step on the two sides of a second.
struct Torn;

/// The second that is, with enough of it left for a step.
async fn room() -> i64 {
    loop {
        let now = Timestamp::now();
        let left = Duration::from_secs(1)
            .saturating_sub(Duration::from_nanos(now.subsec_nanosecond().unsigned_abs().into()));
        if left >= ROOM {
            return now.as_second();
        }
        pass(left).await;
    }
}

/// One server's view of a history.
struct Side<'a> {
    server: &'a Server,
    names: Names,
    seen: Seen,
}

impl<'a> Side<'a> {
    fn new(server: &'a Server, name: &str) -> Self {
        Self { server, names: generate::names(name), seen: Seen::in_step() }
    }

    async fn ask(&mut self, step: &Step) -> Value {
        let Answer { code, warnings, body, .. } = ask(self.server, step, &self.names).await;
        // The next PUT carries it, as that of somebody who has read the object.
        if let Some(version) = body.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
            self.names.set("rv", version);
        }
        let mut body = self.seen.value(&body);
        settle(&mut body);
        serde_json::json!({ "code": code, "warnings": warnings, "body": body })
    }
}

/// Kubernetes tells of several errors in any order.
fn settle(body: &mut Value) {
    let mut causes = causes_of(body);
    if causes.len() > 1 {
        sort(&mut causes);
        if body["reason"] == "Invalid" {
            body["message"] = Value::Null;
        }
        body["details"]["causes"] = Value::Array(causes);
    }
}

/// With one server only, nothing is compared; it must at least never break.
fn breakdown(answer: &Value) -> Option<String> {
    let code = answer["code"].as_u64().unwrap_or_default();
    (code == 0 || code >= 500).then(|| answer.to_string())
}

fn describe(history: &[Step]) -> String {
    let line = |step: &Step| {
        let request = step.request.as_deref().unwrap_or_default();
        let content_type = step.content_type.as_deref().unwrap_or("-");
        let body = step.body.as_ref().map(Value::to_string).unwrap_or_default();
        format!("{request} {content_type} {body}")
    };
    history.iter().map(line).collect::<Vec<_>>().join("\n")
}
