use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;

fn clock() -> Clock {
    Arc::new(Timestamp::now)
}

fn memory() -> Store {
    Store::in_memory(clock()).unwrap()
}

fn key(name: &str) -> Key {
    Key::new(&"/configmaps".into(), "default", name)
}

fn object(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "data": {"k": value}})
}

async fn put(store: &Store, name: &str, value: &str) -> u64 {
    let (key, object) = (key(name), object(name, value));
    let stored = store.write(Mode::Store, move |tx| Ok::<_, ()>(tx.put(&key, object)));
    stored.await.unwrap().unwrap().version()
}

async fn remove(store: &Store, name: &str) -> u64 {
    let key = key(name);
    let removed = store.write(Mode::Store, move |tx| tx.remove(&key).ok_or(()));
    removed.await.unwrap().unwrap()
}

fn names(store: &Store) -> Vec<String> {
    store.read().list("/configmaps", "").map(|(name, _)| name.to_string()).collect()
}

#[test]
fn what_is_read_back_is_what_was_stored() {
    let value = json!({
        "metadata": {"labels": {}, "managedFields": [{"manager": "m"}], "name": "a"},
        "spec": {"float": 0.1 + 0.2, "large": 1.797e308, "small": 5e-324, "whole": u64::MAX},
    });
    let object = Object::new(value.clone(), 7);
    assert_eq!(*object.value(), value);
    assert!(object.has_unprinted() && object.is_stored_as(&value));
    assert_eq!(object.metadata().get("managedFields"), None);
    let shown = object.to_value("v1", "X");
    assert_eq!(shown["metadata"]["resourceVersion"], "7");
    assert_eq!(shown["metadata"].get("labels"), None);
    assert_eq!(shown["spec"], value["spec"]);
}

#[tokio::test]
async fn every_change_has_the_next_version_and_shows_it() {
    let store = memory();
    assert_eq!(put(&store, "a", "1").await, 1);
    assert_eq!(put(&store, "b", "1").await, 2);
    assert_eq!(put(&store, "a", "2").await, 3);
    assert_eq!(remove(&store, "b").await, 4);
    assert_eq!(store.read().version(), 4);
    let found = store.read().get(&key("a")).cloned().unwrap();
    let whole = found.to_value("v1", "ConfigMap");
    assert_eq!(whole["metadata"]["resourceVersion"], "3");
    let mut printed = Vec::new();
    found.print_into(r#""kind":"ConfigMap","apiVersion":"v1","#, 3, &mut printed);
    assert_eq!(serde_json::from_slice::<Value>(&printed).unwrap(), whole);
}

#[tokio::test]
async fn objects_without_metadata_print_as_json() {
    for value in [json!({}), json!({"metadata": {}}), json!({"a": 1, "metadata": {"b": 2}})] {
        let mut printed = Vec::new();
        Object::new(value, 7).print_into("", 8, &mut printed);
        let printed: Value = serde_json::from_slice(&printed).unwrap();
        assert_eq!(printed["metadata"]["resourceVersion"], "8");
    }
}

#[tokio::test]
async fn a_failed_change_leaves_nothing() {
    let store = memory();
    put(&store, "a", "1").await;
    let refused = store.write(Mode::Store, |tx| {
        tx.put(&key("b"), object("b", "1"));
        tx.remove(&key("a"));
        Err::<(), _>("no")
    });
    assert_eq!(refused.await.unwrap(), Err("no"));
    let panicked = store.write::<(), ()>(Mode::Store, |tx| {
        tx.put(&key("c"), object("c", "1"));
        panic!("on purpose")
    });
    assert!(matches!(panicked.await, Err(Error::Panicked)));
    let tried = store.write(Mode::Try, |tx| Ok::<_, ()>(tx.put(&key("d"), object("d", "1"))));
    assert_eq!(tried.await.unwrap().unwrap().version(), 2);
    assert_eq!((names(&store), store.read().version()), (vec!["default/a".to_owned()], 1));
    assert_eq!(put(&store, "e", "1").await, 2);
}

#[tokio::test]
async fn changes_of_one_batch_see_each_other() {
    let store = memory();
    let writers = (0..100).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            let add = store.write(Mode::Store, |tx| {
                let count =
                    tx.get(&key("n")).map_or(0, |found| found.value()["count"].as_u64().unwrap());
                tx.put(&key("n"), json!({"metadata": {"uid": "u"}, "count": count + 1}));
                assert_eq!(tx.list("/configmaps", "default/").len(), 1);
                Ok::<_, ()>(())
            });
            add.await.unwrap().unwrap();
        })
    });
    futures::future::join_all(writers).await;
    assert_eq!(store.read().get(&key("n")).unwrap().value()["count"], 100);
}

