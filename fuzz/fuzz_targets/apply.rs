//! Server-side apply, what is there on the first line and what is wanted behind it: no pair is too
//! strange, applying twice is applying once, and the outcome is of its kind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::{TIME, json, kind, read, two};
use windlass_local::apply::{Request, Reset, Update, apply, update};

fuzz_target!(|data: &[u8]| {
    let Some((live, config)) = two(data) else { return };
    let (Some(live), Some(config)) = (json(live), json(config)) else { return };
    let Some((resource, typed)) = kind(&config) else { return };
    let version = resource.api_version();
    let request = Request {
        live: None,
        owners: None,
        config: &config,
        typed,
        manager: "applier",
        subresource: None,
        api_version: &version,
        force: true,
        time: TIME,
        reset: Reset::Nothing,
    };
    let writer = Update {
        typed,
        manager: "writer",
        subresource: None,
        api_version: &version,
        time: TIME,
        reset: Reset::Nothing,
    };
    // What was never checked is too strange for no one.
    drop(apply(Request { live: Some(&live), manager: "kubectl", ..request }));
    drop(update(writer, Some(&live), config.clone()));
    let Some(live) = read(resource, typed, live) else { return };
    let live = update(writer, None, live);
    drop(apply(Request { live: Some(&live), force: false, ..request }));
    let Ok(once) = apply(Request { live: Some(&live), ..request }) else { return };
    // It is read by its kind before it is stored.
    let Some(once) = read(resource, typed, once) else { return };
    let twice = apply(Request { live: Some(&once), ..request }).expect("applied once, not twice");
    let twice = read(resource, typed, twice).expect("of its kind once, not twice");
    assert_eq!(once, twice, "applied twice");
});
