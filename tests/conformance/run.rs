//! Runs the steps of a case on a server and records the answers.

use std::{collections::HashMap, time::Duration};

use futures::future::join_all;
use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};

use windlass_tests::wait::pass;

use crate::{
    case::{Case, Names, Step},
    expect,
    server::Server,
};

const PAUSE: Duration = Duration::from_millis(50);
/// What has not come within this time does not come. Generous, because two cores may run many tests at
/// once; who gets what is wanted never waits that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    /// Warnings of the embedded server alone that did not come.
    pub(crate) untold: Vec<String>,
    /// A string where it was not JSON.
    pub(crate) body: Value,
    pub(crate) events: Vec<Value>,
    pub(crate) ended: bool,
}

/// A step, filled in, with its answer and what was wrong with it.
pub(crate) struct Record {
    pub(crate) label: String,
    pub(crate) step: Step,
    pub(crate) answer: Answer,
    pub(crate) problems: Vec<String>,
}

/// Runs all steps, whatever becomes of each.
pub(crate) async fn run(case: &Case, server: &Server) -> Vec<Record> {
    let mut run = Run { server, names: case.names(), watches: HashMap::new(), records: Vec::new() };
    run.create_namespace().await;
    for (index, step) in case.steps.iter().enumerate() {
        run.step(&format!("step {}", index + 1), step).await;
    }
    run.records
}

struct Run<'a> {
    server: &'a Server,
    names: Names,
    watches: HashMap<String, mpsc::Receiver<Value>>,
    records: Vec<Record>,
}

impl Run<'_> {
    async fn create_namespace(&mut self) {
        let step = Step {
            request: Some("POST /api/v1/namespaces".to_owned()),
            body: Some(serde_json::json!({ "metadata": { "name": "${ns}" } })),
            ..Step::default()
        };
        let mut answer = ask(self.server, &step, &self.names).await;
        answer.body = Value::Null;
        let problems = match answer.code {
            201 => Vec::new(),
            code => vec![format!("cannot create the namespace: {code}")],
        };
        self.records.push(Record { label: "namespace".into(), step, answer, problems });
    }

    async fn step(&mut self, label: &str, step: &Step) {
        let Some((name, values)) = step.each.iter().next() else {
            return self.one(label, step).await;
        };
        for value in values {
            self.names.set(name, value);
            self.one(&format!("{label} ({name} {value})"), step).await;
        }
    }

    async fn one(&mut self, label: &str, step: &Step) {
        if step.restart {
            self.server.restart().await;
        } else if let Some(name) = &step.events {
            let answer = self.next_events(&self.names.fill(name), step).await;
            self.record(label, step, answer);
        } else if !step.parallel.is_empty() {
            let answers = step.parallel.iter().map(|step| ask(self.server, step, &self.names));
            let answers = join_all(answers).await;
            for (index, (step, answer)) in step.parallel.iter().zip(answers).enumerate() {
                self.record(&format!("{label}.{}", index + 1), step, answer);
            }
        } else if let Some(name) = &step.watch {
            let answer = self.open(&self.names.fill(name), step).await;
            self.record(label, step, answer);
        } else {
            let answer = ask_until(self.server, step, &self.names).await;
            self.record(label, step, answer);
        }
    }

    fn record(&mut self, label: &str, step: &Step, answer: Answer) {
        let mut problems = expect::check(step.want_on(self.server), &answer, &self.names);
        for (name, pointer) in &step.keep {
            match answer.body.pointer(pointer) {
                Some(Value::String(text)) => self.names.set(name, text),
                Some(other) => self.names.set(name, &other.to_string()),
                None => problems.push(format!("nothing at {pointer} to keep as {name}")),
            }
        }
        let request = step.request.clone().or(step.events.clone()).unwrap_or_default();
        let label = format!("{label}: {}", self.names.fill(&request));
        self.records.push(Record { label, step: step.clone(), answer, problems });
    }

    async fn open(&mut self, name: &str, step: &Step) -> Answer {
        let mut answer = Answer::default();
        let response = match self.server.client().send(request(step, &self.names)).await {
            Ok(response) => response,
            Err(error) => return failure(&error),
        };
        answer.code = response.status().as_u16();
        if answer.code != 200 {
            answer.body = read(response.into_body()).await;
            return answer;
        }
        let (sender, receiver) = mpsc::channel(1000);
        self.watches.insert(name.to_owned(), receiver);
        tokio::spawn(follow(response.into_body(), sender));
        answer
    }

    async fn next_events(&mut self, name: &str, step: &Step) -> Answer {
        let mut answer = Answer::default();
        let Some(events) = self.watches.get_mut(name) else {
            return answer;
        };
        let wanted = step.want.events.len();
        while answer.events.len() < wanted || step.want.end {
            match timeout(PATIENCE, events.recv()).await {
                Ok(Some(event)) => answer.events.push(event),
                Ok(None) => {
                    answer.ended = true;
                    break;
                }
                Err(_) => break,
            }
        }
        answer
    }
}

