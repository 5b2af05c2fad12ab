//! A hub on this machine that has the files of the model, so that an import waits for no network.

use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    data::Model,
    limits::blocks,
    serve::{Answer, Body, Request, serve},
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

struct Files {
    folder: PathBuf,
    list: Value,
}

/// As a repository of any name.
pub(super) fn start(model: &Model) -> Result<SocketAddr> {
    let mut list = Vec::new();
    for file in &model.files {
        let about = about(file).with_context(|| format!("cannot read {}", file.display()))?;
        list.push(about);
    }
    let files = Files { folder: model.folder.clone(), list: list.into() };
    serve(move |request| files.answer(request))
}

fn about(file: &Path) -> io::Result<Value> {
    let (mut hash, mut size) = (Sha256::new(), 0);
    blocks(file, |block| {
        hash.update(block);
        size += block.len();
        Ok(())
    })?;
    let sum: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(json!({"type": "file", "path": name, "size": 130, "oid": "pointer",
        "lfs": {"oid": sum, "size": size}}))
}

impl Files {
    fn answer(&self, request: &Request) -> Answer {
        let path = request.target.split('?').next().unwrap_or_default();
        let text =
            |value: &Value| Answer { body: Body::Text(value.to_string()), ..Answer::of("200 OK") };
        if path.contains("/revision/") {
            return text(&json!({"sha": COMMIT}));
        }
        if path.contains("/tree/") {
            return text(&self.list);
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_known =
            self.list.as_array().is_some_and(|list| list.iter().any(|file| file["path"] == name));
        let opened = is_known.then(|| open(&self.folder.join(name), request.from));
        match opened {
            Some(Ok((file, length))) => {
                let status = if request.from > 0 { "206 Partial Content" } else { "200 OK" };
                Answer { body: Body::File(file, length), ..Answer::of(status) }
            }
            _ => Answer::of("404 Not Found"),
        }
    }
}

/// With how much there is from there on.
fn open(path: &Path, from: u64) -> io::Result<(File, u64)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(from))?;
    Ok((file, size.saturating_sub(from)))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Arguments, serve::ask},
        *,
    };

    #[test]
    fn it_lists_the_model_and_sends_its_files_from_any_byte() {
        let folder = std::env::temp_dir().join(format!("xtask-hub-{}", std::process::id()));
        let arguments = Arguments::parse(&["--megabytes", "1", "--files", "1"]).unwrap();
        let model = Model::make(folder.clone(), &arguments).unwrap();
        std::fs::write(&model.files[0], "0123456789").unwrap();
        let hub = start(&model).unwrap();
        let get = |path: &str| ask(hub, &format!("GET {path} HTTP/1.1\r\nRange: bytes=7-\r\n\r\n"));
        let list = get(&format!("/api/models/a/b/tree/{COMMIT}?recursive=true"));
        let file = get(&format!("/a/b/resolve/{COMMIT}/weights-0.safetensors"));
        let other = get(&format!("/a/b/resolve/{COMMIT}/Kitfile"));
        std::fs::remove_dir_all(&folder).unwrap();
        let sum = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
        assert!(list.contains(sum) && list.contains("\"size\":10"), "{list}");
        assert!(file.starts_with("HTTP/1.1 206 ") && file.ends_with("\r\n\r\n789"), "{file}");
        assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    }
}
