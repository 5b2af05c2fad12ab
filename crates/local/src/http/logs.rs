//! Logs of containers. What was said is kept elsewhere; here is decided which of it is meant.

use std::{io, sync::Arc};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures::{
    future::BoxFuture,
    stream::{BoxStream, StreamExt},
};
use http::{HeaderValue, StatusCode, header};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Server, handle::Asked};
use crate::{
    builtin,
    error::{Cause, CauseReason, Error, Subject},
    registry::Target,
};

/// Pieces of a log, each to be sent at once.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Who has the logs of the pods.
pub trait Logs: Send + Sync {
    /// `NotFound` if nothing is kept of that run.
    fn read(&self, run: LogRun, options: LogOptions) -> BoxFuture<'_, io::Result<LogStream>>;
}

/// One run of a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogRun {
    /// The uid of the pod.
    pub pod: String,
    pub container: String,
    /// How often it had been restarted.
    pub run: u32,
}

/// Which part of a log is wanted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Goes on until the container ends.
    pub follow: bool,
    pub tail_lines: Option<u64>,
    pub limit_bytes: Option<u64>,
    pub since: Option<Timestamp>,
    pub timestamps: bool,
}

impl Server {
    /// Says who has the logs. Only the first call counts.
    pub fn set_logs(&self, logs: Arc<dyn Logs>) {
        // A second one is not an error: the first goes on.
        let _ = self.logs.set(logs);
    }
}

impl Asked<'_> {
    /// A pod without a node has said nothing yet.
    pub(super) async fn log(self, target: Target) -> Result<Response, Error> {
        let pod = self.server.registry.get(&target, None).await?;
        let pod = pod.value();
        let options = self.log_options(&target.name)?;
        let previous = self.query.flag("previous")?.unwrap_or_default();
        let container = container(&target.name, pod, self.query.get("container"))?;
        let bound = pod.pointer("/spec/nodeName").and_then(Value::as_str);
        if bound.is_none_or(str::is_empty) {
            return Ok(text(StatusCode::NO_CONTENT, Body::empty()));
        }
        let run = run(&target.name, pod, container, previous).map_err(Error::BadRequest)?;
        let uid = pod.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        let run = LogRun { pod: uid.to_owned(), container: container.to_owned(), run };
        let gone = || {
            let text =
                format!("no log of container {container:?} in pod {:?} is left", target.name);
            Error::BadRequest(text)
        };
        let guard = match options.follow {
            true => Some(self.server.watches.enter(&self.user.name)?),
            false => None,
        };
        let logs = self.server.logs.get().ok_or_else(gone)?;
        let stream = logs.read(run, options).await.map_err(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, "cannot read a log");
            }
            gone()
        })?;
        let stream = stream.map(move |piece| {
            let _held = &guard;
            piece
        });
        Ok(text(StatusCode::OK, Body::from_stream(stream)))
    }

    fn log_options(&self, pod: &str) -> Result<LogOptions, Error> {
        let invalid = |field: &str, reason, message: &str| {
            let subject = Subject::new("", "PodLogOptions", pod);
            Error::invalid(subject, Cause { reason, field: field.into(), message: message.into() })
        };
        let number = |field: &str, least: i64| match self.query.number(field)? {
            Some(number) if number < least => {
                let rule = match least {
                    0 => "must be greater than or equal to 0",
                    _ => "must be greater than 0",
                };
                let message = format!("Invalid value: {number}: {rule}");
                Err(invalid(field, CauseReason::Invalid, &message))
            }
            number => Ok(number),
        };
        let tail_lines = number("tailLines", 0)?.map(i64::unsigned_abs);
        let limit_bytes = number("limitBytes", 1)?.map(i64::unsigned_abs);
        let seconds = number("sinceSeconds", 1)?;
        let time = self.query.get("sinceTime");
        let since = match (seconds, time) {
            (None, "") => None,
            (Some(_), time) if !time.is_empty() => {
                let message =
                    "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
                return Err(invalid("", CauseReason::Forbidden, message));
            }
            (Some(seconds), _) => {
                let ago = SignedDuration::from_secs(seconds);
                let now = self.server.registry.store().now();
                // Before the beginning of time is from the start.
                now.checked_sub(ago).ok()
            }
            (None, time) => Some(parse_time(time)?),
        };
        Ok(LogOptions {
            follow: self.query.flag("follow")?.unwrap_or_default(),
            tail_lines,
            limit_bytes,
            since,
            timestamps: self.query.flag("timestamps")?.unwrap_or_default(),
        })
    }
}

fn parse_time(text: &str) -> Result<Timestamp, Error> {
    let bad = |error: builtin::time::Error| Error::BadRequest(error.to_string());
    let seconds = builtin::time::seconds(text).map_err(bad)?;
    // With its fraction, which the check above leaves out.
    text.parse()
        .or_else(|_| seconds.parse())
        .map_err(|_| Error::BadRequest(format!("parsing time {text:?}: it is too far away")))
}

fn text(code: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    let cache = HeaderValue::from_static("no-cache, private");
    response.headers_mut().insert(header::CACHE_CONTROL, cache);
    response
}

