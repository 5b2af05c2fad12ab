//! A file that is read and never written: what is written to it stays in memory.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::StorageBackend;

const BLOCK: usize = 4096;

#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    length: u64,
    /// How much of the file still counts: it may have been cut off since.
    read: u64,
    blocks: BTreeMap<u64, [u8; BLOCK]>,
}

impl Overlay {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let written = Written { length, read: length, blocks: BTreeMap::new() };
        Ok(Self { file, written: Mutex::new(written) })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block as the file has it, zero where it has nothing.
    fn block(&self, at: u64, read: u64) -> io::Result<[u8; BLOCK]> {
        let mut block = [0; BLOCK];
        let start = at * BLOCK as u64;
        let there = read.saturating_sub(start).min(BLOCK as u64) as usize;
        self.file.read_exact_at(&mut block[..there], start)?;
        Ok(block)
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        for part in parts(offset, out.len(), written.length)? {
            let out = &mut out[part.buffer];
            match written.blocks.get(&part.block) {
                Some(block) => out.copy_from_slice(&block[part.within]),
                None => out.copy_from_slice(&self.block(part.block, written.read)?[part.within]),
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut written = self.written();
        written.read = written.read.min(length);
        written.blocks.retain(|at, block| {
            let kept = length.saturating_sub(at * BLOCK as u64).min(BLOCK as u64) as usize;
            block[kept..].fill(0);
            kept > 0
        });
        written.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        for part in parts(offset, data.len(), written.length)? {
            let mut block = match written.blocks.remove(&part.block) {
                Some(block) => block,
                None => self.block(part.block, written.read)?,
            };
            block[part.within].copy_from_slice(&data[part.buffer]);
            written.blocks.insert(part.block, block);
        }
        Ok(())
    }
}

/// What of one block belongs to which bytes of a buffer.
struct Part {
    block: u64,
    within: Range<usize>,
    buffer: Range<usize>,
}

fn parts(offset: u64, count: usize, length: u64) -> io::Result<impl Iterator<Item = Part>> {
    let end = offset.checked_add(count as u64).filter(|end| *end <= length);
    let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut at = offset;
    Ok(std::iter::from_fn(move || {
        (at < end).then(|| {
            let start = (at % BLOCK as u64) as usize;
            let some = (BLOCK - start).min((end - at) as usize);
            let buffer = (at - offset) as usize;
            let block = at / BLOCK as u64;
            at += some as u64;
            Part { block, within: start..start + some, buffer: buffer..buffer + some }
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_the_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let whole: Vec<u8> = (0..3 * BLOCK + 7).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &whole).unwrap();
        let overlay = Overlay::open(&path).unwrap();
        let mut want = whole.clone();
        let check = |want: &[u8]| {
            assert_eq!(overlay.len().unwrap(), want.len() as u64);
            let mut found = vec![0; want.len()];
            overlay.read(0, &mut found).unwrap();
            assert!(found == want);
            assert!(overlay.read(1, &mut found).is_err());
        };
        check(&want);
        for (at, count) in [(0, 1), (BLOCK - 3, 6), (5, 2 * BLOCK), (3 * BLOCK + 1, 6)] {
            want[at..at + count].fill(0xee);
            overlay.write(at as u64, &vec![0xee; count]).unwrap();
            check(&want);
        }
        // What is cut off does not come back.
        for length in [2 * BLOCK + 9, 5 * BLOCK, BLOCK / 2, 4 * BLOCK] {
            want.resize(length, 0);
            overlay.set_len(length as u64).unwrap();
            check(&want);
        }
        assert!(overlay.write(4 * BLOCK as u64, b"x").is_err());
        assert!(std::fs::read(&path).unwrap() == whole);
    }
}
