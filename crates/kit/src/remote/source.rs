//! What is sent: bytes that can be read again from any place, since a connection may break.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures::stream;
use tokio::{sync::mpsc, task::spawn_blocking};

use crate::layer::Layer;

/// Read ahead of the connection: two of these at most.
const PIECE: usize = 1 << 20;

pub trait Source: Send + Sync + 'static {
    fn size(&self) -> u64;
    fn open(&self, from: u64) -> io::Result<Box<dyn Read + Send>>;
}

impl Source for PathBuf {
    fn size(&self) -> u64 {
        std::fs::metadata(self).map_or(0, |found| found.len())
    }

    fn open(&self, from: u64) -> io::Result<Box<dyn Read + Send>> {
        let mut file = File::open(self)?;
        file.seek(SeekFrom::Start(from))?;
        Ok(Box::new(file))
    }
}

impl Source for Bytes {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn open(&self, from: u64) -> io::Result<Box<dyn Read + Send>> {
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.len());
        Ok(Box::new(io::Cursor::new(self.slice(from..))))
    }
}

impl Source for Layer {
    fn size(&self) -> u64 {
        Layer::size(self)
    }

    fn open(&self, from: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.read_from(from)))
    }
}

/// Why reading has failed, told beside the connection, which only knows that it broke.
#[derive(Clone, Default)]
pub(super) struct Fault(Arc<Mutex<Option<io::Error>>>);

impl Fault {
    fn set(&self, error: io::Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(super) fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A part of a source as the body of a request. `seen` is told of every piece that leaves.
pub(super) fn body(
    source: Arc<dyn Source>,
    from: u64,
    count: u64,
    seen: impl Fn(&[u8]) + Send + 'static,
) -> (reqwest::Body, Fault) {
    let fault = Fault::default();
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(2);
    let told = fault.clone();
    spawn_blocking(move || {
        if let Err(error) = feed(source.as_ref(), from, count, &sender, &seen) {
            let copy = io::Error::new(error.kind(), error.to_string());
            told.set(error);
            drop(sender.blocking_send(Err(copy)));
        }
    });
    let pieces = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    (reqwest::Body::wrap_stream(pieces), fault)
}

fn feed(
    source: &dyn Source,
    from: u64,
    count: u64,
    sender: &mpsc::Sender<io::Result<Bytes>>,
    seen: &impl Fn(&[u8]),
) -> io::Result<()> {
    let mut reader = source.open(from)?.take(count);
    let mut left = count;
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE);
        let mut piece = vec![0; room];
        reader.read_exact(&mut piece)?;
        left -= room as u64;
        seen(&piece);
        // Nobody listens any more where the connection has ended.
        if sender.blocking_send(Ok(piece.into())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}
