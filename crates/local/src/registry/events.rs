//! The two views of events: stored in the core form, shown in the newer one on request.

use serde_json::Value;

/// Core name and the name in `events.k8s.io`, for what means the same.
const PAIRS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Texts that the core form prints even when they are empty, and the newer one does not.
const PRINTED: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// From the stored form to that of `events.k8s.io`.
pub(super) fn to_new(event: &mut Value) {
    if let Some(map) = event.as_object_mut() {
        map.retain(|name, value| *value != "" || !PRINTED.contains(&name.as_str()));
    }
    rename(event, PAIRS.into_iter());
}

/// From that of `events.k8s.io` to the stored form.
pub(super) fn to_core(event: &mut Value) {
    rename(event, PAIRS.into_iter().map(|(core, new)| (new, core)));
    if let Some(map) = event.as_object_mut() {
        for name in PRINTED {
            map.entry(name).or_insert_with(|| "".into());
        }
    }
}

fn rename<'a>(event: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(map) = event.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = map.remove(from) {
            map.insert(to.into(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_views_hold_the_same() {
        let core = json!({
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod"},
            "message": "m",
            "count": 2,
            "source": {"component": "c"},
            "reason": "R",
            "reportingComponent": "",
            "reportingInstance": "i",
        });
        let mut event = core.clone();
        to_new(&mut event);
        assert_eq!(event["regarding"]["kind"], "Pod");
        assert_eq!(event["note"], "m");
        assert!(event.get("message").is_none());
        assert!(event.get("reportingController").is_none());
        to_core(&mut event);
        assert_eq!(event, core);
    }
}
