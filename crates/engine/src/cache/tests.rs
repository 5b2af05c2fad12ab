use serde_json::json;

use super::*;

const LABEL: &str = "example.com/parent";

fn kind() -> Kind {
    Kind::of::<k8s_openapi::api::core::v1::ConfigMap>()
}

fn object(name: &str, uid: &str, version: u64, parent: &str) -> Arc<Object> {
    let value = json!({ "metadata": { "name": name, "namespace": "ns", "uid": uid,
        "resourceVersion": version.to_string(), "labels": { LABEL: parent } } });
    Arc::new(Object::from_value(value).unwrap())
}

fn cache() -> Cache {
    let cache = Cache::new(LABEL, Vec::new());
    cache.open(&kind());
    cache.listed(&kind());
    cache
}

fn names(cache: &Cache, parent: &str) -> Vec<String> {
    let found = cache.list(&kind(), Some("ns"), &Selector::label(LABEL, parent)).unwrap();
    found.iter().map(|object| object.key.name.clone()).collect()
}

#[test]
fn a_kind_that_is_not_watched_is_not_answered() {
    let cache = Cache::new(LABEL, Vec::new());
    assert!(cache.get(&kind(), &ObjectKey::new(Some("ns"), "a")).is_none());
    assert!(cache.list(&kind(), None, &Selector::default()).is_none());
}

/// What is not there yet may exist, so nothing may be concluded from its absence.
#[test]
fn a_kind_is_answered_once_it_has_been_listed() {
    let cache = Cache::new(LABEL, Vec::new());
    let (key, all) = (ObjectKey::new(Some("ns"), "a"), Selector::default());
    for _ in ["at first", "after it was gone for a while"] {
        cache.open(&kind());
        cache.put(&kind(), object("a", "u", 1, "p"));
        assert!(cache.get(&kind(), &key).is_none());
        assert!(cache.list(&kind(), None, &all).is_none());
        assert!(cache.seen(&kind(), &key).is_some());
        assert_eq!(cache.list_seen(&kind(), None, &all).len(), 1);
        cache.listed(&kind());
        assert!(cache.get(&kind(), &key).flatten().is_some());
        assert!(cache.get(&kind(), &ObjectKey::new(Some("ns"), "b")).is_some_and(|b| b.is_none()));
        assert_eq!(cache.list(&kind(), None, &all).map(|found| found.len()), Some(1));
        cache.close(&kind());
        cache.listed(&kind());
        assert!(cache.get(&kind(), &key).is_none());
    }
}

#[test]
fn an_older_version_does_not_replace_a_newer_one() {
    let cache = cache();
    assert_eq!(cache.put(&kind(), object("a", "u", 9, "p")), Change::New);
    assert_eq!(cache.put(&kind(), object("a", "u", 10, "p")), Change::New);
    assert_eq!(cache.put(&kind(), object("a", "u", 10, "p")), Change::Known);
    assert_eq!(cache.put(&kind(), object("a", "u", 9, "p")), Change::Known);
    let found = cache.get(&kind(), &ObjectKey::new(Some("ns"), "a")).flatten().unwrap();
    assert_eq!(found.resource_version, "10");
}

#[test]
fn objects_are_listed_by_parent_and_follow_their_label() {
    let cache = cache();
    cache.put(&kind(), object("b", "u1", 1, "p"));
    cache.put(&kind(), object("a", "u2", 2, "p"));
    cache.put(&kind(), object("c", "u3", 3, "q"));
    assert_eq!(names(&cache, "p"), ["a", "b"]);
    cache.put(&kind(), object("b", "u1", 4, "q"));
    assert_eq!(names(&cache, "p"), ["a"]);
    assert_eq!(names(&cache, "q"), ["b", "c"]);
}

#[test]
fn a_late_delete_does_not_remove_the_successor() {
    let cache = cache();
    cache.put(&kind(), object("a", "new", 5, "p"));
    cache.remove(&kind(), object("a", "old", 4, "p"));
    assert_eq!(names(&cache, "p"), ["a"]);
    cache.remove(&kind(), object("a", "new", 6, "p"));
    assert!(names(&cache, "p").is_empty());
}

