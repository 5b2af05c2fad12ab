//! SIGKILL at many instants while several clients write.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::JoinSet,
    time::timeout,
};

use crate::running::{Up, World, client};

const KILLS: u64 = 25;
const WRITERS: u64 = 4;
/// Of each writer. Few, so that they are made, changed and deleted again and again.
const NAMES: u64 = 6;
/// The longest time of writing before a kill.
const SPAN_MICROS: u64 = 100_000;

/// Every start reads the definitions that it brings.
const FASTER: [&str; 1] = ["--no-third-party-kinds"];

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        // The constants of Knuth's MMIX; its low bits are poor.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What an object says; `None` if there is none.
type Told = Option<u64>;

/// What is known of an object from the answers.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    answered: Told,
    /// What was asked for and has had no answer.
    asked: Option<Told>,
}

/// What all writers have been told.
#[derive(Default)]
struct Book {
    objects: BTreeMap<String, Known>,
    namespaces: BTreeMap<String, Known>,
    newest_version: u64,
}

impl Book {
    fn answered(&mut self, version: Option<String>) {
        let version = version.and_then(|version| version.parse().ok()).unwrap_or_default();
        self.newest_version = self.newest_version.max(version);
    }
}

/// Two keys that always say the same: half a write would show.
fn config_map(name: &str, number: u64) -> ConfigMap {
    let both = ["a", "b"].map(|key| (key.to_owned(), number.to_string()));
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(both.into()),
        ..ConfigMap::default()
    }
}

fn number_of(map: &ConfigMap) -> u64 {
    let value = |key: &str| map.data.as_ref().and_then(|data| data.get(key)?.parse().ok());
    let both: [Option<u64>; 2] = ["a", "b"].map(value);
    assert_eq!(both[0], both[1], "half of {:?}", map.metadata);
    both[0].unwrap_or_else(|| panic!("nothing in {:?}", map.metadata))
}

/// Makes, changes and deletes its own objects until the server is gone; says when the first of it is
/// answered.
async fn write(
    client: Client,
    writer: u64,
    mut dice: Dice,
    book: Arc<Mutex<Book>>,
    begun: UnboundedSender<()>,
) {
    let mut first = Some(begun);
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let spaces: Api<Namespace> = Api::all(client);
    let mut number = dice.below(1 << 30);
    loop {
        number += 1;
        let done = match dice.below(12) {
            0 => make_namespace(&spaces, &format!("space-{writer}-{number}"), &book).await,
            _ => {
                let name = format!("map-{writer}-{}", dice.below(NAMES));
                change(&maps, &name, number, dice.below(4) == 0, &book).await
            }
        };
        if done.is_err() {
            return;
        }
        drop(first.take());
    }
}

async fn change(
    maps: &Api<ConfigMap>,
    name: &str,
    number: u64,
    delete: bool,
    book: &Mutex<Book>,
) -> kube::Result<()> {
    let known = book.lock().unwrap().objects.get(name).copied().unwrap_or_default();
    let wanted = (!(delete && known.answered.is_some())).then_some(number);
    let asked = Known { asked: Some(wanted), ..known };
    book.lock().unwrap().objects.insert(name.to_owned(), asked);
    let map = config_map(name, number);
    let version = match (known.answered, wanted) {
        (_, None) => {
            maps.delete(name, &DeleteParams::default()).await?;
            None
        }
        (None, _) => maps.create(&PostParams::default(), &map).await?.resource_version(),
        (Some(_), _) => maps.replace(name, &PostParams::default(), &map).await?.resource_version(),
    };
    let mut book = book.lock().unwrap();
    book.objects.insert(name.to_owned(), Known { answered: wanted, asked: None });
    book.answered(version);
    Ok(())
}

async fn make_namespace(
    spaces: &Api<Namespace>,
    name: &str,
    book: &Mutex<Book>,
) -> kube::Result<()> {
    let asked = Known { answered: None, asked: Some(Some(0)) };
    book.lock().unwrap().namespaces.insert(name.to_owned(), asked);
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let space = Namespace { metadata, ..Namespace::default() };
    let made = spaces.create(&PostParams::default(), &space).await?;
    let mut book = book.lock().unwrap();
    book.namespaces.insert(name.to_owned(), Known { answered: Some(0), asked: None });
    book.answered(made.resource_version());
    Ok(())
}

