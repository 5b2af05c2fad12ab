//! Blobs on their way in. What was received stays when a connection breaks, and is told.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use sha2::{Digest as _, Sha256};
use tokio::{sync::Mutex as Turn, time::timeout};

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
/// Whoever says nothing for so long has gone.
const SILENCE: Duration = Duration::from_secs(60);
/// For what a client that is gone has sent.
const SETTLING: Duration = Duration::from_secs(2);

pub(super) struct Uploads {
    folder: PathBuf,
    /// Those that something was written to since the last sweep.
    open: Mutex<HashMap<String, Arc<Upload>>>,
}

pub(super) struct Upload {
    /// To be told while somebody writes.
    received: AtomicU64,
    writing: Arc<Turn<Open>>,
}

/// An upload that is written to. The hash is of everything in the file.
struct Open {
    file: fs::File,
    hash: Sha256,
    size: u64,
    /// The file is a blob now, and nothing may be written to it any more.
    is_over: bool,
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

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Upload>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn create(&self) -> Result<(Id, Arc<Upload>), Refused> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let id = Id::new(u128::from_be_bytes(random));
        let path = self.path(&id);
        let file = blocking(move || {
            fs::OpenOptions::new().create_new(true).read(true).write(true).open(path)
        })
        .await?;
        let open = Open { file, hash: Sha256::new(), size: 0, is_over: false };
        let upload = Arc::new(Upload::new(open));
        self.known().insert(id.as_str().to_owned(), upload.clone());
        Ok((id, upload))
    }

    /// One that is not known is read once more, for its hash.
    async fn find(&self, id: &Id) -> Result<Arc<Upload>, Refused> {
        if let Some(upload) = self.known().get(id.as_str()) {
            return Ok(upload.clone());
        }
        let path = self.path(id);
        let read = blocking(move || {
            let mut file = fs::OpenOptions::new().read(true).write(true).open(path)?;
            let mut hash = HashWriter::default();
            let size = io::copy(&mut file, &mut hash)?;
            Ok(Open { file, hash: hash.0, size, is_over: false })
        });
        let read = disk::found(read.await)?.ok_or_else(Refused::upload)?;
        let mut known = self.known();
        // Somebody may have ended it meanwhile: then the file is a blob and no upload.
        let there = disk::found(fs::metadata(self.path(id)))?.ok_or_else(Refused::upload)?;
        if there.ino() != read.file.metadata()?.ino() {
            return Err(Refused::upload());
        }
        let entry = known.entry(id.as_str().to_owned());
        Ok(entry.or_insert_with(|| Arc::new(Upload::new(read))).clone())
    }

    /// What nobody uses at the moment is read again when it is asked for.
    pub(super) fn forget_idle(&self) {
        self.known().retain(|_, upload| {
            Arc::strong_count(upload) > 1 || Arc::strong_count(&upload.writing) > 1
        });
    }

    fn forget(&self, id: &Id) {
        self.known().remove(id.as_str());
    }
}

#[cfg(test)]
impl Uploads {
    pub(super) fn known_for_test(&self, id: &Id) -> Arc<Upload> {
        self.known()[id.as_str()].clone()
    }
}

#[cfg(test)]
impl Upload {
    pub(super) async fn is_refused_for_test(&self) -> bool {
        receive(self, Body::from("more"), None).await.is_err()
    }
}

