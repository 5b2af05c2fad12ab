//! A hub of one file, for the artifact to import from: the model as it is in the cache, under any name
//! of a repository. Nobody else than this machine reaches it.

use std::{net::Ipv4Addr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};
use serde_json::{Value, json};
use tokio::{fs::File, net::TcpListener};
use tokio_util::io::ReaderStream;

use super::model::Model;

/// Answers as long as the runtime lives, at the address that it returns.
pub(super) async fn start(model: Model) -> anyhow::Result<String> {
    let cannot = "cannot listen on 127.0.0.1 for the import of the model";
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context(cannot)?;
    let address = format!("http://{}", socket.local_addr().context(cannot)?);
    let router = Router::new()
        .route("/api/models/{organisation}/{name}/revision/{revision}", get(revision))
        .route("/api/models/{organisation}/{name}/tree/{commit}", get(tree))
        .route("/{organisation}/{name}/resolve/{commit}/{file}", get(file))
        .with_state(Arc::new(model));
    tokio::spawn(async move { axum::serve(socket, router).await });
    Ok(address)
}

/// As many digits as git has.
fn commit(model: &Model) -> &str {
    model.sha256.get(..40).unwrap_or_default()
}

async fn revision(State(model): State<Arc<Model>>) -> Response {
    as_json(&json!({"sha": commit(&model)}))
}

async fn tree(State(model): State<Arc<Model>>) -> Response {
    let Model { size, sha256, .. } = &*model;
    as_json(&json!([{
        "type": "file", "path": model.name(), "size": size, "oid": commit(&model),
        "lfs": {"oid": sha256, "size": size},
    }]))
}

async fn file(
    State(model): State<Arc<Model>>,
    Path((_, _, _, name)): Path<(String, String, String, String)>,
) -> Response {
    if name != model.name() {
        return StatusCode::NOT_FOUND.into_response();
    }
    match File::open(&model.path).await {
        Ok(file) => {
            let head = [(header::CONTENT_LENGTH, model.size.to_string())];
            (head, Body::from_stream(ReaderStream::with_capacity(file, 1 << 18))).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn as_json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
