//! Files that need not be downloaded: those that are layers by themselves have the digest that the hub
//! tells, and may be where the artifact goes to.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use futures::{StreamExt, TryStreamExt, stream};
use windlass_kit::{
    Digest, Kitfile,
    context::{self, Context, Links},
    hub::{File, Snapshot, Sum},
    layer::Format,
    remote::Remote,
    store::{Locked, Store},
    tar::Type,
};

use super::{
    super::{flags::Compression, packing::Names, session::Session},
    Flags,
};

/// Where blobs may be.
enum Target {
    Registry(Box<Remote>, String),
    Storage(Store),
}

impl Target {
    /// In this size, since that is what the manifest will say.
    async fn has(&self, digest: &Digest, size: u64) -> anyhow::Result<bool> {
        let is = match self {
            Self::Registry(remote, repository) => {
                remote.find_blob(repository, digest).await?.and_then(|found| found.size)
            }
            Self::Storage(store) => fs::metadata(store.blob(digest)).ok().map(|found| found.len()),
        };
        Ok(is == Some(size))
    }
}

/// What was found. None of it goes from the local storage as long as this lives.
#[derive(Default)]
pub(super) struct There {
    /// By the paths of their files.
    pub(super) layers: BTreeMap<String, Digest>,
    _using: Option<Locked>,
}

pub(super) async fn find(
    session: &Session,
    flags: &Flags,
    kitfile: &Kitfile,
    names: &Names,
    files: &[File],
) -> anyhow::Result<There> {
    let form = &flags.form;
    // Any other layer has a digest of its own.
    if form.layers() != Format::Raw || form.compression != Compression::None {
        return Ok(There::default());
    }
    let (target, using) = match names {
        Some((reference, _)) if flags.push => {
            let remote = session.remote(reference.registry(), &flags.network)?;
            (Target::Registry(Box::new(remote), reference.repository().to_owned()), None)
        }
        _ => {
            let store = session.store()?;
            // Before anything is looked for: somebody may remove it otherwise while the rest comes.
            let using = store.using()?;
            (Target::Storage(store), Some(using))
        }
    };
    let entries = kitfile.entries()?;
    let is_layer = |file: &File| entries.iter().any(|entry| entry.path.as_str() == file.path);
    let layers = files.iter().filter(|file| is_layer(file));
    let known: Vec<_> = layers.filter_map(|file| Some((file, digest(file)?))).collect();
    let found = stream::iter(known).map(async |(file, digest)| {
        let is_there = target.has(&digest, file.size).await?;
        anyhow::Ok(is_there.then(|| (file.path.clone(), digest)))
    });
    let found: Vec<_> = found.buffered(flags.network.concurrency.get()).try_collect().await?;
    let layers: BTreeMap<_, _> = found.into_iter().flatten().collect();
    if !layers.is_empty() {
        session.out.info(format!("{} files are there already", layers.len()));
    }
    Ok(There { layers, _using: using })
}

fn digest(file: &File) -> Option<Digest> {
    match &file.sum {
        Sum::Sha256(sum) => format!("sha256:{sum}").parse().ok(),
        Sum::Git(_) => None,
    }
}

impl There {
    fn has(&self, path: &str) -> bool {
        self.layers.contains_key(path)
    }

    /// What has to come.
    pub(super) fn missing(&self, snapshot: &Snapshot) -> Snapshot {
        let files = snapshot.files.iter().filter(|file| !self.has(&file.path)).cloned().collect();
        Snapshot { commit: snapshot.commit.clone(), files }
    }

    /// What is here and what is elsewhere. Which of the two a file is changes no layer.
    pub(super) fn context(&self, folder: &Path, files: &[File]) -> anyhow::Result<Context> {
        let elsewhere: Vec<_> = files.iter().filter(|file| self.has(&file.path)).collect();
        let places = elsewhere.iter().map(|file| folder.join(&file.path));
        // Directories are packed too, also those in which no file has come.
        let above = places.filter_map(|place| place.parent().map(Path::to_owned));
        for directory in above.chain([folder.to_owned()]) {
            fs::create_dir_all(&directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        let context = Context::read(folder, Links::Skip)?.with_plain_modes();
        // An earlier run may have wanted others, and may have got some that are elsewhere by now.
        let wanted = files.iter().map(|file| file.path.as_str()).collect();
        let mut context = context.with_only(&wanted);
        context.files.retain(|file| !self.has(&file.name));
        context.files.extend(elsewhere.into_iter().map(|file| as_if_here(folder, file)));
        Ok(context)
    }
}

fn as_if_here(root: &Path, file: &File) -> context::File {
    context::File {
        name: file.path.as_str().into(),
        root: root.into(),
        type_: Type::File,
        mode: 0o644,
        size: file.size,
    }
}