#[tokio::test]
async fn a_cursor_sees_every_change_in_order() {
    let store = memory();
    put(&store, "a", "1").await;
    let mut cursor = store.follow(0);
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for at in 0..600 {
                put(&store, &format!("n{}", at % 7), "x").await;
            }
            remove(&store, "a").await
        })
    };
    let mut seen = Vec::new();
    while seen.len() < 602 {
        let found = timeout(Duration::from_secs(10), cursor.next(Some("/configmaps"))).await;
        seen.extend(found.unwrap().unwrap().into_iter().map(|change| change.version));
    }
    let last = writer.await.unwrap();
    assert_eq!(seen, (1..=last).collect::<Vec<_>>());
    assert_eq!(cursor.at(), last);
}

#[tokio::test]
async fn a_cursor_passes_over_other_resources() {
    let store = memory();
    let mut cursor = store.follow(0);
    put(&store, "a", "1").await;
    assert!(cursor.take(Some("/secrets")).unwrap().is_empty());
    assert_eq!(cursor.at(), 1);
    let waited = timeout(Duration::from_millis(20), cursor.next(Some("/secrets"))).await;
    assert!(waited.is_err());
}

#[tokio::test]
async fn older_states_are_read_by_undoing() {
    let store = memory();
    put(&store, "a", "1").await;
    put(&store, "b", "1").await;
    put(&store, "a", "2").await;
    remove(&store, "b").await;
    put(&store, "c", "1").await;
    let at = |version| {
        let found = store.read().list_at("/configmaps", "default/", version).unwrap();
        found
            .into_iter()
            .map(|(name, object)| {
                format!("{name}={}", object.value()["data"]["k"].as_str().unwrap())
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(at(0), Vec::<String>::new());
    assert_eq!(at(2), ["default/a=1", "default/b=1"]);
    assert_eq!(at(3), ["default/a=2", "default/b=1"]);
    assert_eq!(at(5), ["default/a=2", "default/c=1"]);
}

#[tokio::test]
async fn what_is_too_old_is_said_to_be() {
    let time = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
    let shared = time.clone();
    let store = Store::in_memory(Arc::new(move || *shared.lock().unwrap())).unwrap();
    let many = store.write(Mode::Store, |tx| {
        for at in 0..10_010 {
            let name = format!("n{}", at % 3);
            tx.put(&key(&name), object(&name, "x"));
        }
        Ok::<_, ()>(())
    });
    many.await.unwrap().unwrap();
    assert!(store.follow(0).take(None).is_ok(), "all of it is younger than five minutes");
    *time.lock().unwrap() += SignedDuration::from_mins(6);
    put(&store, "late", "x").await;
    let expired = store.follow(5).take(None).unwrap_err();
    assert_eq!(expired, Expired { wanted: 5, oldest: 12 });
    assert!(store.read().list_at("/configmaps", "", 5).is_err());
    assert!(store.follow(11).take(None).is_ok());
}

#[tokio::test]
async fn large_objects_push_old_changes_out() {
    let store = memory();
    let large = "x".repeat(4 << 20);
    for _ in 0..20 {
        put(&store, "a", &large).await;
    }
    assert!(store.follow(0).take(None).is_err());
    assert!(store.follow(10).take(None).is_ok());
}

#[tokio::test]
async fn who_reads_slowly_holds_little_of_what_is_large() {
    let store = memory();
    let large = "x".repeat(1 << 20);
    for _ in 0..20 {
        put(&store, "a", &large).await;
    }
    let mut cursor = store.follow(0);
    let mut seen = 0;
    while seen < 20 {
        let taken = cursor.take(None).unwrap();
        assert!((1..=2).contains(&taken.len()), "{} at once", taken.len());
        seen += taken.len();
    }
    // What nobody wants is passed over all the same.
    let mut elsewhere = store.follow(0);
    assert!(elsewhere.take(Some("/secrets")).unwrap().is_empty());
    assert_eq!(elsewhere.at(), 20);
}

#[tokio::test]
async fn owners_and_uids_are_found() {
    let store = memory();
    put(&store, "owner", "1").await;
    let child = json!({"metadata": {"uid": "c", "ownerReferences": [{"uid": "uid-owner"}]}});
    let stored =
        store.write(Mode::Store, |tx| Ok::<_, ()>(tx.put(&key("child"), child).version())).await;
    assert_eq!(stored.unwrap(), Ok(2));
    let dependents = |uid: &str| store.read().dependents(uid).cloned().collect::<Vec<_>>();
    assert_eq!(dependents("uid-owner"), [key("child")]);
    assert_eq!(store.read().find_uid("uid-owner"), Some(&key("owner")));
    remove(&store, "child").await;
    assert!(dependents("uid-owner").is_empty());
    assert_eq!(store.read().find_uid("c"), None);
}

#[tokio::test]
async fn a_reopened_store_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = Store::open(&path, clock()).unwrap();
    put(&store, "a", "1").await;
    put(&store, "b", "1").await;
    remove(&store, "b").await;
    drop(store);
    let store = reopen(&path);
    assert_eq!((names(&store), store.read().version()), (vec!["default/a".to_owned()], 3));
    assert_eq!(store.read().get(&key("a")).unwrap().version(), 1);
    assert_eq!(store.follow(2).take(None).unwrap_err(), Expired { wanted: 2, oldest: 4 });
    assert!(store.follow(3).take(None).unwrap().is_empty());
    assert_eq!(put(&store, "c", "1").await, 4);
}

/// The writer lets go of the file a moment after the last handle is dropped.
fn reopen(path: &Path) -> Store {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match Store::open(path, clock()) {
            Ok(store) => return store,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_file_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    std::fs::write(&path, "not a store at all").unwrap();
    assert!(matches!(Store::open(&path, clock()), Err(Error::Open { .. })));
}

#[test]
fn a_file_of_a_newer_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let database = redb::Database::create(&path).unwrap();
    let write = database.begin_write().unwrap();
    let meta = redb::TableDefinition::<&str, u64>::new("meta");
    let objects = redb::TableDefinition::<&str, &[u8]>::new("objects");
    write.open_table(meta).unwrap().insert("format", 2).unwrap();
    write.open_table(objects).unwrap();
    write.commit().unwrap();
    drop(database);
    let refused = Store::open(&path, clock());
    assert!(matches!(refused, Err(Error::Format { found: 2, known: 1 })));
}

/// What the first start leaves when it is killed must not keep the second from starting.
#[tokio::test]
async fn a_file_that_was_not_made_whole_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let beside = dir.path().join("store.redb.new");
    for left in [&b""[..], &[0; 4096], b"half of a file"] {
        std::fs::write(&beside, left).unwrap();
        let store = Store::open(&path, clock()).unwrap();
        put(&store, "a", "1").await;
        drop(store);
        assert_eq!(names(&reopen(&path)), ["default/a"]);
        assert!(!beside.exists());
        // It is closed once no writer holds it.
        drop(reopen(&path));
        std::fs::remove_file(&path).unwrap();
    }
}

/// The file as a program leaves it that is killed: marked as in need of repair.
fn unclosed(path: &Path, format: u64) -> Vec<u8> {
    let database = redb::Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    let meta = redb::TableDefinition::<&str, u64>::new("meta");
    let objects = redb::TableDefinition::<&str, &[u8]>::new("objects");
    write.open_table(meta).unwrap().insert("format", format).unwrap();
    write.open_table(objects).unwrap();
    write.commit().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn an_unclosed_file_of_a_newer_program_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for (format, reads) in [(2, false), (1, true)] {
        let left = unclosed(&dir.path().join(format!("made{format}")), format);
        let path = dir.path().join(format!("store{format}"));
        std::fs::write(&path, &left).unwrap();
        let opened = Store::open(&path, clock());
        match opened {
            Ok(_) => assert!(reads),
            Err(Error::Format { found: 2, known: 1 }) => {
                assert_eq!(std::fs::read(&path).unwrap(), left);
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// A store of fifty objects that was closed, one of them written twice and one removed.
async fn closed(path: &Path) -> Vec<u8> {
    let store = Store::open(path, clock()).unwrap();
    for at in 0..50 {
        put(&store, &format!("n{at}"), &format!("{at}").repeat(100)).await;
    }
    put(&store, "n7", "again").await;
    remove(&store, "n8").await;
    assert!(store.close(Duration::from_secs(10)));
    std::fs::read(path).unwrap()
}

/// All that a store holds, as it is printed.
fn contents(store: &Store) -> Vec<(String, Vec<u8>)> {
    let state = store.read();
    let mut all = vec![("version".to_owned(), state.version().to_string().into_bytes())];
    for resource in state.resources() {
        all.extend(state.list(resource, "").map(|(name, object)| {
            let mut printed = Vec::new();
            object.print_into("", object.version(), &mut printed);
            (format!("{resource} {name}"), printed)
        }));
    }
    all.sort();
    all
}

#[tokio::test]
async fn a_damaged_file_is_refused_or_read() {
    let dir = tempfile::tempdir().unwrap();
    let whole = closed(&dir.path().join("store.redb")).await;
    let damaged = dir.path().join("damaged.redb");
    let open = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).unwrap();
        Store::open(&damaged, clock())
    };
    assert!(open(&whole[..whole.len() / 3]).is_err());
    assert!(open(&whole[..100]).is_err());
    // Wherever it is hit, the program must live to say so.
    for at in (0..whole.len()).step_by(whole.len() / 150) {
        let mut bytes = whole.clone();
        let end = (at + 64).min(bytes.len());
        bytes[at..end].fill(0xa5);
        if let Ok(store) = open(&bytes) {
            put(&store, "late", "x").await;
            assert!(store.close(Duration::from_secs(10)));
        }
    }
}

#[tokio::test]
async fn no_single_wrong_byte_is_served_as_if_right() {
    let dir = tempfile::tempdir().unwrap();
    let whole = closed(&dir.path().join("store.redb")).await;
    let damaged = dir.path().join("damaged.redb");
    std::fs::write(&damaged, &whole).unwrap();
    let store = Store::open(&damaged, clock()).unwrap();
    let want = contents(&store);
    assert_eq!(want.len(), 50);
    assert!(store.close(Duration::from_secs(10)));
    // All of the head, its flags in several ways, and a sample of what is in use elsewhere.
    let flags = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0xff].map(|mask| (9, mask));
    let head = (0..320).map(|at| (at, 0x10));
    let used: Vec<_> = (320..whole.len()).filter(|at| whole[*at] != 0).collect();
    let used = used.iter().step_by(used.len() / 150).map(|at| (*at, 0x01));
    let mut refused = 0;
    for (at, mask) in flags.into_iter().chain(head).chain(used) {
        let mut bytes = whole.clone();
        bytes[at] ^= mask;
        std::fs::write(&damaged, &bytes).unwrap();
        match Store::open(&damaged, clock()) {
            Ok(store) => {
                assert!(contents(&store) == want, "byte {at} ^ {mask:#x} is served");
                assert!(store.close(Duration::from_secs(10)));
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
                assert!(std::fs::read(&damaged).unwrap() == bytes, "byte {at} ^ {mask:#x}");
            }
        }
    }
    assert!(refused > 100, "only {refused} were noticed");
}

/// A change that was never finished and one that was damaged later look alike, so neither is refused.
#[tokio::test]
async fn an_unclosed_store_loses_a_damaged_last_change_only_aloud() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = Store::open(&path, clock()).unwrap();
    for at in 0..20 {
        put(&store, &format!("n{at}"), &format!("{at}").repeat(100)).await;
    }
    let (before, first) = (contents(&store), std::fs::read(&path).unwrap());
    put(&store, "n7", "again").await;
    let (after, last) = (contents(&store), std::fs::read(&path).unwrap());
    assert_eq!(first.len(), last.len());
    drop(store);
    let found = |bytes: &[u8]| {
        let damaged = dir.path().join("damaged.redb");
        std::fs::write(&damaged, bytes).unwrap();
        // Of the one before.
        let _ = std::fs::remove_file(dir.path().join("damaged.redb.mark"));
        let (disk, found) = disk::Disk::open(&damaged).ok()?;
        let store = Store::start(disk, None, found.state, clock()).unwrap();
        let found = (contents(&store), found.is_undone);
        assert!(store.close(Duration::from_secs(10)));
        Some(found)
    };
    assert_eq!(found(&last), Some((after.clone(), false)));
    // The slots of the head have checksums of their own, which the repair says nothing of.
    let changed: Vec<_> = (320..last.len()).filter(|at| first[*at] != last[*at]).collect();
    let mut undone = 0;
    for at in changed.iter().step_by((changed.len() / 60).max(1)) {
        let mut bytes = last.clone();
        bytes[*at] ^= 0x01;
        match found(&bytes) {
            Some((contents, true)) => {
                undone += 1;
                assert!(contents == before, "byte {at}");
            }
            Some((contents, false)) => assert!(contents == after, "byte {at}"),
            None => {}
        }
    }
    assert!(undone > 10, "only {undone} were told");
}

/// A closed store must never be taken for a damaged one.
#[tokio::test]
async fn whatever_was_written_a_closed_store_opens_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let mut want = Vec::new();
    for round in 0..12_usize {
        let store = Store::open(&path, clock()).unwrap();
        assert!(round == 0 || contents(&store) == want, "round {round}");
        for at in 0..round * 7 {
            let name = format!("n{}", at * 13 % 40);
            match (at + round) % 5 {
                0 if store.read().get(&key(&name)).is_some() => drop(remove(&store, &name).await),
                some => drop(put(&store, &name, &"x".repeat(some * round * 900)).await),
            }
        }
        want = contents(&store);
        assert!(store.close(Duration::from_secs(10)));
    }
}

