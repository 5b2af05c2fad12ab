//! `kit cache` and `kit store`: what is kept, what it takes, whether it is whole.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::Context;
use clap::Subcommand;
use serde_json::json;

use super::{outcome::NotTheSame, progress::size_of, session::Session};

#[derive(Debug, Subcommand)]
pub(super) enum CacheCommand {
    /// Tell what unfinished work takes
    Info,
    /// Remove it; imports and pushes that were cut begin anew
    Clear,
}

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Remove what no artifact needs
    Gc,
    /// Read everything and compare it with its digest
    Fsck,
}

fn caches(session: &Session) -> [(&'static str, PathBuf); 4] {
    let home = session.home();
    [
        ("layers", home.join("cache")),
        ("imports", home.join("windlass/import")),
        ("pushes", home.join("windlass/uploads")),
        ("pulls", home.join("storage/ingest")),
    ]
}

pub(super) fn cache(session: &Session, command: &CacheCommand) -> anyhow::Result<()> {
    let (mut freed, mut sizes) = (0, serde_json::Map::new());
    for (name, folder) in caches(session) {
        let failed = || format!("cannot use {}", folder.display());
        let size = size(&folder).with_context(failed)?;
        match command {
            CacheCommand::Info if session.out.json => {
                sizes.insert(name.to_owned(), size.into());
            }
            CacheCommand::Info => {
                session.out.data(format!("{name}: {} in {}\n", size_of(size), folder.display()))?;
            }
            CacheCommand::Clear => {
                freed += size;
                match fs::remove_dir_all(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(error).with_context(failed);
                    }
                    _ => {}
                }
            }
        }
    }
    match command {
        CacheCommand::Info if session.out.json => session.out.object(&sizes),
        CacheCommand::Info => Ok(()),
        CacheCommand::Clear if session.out.json => session.out.object(&json!({"bytes": freed})),
        CacheCommand::Clear => session.out.data(format!("Removed {}\n", size_of(freed))),
    }
}

fn size(folder: &Path) -> io::Result<u64> {
    let children = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        children => children?,
    };
    let mut total = 0;
    for child in children {
        let child = child?;
        let found = child.metadata()?;
        total += if found.is_dir() { size(&child.path())? } else { found.len() };
    }
    Ok(total)
}

pub(super) fn store(
    session: &Session,
    command: &StoreCommand,
    now: SystemTime,
) -> anyhow::Result<()> {
    let store = session.store()?;
    match command {
        StoreCommand::Gc => {
            let freed = store.sweep(now)?;
            if session.out.json {
                let object = json!({"blobs": freed.blobs, "bytes": freed.bytes});
                return session.out.object(&object);
            }
            let size = size_of(freed.bytes);
            session.out.data(format!("Removed {} blobs, {size}\n", freed.blobs))
        }
        StoreCommand::Fsck => {
            let checked = store.check_while(|| !session.stop.is_cancelled())?;
            for digest in &checked.damaged {
                session.out.warn(format!("{digest} is damaged"));
            }
            for digest in &checked.missing {
                session.out.warn(format!("{digest} is missing"));
            }
            if session.out.json {
                let (blobs, damaged, missing) = (checked.blobs, &checked.damaged, &checked.missing);
                session
                    .out
                    .object(&json!({"blobs": blobs, "damaged": damaged, "missing": missing}))?;
            }
            let bad = checked.damaged.len() + checked.missing.len();
            if bad > 0 {
                let text = format!("{bad} blobs of the local storage are damaged or missing");
                return Err(NotTheSame(text).into());
            }
            match session.out.json {
                true => Ok(()),
                false => session.out.data(format!("{} blobs are whole\n", checked.blobs)),
            }
        }
    }
}
