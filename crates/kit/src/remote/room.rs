//! Memory for what has come and was not read yet: so much, and no more.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Buffers, used again and again. Megabytes that are got and given back by many threads all the time make
/// an allocator keep several times of what is in use.
#[derive(Clone)]
pub(super) struct Room {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
    places: Arc<Semaphore>,
}

impl Room {
    pub(super) fn new(count: usize) -> Self {
        Self { free: Arc::default(), places: Arc::new(Semaphore::new(count)) }
    }

    /// Waits until one is free. It never takes more than `size` bytes.
    pub(super) async fn buffer(&self, size: usize) -> Buffer {
        // It is never closed.
        let place = self.places.clone().acquire_owned().await.ok();
        let mut bytes = self.free().pop().unwrap_or_default();
        bytes.reserve_exact(size);
        Buffer { bytes, room: self.clone(), _place: place }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How large those are that nobody uses just now.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.free().iter().map(Vec::capacity).collect()
    }
}

/// For one range, until the last of it has been read.
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    room: Room,
    // Given back after the bytes, so that whoever waits for it finds them.
    _place: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.room.free().push(bytes);
    }
}

impl From<Buffer> for Bytes {
    fn from(buffer: Buffer) -> Self {
        Self::from_owner(buffer)
    }
}
