use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use proptest::prelude::*;

use super::*;
use crate::tar::{BLOCK, END, Header};

const LIMITS: Limits = Limits { entries: 1000, bytes: 1 << 20 };

fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in entries {
        let type_ = if name.ends_with('/') { Type::Directory } else { Type::File };
        let size = content.len() as u64;
        let name = name.trim_end_matches('/');
        bytes.extend(Header { name, type_, mode: 0o755, size }.blocks());
        bytes.extend(content.as_bytes());
        bytes.resize(bytes.len() + crate::tar::padding(size), 0);
    }
    bytes.extend(END);
    bytes
}

fn expected(bytes: &[u8], compression: Compression) -> Expected {
    Expected {
        digest: Digest::of(bytes),
        size: bytes.len() as u64,
        diff_id: None,
        format: Format::Tar,
        compression,
        path: String::new(),
        mode: 0o644,
        under: String::new(),
    }
}

fn unpack(bytes: &[u8], into: &Path, existing: Existing) -> Result<(), Error> {
    let target = Target::open(into).unwrap();
    layer(bytes, &expected(bytes, Compression::None), &target, existing, LIMITS)
}

/// Everything below, to see that nothing else is there.
fn names(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for child in fs::read_dir(folder).unwrap() {
        let child = child.unwrap();
        let name = child.file_name().into_string().unwrap();
        if child.file_type().unwrap().is_dir() {
            found.extend(names(&child.path()).into_iter().map(|below| format!("{name}/{below}")));
        }
        found.push(name);
    }
    found.sort();
    found
}

#[test]
fn k15_parents_are_made_and_the_last_of_equal_names_counts() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = archive(&[("a/b/c", "first"), ("a..b", "x"), ("a/b/c", "last"), ("empty/", "")]);
    unpack(&bytes, folder.path(), Existing::Refuse).unwrap();
    assert_eq!(names(folder.path()), ["a", "a..b", "a/b", "a/b/c", "empty"]);
    assert_eq!(fs::read_to_string(folder.path().join("a/b/c")).unwrap(), "last");
}

#[test]
fn k10_k11_a_layer_that_is_not_what_it_should_be_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let bytes = archive(&[("a/model", "weights")]);
    let known = expected(&bytes, Compression::None);
    let mut flipped = bytes.clone();
    flipped[3 * 512] ^= 1;
    let run = |bytes: &[u8], expected: &Expected| {
        layer(bytes, expected, &target, Existing::Refuse, LIMITS).unwrap_err()
    };
    assert!(matches!(run(&flipped, &known), Error::Digest { .. }));
    assert!(matches!(run(&bytes[..bytes.len() - 512], &known), Error::Size { .. }));
    let other = Expected { diff_id: Some(Digest::of(b"other")), ..known };
    assert!(matches!(run(&bytes, &other), Error::DiffId { .. }));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn k12_k14_nothing_is_written_outside() {
    let folder = tempfile::tempdir().unwrap();
    let (outside, inside) = (folder.path().join("outside"), folder.path().join("target"));
    for path in [&outside, &inside] {
        fs::create_dir(path).unwrap();
    }
    symlink("../outside", inside.join("d")).unwrap();
    symlink("../outside/file", inside.join("l")).unwrap();
    for name in ["../evil", "/abs/evil", "a/../../evil", "d/f", "l", "d"] {
        let error = unpack(&archive(&[("good", "x"), (name, "x")]), &inside, Existing::Replace);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("illegal file path"), "{name}: {error}");
        assert_eq!(names(&inside), ["d", "l"], "{name}");
        assert!(names(&outside).is_empty(), "{name}");
    }
}

#[test]
fn k18_what_is_there_stays_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    fs::write(&path, "old").unwrap();
    let bytes = archive(&[("model", "new"), ("other", "x")]);
    let error = unpack(&bytes, folder.path(), Existing::Refuse).unwrap_err();
    assert_eq!(error.to_string(), "path 'model' already exists");
    assert_eq!(names(folder.path()), ["model"]);
    unpack(&bytes, folder.path(), Existing::Keep).unwrap();
    assert_eq!(
        (fs::read_to_string(&path).unwrap().as_str(), names(folder.path()).len()),
        ("old", 2)
    );
    unpack(&bytes, folder.path(), Existing::Replace).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(unpack(&bytes, folder.path(), Existing::Replace), Err(Error::NoFile(_))));
}

