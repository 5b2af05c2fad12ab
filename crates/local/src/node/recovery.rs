//! After a crash: what an earlier start of the node has left is ended before anything begins.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use super::{
    limits, processes,
    record::{Record, Records},
};

/// The records of all pods, by uid.
pub type Left = BTreeMap<String, Records>;

/// Ends every process that the records name and that still lives. Others that merely have the same
/// number are never touched.
///
/// It waits for the ends, so it is not for a thread that others wait for.
pub fn end_processes(pods: &Path) -> Left {
    let mut left = Left::new();
    for uid in entries(pods) {
        let records = Records::read(&pods.join(&uid)).unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                uid,
                "cannot read the records of a pod"
            );
            Records::none(&pods.join(&uid))
        });
        left.insert(uid, records);
    }
    let runs: Vec<&Record> = left
        .values()
        .flat_map(|records| records.runs().values())
        .filter(|record| record.ended.is_none())
        .collect();
    if !runs.is_empty() {
        let groups: Vec<_> = runs.iter().filter_map(|record| record.group.as_deref()).collect();
        let runs: Vec<_> =
            runs.iter().map(|record| (&*record.token, record.process.as_ref())).collect();
        processes::end_all(&runs);
        groups.iter().for_each(|group| limits::end(group));
    }
    left
}

/// Removes the directories of pods that are gone.
pub fn remove_unknown(dirs: &[&Path], known: &BTreeSet<String>) {
    for dir in dirs {
        for uid in entries(dir).into_iter().filter(|uid| !known.contains(uid)) {
            if let Err(error) = fs::remove_dir_all(dir.join(&uid)) {
                tracing::warn!(%error, uid, "cannot remove the directory of a pod");
            }
        }
    }
}

fn entries(dir: &Path) -> Vec<String> {
    match fs::read_dir(dir) {
        Ok(all) => all.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect(),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, "cannot read the directories of pods");
            }
            Vec::new()
        }
    }
}