impl Upload {
    fn new(open: Open) -> Self {
        Self { received: AtomicU64::new(open.size), writing: Arc::new(Turn::new(open)) }
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
async fn receive(upload: &Upload, mut body: Body, at: Option<u64>) -> Result<u64, Refused> {
    let turn = upload.writing.clone().try_lock_owned();
    let busy = |_| Refused::range("somebody else is sending to this upload", None);
    let mut turn = turn.map_err(busy)?;
    if turn.is_over {
        return Err(Refused::upload());
    }
    if at.is_some_and(|at| at != turn.size) {
        let message = format!("the chunk must begin at {}", turn.size);
        return Err(Refused::range(message, Some(range::received(turn.size))));
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    loop {
        let Ok(frame) = timeout(SILENCE, body.frame()).await else {
            return Err(Refused::body("nothing has come for a while; what came is kept"));
        };
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
            upload.received.store(turn.size, Ordering::Release);
        }
        match (is_end, broken) {
            (true, true) => return Err(Refused::body("the connection broke; what came is kept")),
            (true, false) => return Ok(turn.size),
            (false, _) => {}
        }
    }
}

pub(super) async fn start(
    disk: &Arc<Disk>,
    uploads: &Arc<Uploads>,
    name: &Name,
    query: &Query,
    body: Body,
) -> Result<Response, Refused> {
    // A blob may be read from every repository, so it can be mounted from any.
    if let Some(wanted) = query.get("mount").and_then(|text| digest(text).ok())
        && disk.touch(&wanted).await?
    {
        return Ok(created(name, &wanted));
    }
    let (id, upload) = uploads.create().await?;
    if let Some(wanted) = query.get("digest") {
        let wanted = digest(wanted)?;
        receive(&upload, body, Some(0)).await?;
        return complete(disk, uploads, name, &id, &upload, &wanted).await;
    }
    let mut response = accepted(StatusCode::ACCEPTED, name, &id, 0);
    set(response.headers_mut(), "oci-chunk-min-length", "1");
    Ok(response)
}

pub(super) async fn state(uploads: &Uploads, name: &Name, id: &Id) -> Result<Response, Refused> {
    let upload = uploads.find(id).await?;
    // Whoever asks may have been killed while sending, and what it sent may still be on its way in: from
    // where that ends it goes on. Others who are really sending are not waited for.
    let _ = timeout(SETTLING, upload.writing.lock()).await;
    let size = upload.received.load(Ordering::Acquire);
    Ok(accepted(StatusCode::NO_CONTENT, name, id, size))
}

pub(super) async fn append(
    uploads: &Uploads,
    name: &Name,
    id: &Id,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let upload = uploads.find(id).await?;
    let size = receive(&upload, body, start_of(headers)?).await?;
    Ok(accepted(StatusCode::ACCEPTED, name, id, size))
}

pub(super) async fn finish(
    disk: &Arc<Disk>,
    uploads: &Arc<Uploads>,
    name: &Name,
    id: &Id,
    asked: Finish<'_>,
    body: Body,
) -> Result<Response, Refused> {
    let wanted = asked.query.get("digest");
    let wanted = digest(wanted.ok_or_else(|| Refused::digest("the parameter digest is missing"))?)?;
    let upload = uploads.find(id).await?;
    receive(&upload, body, start_of(asked.headers)?).await?;
    complete(disk, uploads, name, id, &upload, &wanted).await
}

/// Once begun it goes to its end, even if the client does not wait for it.
async fn complete(
    disk: &Arc<Disk>,
    uploads: &Arc<Uploads>,
    name: &Name,
    id: &Id,
    upload: &Upload,
    wanted: &Digest,
) -> Result<Response, Refused> {
    let turn = upload.writing.clone().lock_owned().await;
    if turn.is_over {
        return Err(Refused::upload());
    }
    let is = Digest::finish(turn.hash.clone());
    if is != *wanted {
        let message = format!("{wanted} was announced, and {is} has come");
        return Err(Refused::digest(message));
    }
    let (disk, uploads, id, digest) = (disk.clone(), uploads.clone(), id.clone(), wanted.clone());
    let kept = tokio::spawn(async move {
        // It must be on the disk before it is under its name.
        let mut turn = blocking(move || turn.file.sync_all().map(|()| turn)).await?;
        turn.is_over = true;
        let _storing = disk.storing.read().await;
        let kept = disk.keep_blob(uploads.path(&id), &digest).await;
        uploads.forget(&id);
        kept
    });
    kept.await.map_err(io::Error::other)??;
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
