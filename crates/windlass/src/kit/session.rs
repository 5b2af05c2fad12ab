//! What every command works with: where things are kept, and how it tells of itself.

use std::{
    env,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, bail};
use tokio_util::sync::CancellationToken;
use windlass_kit::{
    Reference,
    reference::{Tag, Version},
    remote::Remote,
    store::Store,
};

use super::{
    flags::{Global, Network},
    output::Output,
};

pub(super) struct Session {
    home: PathBuf,
    /// Folders with credentials in docker's form, one of which counts at a time; the last one first.
    logins: Mutex<Vec<PathBuf>>,
    pub(super) out: Output,
    /// For threads, which nobody else can end.
    pub(super) stop: CancellationToken,
}

impl Session {
    pub(super) fn new(flags: &Global) -> anyhow::Result<Self> {
        let home = match &flags.config {
            Some(home) => Some(home.clone()),
            None => home(|name| env::var_os(name).filter(|value| !value.is_empty())),
        };
        let home =
            home.context("set HOME, KITOPS_HOME or --config: nothing says where to keep things")?;
        // Files are named from it after the working directory may have changed.
        let home = std::path::absolute(&home)?;
        let logins = Mutex::new(logins(|name| env::var(name).ok()));
        Ok(Self { home, logins, out: Output::new(flags), stop: CancellationToken::new() })
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Nothing is made to look into it: a container may have no place for that.
    pub(super) fn has_store(&self) -> bool {
        Store::is_at(&self.home)
    }

    pub(super) fn store(&self) -> anyhow::Result<Store> {
        Ok(Store::open(self.home.clone())?)
    }

    /// Ours, into which `login` writes.
    pub(super) fn credentials(&self) -> PathBuf {
        self.home.join("credentials.json")
    }

    pub(super) fn remote(&self, registry: &str, network: &Network) -> anyhow::Result<Remote> {
        let docker = self.logins.lock().unwrap_or_else(PoisonError::into_inner).last().cloned();
        let own = env::var_os("HOME").map(|home| PathBuf::from(home).join(".docker"));
        let docker = docker.into_iter().chain(own).map(|folder| folder.join("config.json"));
        let files = [self.credentials()].into_iter().chain(docker).collect();
        Ok(Remote::new(registry, &network.settings(files))?)
    }

    /// Whether there are others, which count from now on.
    pub(super) fn next_login(&self) -> bool {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let has_next = logins.len() > 1;
        if has_next {
            logins.pop();
        }
        has_next
    }

    /// One artifact. A tag that was left out is told.
    pub(super) fn reference(&self, text: &str) -> anyhow::Result<Reference> {
        let (reference, more) = self.references(text)?;
        match more.is_empty() {
            true => Ok(reference),
            false => bail!("invalid reference {text:?}: one tag only"),
        }
    }

    /// One artifact under several tags.
    pub(super) fn references(&self, text: &str) -> anyhow::Result<(Reference, Vec<Tag>)> {
        let (reference, more) = Reference::parse_with_tags(text)?;
        let is_latest = *reference.version() == Version::Tag(Tag::latest());
        if is_latest && !text.ends_with(":latest") && more.is_empty() {
            self.out.note(format!("no tag given for {text}: using latest"));
        }
        Ok((reference, more))
    }
}

/// A pod that has several pull secrets names their folders, separated by blanks.
fn logins(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.trim().is_empty());
    match (set("DOCKER_CONFIGS"), set("DOCKER_CONFIG")) {
        (Some(several), _) => several.split_whitespace().rev().map(PathBuf::from).collect(),
        (None, one) => one.into_iter().map(PathBuf::from).collect(),
    }
}

fn home(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let under = |name: &str, rest: &str| Some(PathBuf::from(variable(name)?).join(rest));
    let usual = match cfg!(target_os = "macos") {
        true => "Library/Caches/kitops",
        false => ".local/share/kitops",
    };
    variable("KITOPS_HOME")
        .map(PathBuf::from)
        .or_else(|| under("XDG_DATA_HOME", "kitops"))
        .or_else(|| under("HOME", usual))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn several_folders_of_credentials_are_tried_in_their_order() {
        for (several, one, want) in [
            (None, None, &[][..]),
            (None, Some("/a b"), &["/a b"]),
            (Some(" "), Some("/a"), &["/a"]),
            (Some("/a /b"), Some("/a"), &["/b", "/a"]),
        ] {
            let value = |name: &str| {
                let value = if name == "DOCKER_CONFIGS" { several } else { one };
                value.map(str::to_owned)
            };
            let want: Vec<_> = want.iter().map(PathBuf::from).collect();
            assert_eq!(logins(value), want, "{several:?} {one:?}");
        }
    }

    #[test]
    fn the_most_special_variable_says_where_things_are() {
        let all = [("KITOPS_HOME", "/k"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        for (known, want) in [
            (&all[..], Some("/k")),
            (&all[1..], Some("/x/kitops")),
            (&all[2..], Some("/h/.local/share/kitops")),
            (&all[3..], None),
        ] {
            let value =
                |name: &str| known.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
            if cfg!(target_os = "linux") {
                assert_eq!(home(value), want.map(PathBuf::from), "{known:?}");
            }
        }
    }
}
