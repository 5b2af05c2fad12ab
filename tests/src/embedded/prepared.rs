//! A store with definitions in it, made by whoever needs it first.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, UNIX_EPOCH},
};

use jiff::Timestamp;
use windlass_local::store::Store;

use super::{Embedded, PATIENCE, STORE};
use crate::{cluster, definitions};

/// The file, to be copied.
pub(super) async fn store(crds: &[&str]) -> Result<PathBuf, String> {
    let folder = std::env::current_exe().unwrap().with_file_name("embedded-stores");
    fs::create_dir_all(&folder).unwrap();
    let programs = programs();
    let path = folder.join(format!("{programs}-{}.redb", hash(&crds)));
    if path.exists() {
        return Ok(path);
    }
    // The others of this run wait for it; the lock goes with the file's handle.
    let lock = File::create(folder.join("lock")).unwrap();
    let lock = tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await;
    let _lock = lock.unwrap().unwrap();
    if !path.exists() {
        remove_others(&folder, &programs);
        make(crds, &path).await?;
    }
    Ok(path)
}

/// Changes with the programs, which decide what is stored and how.
fn programs() -> String {
    let programs = [std::env::current_exe().unwrap(), cluster::binary()].map(|program| {
        let about = fs::metadata(&program).unwrap();
        let changed = about.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
        (program, about.len(), changed)
    });
    hash(&programs)
}

fn hash(of: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Those of programs that are no more.
fn remove_others(folder: &Path, programs: &str) {
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if name.ends_with(".redb") && !name.starts_with(programs) {
            fs::remove_file(file.path()).unwrap();
        }
    }
}

async fn make(crds: &[&str], path: &Path) -> Result<(), String> {
    let others = definitions::of_others(crds)?;
    let mut embedded = Embedded::bare().await;
    let client = cluster::connect(&embedded.kubeconfig()).await;
    definitions::apply(&client, &definitions::ours()).await;
    definitions::apply(&client, &others).await;
    embedded.kill();
    let made = embedded.state().join(STORE);
    wait_for_end(&made).await;
    fs::copy(made, path.with_extension("new")).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
    Ok(())
}

/// Whoever can open it is alone with it.
async fn wait_for_end(store: &Path) {
    let started = Instant::now();
    while let Err(error) = Store::open(store, Arc::new(Timestamp::now)) {
        assert!(started.elapsed() < PATIENCE, "{error}");
        tokio::task::yield_now().await;
    }
}
