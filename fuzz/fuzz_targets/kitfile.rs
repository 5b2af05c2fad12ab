//! Kitfiles, references and ignore files: read or refused; what was read survives being written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::stays_below;
use windlass_kit::{Kitfile, Reference, ignore::Ignore};

fuzz_target!(|data: &[u8]| {
    drop(Kitfile::from_json(data));
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(reference) = Reference::parse(text) {
        assert_eq!(Reference::parse(&reference.to_string()).ok(), Some(reference));
    }
    if let Ok(ignore) = Ignore::parse(text) {
        ignore.has("a/b.txt");
    }
    let Ok(kitfile) = Kitfile::from_yaml(text) else { return };
    for entry in kitfile.entries().unwrap_or_default() {
        assert!(stays_below(entry.path.as_str()), "{:?}", entry.path);
    }
    if let Ok(json) = kitfile.to_json() {
        let again = Kitfile::from_json(&json).expect("its own JSON is not read");
        assert_eq!(again.to_json().ok(), Some(json), "as JSON");
    }
    if let Ok(yaml) = kitfile.to_yaml() {
        let again = Kitfile::from_yaml(&yaml).expect("its own YAML is not read");
        assert_eq!(again.to_yaml().ok(), Some(yaml), "as YAML");
    }
});
