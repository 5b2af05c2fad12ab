//! Layers on their way to a folder with links that lead out of it; a letter before them says how
//! they are compressed: nothing is ever written elsewhere.
#![no_main]

use std::{fs, os::unix::fs::symlink, path::Path};

use libfuzzer_sys::fuzz_target;
use windlass_fuzz::signed;
use windlass_kit::{
    Digest,
    layer::Format,
    manifest::Compression,
    unpack::{Existing, Expected, Limits, Target, layer},
};

const LIMITS: Limits = Limits { entries: 100, bytes: 1 << 16 };

fuzz_target!(|data: &[u8]| {
    let Some((&how, bytes)) = data.split_first() else { return };
    let (compression, bytes) = match how {
        b'g' => (Compression::Gzip, bytes.to_vec()),
        b'z' => (Compression::Zstd, bytes.to_vec()),
        _ => (Compression::None, signed(bytes)),
    };
    let existing = if how == b'k' { Existing::Keep } else { Existing::Replace };
    let expected = Expected {
        digest: Digest::of(&bytes),
        size: bytes.len() as u64,
        diff_id: None,
        format: Format::Tar,
        compression,
        path: String::new(),
        mode: 0o644,
        under: String::new(),
    };
    let folder = tempfile::tempdir().expect("no folder");
    let (outside, inside) = (folder.path().join("outside"), folder.path().join("target"));
    for path in [&outside, &inside] {
        fs::create_dir(path).expect("no folder");
    }
    fs::write(outside.join("file"), "theirs").expect("no file");
    symlink("../outside", inside.join("d")).expect("no link");
    symlink("../outside/file", inside.join("l")).expect("no link");
    let target = Target::open(&inside).expect("no target");
    let done = layer(&*bytes, &expected, &target, existing, LIMITS);
    assert_eq!(fs::read(outside.join("file")).expect("gone"), b"theirs");
    assert_eq!(names(&outside), 1, "something came outside");
    assert_eq!(names(folder.path()), 2, "something came beside");
    if done.is_err() {
        assert_eq!(names(&inside), 2, "something is left of what failed");
    }
});

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).expect("no folder").count()
}
