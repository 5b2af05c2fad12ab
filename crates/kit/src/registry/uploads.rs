//! Blobs on their way in. What was received stays when a connection breaks, and is told.

use std::{
    collections::HashMap,
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex as Turn;

use super::{
    disk::{self, Disk, blocking},
    empty,
    error::Refused,
    range,
    route::{Id, Name, Query, digest},
    set,
};
use crate::{Digest, digest::HashWriter};

/// Gathered before it is hashed and written.
const PIECE: usize = 1 << 20;

pub(super) struct Uploads {
    folder: PathBuf,
    /// Those that something was written to since the start.
    open: Mutex<HashMap<String, Arc<Turn<Open>>>>,
}

/// An upload that is written to. The hash is of everything in the file.
struct Open {
    file: fs::File,
    hash: Sha256,
    size: u64,
}

/// What a client says when it ends an upload.
pub(super) struct Finish<'a> {
    pub(super) query: &'a Query,
    pub(super) headers: &'a HeaderMap,
}

impl Uploads {
    pub(super) fn open(folder: PathBuf) -> Self {
        Self { folder, open: Mutex::default() }
    }

    fn path(&self, id: &Id) -> PathBuf {
        self.folder.join(id.as_str())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Turn<Open>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn create(&self) -> Result<(Id, Arc<Turn<Open>>), Refused> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let id = Id::new(u128::from_be_bytes(random));
        let path = self.path(&id);
        let file = blocking(move || {
            fs::OpenOptions::new().create_new(true).read(true).write(true).open(path)
        })
        .await?;
        let open = Arc::new(Turn::new(Open { file, hash: Sha256::new(), size: 0 }));
        self.known().insert(id.as_str().to_owned(), open.clone());
        Ok((id, open))
    }

    /// One that is not known since the start is read once more, for its hash.
    async fn find(&self, id: &Id) -> Result<Arc<Turn<Open>>, Refused> {
        if let Some(open) = self.known().get(id.as_str()) {
            return Ok(open.clone());
        }
        let path = self.path(id);
        let read = blocking(move || {
            let mut file = fs::OpenOptions::new().read(true).write(true).open(path)?;
            let mut hash = HashWriter::default();
            let size = io::copy(&mut file, &mut hash)?;
            Ok(Open { file, hash: hash.0, size })
        });
        let read = disk::found(read.await)?.ok_or_else(Refused::upload)?;
        let open = Arc::new(Turn::new(read));
        Ok(self.known().entry(id.as_str().to_owned()).or_insert(open).clone())
    }

    fn forget(&self, id: &Id) {
        self.known().remove(id.as_str());
    }
}

impl Open {
    fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        use io::Write;
        for piece in pieces {
            // Not written wholly means not counted: the file and the hash stay together.
            if let Err(error) = self.file.write_all(piece) {
                self.file.set_len(self.size)?;
                io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.size))?;
                return Err(error);
            }
            self.hash.update(piece);
            self.size += piece.len() as u64;
        }
        Ok(())
    }
}

