//! `kit publish`: what the Job of an artifact does, told by the variables of its container, as the
//! shell script for other images is.

use std::{env, fs, path::PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Parser};
use windlass_kit::{Reference, remote::credentials};

use super::{import, session::Session};

#[derive(Debug, Args)]
#[group(id = "kit-publish")]
pub(super) struct Flags {
    /// Directory for everything that is large
    #[arg(long, value_name = "DIR")]
    workspace: PathBuf,
    /// Where to write the digest of what was pushed, and nothing else
    #[arg(long, value_name = "FILE")]
    digest_file: PathBuf,
}

impl Flags {
    /// The storage of the run, which what an earlier one has left is found in.
    pub(super) fn home(&self) -> PathBuf {
        self.workspace.join(".kitops")
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    /// Of the hub.
    repository: String,
    revision: Option<String>,
    target: String,
    is_model_pack: bool,
    plain_http: bool,
}

/// The command that does it.
#[derive(Debug, Parser)]
struct Import {
    #[command(flatten)]
    flags: import::Flags,
}

pub(super) async fn run(session: &Session, flags: &Flags) -> anyhow::Result<()> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let wanted = Wanted::read(variable)?;
    if let (Some(user), Some(password)) = (variable("OCI_USER"), variable("OCI_PASS")) {
        keep_login(session, &wanted.target, &user, &password)?;
    }
    let import = Import::try_parse_from(wanted.arguments()).context("cannot import")?;
    import::run(session, &import.flags).await?;
    let digest = session.out.told().context("nothing was pushed")?;
    fs::write(&flags.digest_file, digest.as_str())
        .with_context(|| format!("cannot write {}", flags.digest_file.display()))
}

fn keep_login(session: &Session, target: &str, user: &str, password: &str) -> anyhow::Result<()> {
    let file = session.credentials();
    let failed = || format!("cannot keep the password in {}", file.display());
    fs::create_dir_all(session.home()).with_context(failed)?;
    let registry = Reference::parse(target)?.registry().to_owned();
    credentials::keep(&file, &registry, user, password).with_context(failed)
}

impl Wanted {
    fn read(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let needed = |name: &str| variable(name).with_context(|| format!("{name} is not set"));
        let repository = needed("HF_REPO")?;
        // Such are folders to the command, and this machine's are nobody's model.
        if repository.starts_with(['.', '/']) {
            bail!("{repository:?} is no repository of the hub");
        }
        Ok(Self {
            repository,
            revision: variable("HF_REVISION"),
            target: needed("OCI_TARGET")?,
            is_model_pack: variable("FORMAT").as_deref() == Some("ModelPack"),
            plain_http: variable("PLAIN_HTTP").is_some(),
        })
    }

    /// The token is taken from its variable by the command itself: arguments can be seen by others.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = ["import", "--push"].map(str::to_owned).to_vec();
        arguments.push(format!("--tag={}", self.target));
        arguments.extend(self.revision.iter().map(|revision| format!("--ref={revision}")));
        arguments.extend(self.is_model_pack.then(|| "--use-model-pack".to_owned()));
        arguments.extend(self.plain_http.then(|| "--plain-http".to_owned()));
        arguments.extend(["--".to_owned(), self.repository.clone()]);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(known: &[(&str, &str)]) -> anyhow::Result<Wanted> {
        let find = |name: &str| known.iter().find(|(known, _)| *known == name);
        Wanted::read(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_variables_of_the_job_say_what_is_done() {
        let all = [
            ("HF_REPO", "Org/Tiny"),
            ("OCI_TARGET", "localhost:5000/org/tiny:v1"),
            ("FORMAT", "ModelPack"),
            ("HF_REVISION", "-odd"),
            ("PLAIN_HTTP", "true"),
        ];
        let told = |count: usize| read(&all[..count]).unwrap().arguments()[3..].join(" ");
        assert_eq!(told(2), "-- Org/Tiny");
        assert_eq!(told(3), "--use-model-pack -- Org/Tiny");
        assert_eq!(told(5), "--ref=-odd --use-model-pack --plain-http -- Org/Tiny");
        let given = read(&all).unwrap().arguments();
        assert_eq!(given[..3], ["import", "--push", "--tag=localhost:5000/org/tiny:v1"]);
        Import::try_parse_from(given).unwrap();
        assert!(read(&all[..1]).unwrap_err().to_string().contains("OCI_TARGET is not set"));
        assert!(read(&all[1..]).unwrap_err().to_string().contains("HF_REPO is not set"));
    }

    #[test]
    fn no_folder_of_the_machine_is_taken_for_a_model() {
        for folder in ["/etc", "./x", "../x", "."] {
            let known = [("HF_REPO", folder), ("OCI_TARGET", "localhost:5000/a")];
            let refused = read(&known).unwrap_err().to_string();
            assert!(refused.contains("is no repository of the hub"), "{refused}");
        }
    }
}