#[test]
fn k18_an_equal_kitfile_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let write = |text: &str, existing| file("Kitfile", text.as_bytes(), &target, existing);
    let is = || fs::read_to_string(folder.path().join("Kitfile")).unwrap();
    write("a", Existing::Refuse).unwrap();
    write("a", Existing::Refuse).unwrap();
    assert!(matches!(write("ab", Existing::Refuse), Err(Error::Exists(_))));
    write("ab", Existing::Keep).unwrap();
    assert_eq!(is(), "a");
    write("ab", Existing::Replace).unwrap();
    assert_eq!(is(), "ab");
    assert_eq!(names(folder.path()), ["Kitfile"]);
    fs::remove_file(folder.path().join("Kitfile")).unwrap();
    symlink("elsewhere", folder.path().join("Kitfile")).unwrap();
    assert!(matches!(write("a", Existing::Replace), Err(Error::Through { .. })));
}

#[test]
fn k17_what_grows_without_end_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let bomb = archive(&[("zeros", &"\0".repeat(4 << 20))]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bomb).unwrap();
    for (bytes, compression) in [
        (gzip.finish().unwrap(), Compression::Gzip),
        (zstd::encode_all(bomb.as_slice(), 3).unwrap(), Compression::Zstd),
    ] {
        assert!(bytes.len() < 64 << 10);
        let expected = expected(&bytes, compression);
        let outcome = layer(bytes.as_slice(), &expected, &target, Existing::Refuse, LIMITS);
        assert!(matches!(outcome, Err(Error::Bytes(_))), "{compression:?} {outcome:?}");
        // What is no archive does not say beforehand how large it is.
        let raw = Expected { format: Format::Raw, path: "zeros".to_owned(), ..expected };
        let outcome = layer(bytes.as_slice(), &raw, &target, Existing::Refuse, LIMITS);
        assert!(matches!(outcome, Err(Error::Bytes(_))), "{compression:?} {outcome:?}");
        assert!(names(folder.path()).is_empty());
    }
    // Small ones are too much together.
    let many: Vec<String> = (0..900).map(|number| number.to_string()).collect();
    let content = "\0".repeat(2048);
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), content.as_str())).collect();
    let bytes = zstd::encode_all(archive(&many).as_slice(), 3).unwrap();
    let outcome = layer(
        bytes.as_slice(),
        &expected(&bytes, Compression::Zstd),
        &target,
        Existing::Refuse,
        LIMITS,
    );
    assert!(matches!(outcome, Err(Error::Bytes(_))), "{outcome:?}");
    assert!(names(folder.path()).is_empty());
    let many = vec![("same", ""); 1001];
    assert!(matches!(
        unpack(&archive(&many), folder.path(), Existing::Refuse),
        Err(Error::Entries(_))
    ));
}

#[test]
fn compressed_layers_and_single_files_are_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let bytes = archive(&[("zipped", "content")]);
    let zipped = zstd::encode_all(bytes.as_slice(), 3).unwrap();
    let known =
        Expected { diff_id: Some(Digest::of(&bytes)), ..expected(&zipped, Compression::Zstd) };
    layer(zipped.as_slice(), &known, &target, Existing::Refuse, LIMITS).unwrap();
    let raw = Expected {
        format: Format::Raw,
        path: "sub/raw.bin".to_owned(),
        mode: 0o600,
        ..expected(b"raw", Compression::None)
    };
    layer(&b"raw"[..], &raw, &target, Existing::Refuse, LIMITS).unwrap();
    assert_eq!(names(folder.path()), ["sub", "sub/raw.bin", "zipped"]);
    let mode = fs::metadata(folder.path().join("sub/raw.bin")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn k16_many_files_need_few_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..3000).map(|number| format!("d/{number}")).collect();
    let entries: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    let bytes = archive(&entries);
    let limits = Limits { entries: 3000, bytes: 1 << 30 };
    let target = Target::open(folder.path()).unwrap();
    let expected = expected(&bytes, Compression::None);
    layer(bytes.as_slice(), &expected, &target, Existing::Refuse, limits).unwrap();
    assert_eq!(fs::read_dir(folder.path().join("d")).unwrap().count(), 3000);
}

