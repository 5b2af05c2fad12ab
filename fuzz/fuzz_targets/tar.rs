//! Archives: any bytes are read to their end or refused, and no name leads elsewhere.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::{signed, stays_below};
use windlass_kit::tar::read::Archive;

fuzz_target!(|data: &[u8]| {
    let bytes = signed(data);
    let mut archive = Archive::new(&*bytes);
    while let Ok(Some(entry)) = archive.next_entry() {
        assert!(stays_below(&entry.name), "{:?}", entry.name);
        let mut piece = [0; 700];
        while archive.read_content(&mut piece).is_ok_and(|count| count > 0) {}
    }
});
