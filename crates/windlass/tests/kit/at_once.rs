//! Several at once on one storage, ends in the middle, and disks that are full.

use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Stdio},
};

use windlass_kit::Digest;

use crate::{
    disk::{SIZE, large, through},
    front::Front,
    hub::Hub,
    wait,
    world::{FILES, Said, World, said},
};

fn begin(world: &World, hub: &Hub, arguments: &[&str]) -> Child {
    let mut command = world.command(arguments);
    command.env("HF_ENDPOINT", &hub.address);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn k30_who_works_at_once_on_one_store_does_not_disturb_the_others() {
    let world = World::new();
    let front = Front::start(&world.path("registry")).await;
    let files = FILES.map(|(name, text)| (name, text.as_bytes().to_vec()));
    let hub = Hub::start(files.to_vec()).await;
    let name = |tag: &str| format!("{}/org/tiny:{tag}", front.address);
    let (pulled, pushed) = (name("pulled"), name("pushed"));
    world.kit(&["pack", "model", "--push", "--plain-http", "-t", &pulled]).well();
    for round in 0..4 {
        // All have the same layers, so that whoever removes some removes those of the others.
        world.kit(&["pack", "model", "-t", "removed"]).well();
        world.kit(&["pack", "model", "--use-model-pack", "-t", &pushed]).well();
        let pull = ["pull", "--plain-http", &pulled];
        let jobs: [&[&str]; 7] = [
            &["remove", "removed"],
            &pull,
            &pull,
            &["import", "org/tiny", "-t", "one"],
            &["import", "org/tiny", "-t", "two"],
            &["push", "--plain-http", &pushed],
            &["pack", "model", "-t", "packed"],
        ];
        let children: Vec<Child> = jobs.iter().map(|job| begin(&world, &hub, job)).collect();
        for child in children {
            ended(child).well();
        }
        let whole = world.kit(&["store", "fsck"]).well();
        assert!(whole.ends_with("blobs are whole\n"), "{round} {whole}");
        for left in [&pulled, &pushed, "one", "two", "packed"] {
            world.kit(&["remove", left]).well();
        }
        let listed = world.kit(&["list"]).well();
        assert_eq!(listed.lines().count(), 1, "{round} {listed}");
    }
}

/// Whoever removes it while the rest comes would make it come in vain.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_import_has_found_in_the_storage_stays_until_it_is_done() {
    let world = World::new();
    let hub = Hub::start(vec![("m-1.safetensors", b"weights".to_vec())]).await;
    let import = ["import", "org/tiny", "--layer-format=raw", "--endpoint", &hub.address, "-t"];
    world.kit(&[&import[..], &["one"]].concat()).well();
    {
        let mut known = hub.known.lock().unwrap();
        known.files.push(("m-2.safetensors", b"other".to_vec()));
        known.send_only = Some(1);
    }
    let running = world.begin(&[&import[..], &["two"]].concat());
    wait::until("the rest on its way", async || {
        let asked = hub.known.lock().unwrap().asked.clone();
        match asked.iter().any(|(path, ..)| path.ends_with("/m-2.safetensors")) {
            true => Ok(()),
            false => Err(format!("{asked:?}")),
        }
    })
    .await;
    world.kit(&["remove", "one"]).well();
    let blob = Digest::of(b"weights");
    assert!(world.path("kitops/storage/blobs/sha256").join(blob.hex()).exists());
    running.kill();
    hub.known.lock().unwrap().send_only = None;
    world.kit(&[&import[..], &["two"]].concat()).well();
    world.kit(&["store", "fsck"]).well();
}

