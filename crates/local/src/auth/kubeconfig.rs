//! The file by which kubectl and others find this server. It never replaces the user's own.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::files;
pub use super::files::Error;

/// Writes it for the owner alone. `server` is the address, as in `https://127.0.0.1:6443`.
pub fn write(path: &Path, server: &str, authority: &str, token: &str) -> Result<(), Error> {
    files::write(path, text(server, authority, token).as_bytes())
}

/// The whole file; `authority` is in PEM.
pub fn text(server: &str, authority: &str, token: &str) -> String {
    let authority = STANDARD.encode(authority);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: windlass\n  \
           cluster:\n    \
             server: {server}\n    \
             certificate-authority-data: {authority}\n\
         users:\n\
         - name: windlass-admin\n  \
           user:\n    \
             token: {token}\n\
         contexts:\n\
         - name: windlass\n  \
           context:\n    \
             cluster: windlass\n    \
             user: windlass-admin\n\
         current-context: windlass\n"
    )
}
