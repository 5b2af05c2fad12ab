use serde_json::json;

use super::*;
use crate::apply::scale::{Paths, to_parent, to_scale};

fn paths() -> Paths {
    let path = ["spec", "replicas"].map(str::to_owned).to_vec();
    [("apps/v1".to_owned(), Some(path)), ("apps/v0".to_owned(), None)].into()
}

fn entry_of(manager: &str, operation: &str, fields: Value, time: Option<&str>) -> Value {
    let mut entry = json!({
        "manager": manager, "operation": operation, "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    });
    if let Some(time) = time {
        entry["time"] = json!(time);
    }
    entry
}

const TIME: Option<&str> = Some("2026-01-01T00:00:01Z");

#[test]
fn only_owners_of_the_number_own_the_scale() {
    let number = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    let parent = json!([
        entry_of("a", "Apply", number, TIME),
        entry_of("b", "Update", json!({"f:spec": {"f:paused": {}}}), TIME),
    ]);
    let scale = to_scale(Some(&parent), &paths()).unwrap();
    assert_eq!(
        scale,
        json!([{
            "manager": "a", "operation": "Apply", "apiVersion": "autoscaling/v1", "time": TIME,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }])
    );
    assert_eq!(to_scale(None, &paths()), None);
    // Who applies keeps the entry as it was.
    assert_eq!(to_parent(Some(&parent), Some(&scale), &paths(), "apps/v1"), Some(parent));
}

#[test]
fn a_new_owner_of_the_scale_has_no_time_and_the_old_one_keeps_the_rest() {
    let number = json!({"f:spec": {"f:replicas": {}}});
    let both = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    let parent = json!([entry_of("a", "Update", both, TIME)]);
    let mut scale = entry_of("b", "Update", number.clone(), TIME);
    scale["apiVersion"] = json!("autoscaling/v1");
    scale["subresource"] = json!("scale");
    let mut gained = entry_of("b", "Update", number, None);
    gained["subresource"] = json!("scale");
    let rest = entry_of("a", "Update", json!({"f:spec": {"f:paused": {}}}), TIME);
    let found = to_parent(Some(&parent), Some(&json!([scale])), &paths(), "apps/v1");
    assert_eq!(found, Some(json!([gained, rest])));
}

#[test]
fn entries_of_unknown_versions_go_and_those_without_a_scale_stay() {
    let [mut unknown, mut without] =
        [(); 2].map(|()| entry_of("a", "Update", json!({"f:x": {}}), TIME));
    unknown["apiVersion"] = json!("apps/v9");
    without["apiVersion"] = json!("apps/v0");
    let parent = json!([unknown, without]);
    assert_eq!(to_parent(Some(&parent), None, &paths(), "apps/v1"), Some(json!([without])));
}
