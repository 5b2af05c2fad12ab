use either::Either;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use kube::ResourceExt;

use super::*;

fn map(name: &str, uid: &str, version: u64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("ns".into()),
            name: Some(name.into()),
            uid: Some(uid.into()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn known(cache: &Cache<ConfigMap>) -> Vec<(String, u64)> {
    cache.all().iter().map(|map| (map.name_any(), version(&**map))).collect()
}

fn seen(cache: &Cache<ConfigMap>, event: Event<ConfigMap>) {
    let guard = |object| DeserializeGuard(Ok(object));
    cache.see(match event {
        Event::Apply(object) => Event::Apply(guard(object)),
        Event::Delete(object) => Event::Delete(guard(object)),
        Event::InitApply(object) => Event::InitApply(guard(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    });
}

#[test]
fn the_watch_does_not_bring_back_what_was_before_a_write() {
    let cache = Cache::default();
    cache.note(map("a", "1", 7));
    seen(&cache, Event::Apply(map("a", "1", 5)));
    assert_eq!(known(&cache), [("a".into(), 7)]);
    seen(&cache, Event::Apply(map("a", "1", 8)));
    assert_eq!(known(&cache), [("a".into(), 8)]);
}

#[test]
fn what_a_controller_deleted_stays_away_but_not_its_successor() {
    let cache = Cache::default();
    let object = map("a", "1", 7);
    cache.note(object.clone());
    cache.note_deletion(&object, Either::<_, ()>::Right(()));
    seen(&cache, Event::Apply(map("a", "1", 8)));
    assert_eq!(known(&cache), []);
    cache.note(map("a", "2", 10));
    seen(&cache, Event::Delete(map("a", "1", 9)));
    assert_eq!(known(&cache), [("a".into(), 10)]);
}

#[test]
fn an_object_on_its_way_out_stays_until_the_watch_says_so() {
    let cache = Cache::default();
    let object = map("a", "1", 7);
    cache.note(object.clone());
    let mut leaving = map("a", "1", 8);
    leaving.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
    cache.note_deletion(&object, Either::<_, ()>::Left(leaving));
    assert_eq!(known(&cache), [("a".into(), 8)]);
    seen(&cache, Event::Delete(map("a", "1", 9)));
    assert_eq!(known(&cache), []);
}

#[test]
fn an_answer_that_comes_after_the_end_brings_nothing_back() {
    let cache = Cache::default();
    cache.note(map("a", "1", 7));
    seen(&cache, Event::Delete(map("a", "1", 9)));
    cache.note(map("a", "1", 8));
    assert_eq!(known(&cache), []);
    for uid in 0..2 * Gone::MOST {
        cache.forget(&map("b", &uid.to_string(), 10));
    }
    assert_eq!(cache.read(|objects| objects.gone.uids.len()), Gone::MOST);
}

#[test]
fn a_new_list_ends_what_it_does_not_have() {
    let cache = Cache::default();
    seen(&cache, Event::Init);
    seen(&cache, Event::InitApply(map("a", "1", 1)));
    seen(&cache, Event::InitApply(map("b", "2", 2)));
    seen(&cache, Event::InitDone);
    seen(&cache, Event::Init);
    seen(&cache, Event::InitApply(map("b", "2", 2)));
    cache.note(map("c", "3", 9));
    seen(&cache, Event::InitDone);
    assert_eq!(known(&cache), [("b".into(), 2), ("c".into(), 9)]);
}

#[tokio::test]
async fn both_states_of_a_change_are_told() {
    let cache = Cache::default();
    let queue = Arc::new(Queue::default());
    cache.feed(&queue, |map: &ConfigMap| {
        map.metadata.labels.iter().flatten().map(|(name, _)| Key::new("", name)).collect::<Vec<_>>()
    });
    let labelled = |label: &str, version| {
        let mut map = map("a", "1", version);
        map.metadata.labels = Some([(label.to_owned(), String::new())].into());
        map
    };
    cache.note(labelled("old", 1));
    assert_eq!(queue.next().await, Key::new("", "old"));
    queue.done(&Key::new("", "old"), None);
    cache.note(labelled("young", 2));
    assert_eq!(queue.next().await, Key::new("", "old"));
    assert_eq!(queue.next().await, Key::new("", "young"));
}
