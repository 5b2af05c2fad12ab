//! What is not sent again after a kill.

use std::{
    fs,
    hash::{BuildHasher, Hasher},
};

use crate::{
    cut::Between,
    front::Front,
    hub::{COMMIT, Hub},
    server::Server,
    wait,
    world::World,
};

pub(crate) const SIZE: usize = 4 << 20;
const CHUNK: u64 = 64 << 10;

/// Nothing that repeats, so that no two parts of it could be taken for each other.
pub(crate) fn weights() -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..SIZE).map(|_| next()).collect()
}

pub(crate) fn large() -> World {
    let world = World::new();
    world.write("large/model.bin", &weights());
    world.write("large/Kitfile", b"model: {path: model.bin}\n");
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn k23_a_push_goes_on_from_the_last_part_that_was_taken() {
    let world = large();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/large:v1", front.address);
    world.kit(&["pack", "large", "-t", &name]).well();
    front.seen.lock().unwrap().hold_after = Some(30);
    let push = ["push", "--plain-http", "--chunk-size", "64KiB", "--concurrency=1", &name];
    let running = world.begin(&push);
    let uploads = world.path("kitops/windlass/uploads");
    wait::until("the parts before the one that is held", async || {
        let begun = fs::read_dir(&uploads).into_iter().flatten().flatten();
        let begun = begun.filter_map(|file| fs::read_to_string(file.path()).ok());
        let reached = format!("\"offset\":{}", 30 * CHUNK);
        let parts = front.seen.lock().unwrap().parts;
        match { begun }.any(|text| text.contains(&reached)) {
            true => Ok(()),
            false => Err(format!("{parts} parts")),
        }
    })
    .await;
    running.kill();
    front.seen.lock().unwrap().hold_after = None;
    let pushed = world.kit(&push).well();
    assert!(pushed.lines().last().unwrap().starts_with("Pushed sha256:"));
    let taken = front.seen.lock().unwrap().taken;
    // The layer is a little larger than its file, and the config is a blob too.
    let whole = SIZE as u64 + 8192;
    assert!(taken >= SIZE as u64 && taken <= whole + CHUNK, "{taken} of {whole}");
}

/// Of one push of `large` that is killed when so many bytes have gone, and of the one after it, together.
async fn sent_with_a_kill(world: &World, at: u64, push: &[&str]) -> u64 {
    let server = Server::start(&world.path(&format!("registry-{at}")), &[], "");
    let between = Between::start(&server.address);
    let name = format!("{}/org/large:v1", between.address);
    let push: Vec<&str> =
        push.iter().map(|word| if *word == "NAME" { name.as_str() } else { *word }).collect();
    if push[0] == "push" {
        world.kit(&["pack", "large", "-t", &name]).well();
    }
    between.seen.lock().unwrap().hold_at = Some(at);
    let running = world.begin(&push);
    wait::until("the byte at which it is killed", async || {
        let sent = between.seen.lock().unwrap().sent;
        if sent == at { Ok(()) } else { Err(format!("{sent} of {at}")) }
    })
    .await;
    running.kill();
    between.seen.lock().unwrap().hold_at = None;
    assert!(world.kit(&push).well().lines().last().unwrap().starts_with("Pushed sha256:"));
    // By somebody who has nothing of it.
    world.kit(&["unpack", &name, "--config=else", "--plain-http", "-d", "out"]).well();
    assert!(world.files("out") == world.files("large"), "at {at}");
    between.seen.lock().unwrap().sent
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_byte_a_push_is_killed_at_no_more_than_a_part_is_sent_again() {
    const PART: u64 = 1 << 20;
    let world = large();
    // Four parts, so by far too few to count as large where a registry does not say that it takes parts.
    let common = ["--plain-http", "--chunk-size=1MiB", "--concurrency=1"];
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    for push in [&["push", "NAME"][..], &["pack", "large", "--push", "-t", "NAME"]] {
        let push = [push, &common].concat();
        for _ in 0..3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = 4096 + random % (SIZE as u64 - 4096);
            // Heads of requests, and what a layer is larger than its file.
            let whole = SIZE as u64 + (32 << 10);
            let sent = sent_with_a_kill(&world, at, &push).await;
            assert!(
                sent >= SIZE as u64 && sent <= whole + PART,
                "{sent} of {whole}, {at}: {push:?}"
            );
            fs::remove_dir_all(world.path("kitops")).unwrap();
            fs::remove_dir_all(world.path("out")).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_goes_on_from_the_last_byte_that_came() {
    let world = large();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/large:v1", front.address);
    world.kit(&["pack", "large", "--push", "--plain-http", "-t", &name]).well();
    front.seen.lock().unwrap().send_only = Some(SIZE / 2);
    let pull = ["pull", "--plain-http", &name];
    let running = world.begin(&pull);
    let parts = world.path("kitops/storage/ingest");
    wait::until("half of the layer", async || {
        let parts = fs::read_dir(&parts).into_iter().flatten().flatten();
        let sizes = parts.filter_map(|part| Some(part.metadata().ok()?.len()));
        let sizes: Vec<u64> = sizes.collect();
        match sizes.contains(&(SIZE as u64 / 2)) {
            true => Ok(()),
            false => Err(format!("{sizes:?}")),
        }
    })
    .await;
    running.kill();
    let mut seen = front.seen.lock().unwrap();
    (seen.send_only, seen.ranges) = (None, Vec::new());
    drop(seen);
    world.kit(&pull).well();
    world.kit(&["unpack", &name, "-d", "out"]).well();
    assert_eq!(world.files("out"), world.files("large"));
    let asked = front.seen.lock().unwrap().ranges.clone();
    assert!(asked.contains(&Some(format!("bytes={}-", SIZE / 2))), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_goes_on_from_the_last_byte_that_came() {
    let world = World::new();
    let hub = Hub::start(vec![("model.gguf", weights()), ("config.json", b"{}".to_vec())]).await;
    hub.known.lock().unwrap().send_only = Some(SIZE / 2);
    let import = ["import", "org/large", "--endpoint", &hub.address];
    let running = world.begin(&import);
    let part =
        world.path(&format!("kitops/windlass/import/org/large@{COMMIT}/files.parts/model.gguf"));
    wait::until("half of the file", async || {
        match fs::metadata(&part).map_or(0, |found| found.len()) {
            size if size == SIZE as u64 / 2 => Ok(()),
            size => Err(size.to_string()),
        }
    })
    .await;
    running.kill();
    let mut known = hub.known.lock().unwrap();
    (known.send_only, known.asked) = (None, Vec::new());
    drop(known);
    let left = world.path(&format!("kitops/windlass/import/org/large@{COMMIT}"));
    world.kit(&import).well();
    world.kit(&["unpack", "org/large", "-d", "out"]).well();
    assert_eq!(world.files("out")["model.gguf"], weights());
    assert!(!left.exists(), "what was downloaded is in the storage");
    let asked = hub.known.lock().unwrap().asked.clone();
    let of_model: Vec<_> = asked.iter().filter(|(path, ..)| path.ends_with("model.gguf")).collect();
    assert_eq!(of_model.len(), 1, "{asked:?}");
    assert_eq!(of_model[0].1, Some(format!("bytes={}-", SIZE / 2)));
}

/// Bytes of a file to be killed at, in their order, anywhere in a third each and not too near to the last.
fn bytes_to_die_at(random: &mut u64) -> [usize; 3] {
    const THIRD: usize = SIZE / 3;
    let mut next = || {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(*random >> 33).unwrap()
    };
    std::array::from_fn(|third| third * THIRD + 4096 + next() % (THIRD - 8192))
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_byte_a_pull_is_killed_at_it_goes_on_from_there() {
    let world = large();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/large:v1", front.address);
    world.kit(&["pack", "large", "--push", "--plain-http", "-t", &name]).well();
    let pull = ["pull", "--plain-http", &name];
    let ask = |only: Option<usize>| {
        let mut seen = front.seen.lock().unwrap();
        (seen.send_only, seen.ranges) = (only, Vec::new());
    };
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    for _ in 0..3 {
        let (places, mut had) = (bytes_to_die_at(&mut random), 0);
        for at in places {
            ask(Some(at - had));
            let running = world.begin(&pull);
            wait::until("the byte at which it is killed", async || {
                let parts = fs::read_dir(world.path("kitops/storage/ingest"));
                let parts = parts.into_iter().flatten().flatten();
                let sizes = parts.filter_map(|part| Some(part.metadata().ok()?.len()));
                let sizes: Vec<u64> = sizes.collect();
                if sizes.contains(&(at as u64)) {
                    Ok(())
                } else {
                    Err(format!("{sizes:?} of {at}"))
                }
            })
            .await;
            running.kill();
            assert_goes_on_from(&front.seen.lock().unwrap().ranges, had, &places);
            had = at;
        }
        ask(None);
        world.kit(&pull).well();
        assert_goes_on_from(&front.seen.lock().unwrap().ranges, had, &places);
        world.kit(&["store", "fsck"]).well();
        world.kit(&["unpack", &name, "-d", "out"]).well();
        assert!(world.files("out") == world.files("large"), "{places:?}");
        fs::remove_dir_all(world.path("kitops")).unwrap();
        fs::remove_dir_all(world.path("out")).unwrap();
    }
}

/// Of the large one; what is small is asked for from its beginning, if it has not come by then.
fn assert_goes_on_from(ranges: &[Option<String>], had: usize, places: &[usize]) {
    let wanted = (had > 0).then(|| format!("bytes={had}-"));
    assert!(ranges.contains(&wanted), "{ranges:?} and not {wanted:?}: {places:?}");
    assert!(ranges.iter().flatten().count() <= 1, "{ranges:?}: {places:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_byte_an_import_is_killed_at_it_goes_on_from_there() {
    let world = World::new();
    let hub = Hub::start(vec![("model.gguf", weights()), ("config.json", b"{}".to_vec())]).await;
    let import = ["import", "org/large", "--endpoint", &hub.address];
    let part =
        world.path(&format!("kitops/windlass/import/org/large@{COMMIT}/files.parts/model.gguf"));
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    for _ in 0..3 {
        let (places, mut had) = (bytes_to_die_at(&mut random), 0);
        let ask = |only: Option<usize>| {
            let mut known = hub.known.lock().unwrap();
            (known.send_only, known.asked) = (only, Vec::new());
        };
        let ranges = || -> Vec<Option<String>> {
            let asked = hub.known.lock().unwrap().asked.clone();
            let of_model = asked.into_iter().filter(|(path, ..)| path.ends_with("model.gguf"));
            of_model.map(|(_, range, _)| range).collect()
        };
        for at in places {
            ask(Some(at - had));
            let running = world.begin(&import);
            wait::until("the byte at which it is killed", async || {
                match fs::metadata(&part).map_or(0, |found| found.len()) {
                    size if size == at as u64 => Ok(()),
                    size => Err(format!("{size} of {at}")),
                }
            })
            .await;
            running.kill();
            assert_goes_on_from(&ranges(), had, &places);
            had = at;
        }
        ask(None);
        world.kit(&import).well();
        assert_goes_on_from(&ranges(), had, &places);
        world.kit(&["unpack", "org/large", "-d", "out"]).well();
        assert!(world.files("out")["model.gguf"] == weights(), "{places:?}");
        fs::remove_dir_all(world.path("kitops")).unwrap();
        fs::remove_dir_all(world.path("out")).unwrap();
    }
}
