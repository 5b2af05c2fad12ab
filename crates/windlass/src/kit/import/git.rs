//! One commit of a repository of git, by the git of this machine.

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use anyhow::{Context as _, bail};
use tokio::process::Command;
use windlass_kit::{
    Digest,
    context::{Context, Links},
    hub,
    remote::Settings,
};

use super::{
    super::{
        login::Secret,
        outcome::{NotThere, Refusal},
        session::Session,
    },
    Flags, Found, Place, files, given, target,
};

/// What git takes for the newest.
const NEWEST: &str = "HEAD";
/// Others could run any program.
const PROTOCOLS: &str = "http:https:ssh:git:file";
/// What the user's environment may say: how to reach and be known to a host. The rest is about
/// repositories of theirs.
const KEPT: [&str; 4] = ["GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_CAINFO"];

pub(super) async fn run(session: &Session, flags: &Flags, address: &str) -> anyhow::Result<()> {
    let name = name(address);
    let names = target(session, flags, &name)?;
    let given = given(session, flags)?;
    let revision = flags.revision.as_deref().unwrap_or(NEWEST);
    session.out.info(format!("Importing {} by git", shown(address)));
    let key = Digest::of(format!("{address}\n{revision}").as_bytes());
    let place = Place::new(session, &name, key.hex())?;
    let network = flags.network.of_source();
    let git = Git { place: &place, address, token: flags.token.as_ref(), network };
    git.fetch(revision).await?;
    let found = || {
        let mut context = Context::read(&place.files(), Links::Skip)?.with_plain_modes();
        context.files.retain(|file| !hub::SKIPPED.contains(&&*file.name));
        Found::new(session, flags, &name, &place.files(), context, given.as_ref())
    };
    // Pointers have the names of what they point to, so what cannot be packed is told already.
    let mut files_found = found()?;
    if git.large_files().await? {
        files_found = found()?;
    }
    files(session, flags, &files_found, names).await?;
    place.clear(&session.out);
    Ok(())
}

struct Git<'a> {
    place: &'a Place,
    address: &'a str,
    token: Option<&'a Secret>,
    network: Settings,
}

impl Git<'_> {
    /// One commit, without those before it.
    async fn fetch(&self, revision: &str) -> anyhow::Result<()> {
        if revision.starts_with('-') || self.address.starts_with('-') {
            bail!("{:?} of {:?} cannot be imported by git", revision, shown(self.address));
        }
        std::fs::create_dir_all(self.place.files())
            .with_context(|| format!("cannot use {}", self.place.files().display()))?;
        let attempt = format!("fetch {revision} of {}", shown(self.address));
        // We are alone here, so whoever has locked something was killed.
        remove_locks(&self.directory());
        self.run(&["init", "--quiet", "--template="], "begin a repository").await?;
        let known = self.output(&["remote", "get-url", "origin"]).await?;
        if !known.status.success() {
            self.run(&["remote", "add", "origin", self.address], &attempt).await?;
        }
        self.run(&["fetch", "--quiet", "--depth=1", "origin", revision], &attempt).await?;
        let checkout = ["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"];
        self.run(&checkout, "write the files of the commit").await?;
        // Another commit may have been here before.
        self.run(&["clean", "-ffdxq"], "remove the files of others").await
    }

    /// Those of which git itself has nothing but a pointer. Whether there are any is told.
    async fn large_files(&self) -> anyhow::Result<bool> {
        let listed = self.output(&["ls-files", "--", ":(attr:filter=lfs)"]).await?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let Some(first) = listed.lines().next() else { return Ok(false) };
        if !self.output(&["lfs", "version"]).await?.status.success() {
            bail!("{first} is kept by Git LFS, and git-lfs is not installed here");
        }
        self.run(&["lfs", "install", "--local", "--skip-smudge"], "set up Git LFS").await?;
        self.run(&["lfs", "pull", "origin"], "fetch the large files").await?;
        Ok(true)
    }

    async fn run(&self, arguments: &[&str], attempt: &str) -> anyhow::Result<()> {
        let output = self.output(arguments).await?;
        if output.status.success() {
            return Ok(());
        }
        Err(failure(attempt, &String::from_utf8_lossy(&output.stderr)))
    }

    async fn output(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let files = self.place.files();
        let mut command = Command::new("git");
        let is_strange = |name: &str| name.starts_with("GIT_") && !KEPT.contains(&name);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_strange)) {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .current_dir(&files)
            .env("GIT_DIR", self.directory())
            .env("GIT_WORK_TREE", &files)
            .env("GIT_ALLOW_PROTOCOL", PROTOCOLS)
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            // Nobody is there to answer, and its words are read.
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let config = self.config();
        command.env("GIT_CONFIG_COUNT", config.len().to_string());
        for (at, (key, value)) in config.into_iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command.output().await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow::anyhow!("git is not installed here"),
            _ => anyhow::Error::from(error).context("cannot run git"),
        })
    }

    fn directory(&self) -> PathBuf {
        self.place.files().with_file_name("git")
    }

    /// Handed over in the environment, which nobody else can read. What the user has set for work of
    /// their own must not change the bytes of files, nor run anything.
    fn config(&self) -> Vec<(String, OsString)> {
        let mut config: Vec<(String, OsString)> = vec![
            ("core.autocrlf".to_owned(), "false".into()),
            ("core.hooksPath".to_owned(), "/dev/null".into()),
            ("core.fsmonitor".to_owned(), "false".into()),
        ];
        let Settings { proxy, ca_file, .. } = &self.network;
        config.extend(proxy.iter().map(|proxy| ("http.proxy".to_owned(), proxy.into())));
        config.extend(ca_file.iter().map(|file| ("http.sslCAInfo".to_owned(), file.into())));
        if let Some((Secret(token), host)) = self.token.zip(host(self.address)) {
            let login = windlass_kit::remote::credentials::header("windlass", token);
            let header = format!("Authorization: {login}");
            config.push((format!("http.{host}/.extraHeader"), header.into()));
            // It would go with us to whatever host we are sent to.
            config.push(("http.followRedirects".to_owned(), "false".into()));
        }
        config
    }
}