/// Takes a body into an upload. What came before a connection broke is kept.
async fn receive(open: &Arc<Turn<Open>>, mut body: Body, at: Option<u64>) -> Result<u64, Refused> {
    let mut turn = open
        .clone()
        .try_lock_owned()
        .map_err(|_| Refused::range("somebody else is sending to this upload", None))?;
    if at.is_some_and(|at| at != turn.size) {
        let message = format!("the chunk must begin at {}", turn.size);
        return Err(Refused::range(message, Some(range::received(turn.size))));
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    loop {
        let frame = body.frame().await;
        let is_end = !matches!(frame, Some(Ok(_)));
        let broken = matches!(frame, Some(Err(_)));
        if let Some(Ok(frame)) = frame
            && let Ok(piece) = frame.into_data()
        {
            pieces.push(piece);
        }
        let gathered: usize = pieces.iter().map(Bytes::len).sum();
        if gathered >= PIECE || is_end && gathered > 0 {
            let batch = std::mem::take(&mut pieces);
            turn = blocking(move || {
                turn.write(&batch)?;
                Ok(turn)
            })
            .await?;
        }
        match (is_end, broken) {
            (true, true) => return Err(Refused::body("the connection broke; what came is kept")),
            (true, false) => return Ok(turn.size),
            (false, _) => {}
        }
    }
}

pub(super) async fn start(
    disk: &Disk,
    uploads: &Uploads,
    name: &Name,
    query: &Query,
    body: Body,
) -> Result<Response, Refused> {
    // A blob may be read from every repository, so it can be mounted from any.
    if let Some(wanted) = query.get("mount").and_then(|text| digest(text).ok())
        && disk.size(&wanted).await?.is_some()
    {
        return Ok(created(name, &wanted));
    }
    let (id, open) = uploads.create().await?;
    if let Some(wanted) = query.get("digest") {
        let wanted = digest(wanted)?;
        receive(&open, body, Some(0)).await?;
        return complete(disk, uploads, name, &id, open, &wanted).await;
    }
    let mut response = accepted(StatusCode::ACCEPTED, name, &id, 0);
    set(response.headers_mut(), "oci-chunk-min-length", "1");
    Ok(response)
}

pub(super) async fn state(uploads: &Uploads, name: &Name, id: &Id) -> Result<Response, Refused> {
    let open = uploads.find(id).await?;
    let size = open.lock().await.size;
    Ok(accepted(StatusCode::NO_CONTENT, name, id, size))
}

pub(super) async fn append(
    uploads: &Uploads,
    name: &Name,
    id: &Id,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let open = uploads.find(id).await?;
    let size = receive(&open, body, start_of(headers)?).await?;
    Ok(accepted(StatusCode::ACCEPTED, name, id, size))
}

pub(super) async fn finish(
    disk: &Disk,
    uploads: &Uploads,
    name: &Name,
    id: &Id,
    asked: Finish<'_>,
    body: Body,
) -> Result<Response, Refused> {
    let wanted = asked.query.get("digest");
    let wanted = digest(wanted.ok_or_else(|| Refused::digest("the parameter digest is missing"))?)?;
    let open = uploads.find(id).await?;
    receive(&open, body, start_of(asked.headers)?).await?;
    complete(disk, uploads, name, id, open, &wanted).await
}

async fn complete(
    disk: &Disk,
    uploads: &Uploads,
    name: &Name,
    id: &Id,
    open: Arc<Turn<Open>>,
    wanted: &Digest,
) -> Result<Response, Refused> {
    let turn = open.lock_owned().await;
    let is = Digest::finish(turn.hash.clone());
    if is != *wanted {
        let message = format!("{wanted} was announced, and {is} has come");
        return Err(Refused::digest(message));
    }
    // It must be on the disk before it is under its name.
    let turn = blocking(move || turn.file.sync_all().map(|()| turn)).await?;
    disk.keep_blob(uploads.path(id), wanted).await?;
    uploads.forget(id);
    drop(turn);
    Ok(created(name, wanted))
}

pub(super) async fn cancel(uploads: &Uploads, id: &Id) -> Result<Response, Refused> {
    uploads.forget(id);
    match disk::removed(tokio::fs::remove_file(uploads.path(id)).await)? {
        true => Ok(empty(StatusCode::NO_CONTENT)),
        false => Err(Refused::upload()),
    }
}

fn start_of(headers: &HeaderMap) -> Result<Option<u64>, Refused> {
    let Some(header) = headers.get(header::CONTENT_RANGE) else { return Ok(None) };
    let read = header.to_str().ok().and_then(range::of_chunk);
    let (first, _) =
        read.ok_or_else(|| Refused::range("the Content-Range makes no sense", None))?;
    Ok(Some(first))
}

fn accepted(status: StatusCode, name: &Name, id: &Id, size: u64) -> Response {
    let mut response = empty(status);
    let headers = response.headers_mut();
    set(headers, "location", &format!("/v2/{}/blobs/uploads/{}", name.as_str(), id.as_str()));
    set(headers, "range", &range::received(size));
    set(headers, "docker-upload-uuid", id.as_str());
    response
}

fn created(name: &Name, digest: &Digest) -> Response {
    let mut response = empty(StatusCode::CREATED);
    let headers = response.headers_mut();
    set(headers, "location", &format!("/v2/{}/blobs/{digest}", name.as_str()));
    set(headers, "docker-content-digest", digest.as_str());
    response
}
