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
use crate::directories::remove_all;

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

/// Removes the directories of pods that are gone, and nothing that is called otherwise than a pod is:
/// the user may have chosen a directory in which there is something else. Nor is a link followed.
pub fn remove_unknown(dirs: &[&Path], known: &BTreeSet<String>) {
    let is_own = |dir: &&&Path| fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir());
    for dir in dirs.iter().filter(is_own) {
        let gone = |uid: &String| is_uid(uid) && !known.contains(uid);
        for uid in entries(dir).into_iter().filter(gone) {
            if let Err(error) = remove_all(&dir.join(&uid)) {
                tracing::warn!(%error, uid, "cannot remove the directory of a pod");
            }
        }
    }
}

/// As the API makes them: five groups of hexadecimal digits.
fn is_uid(name: &str) -> bool {
    let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let groups: Vec<&str> = name.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.into_iter().all(is_hex)
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const GONE: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
    const KNOWN: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

    #[test]
    fn only_directories_of_pods_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let pods = dir.path().join("pods");
        for name in [GONE, KNOWN, "photos", "0f8fad5b", "0f8fad5b-d9cb-469f-a165-70867728950g"] {
            fs::create_dir_all(pods.join(name).join("inside")).unwrap();
        }
        remove_unknown(&[&pods], &BTreeSet::from([KNOWN.to_owned()]));
        assert_eq!(entries(&pods).len(), 4);
        assert!(!pods.join(GONE).exists());
    }

    #[test]
    fn what_a_link_leads_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (elsewhere, pods) = (dir.path().join("elsewhere"), dir.path().join("pods"));
        fs::create_dir_all(elsewhere.join(GONE)).unwrap();
        symlink(&elsewhere, &pods).unwrap();
        remove_unknown(&[&pods], &BTreeSet::new());
        assert!(elsewhere.join(GONE).exists());
    }
}