/// What is there is what was answered, or what was asked for when nobody answered any more.
fn settle(known: &mut BTreeMap<String, Known>, found: &BTreeMap<String, u64>) {
    let strange: Vec<_> = found.keys().filter(|name| !known.contains_key(*name)).collect();
    assert!(strange.is_empty(), "nobody asked for {strange:?}");
    for (name, known) in known {
        let there = found.get(name).copied();
        let fits = there == known.answered || Some(there) == known.asked;
        assert!(fits, "{name}: {there:?} is there, {known:?}");
        *known = Known { answered: there, asked: None };
    }
}

async fn check(up: &Up, book: &Mutex<Book>) {
    let client = up.client().await;
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let maps = maps.list(&ListParams::default()).await.unwrap();
    let version: u64 = maps.metadata.resource_version.unwrap().parse().unwrap();
    let ours = maps.items.iter().filter(|map| map.name_any().starts_with("map-"));
    let maps = ours.map(|map| (map.name_any(), number_of(map))).collect();
    let spaces = names::<Namespace>(&client).await;
    let spaces = spaces.into_iter().map(|(_, name)| name).filter(|name| name.starts_with("space-"));
    let spaces: BTreeMap<String, u64> = spaces.map(|name| (name, 0)).collect();
    // What comes with a namespace comes in the same change.
    let accounts = names::<ServiceAccount>(&client).await;
    let authorities = names::<ConfigMap>(&client).await;
    for space in spaces.keys() {
        assert!(accounts.contains(&(space.clone(), "default".into())), "no account in {space}");
        let authority = (space.clone(), "kube-root-ca.crt".into());
        assert!(authorities.contains(&authority), "no authority in {space}");
    }
    let mut book = book.lock().unwrap();
    settle(&mut book.objects, &maps);
    settle(&mut book.namespaces, &spaces);
    assert!(version >= book.newest_version, "{version} after {}", book.newest_version);
}

/// Namespace and name of all objects of a kind.
async fn names<K>(client: &Client) -> Vec<(String, String)>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    let name = |object: &K| (object.namespace().unwrap_or_default(), object.name_any());
    all.items.iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_a_kill_at_any_instant() {
    let world = World::new();
    let book = Arc::new(Mutex::new(Book::default()));
    let mut dice = Dice(7);
    for round in 0..KILLS {
        let up = world.up(&FASTER);
        check(&up, &book).await;
        let (begun, mut waiting) = unbounded_channel::<()>();
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            // A second try would make an answer of what was none.
            let client = client(&up.kubeconfig(), |config| config.default_retry = false).await;
            let dice = Dice(1000 * round + writer);
            writers.spawn(write(client, writer, dice, book.clone(), begun.clone()));
        }
        drop(begun);
        // All have let go of it: each has had its first answer.
        assert_eq!(waiting.recv().await, None);
        let span = Duration::from_micros(dice.below(SPAN_MICROS));
        let ended = timeout(span, writers.join_next()).await;
        assert!(ended.is_err(), "a writer ended early: {}", up.log());
        up.kill();
        writers.join_all().await;
    }
    let up = world.up(&FASTER);
    check(&up, &book).await;
    up.terminate();
}

#[test]
fn what_is_lost_or_was_never_asked_for_is_noticed() {
    let fits = |known: Known, found: Told| {
        let mut known = BTreeMap::from([("a".to_owned(), known)]);
        let found: BTreeMap<_, _> =
            found.map(|number| ("a".to_owned(), number)).into_iter().collect();
        catch_unwind(AssertUnwindSafe(|| settle(&mut known, &found))).is_ok()
    };
    for (answered, asked, found, want) in [
        (Some(1), None, Some(1), true),
        (Some(1), None, None, false),
        (Some(2), None, Some(1), false),
        (None, None, Some(1), false),
        (Some(1), Some(Some(2)), Some(1), true),
        (Some(1), Some(Some(2)), Some(2), true),
        (Some(1), Some(Some(2)), None, false),
        (Some(1), Some(None), None, true),
        (None, Some(Some(1)), None, true),
    ] {
        let known = Known { answered, asked };
        assert_eq!(fits(known, found), want, "{known:?} {found:?}");
    }
}
