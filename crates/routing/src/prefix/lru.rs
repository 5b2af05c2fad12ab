//! The hashes that one endpoint was sent, the oldest going first.

const NONE: u32 = u32::MAX;

/// Nodes in one array, linked by number, and a table from hash to number: 16 bytes and about seven
/// for each hash.
pub(super) struct Lru {
    nodes: Vec<Node>,
    /// Open addressing with steps of one. Its length is a power of two, a quarter at least is free.
    table: Vec<u32>,
    capacity: usize,
    newest: u32,
    oldest: u32,
}

#[derive(Clone, Copy)]
struct Node {
    hash: u64,
    newer: u32,
    older: u32,
}

/// What [`Lru::touch`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touched {
    Known,
    Added { evicted: Option<u64> },
}

impl Lru {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, (NONE / 2) as usize);
        Self { nodes: Vec::new(), table: vec![NONE; 16], capacity, newest: NONE, oldest: NONE }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Makes this hash the newest.
    pub(super) fn touch(&mut self, hash: u64) -> Touched {
        if let Some(at) = self.find(hash) {
            let node = self.table[at];
            self.unlink(node);
            self.link_newest(node);
            return Touched::Known;
        }
        if self.nodes.len() < self.capacity {
            let node = self.nodes.len() as u32;
            self.nodes.push(Node { hash, newer: NONE, older: NONE });
            self.link_newest(node);
            if self.nodes.len() * 4 > self.table.len() * 3 {
                self.grow();
            } else {
                self.enter(node);
            }
            return Touched::Added { evicted: None };
        }
        let node = self.oldest;
        let evicted = self.nodes[node as usize].hash;
        self.leave(evicted);
        self.unlink(node);
        self.nodes[node as usize].hash = hash;
        self.link_newest(node);
        self.enter(node);
        Touched::Added { evicted: Some(evicted) }
    }

    /// In no order.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.nodes.iter().map(|node| node.hash)
    }

    #[cfg(test)]
    pub(super) fn oldest_first(&self) -> Vec<u64> {
        let mut at = self.oldest;
        std::iter::from_fn(|| {
            let node = self.nodes.get(at as usize)?;
            at = node.newer;
            Some(node.hash)
        })
        .collect()
    }

    fn home(&self, hash: u64) -> usize {
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize & (self.table.len() - 1)
    }

    fn find(&self, hash: u64) -> Option<usize> {
        let mut at = self.home(hash);
        while self.table[at] != NONE {
            if self.nodes[self.table[at] as usize].hash == hash {
                return Some(at);
            }
            at = (at + 1) & (self.table.len() - 1);
        }
        None
    }

    fn enter(&mut self, node: u32) {
        let mut at = self.home(self.nodes[node as usize].hash);
        while self.table[at] != NONE {
            at = (at + 1) & (self.table.len() - 1);
        }
        self.table[at] = node;
    }

    /// Entries behind the gap move up, so that none is cut off from its home.
    fn leave(&mut self, hash: u64) {
        let Some(mut gap) = self.find(hash) else { return };
        let mask = self.table.len() - 1;
        let mut at = (gap + 1) & mask;
        while self.table[at] != NONE {
            let home = self.home(self.nodes[self.table[at] as usize].hash);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.table[gap] = self.table[at];
                gap = at;
            }
            at = (at + 1) & mask;
        }
        self.table[gap] = NONE;
    }

    fn grow(&mut self) {
        self.table = vec![NONE; self.table.len() * 2];
        for node in 0..self.nodes.len() as u32 {
            self.enter(node);
        }
    }

    fn unlink(&mut self, node: u32) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        match self.nodes.get_mut(newer as usize) {
            Some(neighbour) => neighbour.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older as usize) {
            Some(neighbour) => neighbour.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, node: u32) {
        let before = std::mem::replace(&mut self.newest, node);
        let linked = &mut self.nodes[node as usize];
        (linked.newer, linked.older) = (NONE, before);
        match self.nodes.get_mut(before as usize) {
            Some(neighbour) => neighbour.newer = node,
            None => self.oldest = node,
        }
    }
}
