use proptest::prelude::*;

use super::*;
use crate::tar::{END, Header, Type};

fn archive(entries: &[(&str, Type, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, type_, content) in entries {
        let size = content.len() as u64;
        bytes.extend(Header { name, type_: *type_, mode: 0o6755, size }.blocks());
        bytes.extend(content.as_bytes());
        bytes.resize(bytes.len() + crate::tar::padding(size), 0);
    }
    bytes.extend(END);
    bytes
}

fn all(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, Error> {
    let mut archive = Archive::new(bytes);
    let mut entries = Vec::new();
    while let Some(entry) = archive.next_entry()? {
        let (mut content, mut piece) = (Vec::new(), [0; 7]);
        loop {
            match archive.read_content(&mut piece)? {
                0 => break,
                count => content.extend(&piece[..count]),
            }
        }
        entries.push((entry, content));
    }
    Ok(entries)
}

/// A header with something else in it, its sum put right.
fn with(mut bytes: Vec<u8>, at: usize, new: &[u8]) -> Vec<u8> {
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes[148..156].copy_from_slice(b"        ");
    let sum: u32 = bytes[..BLOCK].iter().copied().map(u32::from).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bytes
}

#[test]
fn what_was_written_is_read() {
    let (long, deep) = ("n".repeat(300), format!("{}/{}", "a".repeat(60), "b".repeat(60)));
    let bytes = archive(&[
        ("dir", Type::Directory, ""),
        ("dir/a..b", Type::File, "content"),
        ("é.txt", Type::File, ""),
        (&long, Type::File, &"x".repeat(512)),
        (&deep, Type::File, &"y".repeat(513)),
    ]);
    let read = all(&bytes).unwrap();
    let names: Vec<&str> = read.iter().map(|(entry, _)| entry.name.as_str()).collect();
    assert_eq!(names, ["dir", "dir/a..b", "é.txt", &long, &deep]);
    assert_eq!((read[1].1.as_slice(), read[4].1.len()), (&b"content"[..], 513));
    assert!(read.iter().all(|(entry, _)| entry.mode == 0o755), "the bits beyond are not for us");
}

#[test]
fn k12_names_that_lead_elsewhere_are_refused() {
    for name in ["../evil", "/abs/evil", "a/../../evil", "a/..", ".."] {
        let error = all(&archive(&[(name, Type::File, "x")])).unwrap_err();
        assert!(error.to_string().starts_with("illegal file path"), "{name}: {error}");
    }
}

#[test]
fn k13_links_and_devices_are_refused() {
    for type_ in [b'1', b'2', b'3', b'4', b'6', b'S'] {
        let error = all(&with(archive(&[("lnk", Type::File, "")]), 156, &[type_])).unwrap_err();
        assert!(error.to_string().starts_with("unrecognized type in archive"), "{error}");
    }
}

#[test]
fn archives_of_others_are_read() {
    // Without a type, as long ago; and with a large number in its own bytes.
    let old = with(archive(&[("a", Type::File, "x")]), 156, &[0]);
    assert_eq!(all(&old).unwrap()[0].0.type_, Type::File);
    let mut size = [0; 12];
    (size[0], size[11]) = (0x80, 1);
    let large = with(archive(&[("a", Type::File, "x")]), 124, &size);
    assert_eq!(all(&large).unwrap()[0].1, b"x");
    // A long name in GNU's way.
    let name = "g".repeat(150);
    let mut bytes = with(archive(&[("././@LongLink", Type::File, &name)]), 156, b"L");
    bytes.truncate(bytes.len() - END.len());
    bytes.extend(archive(&[("short", Type::File, "x")]));
    assert_eq!(all(&bytes).unwrap()[0].0.name, name);
}

#[test]
fn what_is_cut_or_damaged_is_told() {
    let whole = archive(&[("a", Type::File, "content")]);
    for end in [1, 511, 513, 519, 1000] {
        assert!(all(&whole[..end]).is_err(), "{end}");
    }
    let mut damaged = whole;
    damaged[3] = b'z';
    assert!(matches!(all(&damaged), Err(Error::Damaged(_))));
    let huge = with(archive(&[("x", Type::File, "")]), 124, b"77777777777");
    assert!(matches!(all(&with(huge, 156, b"x")), Err(Error::Damaged(_))));
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        drop(all(&bytes));
    }

    #[test]
    fn nor_is_a_flipped_byte(at in 0usize..4096, value: u8) {
        let mut bytes = archive(&[(&"n".repeat(200), Type::File, "x"), ("b", Type::File, "y")]);
        let length = bytes.len();
        bytes[at % length] = value;
        for (entry, _) in all(&bytes).unwrap_or_default() {
            prop_assert!(!entry.name.starts_with('/') && !entry.name.split('/').any(|e| e == ".."));
        }
    }
}
