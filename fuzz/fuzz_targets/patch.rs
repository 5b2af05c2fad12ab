//! Patches, an object on the first line and the patch behind it: no pair is too strange, merging
//! twice is merging once, and what a patch leaves can be read and written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::{json, kind, read, survives, two};
use windlass_local::patch;

fuzz_target!(|data: &[u8]| {
    let Some((target, change)) = two(data) else { return };
    let (Some(target), Some(change)) = (json(target), json(change)) else { return };
    if let Ok(patched) = patch::json(&target, &change) {
        assert!(survives(&patched), "{patched}");
    }
    let mut once = target.clone();
    patch::merge(&mut once, &change);
    let mut twice = once.clone();
    patch::merge(&mut twice, &change);
    assert_eq!(once, twice, "merged twice");
    let Some((resource, typed)) = kind(&target) else { return };
    drop(patch::strategic(&target, &change, typed));
    let Some(target) = read(resource, typed, target) else { return };
    if let Ok(patched) = patch::strategic(&target, &change, typed) {
        assert!(patched.is_object());
        drop(read(resource, typed, patched));
    }
});
