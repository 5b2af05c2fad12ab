//! A manifest on the first line and its config behind it: read or refused, and no layer leads
//! elsewhere.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::{stays_below, two};
use windlass_kit::manifest::{Manifest, read};

fuzz_target!(|data: &[u8]| {
    let Some((manifest, config)) = two(data) else { return };
    let Ok(manifest) = serde_json::from_slice::<Manifest>(manifest) else { return };
    let Ok(contents) = read::contents(&manifest, config) else { return };
    for found in contents.layers {
        for path in [&found.expected.path, &found.expected.under] {
            assert!(stays_below(path), "{path:?}");
        }
    }
});
