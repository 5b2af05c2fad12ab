//! The addresses of pods: each has one of its own among those of the loopback, as long as it lives.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
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

/// Those of the second may listen at addresses of the first, too.
const LISTENING: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// Before such an address.
const MAPPED: &str = "0000000000000000FFFF0000";
/// A state of the table there.
const LISTENS: &str = "0A";

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

    /// The address that a pod had before, if nobody else has it, else a free one. None at which somebody
    /// listens: another node may have begun nearby, and the programs of its pods are there.
    pub fn take(&mut self, uid: &str, before: Option<&str>) -> Option<Ipv4Addr> {
        if !has_many() {
            return Some(HOST);
        }
        let held = self.holders.iter().find(|(_, holder)| *holder == uid).map(|(own, _)| *own);
        if let Some(own) = held {
            return Some(own);
        }
        let others = LISTENING.iter().flat_map(fs::read_to_string);
        let others = others.flat_map(|table| listening(&table)).collect();
        self.take_beside(&others, uid, before)
    }

    fn take_beside(
        &mut self,
        others: &BTreeSet<Ipv4Addr>,
        uid: &str,
        before: Option<&str>,
    ) -> Option<Ipv4Addr> {
        let is_free = |own: &Ipv4Addr| !self.holders.contains_key(own) && !others.contains(own);
        let before = before.and_then(|text| text.parse().ok());
        let before = before.filter(|own| is_ours(*own) && is_free(own));
        let own = before.or_else(|| self.free(others))?;
        self.holders.insert(own, uid.to_owned());
        Some(own)
    }

    /// Keeps the address of a pod that has not asked for it yet.
    pub fn keep(&mut self, uid: &str, own: &str) {
        if let Some(own) = own.parse().ok().filter(|own| is_ours(*own)) {
            self.holders.entry(own).or_insert_with(|| uid.to_owned());
        }
    }

    pub fn give_back(&mut self, uid: &str) {
        self.holders.retain(|_, holder| holder != uid);
    }

    fn free(&mut self, others: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        for _ in 0..COUNT {
            let own = Ipv4Addr::from_bits(FIRST + 1 + self.next);
            self.next = (self.next + 1) % COUNT;
            if !self.holders.contains_key(&own) && !others.contains(&own) {
                return Some(own);
            }
        }
        None
    }
}

fn is_ours(address: Ipv4Addr) -> bool {
    (FIRST + 1..=FIRST + COUNT).contains(&address.to_bits())
}

/// The addresses at which somebody listens, by the table of the system.
fn listening(table: &str) -> BTreeSet<Ipv4Addr> {
    let address = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (own, _port) = fields.next()?.split_once(':')?;
        let state = fields.nth(1)?;
        // As it lies in memory.
        let own = own.strip_prefix(MAPPED).unwrap_or(own);
        let own = u32::from_str_radix(own, 16).ok()?;
        (state == LISTENS).then(|| Ipv4Addr::from(own.to_ne_bytes()))
    };
    table.lines().filter_map(address).collect()
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
    fn an_address_at_which_somebody_listens_is_passed_over() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n   \
                     0: 0900407F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n   \
                     1: 0A00407F:1F90 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000\n   \
                     2: 0000000000000000FFFF00000B00407F:1F90 00000000000000000000000000000000:0000 0A\n";
        let others = if cfg!(target_endian = "little") { listening(table) } else { return };
        assert_eq!(others, BTreeSet::from([9, 11].map(|last| Ipv4Addr::new(127, 64, 0, last))));
        let mut all = Addresses { holders: BTreeMap::new(), next: 8 };
        let mut take = |uid, before| all.take_beside(&others, uid, before).unwrap().to_string();
        assert_eq!(take("1", None), "127.64.0.10");
        assert_ne!(take("2", Some("127.64.0.9")), "127.64.0.9");

        let socket = std::net::TcpListener::bind(("127.64.255.200", 0)).unwrap();
        let mut all = Addresses { holders: BTreeMap::new(), next: 65479 };
        assert_ne!(all.take("3", Some("127.64.255.200")).unwrap().to_string(), "127.64.255.200");
        assert_ne!(all.take("4", None).unwrap().to_string(), "127.64.255.200");
        drop(socket);
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
            let own = all.free(&BTreeSet::new()).unwrap();
            all.holders.insert(own, number.to_string());
        }
        assert_eq!(all.take("one more", None), None);
    }
}
