//! The headers of layer tars. Their bytes are fixed: equal files give equal layers everywhere.

pub mod read;

/// Of the archive's parts; everything is a multiple of it.
pub const BLOCK: usize = 512;
/// What no octal number of the size field can say any more.
const LARGE: u64 = 1 << 33;
const OWNER: u64 = 1000;
/// The room for a name.
const NAME: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    File,
    Directory,
}

/// One file or directory of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    pub name: &'a str,
    pub type_: Type,
    /// Permissions with the bits for setuid, setgid and sticky.
    pub mode: u32,
    pub size: u64,
}

impl Header<'_> {
    /// The blocks before the content.
    pub fn blocks(&self) -> Vec<u8> {
        let is_large = self.size >= LARGE;
        // Whatever needs a record for its size has one for a long name too, however it could be split.
        let place = place(self.name).filter(|_| !is_large || self.name.len() <= NAME);
        let mut records = Vec::new();
        if place.is_none() {
            records.push(("path", self.name.to_owned()));
        }
        if is_large {
            records.push(("size", self.size.to_string()));
        }
        let mut bytes = Vec::with_capacity(3 * BLOCK);
        if !records.is_empty() {
            bytes.extend(extension(self.name, &records));
        }
        let short = ascii(self.name);
        let (prefix, name) = place.unwrap_or(("", &short));
        let size = if is_large { 0 } else { self.size };
        bytes.extend(block(&Fields {
            name,
            prefix,
            mode: self.mode,
            owner: OWNER,
            size,
            type_: match self.type_ {
                Type::File => b'0',
                Type::Directory => b'5',
            },
            devices: Some(0),
        }));
        bytes
    }
}

/// The zeros after content of this size.
pub fn padding(size: u64) -> usize {
    let rest = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    (BLOCK - rest) % BLOCK
}

/// After the last file.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

struct Fields<'a> {
    name: &'a str,
    prefix: &'a str,
    mode: u32,
    owner: u64,
    size: u64,
    type_: u8,
    /// `None` leaves the fields empty.
    devices: Option<u64>,
}

fn block(fields: &Fields<'_>) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    text(&mut block, 0, NAME, fields.name);
    // A name that is cut must not look like that of a directory.
    if fields.name.len() > NAME && fields.name.as_bytes().get(NAME - 1) == Some(&b'/') {
        let kept = fields.name.get(..NAME - 1).unwrap_or_default().trim_end_matches('/');
        text(&mut block, kept.len(), 1, "\0");
    }
    octal(&mut block, 100, 7, u64::from(fields.mode));
    octal(&mut block, 108, 7, fields.owner);
    octal(&mut block, 116, 7, 0);
    octal(&mut block, 124, 11, fields.size);
    octal(&mut block, 136, 11, 0);
    text(&mut block, 148, 8, "        ");
    text(&mut block, 156, 1, char::from(fields.type_).encode_utf8(&mut [0; 4]));
    text(&mut block, 257, 8, "ustar\x0000");
    if let Some(device) = fields.devices {
        octal(&mut block, 329, 7, device);
        octal(&mut block, 337, 7, device);
    }
    text(&mut block, 345, 155, fields.prefix);
    // The sum counts its own field as blanks.
    let sum: u64 = block.iter().copied().map(u64::from).sum();
    octal(&mut block, 148, 6, sum);
    text(&mut block, 154, 2, "\0 ");
    block
}

fn text(block: &mut [u8; BLOCK], at: usize, room: usize, text: &str) {
    for (into, byte) in block.iter_mut().skip(at).take(room).zip(text.bytes()) {
        *into = byte;
    }
}

fn octal(block: &mut [u8; BLOCK], at: usize, digits: usize, value: u64) {
    text(block, at, digits, &format!("{value:0digits$o}"));
}

/// Prefix and name, if both fit.
fn place(name: &str) -> Option<(&str, &str)> {
    if !name.is_ascii() {
        return None;
    }
    if name.len() <= NAME {
        return Some(("", name));
    }
    // The last slash after which the name fits behind a prefix that fits.
    let end = name.len().min(156);
    let (prefix, _) = name.get(..end)?.rsplit_once('/')?;
    let rest = name.get(prefix.len() + 1..)?;
    let fits = !prefix.is_empty() && !rest.is_empty() && rest.len() <= NAME;
    fits.then_some((prefix, rest))
}

