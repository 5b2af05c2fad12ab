//! What is not sent again after a kill.

use std::fs;

use crate::{
    front::Front,
    hub::{COMMIT, Hub},
    wait,
    world::World,
};

const SIZE: usize = 4 << 20;
const CHUNK: u64 = 64 << 10;

/// Nothing that repeats, so that no two parts of it could be taken for each other.
fn weights() -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..SIZE).map(|_| next()).collect()
}

fn large() -> World {
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
