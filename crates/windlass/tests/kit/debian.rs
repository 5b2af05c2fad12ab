//! Debian's docker-registry as a process: a registry that others have written.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{note, wait};

/// Of `u` with the password `secret`.
const PASSWORD: &str = "u:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

pub(crate) struct Debian {
    child: Child,
    folder: PathBuf,
    pub(crate) address: String,
}

/// Who is let in, and how.
#[derive(Clone, Copy, Default)]
pub(crate) struct Door {
    /// Only who knows the password.
    pub(crate) closed: bool,
    /// Only over TLS, with the certificate `tls.crt` of its folder.
    pub(crate) tls: bool,
}

impl Debian {
    /// In a folder of its own. None, said aloud, where it is not installed.
    pub(crate) fn start(folder: PathBuf, door: Door) -> Option<Self> {
        let program = note::program("docker-registry")?;
        fs::create_dir_all(&folder).unwrap();
        let mut config = format!(
            "version: 0.1\nlog: {{level: info}}\n\
             storage: {{filesystem: {{rootdirectory: {0}/data}}, delete: {{enabled: true}}}}\n\
             http:\n  addr: 127.0.0.1:0\n",
            folder.display()
        );
        if door.tls {
            certify(&folder);
            let at = folder.display();
            config += &format!("  tls: {{certificate: {at}/tls.crt, key: {at}/tls.key}}\n");
        }
        if door.closed {
            fs::write(folder.join("passwords"), PASSWORD).unwrap();
            let file = folder.join("passwords");
            config += &format!("auth: {{htpasswd: {{realm: r, path: {}}}}}\n", file.display());
        }
        let file = folder.join("config.yml");
        fs::write(&file, config).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(file).current_dir(&folder).stdin(Stdio::null());
        // What is asked is told on one stream, and all else on the other.
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let mut site = Self { child, folder, address: String::new() };
        site.address = wait::blocking("docker-registry", || {
            let log = site.log();
            let (_, rest) = log.split_once("listening on ").ok_or(log.clone())?;
            let end = rest.find(|c: char| !"0123456789.:".contains(c)).ok_or(log.clone())?;
            Ok::<_, String>(rest[..end].to_owned())
        });
        Some(site)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    /// Methods and paths of what it was asked for so far, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        let log = self.log();
        let quoted = log.lines().filter(|line| line.starts_with("127.0.0.1 - "));
        let request =
            |line: &str| line.split('"').nth(1)?.strip_suffix(" HTTP/1.1").map(str::to_owned);
        quoted.filter_map(request).collect()
    }

    /// Where the bytes of a blob are.
    pub(crate) fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let all = self.folder.join("data/docker/registry/v2/blobs/sha256");
        all.join(&hex[..2]).join(hex).join("data")
    }
}

fn certify(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    fs::write(folder.join("tls.crt"), pem("CERTIFICATE", made.cert.der())).unwrap();
    fs::write(folder.join("tls.key"), pem("PRIVATE KEY", &made.signing_key.serialize_der()))
        .unwrap();
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let body = serde_json::to_value(k8s_openapi::ByteString(der.to_vec())).unwrap();
    let text = body.as_str().unwrap();
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

impl Drop for Debian {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