#[test]
fn a_late_event_about_the_predecessor_does_not_replace_the_successor() {
    let cache = cache();
    cache.put(&kind(), object("a", "new", 9, "p"));
    assert_eq!(cache.put(&kind(), object("a", "old", 7, "p")), Change::Known);
}

#[test]
fn an_answer_that_comes_after_the_end_does_not_bring_the_object_back() {
    let cache = cache();
    cache.remove(&kind(), object("a", "u", 6, "p"));
    assert_eq!(cache.put(&kind(), object("a", "u", 5, "p")), Change::Known);
    assert!(names(&cache, "p").is_empty());
    assert_eq!(cache.put(&kind(), object("a", "successor", 7, "p")), Change::New);
}

#[test]
fn an_object_that_lost_its_label_for_a_while_comes_back() {
    let cache = cache();
    cache.put(&kind(), object("a", "u", 5, "p"));
    cache.remove(&kind(), object("a", "u", 6, "p"));
    assert_eq!(cache.put(&kind(), object("a", "u", 7, "p")), Change::New);
    assert_eq!(names(&cache, "p"), ["a"]);
}

#[test]
fn an_object_is_found_by_its_name_and_by_what_stands_for_it_in_labels() {
    let cache = cache();
    let long = "x".repeat(80);
    cache.put(&kind(), object("a", "u1", 1, "p"));
    cache.put(&kind(), object(&long, "u2", 2, "p"));
    let find =
        |namespace, label: &str| cache.named(&kind(), Some(namespace), label).map(|key| key.name);
    assert_eq!(find("ns", "a"), Some("a".to_owned()));
    assert_eq!(find("ns", &owner_label(&long)), Some(long.clone()));
    assert_eq!(find("other", &owner_label(&long)), None);
    assert_eq!(find("ns", "b"), None);
}

#[test]
fn a_new_listing_forgets_what_has_gone_but_not_what_was_written_meanwhile() {
    let cache = cache();
    cache.put(&kind(), object("gone", "u1", 1, "p"));
    cache.put(&kind(), object("stays", "u2", 2, "p"));
    let before = cache.versions(&kind());
    cache.put(&kind(), object("written", "u3", 3, "p"));
    let listed = HashSet::from([ObjectKey::new(Some("ns"), "stays")]);
    let gone = cache.retain(&kind(), None, &listed, &before);
    assert_eq!(gone.iter().map(|o| o.key.name.as_str()).collect::<Vec<_>>(), ["gone"]);
    assert_eq!(names(&cache, "p"), ["stays", "written"]);
}

#[test]
fn a_listing_of_one_namespace_leaves_the_others() {
    let cache = cache();
    cache.put(&kind(), object("a", "u1", 1, "p"));
    let gone = cache.retain(&kind(), Some("other"), &HashSet::new(), &cache.versions(&kind()));
    assert!(gone.is_empty());
}

#[test]
fn a_listing_is_believed_even_if_it_is_older_but_not_against_a_write_since() {
    let cache = cache();
    cache.put(&kind(), object("restored", "u1", 90, "p"));
    cache.put(&kind(), object("written", "u2", 91, "p"));
    let before = cache.versions(&kind());
    cache.put(&kind(), object("written", "u2", 95, "p"));
    assert_eq!(cache.put_listed(&kind(), object("restored", "u1", 40, "p"), &before), Change::New);
    assert_eq!(cache.put_listed(&kind(), object("written", "u2", 91, "p"), &before), Change::Known);
}

#[test]
fn nothing_is_known_of_namespaces_that_are_not_watched() {
    let cache = Cache::new(LABEL, vec!["ns".to_owned()]);
    cache.open(&kind());
    cache.listed(&kind());
    assert!(cache.get(&kind(), &ObjectKey::new(Some("ns"), "a")).is_some());
    assert!(cache.get(&kind(), &ObjectKey::new(Some("other"), "a")).is_none());
    assert!(cache.list(&kind(), Some("other"), &Selector::default()).is_none());
}
