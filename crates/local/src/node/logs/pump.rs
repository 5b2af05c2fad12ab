//! From the pipe of a process to its log.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{
    record::{Splitter, Stream},
    writer::Writer,
};
use crate::store::Clock;

const PIECE: usize = 16 * 1024;

/// Reads until the pipe is closed, which is when the last process that holds it has ended.
pub async fn pump(mut from: impl AsyncRead + Unpin, stream: Stream, to: Arc<Writer>, clock: Clock) {
    let mut splitter = Splitter::new(stream);
    let (mut piece, mut records) = (vec![0; PIECE], Vec::new());
    loop {
        match from.read(&mut piece).await {
            Ok(0) => break,
            Ok(read) => splitter.feed(&piece[..read], clock(), &mut records),
            Err(error) => {
                tracing::warn!(%error, "cannot read what a process says");
                break;
            }
        }
        to.append(&records, clock());
        records.clear();
    }
    splitter.finish(clock(), &mut records);
    to.append(&records, clock());
}