/// They must not go on with each other's upload.
#[tokio::test(flavor = "multi_thread")]
async fn two_who_push_the_same_layer_in_parts_both_succeed() {
    let world = large();
    let hub = Hub::start(Vec::new()).await;
    for round in 0..3 {
        let front = Front::start(&world.path(&format!("registry-{round}"))).await;
        let name = |tag: &str| format!("{}/org/large:{tag}", front.address);
        let (one, two) = (name("one"), name("two"));
        world.kit(&["pack", "large", "-t", &format!("{one},two")]).well();
        let push =
            |name: &str| begin(&world, &hub, &["push", "--plain-http", "--chunk-size=64KiB", name]);
        let children = [push(&one), push(&two), push(&one)];
        for child in children {
            ended(child).well();
        }
        let left = fs::read_dir(world.path("kitops/windlass/uploads")).unwrap().count();
        assert_eq!(left, 0, "nothing that is over is remembered");
        let out = format!("out-{round}");
        // Nobody who has it himself.
        world.kit(&["unpack", "--plain-http", "--config=else", &two, "-d", &out]).well();
        assert_eq!(world.files(&out), world.files("large"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k30_who_is_told_to_end_leaves_no_half_file() {
    let world = large();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/large:v1", front.address);
    world.kit(&["pack", "large", "--push", "--plain-http", "-t", &name]).well();
    front.seen.lock().unwrap().send_only = Some(SIZE / 2);
    let unpack = ["unpack", "--plain-http", &name, "-d", "out"];
    let running = world.begin(&unpack);
    wait::until("some of the file", async || {
        let found = if world.path("out").exists() { world.files("out") } else { BTreeMap::new() };
        match found.iter().any(|(_, content)| !content.is_empty()) {
            true => Ok(()),
            false => Err(format!("{:?}", found.keys())),
        }
    })
    .await;
    assert_eq!(running.terminate(), Some(143));
    assert!(world.files("out").is_empty(), "{:?}", world.files("out").keys());
    front.seen.lock().unwrap().send_only = None;
    world.kit(&unpack).well();
    assert_eq!(world.files("out"), world.files("large"));
}

#[tokio::test(flavor = "multi_thread")]
async fn k30_a_full_disk_is_told_and_what_has_come_is_used_later() {
    let world = large();
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/large:v1", front.address);
    world.kit(&["pack", "large", "--push", "--plain-http", "-t", &name]).well();
    let disk = world.path("disk");
    fs::create_dir(&disk).unwrap();
    let on_disk = |script: &str, arguments: &[&str]| {
        let mut launcher = vec!["unshare", "--mount"];
        if !rustix::process::geteuid().is_root() {
            launcher.push("--map-root-user");
        }
        let script = format!("mount -t tmpfs -o size=2m small {}; {script}", disk.display());
        launcher.extend(["--", "sh", "-c", &script]);
        through(&world, &launcher, arguments)
    };
    let once = "exec \"$0\" \"$@\"";
    if said(on_disk(once, &["version"])).code != Some(0) {
        eprintln!("skipped: this system lets us have no disk of our own (unshare, mount)");
        return;
    }
    let home = disk.join("home");
    let home = home.to_str().unwrap();
    let pull = ["pull", "--plain-http", "--config", home, &name];
    said(on_disk(once, &pull)).refused(8, "No space left");
    let out = disk.join("out");
    let unpack = ["unpack", "--plain-http", &name, "-d", out.to_str().unwrap()];
    said(on_disk(once, &unpack)).refused(8, "No space left");
    let pack = ["pack", "large", "--config", home, "-t", "large"];
    said(on_disk(once, &pack)).refused(8, "No space left");

    // With more room the same command goes on from what has come, and all is whole then.
    let twice = format!(
        "\"$0\" \"$@\" && exit 90; [ $? = 8 ] || exit 91; \
         mount -o remount,size=64m {} || exit 92; \
         \"$0\" \"$@\" || exit 93; \"$0\" store fsck --config {home}",
        disk.display()
    );
    front.seen.lock().unwrap().ranges.clear();
    let told = said(on_disk(&twice, &pull)).well();
    assert!(told.ends_with("blobs are whole\n"), "{told}");
    let asked = front.seen.lock().unwrap().ranges.clone();
    let resumed = asked
        .iter()
        .flatten()
        .filter_map(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let resumed: Vec<usize> = resumed.collect();
    assert!(resumed.iter().any(|from| (1 << 20..SIZE).contains(from)), "{asked:?}");
}
