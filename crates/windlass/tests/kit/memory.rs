//! What it takes of memory and of descriptors.

use std::{
    fs,
    io::{BufWriter, Write},
    path::Path,
    process::Command,
};

use windlass_kit::Digest;

use crate::{
    disk::through,
    front::Front,
    server::Server,
    wait,
    world::{Running, World, said},
};

/// Files. `WINDLASS_FILES` says another number: 100,000 take minutes without optimisation.
const FILES: usize = 25_000;
/// The memory is what is promised for any number; a debug build takes more of it than others before it
/// does anything.
const MOST: u64 = 64_000_000;
/// Of one layer: more than the memory that there is. `WINDLASS_LAYER_MB` says another one.
const LAYER_MB: usize = 70;

fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().map_or(usual, |text| text.parse().unwrap())
}

/// Of a command that ends well, at most and as far as one sees from outside.
fn most_memory(command: Command) -> u64 {
    let what = format!("{command:?}");
    let (mut running, mut most) = (Running::new(command), 0);
    let code = wait::blocking(&what, || {
        most = running.memory().unwrap_or(most);
        running.code().ok_or(most)
    });
    assert_eq!(code, 0, "{what}");
    assert!(most > 0, "nobody has looked at {what}");
    most
}

/// Nothing in it can be compressed.
fn write_noise(path: &Path, megabytes: usize) {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    let mut state = 1_u64;
    for _ in 0..megabytes * 1_000_000 / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all(&state.to_le_bytes()).unwrap();
    }
    file.into_inner().unwrap();
}

#[test]
fn a_layer_that_is_larger_than_the_memory_goes_through_it() {
    let world = World::in_memory();
    let megabytes = number("WINDLASS_LAYER_MB", LAYER_MB);
    world.write("noise/Kitfile", b"model: {path: model.bin}\n");
    world.write("zeros/Kitfile", b"model: {path: model.bin}\n");
    write_noise(&world.path("noise/model.bin"), megabytes);
    let zeros = fs::File::create(world.path("zeros/model.bin")).unwrap();
    zeros.set_len(megabytes as u64 * 1_000_000).unwrap();
    let server = Server::start(&world.path("registry"), &[], "");
    // Without optimisation it takes long to find out that noise cannot be compressed.
    for (folder, compression) in [("noise", "none"), ("zeros", "zstd"), ("zeros", "gzip-fastest")] {
        let name = |tag: &str| format!("{}/org/{folder}:{compression}-{tag}", server.address);
        let (one, two) = (name("one"), name("two"));
        let flag = format!("--compression={compression}");
        let (kept, direct) = (format!("kept-{compression}"), format!("direct-{compression}"));
        let jobs: [&[&str]; 6] = [
            &["pack", folder, &flag, "-t", &one],
            &["push", "--plain-http", &one],
            &["pull", "--plain-http", "--config=else", &one],
            &["unpack", "--config=else", "-d", &kept, &one],
            &["pack", folder, &flag, "--push", "--plain-http", "--config=new", "-t", &two],
            &["unpack", "--plain-http", "--config=new", "-d", &direct, &two],
        ];
        // What is compressed takes long without optimisation, and goes the same way from here on.
        let count = if compression == "none" { jobs.len() } else { 4 };
        for job in jobs.into_iter().take(count) {
            let most = most_memory(world.command(job));
            assert!(most < MOST, "{} KiB for {job:?}", most >> 10);
        }
        for unpacked in [&kept, &direct].into_iter().take(count / 2 - 1) {
            let same = Command::new("cmp")
                .arg(world.path(&format!("{folder}/model.bin")))
                .arg(world.path(&format!("{unpacked}/model.bin")))
                .status();
            assert!(same.unwrap().success(), "{unpacked}");
        }
        for left in ["kitops", "else"] {
            fs::remove_dir_all(world.path(left)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_many_files_take_little_memory_and_few_descriptors() {
    let world = World::in_memory();
    let each = number("WINDLASS_FILES", FILES) / 100;
    for folder in 0..100 {
        fs::create_dir_all(world.path(&format!("many/d{folder}"))).unwrap();
        for file in 0..each {
            fs::write(world.path(&format!("many/d{folder}/file-{file}")), "x").unwrap();
        }
    }
    world.write("many/Kitfile", b"code: [{path: .}]\n");
    let front = Front::start(&world.path("registry")).await;
    let name = format!("{}/org/many:v1", front.address);
    let few = |arguments: &[&str]| {
        through(&world, &["sh", "-c", "ulimit -n 256; exec \"$0\" \"$@\""], arguments)
    };
    let pack = ["pack", "many", "--push", "--plain-http", "-t", &name];
    front.seen.lock().unwrap().hold_after = Some(0);
    let running = Running::new(few(&pack));
    wait::until("the layer on its way", async || match front.seen.lock().unwrap().held {
        0 => Err("nothing yet".to_owned()),
        _ => Ok(()),
    })
    .await;
    let packing = running.most_memory();
    running.kill();
    front.seen.lock().unwrap().hold_after = None;
    said(few(&pack)).well();
    // All but the end of the archive comes, so that all files wait for it.
    let size = front.seen.lock().unwrap().taken;
    front.seen.lock().unwrap().send_only = Some(usize::try_from(size).unwrap() - 1500);
    let unpack = ["unpack", "--plain-http", &name, "-d", "out"];
    let running = Running::new(few(&unpack));
    // They come in the order of their names.
    let last = (0..each).map(|file| format!("d99/file-{file}")).max().unwrap();
    let last = Digest::of(last.as_bytes());
    let staged = || {
        let children = fs::read_dir(world.path("out")).ok()?.flatten();
        let mut staged = children.filter(|child| child.file_name() != "Kitfile");
        let (first, rest) = last.hex().split_at(2);
        Some(staged.next()?.path().join(first).join(rest).exists())
    };
    wait::until("the last file", async || match staged() {
        Some(true) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let unpacking = running.most_memory();
    running.kill();
    front.seen.lock().unwrap().send_only = None;
    said(few(&["unpack", "--plain-http", &name, "-o", "-d", "out"])).well();
    assert_eq!(fs::read_dir(world.path("out/d99")).unwrap().count(), each);
    assert!(packing < MOST && unpacking < MOST, "{} and {} KiB", packing >> 10, unpacking >> 10);
}
