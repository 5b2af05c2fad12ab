//! `kit login` and `kit logout`: passwords of registries, checked before they are kept and never printed.

use std::{
    fs::File,
    io::{self, BufRead, IsTerminal, Read, Write},
};

use anyhow::{Context, bail};
use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::json;
use windlass_kit::{
    Reference,
    remote::{Remote, credentials},
};

use super::{flags::Network, outcome::NotThere, session::Session};

#[derive(Debug, Args)]
#[group(id = "kit-login")]
pub(super) struct LoginFlags {
    /// Host of the registry
    registry: String,
    /// Who to be; without it the password is a token
    #[arg(short, long, value_name = "USER")]
    username: Option<String>,
    /// Password or token; others may see it, so rather give it on standard input
    #[arg(short, long, value_name = "PASSWORD", conflicts_with = "password_stdin")]
    password: Option<Secret>,
    /// Read the password from standard input
    #[arg(long)]
    password_stdin: bool,
    #[command(flatten)]
    network: Network,
}

#[derive(Debug, Args)]
#[group(id = "kit-logout")]
pub(super) struct LogoutFlags {
    /// Host of the registry
    registry: String,
}

/// Never printed.
#[derive(Clone)]
pub(super) struct Secret(pub(super) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

pub(super) async fn login(session: &Session, flags: &LoginFlags) -> anyhow::Result<()> {
    let registry = registry(&flags.registry)?;
    let (user, password) = ask(flags).await?;
    if password.is_empty() || user.contains(':') {
        bail!("a user has no colon, and a password is not empty");
    }
    // What does not work is not kept.
    let scratch = tempfile::tempdir().context("cannot make a folder for a moment")?;
    let file = scratch.path().join("credentials.json");
    credentials::keep(&file, registry, &user, &password)?;
    Remote::new(registry, &flags.network.settings(vec![file]))?.ping().await?;
    let file = session.credentials();
    let failed = || format!("cannot keep the password in {}", file.display());
    std::fs::create_dir_all(session.home()).with_context(failed)?;
    credentials::keep(&file, registry, &user, &password).with_context(failed)?;
    match session.out.json {
        true => session.out.object(&json!({"registry": registry})),
        false => session.out.data("Log in successful\n"),
    }
}

pub(super) fn logout(session: &Session, flags: &LogoutFlags) -> anyhow::Result<()> {
    let registry = registry(&flags.registry)?;
    let file = session.credentials();
    let known = credentials::forget(&file, registry)
        .with_context(|| format!("cannot log out of {registry}"))?;
    if !known {
        return Err(NotThere(format!("not logged in to {registry}")).into());
    }
    match session.out.json {
        true => session.out.object(&json!({"registry": registry})),
        false => session.out.data(format!("Logged out of {registry}\n")),
    }
}

/// A host alone, as it stands before the names of artifacts.
fn registry(text: &str) -> anyhow::Result<&str> {
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://")).unwrap_or(text);
    let host = host.trim_end_matches('/');
    let is_host = Reference::parse(&format!("{host}/a")).is_ok_and(|r| r.registry() == host);
    match is_host {
        true => Ok(host),
        false => bail!("{text:?} is no registry: it must be HOST[:PORT]"),
    }
}

async fn ask(flags: &LoginFlags) -> anyhow::Result<(String, String)> {
    if flags.password_stdin {
        let mut password = String::new();
        let read = io::stdin().lock().read_to_string(&mut password);
        read.context("cannot read the password from standard input")?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        return Ok((flags.username.clone().unwrap_or_default(), password));
    }
    if let Some(password) = &flags.password {
        return Ok((flags.username.clone().unwrap_or_default(), password.0.clone()));
    }
    if !io::stdin().is_terminal() {
        bail!("there is no password: give it with --password-stdin");
    }
    let user = match &flags.username {
        Some(user) => user.clone(),
        None => line("Username (empty for a token): ").await?,
    };
    let _hidden = Hidden::new()?;
    let password = line("Password: ").await?;
    eprintln!();
    Ok((user, password))
}

/// On a thread, so that a signal can end the wait.
async fn line(prompt: &'static str) -> anyhow::Result<String> {
    tokio::task::spawn_blocking(move || {
        eprint!("{prompt}");
        io::stderr().flush()?;
        let mut text = String::new();
        io::stdin().lock().read_line(&mut text)?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    })
    .await?
}

/// As long as it lives, the terminal does not show what is typed.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn new() -> anyhow::Result<Self> {
        let terminal = File::open("/dev/tty").context("cannot use the terminal")?;
        let before = tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that has gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_a_host() {
        for (text, want) in [
            ("r.io", Some("r.io")),
            ("https://r.io/", Some("r.io")),
            ("127.0.0.1:5000", Some("127.0.0.1:5000")),
            ("r.io/org", None),
            ("plain", None),
            ("", None),
        ] {
            assert_eq!(registry(text).ok(), want, "{text:?}");
        }
    }

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(format!("{:?}", Some(Secret("hidden".to_owned()))), "Some(Secret)");
    }
}
