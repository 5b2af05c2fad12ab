//! What containers said, through the API.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use futures::StreamExt;
use http::Request;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncWriteExt, DuplexStream, duplex},
    time::timeout,
};
use windlass_local::{
    http::LogRun,
    node::{
        logs::{ContainerLogs, Stream, pump},
        places::Places,
    },
};

use crate::api::Api;

const PODS: &str = "/api/v1/namespaces/default/pods";

struct Setup {
    api: Api,
    logs: Arc<ContainerLogs>,
    uid: String,
    _dir: tempfile::TempDir,
}

async fn setup() -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let places = Places { state: dir.path().join("s"), runtime: dir.path().join("r") };
    let logs = ContainerLogs::new(places);
    let api = Api::new().await;
    api.server.set_logs(logs.clone());
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "n",
            "initContainers": [{"name": "i", "image": "x"}],
            "containers": [{"name": "c", "image": "x"}],
        },
    });
    let made = api.post(PODS, pod).await.is(201);
    let uid = made.body["metadata"]["uid"].as_str().unwrap().to_owned();
    Setup { api, logs, uid, _dir: dir }
}

impl Setup {
    /// A process that says what is written to it.
    fn process(&self, run: u32) -> DuplexStream {
        let run = LogRun { pod: self.uid.clone(), container: "c".into(), run };
        let (process, pipe) = duplex(1024);
        let writer = self.logs.start(run).unwrap();
        tokio::spawn(pump(pipe, Stream::Stdout, writer, Arc::new(Timestamp::now)));
        process
    }

    async fn status(&self, state: Value, last: Value, restarts: u32) {
        let status = json!({
            "name": "c", "state": state, "lastState": last, "restartCount": restarts,
            "ready": false, "image": "x", "imageID": "",
        });
        let body = json!({"status": {"containerStatuses": [status]}});
        self.api.merge(&format!("{PODS}/p/status"), body).await.is(200);
    }

    async fn log(&self, query: &str) -> crate::api::Answer {
        self.api.get(&format!("{PODS}/p/log{query}")).await
    }
}

fn ended() -> Value {
    let time = "2026-11-15T10:00:00Z";
    let ended = json!({
        "exitCode": 1, "containerID": "windlass://x", "startedAt": time, "finishedAt": time,
    });
    json!({"terminated": ended})
}

#[tokio::test]
async fn logs_are_read_by_run() {
    let setup = setup().await;
    for run in 0..2 {
        let mut process = setup.process(run);
        process.write_all(format!("run {run}\n").as_bytes()).await.unwrap();
        drop(process);
    }
    setup.status(json!({"running": {}}), ended(), 1).await;
    let query = "?follow=true";
    let answer = setup.log(query).await.is(200);
    assert_eq!(answer.text, "run 1\n");
    assert_eq!(answer.headers["content-type"], "text/plain");
    assert_eq!(setup.log("?previous=true&follow=true").await.is(200).text, "run 0\n");
    assert_eq!(setup.log("?container=c&tailLines=0").await.is(200).text, "");
    let stamped = setup.log("?timestamps=true&limitBytes=2").await.is(200);
    assert_eq!(stamped.text, "20");
}

#[tokio::test]
async fn a_log_is_followed_line_by_line_until_the_container_ends() {
    let setup = setup().await;
    let mut process = setup.process(0);
    setup.status(json!({"running": {}}), json!({}), 0).await;
    let path = format!("{PODS}/p/log?follow=true");
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let response = setup.api.raw(request).await;
    assert_eq!(response.status(), 200);
    let mut stream = response.into_body().into_data_stream();
    for line in ["one\n", "two\n"] {
        process.write_all(line.as_bytes()).await.unwrap();
        let piece = timeout(Duration::from_secs(10), stream.next()).await.unwrap().unwrap();
        assert_eq!(piece.unwrap(), line);
    }
    drop(process);
    assert!(timeout(Duration::from_secs(10), stream.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn what_cannot_be_read_is_said_in_kubernetes_words() {
    let setup = setup().await;
    let message = async |query: &str, code: u16, reason: &str| {
        setup.log(query).await.fails(code, reason).message().to_owned()
    };
    let not = "container \"c\" in pod \"p\" is not available";
    assert_eq!(message("", 400, "BadRequest").await, not);
    setup.status(json!({"waiting": {"reason": "ContainerCreating"}}), json!({}), 0).await;
    let waits = "container \"c\" in pod \"p\" is waiting to start: ContainerCreating";
    assert_eq!(message("", 400, "BadRequest").await, waits);
    let none = "previous terminated container \"c\" in pod \"p\" not found";
    assert_eq!(message("?previous=true", 400, "BadRequest").await, none);
    let zz = "container zz is not valid for pod p";
    assert_eq!(message("?container=zz", 400, "BadRequest").await, zz);
    let both = "?sinceSeconds=1&sinceTime=2026-11-15T10:00:00Z";
    for query in ["?tailLines=-1", "?limitBytes=0", "?sinceSeconds=0", both] {
        message(query, 422, "Invalid").await;
    }
    for query in ["?tailLines=x", "?sinceTime=x", "?follow=maybe"] {
        message(query, 400, "BadRequest").await;
    }
    setup.status(json!({"running": {}}), json!({}), 0).await;
    let gone = "no log of container \"c\" in pod \"p\" is left";
    assert_eq!(message("", 400, "BadRequest").await, gone);
}
