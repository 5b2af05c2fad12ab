//! From hash to the endpoints that were sent it.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use super::lru::{Lru, Touched};

const SHARDS: usize = 64;

/// Endpoints are known by the number of their slot. A slot is written by whoever sends a request
/// there; readers lock one shard for one hash at a time.
pub(crate) struct Index {
    shards: Vec<Mutex<Shard>>,
    slots: RwLock<Vec<Arc<Mutex<Option<Lru>>>>>,
}

/// How many hashes of a prompt each slot holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matches {
    /// Of all hashes up to the first that nobody holds.
    pub(crate) all: Vec<u32>,
    /// The same within the first blocks that the score looks at.
    pub(crate) scored: Vec<u32>,
}

impl Default for Index {
    fn default() -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { shards, slots: RwLock::default() }
    }
}

impl Index {
    /// Walks each chain until nobody holds the next hash. A gap in what one endpoint holds does not
    /// end the walk for it.
    pub(crate) fn matches(&self, chains: &[Vec<u64>], scored: usize) -> Matches {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner).len();
        let mut matches = Matches { all: vec![0; slots], scored: vec![0; slots] };
        for chain in chains {
            for (position, hash) in chain.iter().enumerate() {
                let count = |slot: usize| {
                    if let (Some(all), Some(first)) =
                        (matches.all.get_mut(slot), matches.scored.get_mut(slot))
                    {
                        *all += 1;
                        *first += u32::from(position < scored);
                    }
                };
                if !self.shard(*hash).holders(*hash, count) {
                    break;
                }
            }
        }
        matches
    }

    /// The endpoint was sent these. `capacity` counts at its first use only. `present` says, while
    /// nobody else can change the slot, whether the endpoint is still there.
    pub(crate) fn insert(
        &self,
        slot: usize,
        capacity: usize,
        hashes: impl Iterator<Item = u64>,
        present: impl FnOnce() -> bool,
    ) {
        let own = self.slot(slot);
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        if !present() {
            return;
        }
        let lru = own.get_or_insert_with(|| Lru::new(capacity));
        for hash in hashes {
            if let Touched::Added { evicted } = lru.touch(hash) {
                if let Some(evicted) = evicted {
                    self.shard(evicted).remove(evicted, slot);
                }
                self.shard(hash).add(hash, slot);
            }
        }
    }

    /// The endpoint has gone.
    pub(crate) fn clear(&self, slot: usize) {
        let own = self.slot(slot);
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        for hash in own.take().iter().flat_map(Lru::hashes) {
            self.shard(hash).remove(hash, slot);
        }
    }

    /// Known hashes.
    pub(crate) fn hashes(&self) -> usize {
        let size = |shard: &Mutex<Shard>| {
            shard.lock().unwrap_or_else(PoisonError::into_inner).entries.len()
        };
        self.shards.iter().map(size).sum()
    }

    /// Pairs of hash and endpoint.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner).clone();
        let size = |slot: &Arc<Mutex<Option<Lru>>>| {
            slot.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, Lru::len)
        };
        slots.iter().map(size).sum()
    }

    fn slot(&self, slot: usize) -> Arc<Mutex<Option<Lru>>> {
        if let Some(found) = self.slots.read().unwrap_or_else(PoisonError::into_inner).get(slot) {
            return found.clone();
        }
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.len() <= slot {
            slots.resize_with(slot + 1, Arc::default);
        }
        slots[slot].clone()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The table uses the highest and the lowest bits.
        let shard = &self.shards[(hash >> 40) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most hashes are held by one endpoint, so its slot is the entry. Where there are more, the entry
/// is the number of a row of bits, one bit for each slot.
#[derive(Default)]
struct Shard {
    entries: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    rows: Vec<u64>,
    /// Words in a row.
    width: usize,
    free: Vec<u32>,
}

const ROW: u32 = 1 << 31;

impl Shard {
    /// Whether there are any.
    fn holders(&self, hash: u64, mut each: impl FnMut(usize)) -> bool {
        let Some(entry) = self.entries.get(&hash) else { return false };
        if entry & ROW == 0 {
            each(*entry as usize);
            return true;
        }
        for (index, word) in self.row(entry & !ROW).iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                each(index * 64 + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
        true
    }

    fn add(&mut self, hash: u64, slot: usize) {
        let Some(entry) = self.entries.get(&hash).copied() else {
            self.entries.insert(hash, slot as u32 & !ROW);
            return;
        };
        if entry & ROW == 0 {
            if entry as usize == slot {
                return;
            }
            self.widen(slot.max(entry as usize));
            let row = self.free_row();
            self.set(row, entry as usize);
            self.set(row, slot);
            self.entries.insert(hash, row | ROW);
        } else {
            self.widen(slot);
            self.set(entry & !ROW, slot);
        }
    }

    fn remove(&mut self, hash: u64, slot: usize) {
        let Some(entry) = self.entries.get(&hash).copied() else { return };
        if entry & ROW == 0 {
            if entry as usize == slot {
                self.entries.remove(&hash);
            }
            return;
        }
        let row = entry & !ROW;
        let start = row as usize * self.width;
        if let Some(word) = self.rows[start..start + self.width].get_mut(slot / 64) {
            *word &= !(1 << (slot % 64));
        }
        let held: u32 = self.row(row).iter().map(|word| word.count_ones()).sum();
        if held <= 1 {
            let mut last = None;
            self.holders(hash, |slot| last = Some(slot));
            self.rows[start..start + self.width].fill(0);
            self.free.push(row);
            match last {
                Some(slot) => self.entries.insert(hash, slot as u32),
                None => self.entries.remove(&hash),
            };
        }
    }

    fn row(&self, row: u32) -> &[u64] {
        let start = row as usize * self.width;
        self.rows.get(start..start + self.width).unwrap_or_default()
    }

    fn set(&mut self, row: u32, slot: usize) {
        self.rows[row as usize * self.width + slot / 64] |= 1 << (slot % 64);
    }

    fn free_row(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let row = self.rows.len() / self.width.max(1);
            self.rows.resize(self.rows.len() + self.width, 0);
            row as u32
        })
    }

    /// Makes the rows wide enough for this slot.
    fn widen(&mut self, slot: usize) {
        let width = (slot / 64 + 1).max(self.width).max(1);
        if width == self.width {
            return;
        }
        let mut rows = Vec::with_capacity(self.rows.len() / self.width.max(1) * width);
        for row in self.rows.chunks(self.width.max(1)) {
            rows.extend_from_slice(row);
            rows.resize(rows.len() + width - self.width, 0);
        }
        (self.rows, self.width) = (rows, width);
    }
}

/// The keys are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
