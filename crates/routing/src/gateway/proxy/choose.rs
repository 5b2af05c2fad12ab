//! Who is to answer a request: any endpoint of a Service, or those that the picker of a pool chooses.

use std::{
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};

use super::{
    super::{
        backends::{Answering, Pool},
        route::Rule,
        stream::{self, Body},
        table::Met,
    },
    Routing, refuse,
};
use crate::{
    body::Body as Prompt,
    picker::{self, ModelEdit, Open, Picked, Refused, Request as Question},
    random,
};

/// What a picker may read of a body before it decides.
pub(super) const READ_FIRST: usize = 1 << 20;
const DROPPED: HeaderName = HeaderName::from_static("x-llm-d-request-dropped-reason");

/// Who is to answer, the best first, and what else was decided with it.
pub(super) struct Choice {
    pub(super) endpoints: Vec<SocketAddr>,
    pub(super) body: Body,
    pub(super) open: Option<Open>,
    /// Instead of all of that name that the client has sent.
    pub(super) set: Vec<(HeaderName, HeaderValue)>,
    pub(super) remove: Vec<HeaderName>,
}

pub(super) async fn choose(
    routing: &Routing,
    met: &Met,
    rule: &Rule,
    headers: &HeaderMap,
    path: &str,
    body: Incoming,
) -> Result<Choice, Box<Response<Body>>> {
    let failed = |text: &'static str| refuse(StatusCode::INTERNAL_SERVER_ERROR, text);
    let backend =
        rule.next_backend().ok_or_else(|| failed("the route has no backend with a weight"))?;
    let answering = routing.backends.resolve(&met.route.namespace, backend);
    match answering.map_err(|why| failed(why.reason()))? {
        Answering::Endpoints([]) => Err(no_endpoint()),
        Answering::Endpoints(endpoints) => Ok(Choice {
            endpoints: shuffled(endpoints),
            body: stream::resumed(Vec::new(), Some(body)),
            open: None,
            set: Vec::new(),
            remove: Vec::new(),
        }),
        Answering::Pool(pool) => pick(pool, headers, path, body).await,
    }
}

async fn pick(
    pool: &Pool,
    headers: &HeaderMap,
    path: &str,
    body: Incoming,
) -> Result<Choice, Box<Response<Body>>> {
    if !pool.has_picker && !pool.fails_open {
        return Err(no_picker());
    }
    if pool.endpoints.is_empty() {
        return Err(no_endpoint());
    }
    // A body that comes and is empty is none that makes sense; one that never comes is another matter.
    let has_body = !body.is_end_stream();
    let (prompt, rest) = read_first(body).await?;
    let question = Question {
        path,
        headers,
        body: has_body.then_some(&prompt),
        subset: None,
        now: Instant::now(),
    };
    let chunks = prompt.chunks();
    Ok(match decide(pool.fails_open, || pool.picker.pick(&question))? {
        Some(picked) => Choice {
            endpoints: with_others(picked.destinations, pool),
            body: stream::resumed(
                match &picked.model_edit {
                    Some(edit) => edited(chunks, edit),
                    None => chunks.to_vec(),
                },
                rest,
            ),
            open: Some(picked.open),
            set: picked.set_headers,
            remove: picked.remove_headers,
        },
        None => Choice {
            endpoints: shuffled(&pool.endpoints),
            body: stream::resumed(chunks.to_vec(), rest),
            open: None,
            set: Vec::new(),
            remove: picker::withheld(headers),
        },
    })
}

/// What the picker wants to see of the body, and what there is more.
async fn read_first(mut body: Incoming) -> Result<(Prompt, Option<Incoming>), Box<Response<Body>>> {
    let mut prompt = Prompt::default();
    // A body in chunks does not know of its end before that was read.
    let mut has_ended = body.is_end_stream();
    while prompt.len() < READ_FIRST && !has_ended {
        let Some(frame) = body.frame().await else {
            has_ended = true;
            break;
        };
        let frame = frame.map_err(|_| refuse(StatusCode::BAD_REQUEST, "the request was cut"))?;
        if let Ok(chunk) = frame.into_data() {
            prompt.push(chunk);
        }
        has_ended = body.is_end_stream();
    }
    if !has_ended {
        prompt.cut();
    }
    Ok((prompt, (!has_ended).then_some(body)))
}

/// `None`: the picker has failed, and any endpoint will do. That it refuses is no failure.
fn decide(
    fails_open: bool,
    pick: impl FnOnce() -> Result<Picked, Refused>,
) -> Result<Option<Picked>, Box<Response<Body>>> {
    match catch_unwind(AssertUnwindSafe(pick)) {
        Ok(Ok(picked)) => Ok(Some(picked)),
        Ok(Err(refused)) => {
            let mut response = refuse(refused.status, refused.body());
            if let Some(dropped) = refused.dropped {
                response.headers_mut().insert(DROPPED, HeaderValue::from_static(dropped));
            }
            Err(response)
        }
        Err(_) => {
            tracing::error!("the picker of a pool has failed");
            match fails_open {
                true => Ok(None),
                false => Err(no_picker()),
            }
        }
    }
}

/// Where any ready endpoint will do, it will do as well where the chosen ones cannot be reached.
fn with_others(mut chosen: Vec<SocketAddr>, pool: &Pool) -> Vec<SocketAddr> {
    if pool.fails_open {
        let mut others = shuffled(&pool.endpoints);
        others.retain(|endpoint| !chosen.contains(endpoint));
        chosen.extend(others);
    }
    chosen
}

/// The chunks with some bytes replaced.
fn edited(chunks: &[Bytes], edit: &ModelEdit) -> Vec<Bytes> {
    let mut start = 0;
    let mut edited = Vec::with_capacity(chunks.len() + 2);
    for chunk in chunks {
        let end = start + chunk.len();
        let before = edit.range.start.clamp(start, end) - start;
        let after = edit.range.end.clamp(start, end) - start;
        edited.push(chunk.slice(..before));
        if (start..end).contains(&edit.range.start) {
            edited.push(edit.text.clone());
        }
        edited.push(chunk.slice(after..));
        start = end;
    }
    edited.retain(|chunk| !chunk.is_empty());
    edited
}

/// All of them, beginning with any.
fn shuffled(endpoints: &[SocketAddr]) -> Vec<SocketAddr> {
    let count = endpoints.len().max(1);
    let first = usize::try_from(random::system_seed() % count as u64).unwrap_or_default();
    endpoints.iter().cycle().skip(first).take(endpoints.len()).copied().collect()
}

fn no_endpoint() -> Box<Response<Body>> {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "no endpoint is ready")
}

fn no_picker() -> Box<Response<Body>> {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "the endpoint picker is not there")
}

#[cfg(test)]
mod tests;
