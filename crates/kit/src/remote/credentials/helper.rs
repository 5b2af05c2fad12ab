//! Programs of the user's that keep passwords: `docker-credential-NAME`, found as other programs are.
//!
//! A request is a verb as the argument and a text on standard input; what must stay secret is in neither
//! arguments nor variables, and what such a program says is never printed.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::fd::AsFd,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{OFlags, fcntl_setfl};
use serde::{Deserialize, Serialize};

use super::Credential;

/// Somebody may have to unlock it first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(5);
/// Of one answer, in bytes.
const MOST: usize = 1 << 20;
/// How all of them say that they do not know a registry.
const UNKNOWN: &str = "credentials not found";
/// The user of what is a token.
const TOKEN: &str = "<token>";

pub(super) struct Helper {
    program: OsString,
    patience: Duration,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Kept {
    #[serde(rename = "ServerURL", default)]
    server: String,
    username: String,
    secret: String,
}

impl Helper {
    /// As it is called in a file. Nothing if it is called nothing, which is docker's word for none, or
    /// what cannot be a part of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is_name = !name.is_empty() && !name.contains(['/', '\0']);
        is_name.then(|| Self {
            program: format!("docker-credential-{name}").into(),
            patience: PATIENCE,
        })
    }

    /// Nothing if it does not know the registry.
    pub(super) fn get(&self, registry: &str) -> io::Result<Option<Credential>> {
        let Some(answer) = self.ask("get", server(registry).as_bytes())? else { return Ok(None) };
        let kept: Kept = serde_json::from_slice(&answer)
            .map_err(|_| io::Error::other("its answer makes no sense"))?;
        Ok(Some(match kept.username.as_str() {
            TOKEN | "" => Credential::Identity(kept.secret),
            _ => Credential::Basic { user: kept.username, password: kept.secret },
        }))
    }

    /// Without a user it is a token.
    pub(super) fn store(&self, registry: &str, user: &str, password: &str) -> io::Result<()> {
        let user = if user.is_empty() { TOKEN } else { user };
        let kept = Kept {
            server: server(registry).to_owned(),
            username: user.to_owned(),
            secret: password.to_owned(),
        };
        let kept = serde_json::to_vec(&kept).map_err(io::Error::other)?;
        match self.ask("store", &kept)? {
            Some(_) => Ok(()),
            None => Err(io::Error::other("it does not keep what it is given")),
        }
    }

    /// Whether it has known the registry.
    pub(super) fn erase(&self, registry: &str) -> io::Result<bool> {
        // Not all of them tell when there is nothing to erase.
        let is_known = match self.get(registry) {
            Ok(kept) => kept.is_some(),
            // What cannot be read may be there, and is erased all the same.
            Err(_) => true,
        };
        Ok(self.ask("erase", server(registry).as_bytes())?.is_some() && is_known)
    }

    /// What it answers; nothing if it does not know what it was asked about.
    fn ask(&self, verb: &str, question: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut command = Command::new(&self.program);
        command.arg(verb).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let talked = self.talk(&mut child, question);
        if talked.is_err() {
            // Fails only for one that has ended meanwhile.
            let _ = child.kill();
            child.wait()?;
        }
        let (status, answer) = talked?;
        match status.success() {
            true => Ok(Some(answer)),
            false if String::from_utf8_lossy(&answer).contains(UNKNOWN) => Ok(None),
            false => Err(io::Error::other(format!("it has ended with {status}"))),
        }
    }

    /// Its own end counts and not that of its pipes, which a child of the child may keep open for ever.
    fn talk(&self, child: &mut Child, question: &[u8]) -> io::Result<(ExitStatus, Vec<u8>)> {
        let deadline = Instant::now() + self.patience;
        let (mut stdin, mut stdout) = (child.stdin.take(), child.stdout.take());
        let ends = [stdin.as_ref().map(AsFd::as_fd), stdout.as_ref().map(AsFd::as_fd)];
        for end in ends.into_iter().flatten() {
            fcntl_setfl(end, OFlags::NONBLOCK)?;
        }
        let (mut rest, mut answer) = (question, Vec::new());
        loop {
            // Looked at before the answer: once it has ended, all that it has said is there.
            let status = child.try_wait()?;
            write(&mut stdin, &mut rest)?;
            read(&mut stdout, &mut answer)?;
            match status {
                Some(status) => return Ok((status, answer)),
                None if Instant::now() < deadline => thread::sleep(PAUSE),
                None => return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
            }
        }
    }
}

