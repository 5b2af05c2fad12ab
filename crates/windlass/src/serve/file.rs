//! Which file of a directory the model is.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::exit::BadInput;

/// How deep a model may lie in what was unpacked.
const DEPTH: usize = 3;

pub(super) fn find(given: &Path) -> anyhow::Result<PathBuf> {
    if !given.is_dir() {
        return Ok(given.to_owned());
    }
    let mut found = Vec::new();
    collect(given, DEPTH, &mut found)
        .with_context(|| format!("cannot look for a model in {}", given.display()))?;
    found.sort();
    let problem = match <[PathBuf; 1]>::try_from(found) {
        Ok([one]) => return Ok(one),
        Err(found) if found.is_empty() => "there is no GGUF file",
        Err(_) => "there are several GGUF files; name one of those",
    };
    Err(BadInput(format!("{problem} in {}", given.display())).into())
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, found)?;
            }
        } else if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf")) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_must_hold_one_model() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |want: &str| {
            let error = find(folder.path()).unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        };
        refused("there is no GGUF file in");
        let inner = folder.path().join("a");
        fs::create_dir(&inner).unwrap();
        fs::write(folder.path().join("README.md"), "").unwrap();
        fs::write(inner.join("m.GGUF"), "").unwrap();
        assert_eq!(find(folder.path()).unwrap(), inner.join("m.GGUF"));
        fs::write(folder.path().join("n.gguf"), "").unwrap();
        refused("there are several GGUF files");
        assert_eq!(find(&folder.path().join("n.gguf")).unwrap(), folder.path().join("n.gguf"));
    }
}
