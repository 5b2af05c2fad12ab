//! The addresses of pods: each has one of its own among those of the loopback, as long as it lives.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    net::Ipv4Addr,
    path::Path,
};

/// 127.64.0.0/16.
const FIRST: u32 = 0x7f40_0000;
/// Without the first and the last one.
const COUNT: u32 = 0xfffe;
/// Of the machine, and of pods that share its network.
pub const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Who has which address.
#[derive(Debug)]
pub struct Addresses {
    holders: BTreeMap<Ipv4Addr, String>,
    /// Where to look for the next one: an address that was given back rests for a while.
    next: u32,
}

impl Addresses {
    /// Nodes with different directories begin at different addresses, so that two of them on one
    /// machine rarely meet.
    pub fn new(state: &Path) -> Self {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        Self { holders: BTreeMap::new(), next: (hasher.finish() % u64::from(COUNT)) as u32 }
    }

    /// The address that a pod had before, if nobody else has it, else a free one.
    pub fn take(&mut self, uid: &str, before: Option<&str>) -> Option<Ipv4Addr> {
        if !has_many() {
            return Some(HOST);
        }
        let held = self.holders.iter().find(|(_, holder)| *holder == uid).map(|(own, _)| *own);
        if let Some(own) = held {
            return Some(own);
        }
        let before = before.and_then(|text| text.parse().ok());
        let before = before.filter(|own| is_ours(*own) && !self.holders.contains_key(own));
        let own = before.or_else(|| self.free())?;
        self.holders.insert(own, uid.to_owned());
        Some(own)
    }

    pub fn give_back(&mut self, uid: &str) {
        self.holders.retain(|_, holder| holder != uid);
    }

    fn free(&mut self) -> Option<Ipv4Addr> {
        for _ in 0..COUNT {
            let own = Ipv4Addr::from_bits(FIRST + 1 + self.next);
            self.next = (self.next + 1) % COUNT;
            if !self.holders.contains_key(&own) {
                return Some(own);
            }
        }
        None
    }
}

fn is_ours(address: Ipv4Addr) -> bool {
    (FIRST + 1..=FIRST + COUNT).contains(&address.to_bits())
}

/// Linux answers on all of 127.0.0.0/8, others on one address only.
fn has_many() -> bool {
    cfg!(target_os = "linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_keeps_its_address_and_no_other_gets_it() {
        let mut all = Addresses::new(Path::new("/a"));
        let first = all.take("1", None).unwrap();
        let second = all.take("2", None).unwrap();
        assert_ne!(first, second);
        assert!(is_ours(first) && is_ours(second));
        assert_eq!(all.take("1", Some("127.64.9.9")).unwrap(), first);
        // Somebody else has it.
        assert_ne!(all.take("3", Some(&first.to_string())).unwrap(), first);
        all.give_back("1");
        assert_ne!(all.take("4", None).unwrap(), first, "it rests for a while");
        assert_eq!(all.take("5", Some(&first.to_string())).unwrap(), first);
    }

    #[test]
    fn addresses_of_others_are_not_taken_over() {
        let mut all = Addresses::new(Path::new("/a"));
        for before in ["10.0.0.1", "127.0.0.1", "127.64.0.0", "127.64.255.255", "::1", "x", ""] {
            let own = all.take(before, Some(before)).unwrap();
            assert!(is_ours(own), "{before}");
            assert_ne!(own.to_string(), before);
        }
    }

    #[test]
    fn all_addresses_can_be_used_and_no_more() {
        let mut all = Addresses::new(Path::new("/b"));
        for number in 0..COUNT {
            // Searching for the holder is for pods, which are few.
            let own = all.free().unwrap();
            all.holders.insert(own, number.to_string());
        }
        assert_eq!(all.take("one more", None), None);
    }
}