/// The container that is meant.
fn container<'a>(pod: &str, object: &'a Value, asked: &'a str) -> Result<&'a str, Error> {
    let names = |field: &str| {
        let list = object.pointer(field).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|container| container.get("name")?.as_str()).collect::<Vec<_>>()
    };
    let (own, initial) = (names("/spec/containers"), names("/spec/initContainers"));
    match (asked, &*own) {
        ("", [only]) => Ok(only),
        ("", _) => Err(Error::BadRequest(format!(
            "a container name must be specified for pod {pod}, choose one of: [{}]",
            own.join(" ")
        ))),
        (name, own) if own.contains(&name) || initial.contains(&name) => Ok(name),
        (name, _) => Err(Error::BadRequest(format!("container {name} is not valid for pod {pod}"))),
    }
}

/// The number of the run that is meant, by what the pod's status says. The run that a container
/// waits to repeat is its last one.
fn run(name: &str, pod: &Value, container: &str, previous: bool) -> Result<u32, String> {
    let statuses = ["/status/containerStatuses", "/status/initContainerStatuses"];
    let statuses = statuses.iter().filter_map(|field| pod.pointer(field)?.as_array()).flatten();
    let status = statuses.into_iter().find(|status| status["name"] == container);
    let about = format!("container {container:?} in pod {name:?}");
    let status = status.ok_or_else(|| format!("{about} is not available"))?;
    let restarts = status["restartCount"].as_u64().and_then(|count| count.try_into().ok());
    let restarts: u32 = restarts.unwrap_or_default();
    let state = |name: &str| status.pointer(&format!("/state/{name}"));
    let started = state("running").is_some() || state("terminated").is_some();
    let ended = status.pointer("/lastState/terminated/containerID").and_then(Value::as_str);
    let ended = ended.is_some_and(|id| !id.is_empty());
    match (previous, started, ended) {
        (true, _, false) => Err(format!("previous terminated {about} not found")),
        (true, true, true) => Ok(restarts.saturating_sub(1)),
        (false, true, _) | (_, false, true) => Ok(restarts),
        (false, false, false) => Err(match state("waiting") {
            None => format!("{about} is waiting to start - no logs yet"),
            Some(waiting) => {
                let why = match waiting["reason"].as_str().unwrap_or_default() {
                    "ErrImagePull" => "image can't be pulled",
                    "ImagePullBackOff" => "trying and failing to pull image",
                    reason => reason,
                };
                format!("{about} is waiting to start: {why}")
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_run_that_is_meant_follows_from_the_status() {
        let running = json!({"running": {}});
        let over = json!({"terminated": {"containerID": "windlass://x"}});
        let waits = |reason: &str| json!({"waiting": {"reason": reason}});
        let none = json!({});
        for (state, last, restarts, now, before) in [
            (
                &running,
                &none,
                0,
                Ok(0),
                Err("previous terminated container \"c\" in pod \"p\" not found"),
            ),
            (&running, &over, 2, Ok(2), Ok(1)),
            (
                &over,
                &none,
                0,
                Ok(0),
                Err("previous terminated container \"c\" in pod \"p\" not found"),
            ),
            (&over, &over, 3, Ok(3), Ok(2)),
            (&waits("CrashLoopBackOff"), &over, 3, Ok(3), Ok(3)),
            (
                &waits("ContainerCreating"),
                &none,
                0,
                Err("container \"c\" in pod \"p\" is waiting to start: ContainerCreating"),
                Err("previous terminated container \"c\" in pod \"p\" not found"),
            ),
            (
                &waits("ErrImagePull"),
                &none,
                0,
                Err("container \"c\" in pod \"p\" is waiting to start: image can't be pulled"),
                Err("previous terminated container \"c\" in pod \"p\" not found"),
            ),
            (
                &waits("ImagePullBackOff"),
                &none,
                0,
                Err(
                    "container \"c\" in pod \"p\" is waiting to start: trying and failing to pull image",
                ),
                Err("previous terminated container \"c\" in pod \"p\" not found"),
            ),
            (
                &none,
                &none,
                0,
                Err("container \"c\" in pod \"p\" is waiting to start - no logs yet"),
                Err("previous terminated container \"c\" in pod \"p\" not found"),
            ),
        ] {
            let pod = json!({"status": {"initContainerStatuses": [
                {"name": "c", "state": state, "lastState": last, "restartCount": restarts},
            ]}});
            assert_eq!(run("p", &pod, "c", false), now.map_err(str::to_owned), "{pod}");
            assert_eq!(run("p", &pod, "c", true), before.map_err(str::to_owned), "{pod}");
        }
        let error = run("p", &json!({}), "c", false).unwrap_err();
        assert_eq!(error, "container \"c\" in pod \"p\" is not available");
    }

    #[test]
    fn times_are_read_with_their_fractions() {
        for text in ["2026-11-15T10:00:00Z", "2026-11-15T10:00:00.25+01:00"] {
            assert_eq!(parse_time(text).unwrap(), text.parse().unwrap());
        }
        for text in ["yesterday", "2026-11-15", "99999-01-01T00:00:00Z"] {
            assert!(matches!(parse_time(text), Err(Error::BadRequest(_))), "{text}");
        }
    }
}