/// A writer that dies must take the store with it, or it would look alive for ever.
#[tokio::test]
async fn a_store_whose_file_is_overwritten_while_it_runs_stops_aloud() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let store = Store::open(&path, clock()).unwrap();
    // More than is kept of the file in memory.
    let fill = store.write(Mode::Store, |tx| {
        for at in 0..600 {
            let name = format!("n{at}");
            tx.put(&key(&name), object(&name, &"x".repeat(20_000)));
        }
        Ok::<_, ()>(())
    });
    fill.await.unwrap().unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let nonsense = vec![0xa5; usize::try_from(length).unwrap() - 4096];
    std::os::unix::fs::FileExt::write_all_at(&file, &nonsense, 4096).unwrap();
    let mut last = Ok(());
    for at in 0..600 {
        let (key, object) = (key(&format!("n{at}")), object("x", "y"));
        let write = store.write(Mode::Store, move |tx| Ok::<_, ()>(tx.put(&key, object)));
        last = timeout(Duration::from_secs(10), write).await.unwrap().map(drop);
        if last.is_err() {
            break;
        }
    }
    assert!(matches!(last, Err(Error::Stopped)), "{last:?}");
    timeout(Duration::from_secs(10), store.stopped()).await.unwrap();
    assert!(store.is_stopped());
}

#[test]
fn the_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    drop(Store::open(&path, clock()).unwrap());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

const CHILD: &str = "WINDLASS_TEST_STORE";

/// Writes until it is killed, and says what was acknowledged. Only does so for the test below.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&path, clock()).unwrap();
        for at in 0.. {
            let names = (0..8).map(|part| format!("n{at}-{part}")).collect::<Vec<_>>();
            futures::future::join_all(names.iter().map(|name| put(&store, name, "x"))).await;
            writeln!(std::io::stdout(), "acknowledged {at}").unwrap();
        }
    });
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.redb");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::child_that_writes", "--nocapture"])
        .env(CHILD, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // The harness prints the test's name in front of the first one.
        let Some((_, at)) = line.as_ref().unwrap().split_once("acknowledged ") else { continue };
        acknowledged = at.parse::<u32>().unwrap();
        if acknowledged == 20 {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged >= 20);
    let store = Store::open(&path, clock()).unwrap();
    for at in 0..=acknowledged {
        for part in 0..8 {
            assert!(store.read().get(&key(&format!("n{at}-{part}"))).is_some(), "n{at}-{part}");
        }
    }
    assert!(store.read().version() >= u64::from(acknowledged + 1) * 8);
}
