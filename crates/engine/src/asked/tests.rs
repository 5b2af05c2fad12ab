use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::*;
use crate::{
    domain::{Access, Need},
    fetch::{Documents, Noting, Reader, Selector, Serves},
};

fn asked() -> Asked {
    asked_of(Whose::Anyones)
}

fn asked_of(whose: Whose) -> Asked {
    let kind = Kind::of::<ConfigMap>();
    Asked::new(&[Watch { kind, need: Need::Required, access: Access::Read, whose }])
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("n"), name)
}

fn askers(asked: &Asked, name: &str) -> Vec<String> {
    let found = asked.askers(&Kind::of::<ConfigMap>(), &key(name));
    let mut names: Vec<_> = found.into_iter().map(|key| key.name).collect();
    names.sort();
    names
}

/// Asks for the objects of these names, as one pass.
async fn pass(asked: &Asked, asker: &str, names: &[&str]) {
    let nothing = Documents { objects: Vec::new(), serves: Serves::Everything };
    let (asker, kind) = (key(asker), Kind::of::<ConfigMap>());
    let reader = Noting { reader: &nothing, notes: Asking::new(asked, &asker) };
    for name in names {
        assert!(reader.get(&kind, &key(name)).await.unwrap().is_none());
    }
    reader.notes.done();
}

#[tokio::test]
async fn what_is_missing_wakes_who_has_asked_for_it() {
    let asked = asked();
    pass(&asked, "a", &["x"]).await;
    pass(&asked, "b", &["x", "y"]).await;
    assert_eq!(askers(&asked, "x"), ["a", "b"]);
    assert_eq!(askers(&asked, "y"), ["b"]);
    assert_eq!(askers(&asked, "z"), [""; 0]);
    let elsewhere = ObjectKey::new(Some("m"), "x");
    assert!(asked.askers(&Kind::of::<ConfigMap>(), &elsewhere).is_empty());
    assert!(asked.askers(&Kind::of::<Secret>(), &key("x")).is_empty());
}

#[tokio::test]
async fn only_the_questions_of_the_last_pass_count() {
    let asked = asked();
    pass(&asked, "a", &["x"]).await;
    pass(&asked, "a", &["y"]).await;
    assert_eq!(askers(&asked, "x"), [""; 0]);
    assert_eq!(askers(&asked, "y"), ["a"]);
    asked.forget(&key("a"));
    assert_eq!(askers(&asked, "y"), [""; 0]);
    assert!(asked.lock().askers.is_empty() && asked.lock().questions.is_empty());
}

#[tokio::test]
async fn a_question_counts_before_it_is_answered() {
    let asked = asked();
    let nothing = Documents { objects: Vec::new(), serves: Serves::Everything };
    let (asker, kind, wanted) = (key("a"), Kind::of::<ConfigMap>(), key("x"));
    let reader = Noting { reader: &nothing, notes: Asking::new(&asked, &asker) };
    let answer = reader.get(&kind, &wanted);
    assert_eq!(askers(&asked, "x"), ["a"]);
    drop(answer);
}

#[tokio::test]
async fn who_has_asked_for_all_wants_to_know_of_each() {
    let asked = asked();
    let nothing = Documents { objects: Vec::new(), serves: Serves::Everything };
    let kind = Kind::of::<ConfigMap>();
    for (asker, namespace) in [("a", Some("n")), ("b", None), ("c", Some("m"))] {
        let asker = key(asker);
        let reader = Noting { reader: &nothing, notes: Asking::new(&asked, &asker) };
        reader.list(&kind, namespace, &Selector::default()).await.unwrap();
        reader.notes.done();
    }
    assert_eq!(askers(&asked, "x"), ["a", "b"]);
}

#[tokio::test]
async fn who_has_only_looked_through_all_is_not_woken_by_what_is_named() {
    let asked = asked_of(Whose::Named);
    let nothing = Documents { objects: Vec::new(), serves: Serves::Everything };
    let (asker, kind) = (key("a"), Kind::of::<ConfigMap>());
    let reader = Noting { reader: &nothing, notes: Asking::new(&asked, &asker) };
    reader.list(&kind, Some("n"), &Selector::default()).await.unwrap();
    reader.list_now(&kind, None, &Selector::default()).await.unwrap();
    reader.get(&kind, &key("x")).await.unwrap();
    reader.notes.done();
    assert_eq!(askers(&asked, "x"), ["a"]);
    assert_eq!(askers(&asked, "y"), [""; 0]);
}
