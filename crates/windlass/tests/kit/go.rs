//! A program of Go, made of the libraries that the tools of others are made of. Its source is beside this.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use windlass_kit::Digest;

use crate::{cache, note};

pub(crate) struct Go {
    program: PathBuf,
}

impl Go {
    /// Built once for all checkouts that have the same source and the same Go. None, said aloud, where it
    /// cannot be.
    pub(crate) fn find() -> Option<Self> {
        let go = note::program("go")?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kit/go");
        let folder = cache::dir().unwrap().join("kit-tests").join(version(&go, &source));
        let program = folder.join("kit-tests");
        if program.is_file() {
            return Some(Self { program });
        }
        let _lock = cache::Lock::take("kit-tests").unwrap();
        // Whoever held it may have built it.
        if !program.is_file() {
            let modules = run(&go, &source, &["mod", "download"]);
            if let Err(reason) = modules {
                note::missing("go", &format!("there are no modules of Go: {reason}"));
                return None;
            }
            fs::create_dir_all(&folder).unwrap();
            let partial = folder.join("partial");
            let into = partial.to_str().unwrap();
            let build =
                ["build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", into, "."];
            run(&go, &source, &build).unwrap();
            fs::rename(partial, &program).unwrap();
        }
        Some(Self { program })
    }

    /// What is in an artifact of a registry without TLS, all of it checked.
    #[track_caller]
    pub(crate) fn read(&self, reference: &str) -> Value {
        self.told(&["read", reference])
    }

    /// Pushes what another tool would have made of a folder.
    #[track_caller]
    pub(crate) fn write(
        &self,
        form: &str,
        compression: &str,
        reference: &str,
        folder: &Path,
    ) -> Value {
        self.told(&["write", form, compression, reference, folder.to_str().unwrap()])
    }

    #[track_caller]
    fn told(&self, arguments: &[&str]) -> Value {
        let output = Command::new(&self.program).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Of all files of the source, and of what builds it for which machine.
fn version(go: &Path, source: &Path) -> String {
    let files = fs::read_dir(source).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let mut all = run(go, source, &["env", "GOVERSION", "GOOS", "GOARCH"]).unwrap().into_bytes();
    all.extend(files.iter().flat_map(|file| fs::read(file).unwrap()));
    Digest::of(&all).hex()[..16].to_owned()
}

/// What it says.
fn run(go: &Path, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(go);
    // The user's own modules and vendoring must not reach into ours.
    command.env("GOWORK", "off").env("GOFLAGS", "-mod=readonly").env("CGO_ENABLED", "0");
    let output = command.args(arguments).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