fn ascii(name: &str) -> String {
    name.chars().filter(char::is_ascii).collect()
}

/// What the plain header has no room for.
fn extension(name: &str, records: &[(&str, String)]) -> Vec<u8> {
    let content: String = records.iter().map(|(key, value)| record(key, value)).collect();
    let (directory, base) = name.rsplit_once('/').map_or(("", name), |(d, b)| (d, b));
    let directory = if directory.is_empty() { String::new() } else { format!("{directory}/") };
    let mut short = ascii(&format!("{directory}PaxHeaders.0/{base}"));
    short.truncate(NAME);
    let header = Fields {
        name: short.trim_end_matches('/'),
        prefix: "",
        mode: 0,
        owner: 0,
        size: content.len() as u64,
        type_: b'x',
        devices: None,
    };
    let mut bytes = block(&header).to_vec();
    bytes.extend(content.as_bytes());
    bytes.resize(bytes.len() + padding(content.len() as u64), 0);
    bytes
}

/// Its length counts the digits of the length.
fn record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + " =\n".len();
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    #[test]
    fn k5_sizes_from_8_gib_on_stand_in_a_record() {
        let model =
            |size| Header { name: "model.safetensors", type_: Type::File, mode: 0o644, size };
        let large = model(9 << 30).blocks();
        assert_eq!(large.len(), 1536);
        let want = "sha256:1b3eaa47090ab9c4c61c391999b4238076b77279aa5be001712fb112065b3e72";
        assert_eq!(Digest::of(&large).as_str(), want);
        assert!(large[512..].starts_with(b"19 size=9663676416\n"));
        let largest = model((8 << 30) - 1).blocks();
        let want = "sha256:d72de23d9aeb48ed512afecf1e962d984e47538002be0d71d996a95ab0801860";
        assert_eq!(Digest::of(&largest).as_str(), want);
    }

    /// The digests are those of what Go's `archive/tar` writes.
    #[test]
    fn long_names_are_cut_as_go_cuts_them() {
        let (a, b) = ("a".repeat(99), "b".repeat(101));
        for (name, size, want) in [
            // Large, and the name could be split.
            (
                format!("{}/{}", "a".repeat(60), "b".repeat(60)),
                9 << 30,
                "c89ac381bd83cd71072db7371342293b2aea475d6c9c96d86bdae3ab45d29f92",
            ),
            (
                format!("{a}/b"),
                9 << 30,
                "2eeffacfce01873c85945850b46c17fd5726f2d6955ffe58e668796ad7c533ac",
            ),
            // Cut behind a slash, and behind two of which only one is a separator.
            (
                format!("{a}/{b}"),
                2,
                "d9f1eda136f4368ed039d62cd20ce95a82ed83234d8757a83a342d9fbc4ef1d1",
            ),
            (
                format!("{}x/{b}", "d/".repeat(49)),
                2,
                "8d90aef683c7787b20e2ff3234afb6fc324647c0905a407203864eeafe3ee754",
            ),
            (
                format!("{}/é/{b}", "a".repeat(98)),
                2,
                "dff71184d06355ca6441c422d287d0c216e79981a4499c80622f88a0bf9a8875",
            ),
            // Not cut at all.
            (
                format!("{a}/é"),
                2,
                "763b0796f6468ff6e5b9471cc92dccf1fdf24dd3f140ac6b884db180e7c249c1",
            ),
        ] {
            let header = Header { name: &name, type_: Type::File, mode: 0o644, size };
            assert_eq!(Digest::of(&header.blocks()).hex(), want, "{name}");
        }
    }

    #[test]
    fn a_record_counts_its_own_length() {
        for size in [1, 90, 93, 94, 95, 96, 985, 986, 987, 988, 989, 990] {
            let record = record("path", &"n".repeat(size));
            let (length, _) = record.split_once(' ').unwrap();
            assert_eq!(length.parse::<usize>().unwrap(), record.len(), "{size}");
        }
    }

    #[test]
    fn names_are_split_where_both_halves_fit() {
        for (name, want) in [
            ("a".repeat(100), true),
            ("a".repeat(101), false),
            (format!("{}/{}", "a".repeat(155), "b".repeat(100)), true),
            (format!("{}/{}", "a".repeat(156), "b"), false),
            (format!("{}/{}", "a".repeat(60), "b".repeat(101)), false),
        ] {
            assert_eq!(place(&name).is_some(), want, "{name}");
        }
    }
}
