use super::*;

fn entry(manager: &str, operation: &str, fields: Value) -> Value {
    json!({ "manager": manager, "operation": operation, "apiVersion": "v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields })
}

fn object(entries: &[Value]) -> Value {
    json!({ "metadata": { "managedFields": entries } })
}

#[test]
fn what_a_predecessor_held_becomes_ours() {
    let theirs = entry("manager", "Update", json!({ "f:data": { "f:a": {}, "f:b": {} } }));
    let others = entry("kubectl", "Update", json!({ "f:data": { "f:c": {} } }));
    let want = entry("us", "Apply", json!({ "f:data": { "f:a": {}, "f:b": {} } }));
    let live = object(&[theirs.clone(), others.clone()]);
    assert_eq!(inherited(&live, "us", &["manager"]), Some(vec![others.clone(), want]));

    let ours = entry("us", "Apply", json!({ "f:data": { ".": {}, "f:d": {} } }));
    let all = json!({ "f:data": { ".": {}, "f:a": {}, "f:b": {}, "f:d": {} } });
    let live = object(&[ours, theirs]);
    assert_eq!(inherited(&live, "us", &["manager"]), Some(vec![entry("us", "Apply", all)]));
}

#[test]
fn nothing_changes_hands_without_a_predecessor() {
    let mut status = entry("manager", "Update", json!({ "f:status": {} }));
    status["subresource"] = "status".into();
    for entries in [
        vec![],
        vec![entry("us", "Apply", json!({}))],
        vec![entry("kubectl", "Update", json!({}))],
        vec![entry("manager", "Apply", json!({}))],
        vec![status],
    ] {
        assert_eq!(inherited(&object(&entries), "us", &["manager"]), None, "{entries:?}");
    }
    assert_eq!(inherited(&json!({}), "us", &["manager"]), None);
}
