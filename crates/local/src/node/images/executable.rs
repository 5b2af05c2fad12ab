//! The files that programs are.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use sha2::{Digest, Sha256};

/// Why a program cannot be run; the text is that of a container that failed to start.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    #[error("exec: {0:?}: executable file not found in $PATH")]
    NotInPath(String),
    #[error("exec: {0:?}: no such file or directory")]
    NotThere(String),
    #[error("exec: {0:?}: is a directory")]
    Directory(String),
    #[error("exec: {0:?}: permission denied")]
    NotExecutable(String),
    #[error("exec: {0:?}: cannot be read: {1}")]
    Unreadable(String, #[source] io::Error),
}

/// Remembers the sums of programs it has read.
#[derive(Debug, Default)]
pub struct Executables {
    known: Mutex<BTreeMap<PathBuf, Arc<Mutex<Sum>>>>,
}

/// Of one program, if it was read. Held while it is: several pods of it start at once, and one reading
/// is enough.
type Sum = Option<(Stamp, String)>;

type Stamp = (u64, u64, u64, i64, i64, i64, i64);

/// The file that `program` means for a process with this `PATH`. Relative names with a slash start
/// at `dir`.
pub fn find(program: &str, path: &str, dir: &Path) -> Result<PathBuf, Missing> {
    if program.contains('/') {
        let file = dir.join(program);
        return runs(&file, program).map(|()| file);
    }
    let mut refused = None;
    for place in path.split(':').filter(|place| place.starts_with('/')) {
        let file = Path::new(place).join(program);
        match runs(&file, program) {
            Ok(()) if !program.is_empty() => return Ok(file),
            Err(error @ Missing::NotExecutable(_)) => refused = Some(error),
            _ => {}
        }
    }
    Err(refused.unwrap_or_else(|| Missing::NotInPath(program.to_owned())))
}

fn runs(file: &Path, program: &str) -> Result<(), Missing> {
    let program = program.to_owned();
    match fs::metadata(file) {
        Ok(found) if found.is_dir() => Err(Missing::Directory(program)),
        Ok(found) if !found.is_file() || found.permissions().mode() & 0o111 == 0 => {
            Err(Missing::NotExecutable(program))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Missing::NotThere(program),
            io::ErrorKind::PermissionDenied => Missing::NotExecutable(program),
            _ => Missing::Unreadable(program, error),
        }),
    }
}

impl Executables {
    /// `sha256:` and the sum of the file, which is the id of an image.
    pub fn id(&self, file: &Path) -> Result<String, Missing> {
        let unreadable = |error| Missing::Unreadable(file.to_string_lossy().into_owned(), error);
        let stamp = stamp(&fs::metadata(file).map_err(unreadable)?);
        let own = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(file.to_owned()).or_default().clone()
        };
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, id)) = &*own
            && *at == stamp
        {
            return Ok(id.clone());
        }
        let id = format!("sha256:{}", sum(file).map_err(unreadable)?);
        *own = Some((stamp, id.clone()));
        Ok(id)
    }
}

fn stamp(found: &fs::Metadata) -> Stamp {
    (
        found.dev(),
        found.ino(),
        found.len(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    )
}

fn sum(file: &Path) -> io::Result<String> {
    let mut file = File::open(file)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => digest.update(&buffer[..read]),
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
