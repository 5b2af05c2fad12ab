//! Who asks, and what it may do.
//!
//! `tokens` says who a bearer is, `impersonation` whom it may stand for, `rbac` what roles and their
//! bindings let it do, `escalation` which rights it may hand on. Only `files`, `certificates` and
//! `kubeconfig` touch the disk.

mod bootstrap;
pub mod certificates;
mod escalation;
mod files;
mod impersonation;
pub mod kubeconfig;
mod rbac;
mod reviews;
mod rules;
mod tokens;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use bootstrap::bootstrap;
pub use certificates::Certificates;
pub use escalation::{Escalation, escalation};
pub use files::private_dir;
pub use impersonation::{Impersonation, impersonation};
pub use rbac::{Rbac, aggregated};
pub use reviews::{Authenticate, Refusal, Reviewer, review};
pub use rules::{Attributes, Target, denial};
pub use tokens::{Bound, Claims, Issued, TokenRequest, Tokens, token_request};

/// May do everything.
pub const MASTERS: &str = "system:masters";
pub const AUTHENTICATED: &str = "system:authenticated";
const ACCOUNTS: &str = "system:serviceaccounts";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
    pub uid: String,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The owner of the machine, who started this server.
    pub fn admin() -> User {
        User {
            name: "windlass-admin".to_owned(),
            groups: vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()],
            ..User::default()
        }
    }

    /// A program that runs under a service account.
    pub fn account(namespace: &str, name: &str, uid: &str) -> User {
        User {
            name: format!("{ACCOUNT_PREFIX}{namespace}:{name}"),
            groups: vec![
                ACCOUNTS.to_owned(),
                format!("{ACCOUNTS}:{namespace}"),
                AUTHENTICATED.to_owned(),
            ],
            uid: uid.to_owned(),
            ..User::default()
        }
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }
}
