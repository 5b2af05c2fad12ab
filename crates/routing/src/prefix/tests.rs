use std::collections::{HashMap, HashSet, VecDeque};

use proptest::prelude::*;

use super::{
    lru::{Lru, Touched},
    *,
};

fn part(text: &str) -> Part {
    Part { kept: text.as_bytes().to_vec(), length: text.len() }
}

fn chain(dialect: Dialect, size: usize, text: &str, model: &str, salt: &str) -> Vec<String> {
    let blocks = Blocks { dialect, size, max: 256 };
    let hashes = blocks.chain(&part(text), model, salt.as_bytes());
    hashes.iter().map(|hash| format!("{hash:016x}")).collect()
}

#[test]
fn blocks_hash_to_the_known_values() {
    let digits = "0123456789abcdef".repeat(8);
    for (text, model, salt, want) in [
        ("a".repeat(130), "m", "", &["48f3bb46e2d80a01", "f760c4557fb31a91"][..]),
        ("a".repeat(130), "m", "s", &["0c2ae669b9c6ac3a", "0e6e338f0ef0b084"]),
        (digits, "qwen/Qwen3-32B", "", &["426de3ceb6ca6fce", "a5440673590e01c6"]),
        ("a".repeat(63), "m", "", &[]),
    ] {
        assert_eq!(chain(Dialect::Gaie, 16, &text, model, salt), want, "{model} {salt}");
    }
}

#[test]
fn the_other_dialect_counts_the_last_block_too() {
    let got = chain(Dialect::LlmD, 64, &"a".repeat(260), "m", "");
    assert_eq!(got, ["3f61340d0ed082d6", "e0d1563f94bbe361"]);
    // The end of the last token is zeros.
    assert_eq!(
        chain(Dialect::LlmD, 64, "ab", "m", ""),
        chain(Dialect::LlmD, 64, "ab\0\0", "m", "")
    );
}

#[test]
fn blocks_behind_the_limit_are_ignored() {
    let blocks = Blocks { dialect: Dialect::Gaie, size: 1, max: 2 };
    assert_eq!(blocks.chain(&part("aaaabbbbcccc"), "m", b"").len(), 2);
}

#[test]
fn blocks_larger_than_memory_do_no_harm() {
    let blocks = Blocks { dialect: Dialect::Gaie, size: u32::MAX as usize, max: 256 };
    assert!(blocks.chain(&part("abc"), "m", b"").is_empty());
}

#[test]
fn a_gap_in_one_endpoint_does_not_end_its_match() {
    let index = Index::default();
    index.insert(0, 10, [1, 2].into_iter(), || true);
    index.insert(1, 10, [2, 3].into_iter(), || true);
    let matches = index.matches(&[vec![1, 2, 3]], 2);
    assert_eq!(matches, Matches { all: vec![2, 2], scored: vec![2, 1] });
}

#[test]
fn the_walk_ends_where_nobody_holds_the_hash() {
    let index = Index::default();
    index.insert(0, 10, [2, 3].into_iter(), || true);
    assert_eq!(index.matches(&[vec![1, 2, 3]], 9).all, [0]);
    assert_eq!(index.matches(&[vec![1], vec![2, 3, 4]], 9).all, [2]);
}

#[test]
fn an_endpoint_that_has_gone_gets_nothing_more() {
    let index = Index::default();
    index.insert(0, 10, [1, 2].into_iter(), || true);
    index.clear(0);
    index.insert(0, 10, [1, 2].into_iter(), || false);
    assert_eq!((index.matches(&[vec![1, 2]], 9).all, index.len()), (vec![0], 0));
}

#[test]
fn capacity_below_one_prompt_leaves_only_its_end() {
    let index = Index::default();
    index.insert(0, 2, [1, 2, 3].into_iter(), || true);
    assert_eq!(index.matches(&[vec![2, 3]], 9).all, [2]);
    assert_eq!(index.matches(&[vec![1]], 9).all, [0]);
    assert_eq!(index.len(), 2);
}

proptest! {
    #[test]
    fn the_lru_is_that_of_a_simple_queue(
        capacity in 1_usize..40,
        hashes in proptest::collection::vec(0_u64..60, 0..400),
    ) {
        let mut lru = Lru::new(capacity);
        let mut queue = VecDeque::new();
        for hash in hashes {
            let known = queue.contains(&hash);
            queue.retain(|other| *other != hash);
            queue.push_back(hash);
            let evicted = (queue.len() > capacity).then(|| queue.pop_front()).flatten();
            let want = if known { Touched::Known } else { Touched::Added { evicted } };
            prop_assert_eq!(lru.touch(hash), want);
            prop_assert_eq!(lru.oldest_first(), Vec::from(queue.clone()));
        }
    }

    #[test]
    fn the_index_is_that_of_sets(
        steps in proptest::collection::vec((0_usize..200, proptest::collection::vec(0_u64..30, 0..8), 0_u8..8), 0..60),
        asked in proptest::collection::vec(0_u64..30, 0..12),
    ) {
        let index = Index::default();
        let mut held: HashMap<usize, VecDeque<u64>> = HashMap::new();
        for (slot, hashes, what) in steps {
            if what == 0 {
                index.clear(slot);
                held.remove(&slot);
                continue;
            }
            let own = held.entry(slot).or_default();
            for hash in &hashes {
                own.retain(|other| other != hash);
                own.push_back(*hash);
                if own.len() > 10 {
                    own.pop_front();
                }
            }
            index.insert(slot, 10, hashes.into_iter(), || true);
        }
        let known: HashSet<u64> = held.values().flatten().copied().collect();
        let walked: Vec<u64> = asked.iter().copied().take_while(|hash| known.contains(hash)).collect();
        let matches = index.matches(&[asked], 4);
        for (slot, count) in matches.all.iter().enumerate() {
            let holds = |hash: &&u64| held.get(&slot).is_some_and(|own| own.contains(hash));
            let want = walked.iter().filter(holds).count();
            prop_assert_eq!(*count as usize, want);
            let want = walked.iter().take(4).filter(holds).count();
            prop_assert_eq!(matches.scored[slot] as usize, want);
        }
        prop_assert_eq!(index.len(), held.values().map(VecDeque::len).sum::<usize>());
    }
}
