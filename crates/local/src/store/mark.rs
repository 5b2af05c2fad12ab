//! How far a store has come, in a file beside it. Where the head of an unclosed store is damaged, redb
//! goes back to the change before without a word, and only this tells.
//!
//! It is written after each commit and never flushed: who is killed leaves it behind all the same, and
//! after a power failure an older one says less, but nothing that is not so.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// A store does without it where it cannot be written.
pub(super) struct Mark(Option<File>);

impl Mark {
    /// That of the store at this path.
    pub(super) fn open(store: &Path) -> Self {
        let mut path = store.as_os_str().to_owned();
        path.push(".mark");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Self(options.open(path).ok())
    }

    /// The last version that was noted. What is not whole is none.
    pub(super) fn version(&self) -> Option<u64> {
        let mut bytes = [0; 16];
        self.0.as_ref()?.read_exact_at(&mut bytes, 0).ok()?;
        let [version, check] = [0, 8].map(|at| {
            let part = bytes.iter().skip(at).take(8);
            part.fold(0, |number, byte| number << 8 | u64::from(*byte))
        });
        (version == !check).then_some(version)
    }

    /// This version is stored.
    pub(super) fn note(&self, version: u64) {
        let bytes: Vec<u8> = [version, !version].into_iter().flat_map(u64::to_be_bytes).collect();
        if let Some(file) = &self.0
            && let Err(error) = file.write_all_at(&bytes, 0)
        {
            tracing::debug!(%error, "cannot note how far the store has come");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc, time::Duration};

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::store::{Clock, Key, Mode, Store, disk::Disk};

    fn clock() -> Clock {
        Arc::new(Timestamp::now)
    }

    async fn put(store: &Store, name: &str) -> u64 {
        let key = Key::new(&"/configmaps".into(), "default", name);
        let object = json!({"metadata": {"name": name}, "data": {"k": name.repeat(50)}});
        let stored = store.write(Mode::Store, move |tx| Ok::<_, ()>(tx.put(&key, object)));
        stored.await.unwrap().unwrap().version()
    }

    #[test]
    fn a_mark_is_read_as_it_was_noted_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        assert_eq!(Mark::open(&store).version(), None);
        for version in [7, 0, u64::MAX] {
            Mark::open(&store).note(version);
            assert_eq!(Mark::open(&store).version(), Some(version));
        }
        let path = dir.path().join("store.mark");
        let mut bytes = fs::read(&path).unwrap();
        bytes[3] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(Mark::open(&store).version(), None);
        fs::write(&path, &bytes[..9]).unwrap();
        assert_eq!(Mark::open(&store).version(), None);
        assert_eq!(Mark::open(&dir.path().join("no/store")).version(), None);
    }

    /// The slots of the head, which name the last change and the one before it, are bytes 64 to 320.
    #[tokio::test]
    async fn what_is_lost_by_a_damaged_head_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let store = Store::open(&path, clock()).unwrap();
        let mut last = 0;
        for at in 0..10 {
            last = put(&store, &format!("n{at}")).await;
        }
        let (bytes, mark) =
            (fs::read(&path).unwrap(), fs::read(dir.path().join("store.redb.mark")).unwrap());
        drop(store);
        let damaged = dir.path().join("damaged.redb");
        let found = |bytes: &[u8]| {
            fs::write(&damaged, bytes).unwrap();
            fs::write(dir.path().join("damaged.redb.mark"), &mark).unwrap();
            let (disk, found) = Disk::open(&damaged).ok()?;
            let told = (found.state.version(), found.lost);
            let store = Store::start(disk, None, found.state, clock()).unwrap();
            // Whoever has seen the last version is told that it is gone, and sees all that follows.
            assert_eq!(
                store.read().list_at("/configmaps", "", last).is_err(),
                found.lost.is_some()
            );
            assert!(store.close(Duration::from_secs(10)));
            Some(told)
        };
        assert_eq!(found(&bytes), Some((last, None)));
        let mut lost = 0;
        for at in (64..320).step_by(3) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            match found(&bytes) {
                Some((version, Some(told))) => {
                    lost += 1;
                    assert_eq!((version, told.was), (last + 1, last), "byte {at}");
                    assert!(told.is < last, "byte {at}");
                }
                Some((version, None)) => assert_eq!(version, last, "byte {at}"),
                None => {}
            }
        }
        assert!(lost > 5, "only {lost} went back");
    }

    #[tokio::test]
    async fn a_store_that_is_begun_anew_has_lost_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        let store = Store::open(&path, clock()).unwrap();
        put(&store, "a").await;
        assert!(store.close(Duration::from_secs(10)));
        fs::remove_file(&path).unwrap();
        let (_, found) = Disk::open(&path).unwrap();
        assert_eq!((found.state.version(), found.lost), (0, None));
    }
}