/// Whatever stays makes git itself say so.
fn remove_locks(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => remove_locks(&path),
            false if path.extension().is_some_and(|ending| ending == "lock") => {
                drop(std::fs::remove_file(&path));
            }
            false => {}
        }
    }
}

/// The words of git, and what they mean.
fn failure(attempt: &str, told: &str) -> anyhow::Error {
    let is = |texts: &[&str]| texts.iter().any(|text| told.contains(text));
    let line = told.lines().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    let line = line.or_else(|| told.lines().next()).unwrap_or_default();
    let text = format!("cannot {attempt}: {}", shown_in(line));
    match () {
        () if is(&[
            "couldn't find remote ref",
            "not found",
            "does not appear to be a git",
            "not our ref",
        ]) =>
        {
            NotThere(text).into()
        }
        () if is(&[
            "Authentication failed",
            "could not read Username",
            "Permission denied",
            "403",
        ]) =>
        {
            Refusal::NotAllowed(text).into()
        }
        () if is(&["unable to access", "Could not resolve", "early EOF", "Connection"]) => {
            Refusal::NoAnswer(text).into()
        }
        () => anyhow::anyhow!(text),
    }
}

/// The last element, as a repository is called.
fn name(address: &str) -> String {
    let path = address.trim_end_matches('/');
    let last = path.rsplit(['/', ':']).next().unwrap_or_default();
    let last = Path::new(last).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = last.strip_suffix(".git").unwrap_or(last);
    if name.is_empty() { "model".to_owned() } else { name.to_owned() }
}

/// Scheme and host of an address of HTTP.
fn host(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split('/').next()?;
    let host = host.rsplit('@').next()?;
    matches!(scheme, "http" | "https").then(|| format!("{scheme}://{host}"))
}

/// Without what may be a password in it.
fn shown(address: &str) -> String {
    match address.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)))
    {
        Some((scheme, (who, rest))) if !who.contains('/') => format!("{scheme}://{rest}"),
        _ => address.to_owned(),
    }
}

/// Words of git, in which addresses may stand.
fn shown_in(line: &str) -> String {
    line.split(' ')
        .map(|word| match word.split_once("://") {
            Some((before, _)) if word.contains('@') => format!("{before}://…"),
            _ => word.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_called_by_its_last_element() {
        for (address, want) in [
            ("https://h.example.com/org/Tiny.git", "Tiny"),
            ("git@h.example.com:tiny", "tiny"),
            ("/srv/models/tiny/", "tiny"),
            ("https://h.example.com/", "h.example.com"),
            ("/", "model"),
        ] {
            assert_eq!(name(address), want, "{address}");
        }
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        assert_eq!(shown("https://u:hidden@h.example.com/x"), "https://h.example.com/x");
        assert_eq!(shown("https://h.example.com/a@b"), "https://h.example.com/a@b");
        assert_eq!(host("https://u:hidden@h.example.com/x"), Some("https://h.example.com".into()));
        assert_eq!(host("git@h.example.com:x"), None);
        let line = "fatal: unable to access 'https://u:hidden@h.example.com/x/': refused";
        let told = format!("{:?}", failure("fetch it", line));
        assert!(!told.contains("hidden") && told.contains("refused"), "{told}");
    }
}