#[test]
fn what_wants_too_much_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let bytes = archive(&[("model", &"weights".repeat(1000))]);
    for (window, want) in [(23, true), (27, false)] {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(window).unwrap();
        encoder.write_all(&bytes).unwrap();
        let zipped = encoder.finish().unwrap();
        let known = expected(&zipped, Compression::Zstd);
        let outcome = layer(zipped.as_slice(), &known, &target, Existing::Replace, LIMITS);
        assert_eq!(outcome.is_ok(), want, "{window} {outcome:?}");
    }
    // Many directories in each other.
    let deep: Vec<String> =
        (0..2500).map(|number| format!("{number}{}", "/d".repeat(2040))).collect();
    let mut bytes = Vec::new();
    for name in &deep {
        bytes.extend(Header { name, type_: Type::Directory, mode: 0o755, size: 0 }.blocks());
    }
    bytes.extend(END);
    let limits = Limits { entries: 1 << 20, bytes: 1 << 30 };
    let known = expected(&bytes, Compression::None);
    let outcome = layer(bytes.as_slice(), &known, &target, Existing::Replace, limits);
    assert!(matches!(outcome, Err(Error::Names)), "{outcome:?}");
}

#[test]
fn rights_of_what_was_there_stay() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("mine")).unwrap();
    let mut bytes = Vec::new();
    for name in [".", "mine", "new"] {
        bytes.extend(Header { name, type_: Type::Directory, mode: 0o500, size: 0 }.blocks());
    }
    bytes.extend(END);
    unpack(&bytes, folder.path(), Existing::Refuse).unwrap();
    let mode =
        |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o700;
    assert_eq!((mode("."), mode("mine"), mode("new")), (0o700, 0o700, 0o500));
}

#[test]
fn more_than_was_announced_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::open(folder.path()).unwrap();
    let bytes = archive(&[("model", "weights")]);
    let known = expected(&bytes, Compression::None);
    let endless = bytes.as_slice().chain(io::repeat(0));
    let error = layer(endless, &known, &target, Existing::Refuse, LIMITS).unwrap_err();
    assert!(matches!(error, Error::Size { .. }), "{error}");
}

/// What somebody might write who wants out.
fn evil_name() -> impl Strategy<Value = String> {
    let element = prop_oneof![
        Just(".."),
        Just("."),
        Just(""),
        Just("a"),
        Just("d"),
        Just("l"),
        Just("outside"),
        Just("é"),
        Just("a..b"),
        Just("..a"),
    ];
    proptest::collection::vec(element, 1..6).prop_map(|elements| elements.join("/"))
}

/// A header with the sum that it should have.
fn signed(block: &mut [u8]) {
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block[..BLOCK].iter().copied().map(u32::from).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_archive_gets_out_of_the_target(
        entries in proptest::collection::vec((evil_name(), any::<bool>(), 0usize..700), 1..6),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        replace: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = (folder.path().join("outside"), folder.path().join("target"));
        for path in [&outside, &inside] {
            fs::create_dir(path).unwrap();
        }
        fs::write(outside.join("file"), "theirs").unwrap();
        symlink("../outside", inside.join("d")).unwrap();
        symlink("../outside/file", inside.join("l")).unwrap();
        let mut bytes = Vec::new();
        for (name, is_directory, size) in entries {
            let type_ = if is_directory { Type::Directory } else { Type::File };
            let size = if is_directory { 0 } else { size };
            bytes.extend(Header { name: &name, type_, mode: 0o777, size: size as u64 }.blocks());
            bytes.extend(vec![b'x'; size]);
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        }
        for (at, value, is_signed) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
            // Most damage is found by the sum; what is more cunning has one.
            if is_signed {
                signed(&mut bytes[at / BLOCK * BLOCK..]);
            }
        }
        bytes.extend(END);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let existing = if replace { Existing::Replace } else { Existing::Refuse };
        let is_unpacked = unpack(&bytes, &inside, existing).is_ok();
        prop_assert_eq!(names(&outside), ["file"]);
        prop_assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "theirs");
        prop_assert_eq!(names(folder.path()).iter().filter(|n| !n.contains('/')).count(), 2);
        if !is_unpacked {
            let left = names(&inside);
            prop_assert!(!left.iter().any(|name| name.starts_with(".windlass")), "{:?}", left);
        }
    }
}