/// One request, again and again if the step says so, and its whole answer.
pub(crate) async fn ask_until(server: &Server, step: &Step, names: &Names) -> Answer {
    let started = Instant::now();
    let patience = PATIENCE + Duration::from_secs(step.after);
    loop {
        let answer = ask(server, step, names).await;
        let is_as_wanted = expect::check(step.want_on(server), &answer, names).is_empty();
        if !step.eventually || is_as_wanted || started.elapsed() > patience {
            return answer;
        }
        pass(PAUSE).await;
    }
}

/// One request and its whole answer.
pub(crate) async fn ask(server: &Server, step: &Step, names: &Names) -> Answer {
    let response = match server.client().send(request(step, names)).await {
        Ok(response) => response,
        Err(error) => return failure(&error),
    };
    let code = response.status().as_u16();
    let warnings = response.headers().get_all(header::WARNING).iter();
    let warnings = warnings.map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
    let mut warnings: Vec<String> = warnings.collect();
    // These depend on who runs the tests.
    warnings.retain(|warning| !warning.contains("on a local node that is not run by root"));
    let mut untold = Vec::new();
    for text in step.told_here.iter().filter(|_| server.is_embedded()) {
        let text = format!("299 - \"{}\"", names.fill(text));
        match warnings.iter().position(|warning| *warning == text) {
            Some(index) => drop(warnings.remove(index)),
            None => untold.push(text),
        }
    }
    let body = read(response.into_body()).await;
    Answer { code, warnings, untold, body, ..Answer::default() }
}

fn failure(error: &kube::Error) -> Answer {
    Answer { body: Value::String(format!("no answer: {error:?}")), ..Answer::default() }
}

fn request(step: &Step, names: &Names) -> Request<Body> {
    let line = names.fill(step.request.as_deref().unwrap_or_default());
    let (method, path) = line.split_once(' ').unwrap_or(("GET", &line));
    let mut request = Request::builder().method(method).uri(path);
    // The manager's name where none is given.
    if !step.headers.contains_key("User-Agent") {
        request = request.header(header::USER_AGENT, "conformance/1");
    }
    for (name, value) in &step.headers {
        request = request.header(name, names.fill(value));
    }
    let body = match (&step.text, &step.body) {
        (Some(text), _) => Some(names.fill(text)),
        (None, Some(body)) => Some(names.fill_value(body).to_string()),
        (None, None) => None,
    };
    if body.is_some() {
        let content_type = step.content_type.as_deref().unwrap_or("application/json");
        request = request.header(header::CONTENT_TYPE, media_type(content_type));
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.into_bytes()));
    request.body(body).unwrap()
}

fn media_type(name: &str) -> &str {
    match name {
        "merge" => "application/merge-patch+json",
        "json" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        other => other,
    }
}

async fn read(body: Body) -> Value {
    match body.collect_bytes().await {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => Value::String(format!("the answer broke off: {error}")),
    }
}

/// Sends each line of the answer on, until the answer or the listener ends.
async fn follow(mut body: Body, sender: mpsc::Sender<Value>) {
    let mut buffer = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            let _ = sender.send(Value::String("the stream broke off".to_owned())).await;
            return;
        };
        buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event = serde_json::from_slice(&line)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
            if sender.send(event).await.is_err() {
                return;
            }
        }
    }
}
