//! A model that no compression makes smaller.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::Arguments;

const BLOCK: usize = 1 << 20;

/// A folder with a Kitfile, ready to be packed.
pub(super) struct Model {
    pub(super) folder: PathBuf,
    pub(super) files: Vec<PathBuf>,
    pub(super) bytes: u64,
}

impl Model {
    pub(super) fn make(folder: PathBuf, arguments: &Arguments) -> Result<Self> {
        fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let each = u64::from(arguments.megabytes) * 1_000_000 / u64::from(arguments.files);
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut kitfile = String::from("manifestVersion: 1.0.0\npackage:\n  name: bench\nmodel:\n");
        let mut files = Vec::new();
        for at in 0..arguments.files {
            let name = format!("weights-{at}.safetensors");
            let file = folder.join(&name);
            fill(&file, each, &mut random)
                .with_context(|| format!("cannot write {}", file.display()))?;
            let (indent, end) = if at == 0 { ("  ", "\n  parts:") } else { ("    - ", "") };
            writeln!(
                kitfile,
                "{indent}path: {name}{}",
                if arguments.files > 1 { end } else { "" }
            )?;
            files.push(file);
        }
        fs::write(folder.join("Kitfile"), kitfile).context("cannot write the Kitfile")?;
        Ok(Self { folder, files, bytes: each * u64::from(arguments.files) })
    }
}

const SMALL: usize = 4096;
/// As many as fit into one folder without being slow to find.
const TOGETHER: u32 = 1000;

/// Many files that are one layer.
pub(super) fn small(folder: &Path, files: u32) -> Result<()> {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut write = || -> std::io::Result<()> {
        for at in 0..files {
            let place = folder.join(format!("data/{}", at / TOGETHER));
            if at % TOGETHER == 0 {
                fs::create_dir_all(&place)?;
            }
            let words = (0..SMALL / 8).flat_map(|_| random.next().to_le_bytes());
            fs::write(place.join(format!("{at}.bin")), words.collect::<Vec<u8>>())?;
        }
        fs::write(folder.join("Kitfile"), "manifestVersion: 1.0.0\ndatasets:\n  - path: data\n")?;
        File::open(folder)?.sync_all()
    };
    write().with_context(|| format!("cannot fill {}", folder.display()))
}

const WORDS: [&str; 16] = [
    "weights", "of", "the", "model", "are", "read", "in", "blocks", "and", "hashed", "while", "a",
    "registry", "takes", "layers", "slowly",
];

/// Lines of words and numbers, which shrink about as much as other text.
pub(super) fn text(folder: &Path, megabytes: u32) -> Result<()> {
    let write = || -> std::io::Result<()> {
        fs::create_dir(folder)?;
        let mut random = Random(0x1234_5678_9ABC_DEF1);
        let mut file = BufWriter::with_capacity(BLOCK, File::create(folder.join("corpus.txt"))?);
        let (mut left, mut line) = (u64::from(megabytes) * 1_000_000, String::new());
        while left > 0 {
            line.clear();
            for _ in 0..8 {
                let word = random.next();
                let _ = write!(line, "{} {:x} ", WORDS[(word & 15) as usize], word >> 52);
            }
            line.push('\n');
            let part = line.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all(&line.as_bytes()[..part])?;
            left -= part as u64;
        }
        fs::write(
            folder.join("Kitfile"),
            "manifestVersion: 1.0.0\ndatasets:\n  - path: corpus.txt\n",
        )?;
        file.into_inner()?.sync_all()
    };
    write().with_context(|| format!("cannot fill {}", folder.display()))
}

fn fill(file: &Path, bytes: u64, random: &mut Random) -> std::io::Result<()> {
    let mut file = BufWriter::with_capacity(BLOCK, File::create(file)?);
    let mut left = bytes;
    while left > 0 {
        let word = random.next().to_le_bytes();
        let part = word.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&word[..part])?;
        left -= part as u64;
    }
    // What is still on its way to the disk would slow down whatever is measured first.
    file.into_inner()?.sync_all()
}

/// Xorshift: the same files in each run, and nothing in them repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_and_text_are_as_many_and_as_large_as_asked_for() {
        let folder = std::env::temp_dir().join(format!("xtask-other-{}", std::process::id()));
        small(&folder.join("small"), 1001).unwrap();
        text(&folder.join("text"), 1).unwrap();
        let last = fs::metadata(folder.join("small/data/1/1000.bin")).unwrap().len();
        let first = fs::read_dir(folder.join("small/data/0")).unwrap().count();
        let written = fs::read_to_string(folder.join("text/corpus.txt")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((first, last, written.len()), (1000, 4096, 1_000_000));
    }

    #[test]
    fn all_files_are_of_the_model_and_have_their_size() {
        let folder = std::env::temp_dir().join(format!("xtask-model-{}", std::process::id()));
        let arguments = Arguments::parse(&["--megabytes", "1", "--files", "3"]).unwrap();
        let model = Model::make(folder.clone(), &arguments).unwrap();
        let kitfile = fs::read_to_string(folder.join("Kitfile")).unwrap();
        let sizes: Vec<u64> =
            model.files.iter().map(|file| fs::metadata(file).unwrap().len()).collect();
        let same = fs::read(&model.files[0]).unwrap() == fs::read(&model.files[1]).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((model.bytes, sizes, same), (999_999, vec![333_333; 3], false));
        assert_eq!(
            kitfile,
            "manifestVersion: 1.0.0\npackage:\n  name: bench\nmodel:\n  path: weights-0.safetensors\n  parts:\n    - path: weights-1.safetensors\n    - path: weights-2.safetensors\n"
        );
    }
}