/// As much as is taken now.
fn write(pipe: &mut Option<ChildStdin>, rest: &mut &[u8]) -> io::Result<()> {
    while let Some(open) = pipe {
        match open.write(rest) {
            Ok(count) => *rest = rest.get(count..).unwrap_or_default(),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(()),
                io::ErrorKind::Interrupted => {}
                // Who ends without having read says why by its status.
                io::ErrorKind::BrokenPipe => *rest = &[],
                _ => return Err(error),
            },
        }
        if rest.is_empty() {
            *pipe = None;
        }
    }
    Ok(())
}

/// As much as is there now.
fn read(pipe: &mut Option<ChildStdout>, answer: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = [0; 4096];
    while let Some(open) = pipe {
        match open.read(&mut piece) {
            Ok(count) => {
                answer.extend_from_slice(&piece[..count]);
                if count == 0 || answer.len() >= MOST {
                    *pipe = None;
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(()),
                io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

/// The name under which docker keeps it.
fn server(registry: &str) -> &str {
    match registry {
        "docker.io" | "registry-1.docker.io" | "index.docker.io" => "https://index.docker.io/v1/",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn helper(folder: &tempfile::TempDir, script: &str) -> Helper {
        let program = folder.path().join("docker-credential-x");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Helper { program: program.into(), patience: Duration::from_secs(60) }
    }

    #[test]
    fn who_knows_the_registry_is_told_from_who_does_not_and_from_who_fails() {
        let folder = tempfile::tempdir().unwrap();
        let get = |script: &str| helper(&folder, script).get("r.io");
        let known = get(r#"read name; echo "{\"Username\":\"$name\",\"Secret\":\"$1\"}""#).unwrap();
        let want = Credential::Basic { user: "r.io".to_owned(), password: "get".to_owned() };
        assert!(known == Some(want));
        let token =
            get(r#"echo '{"ServerURL":"r.io","Username":"<token>","Secret":"t"}'"#).unwrap();
        assert!(token == Some(Credential::Identity("t".to_owned())));
        let unknown = get("echo 'credentials not found in native keychain'; exit 1").unwrap();
        assert!(unknown.is_none());
        for (script, want) in [
            ("echo hidden; echo hidden >&2; exit 3", "it has ended with exit status: 3"),
            ("echo hidden", "its answer makes no sense"),
            // It does not even read what it is asked.
            ("exec <&-; exit 2", "it has ended with exit status: 2"),
        ] {
            let error = get(script).unwrap_err().to_string();
            assert_eq!(error, want, "{script}");
        }
    }

    #[test]
    fn one_that_hangs_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        for script in ["exec sleep 600", "exec >&- <&-; exec sleep 600"] {
            let mut helper = helper(&folder, script);
            helper.patience = Duration::from_millis(100);
            let start = Instant::now();
            let error = helper.get("r.io").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{script}: {error}");
            assert!(start.elapsed() < Duration::from_secs(60), "{script}");
        }
    }

    #[test]
    fn one_that_leaves_another_behind_has_answered() {
        let folder = tempfile::tempdir().unwrap();
        // Until the folder goes.
        let daemon = r#"while [ -e "$0" ]; do sleep 0.1; done &"#;
        let answer = r#"echo '{"Username":"u","Secret":"s"}'"#;
        let mut helper = helper(&folder, &format!("{daemon}\n{answer}"));
        helper.patience = Duration::from_secs(10);
        let want = Credential::Basic { user: "u".to_owned(), password: "s".to_owned() };
        assert!(helper.get("r.io").unwrap() == Some(want));
    }

    #[test]
    fn only_a_name_is_looked_for() {
        for name in ["", "../evil", "a/b"] {
            assert!(Helper::named(name).is_none(), "{name}");
        }
        assert_eq!(Helper::named("pass").unwrap().program, "docker-credential-pass");
    }
}
