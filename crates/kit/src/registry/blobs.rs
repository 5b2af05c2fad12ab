//! Blobs: whole or in parts.

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::{
    disk::{self, Disk},
    empty,
    error::Refused,
    range, set,
};
use crate::Digest;

/// Read from the disk at a time.
const PIECE: usize = 1 << 20;

pub(super) async fn get(
    disk: &Disk,
    method: &Method,
    digest: &Digest,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    let Some(mut file) = disk::found(tokio::fs::File::open(disk.blob(digest)).await)? else {
        return Err(Refused::blob(digest));
    };
    let size = file.metadata().await?.len();
    let asked = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let part = match asked.and_then(|header| range::asked(header, size)) {
        Some(Ok(part)) => Some(part),
        Some(Err(())) => {
            return Err(Refused::range("the blob is shorter", Some(format!("bytes */{size}"))));
        }
        None => None,
    };
    let (first, count) = part.unwrap_or((0, size));
    let mut response =
        empty(if part.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK });
    let told = response.headers_mut();
    told.insert(header::CONTENT_LENGTH, HeaderValue::from(count));
    told.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    told.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    set(told, "docker-content-digest", digest.as_str());
    // The bytes of a digest never change.
    set(told, "etag", &format!("\"{digest}\""));
    if part.is_some() {
        set(told, "content-range", &format!("bytes {first}-{}/{size}", first + count - 1));
    }
    if method == Method::HEAD {
        // Whoever asks so is about to name it in a manifest.
        disk.touch(digest).await?;
    } else {
        file.seek(std::io::SeekFrom::Start(first)).await?;
        let stream = ReaderStream::with_capacity(file.take(count), PIECE);
        *response.body_mut() = Body::from_stream(stream);
    }
    Ok(response)
}

pub(super) async fn delete(disk: &Disk, digest: &Digest) -> Result<Response, Refused> {
    match disk::removed(tokio::fs::remove_file(disk.blob(digest)).await)? {
        true => Ok(empty(StatusCode::ACCEPTED)),
        false => Err(Refused::blob(digest)),
    }
}
