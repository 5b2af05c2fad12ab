//! What is wrong with an object, gathered in Kubernetes' words.

use std::fmt::{self, Display};

use serde_json::Value;

use crate::error::{Cause, CauseReason};

/// Where in an object, as messages print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn new(path: impl Into<String>) -> Path {
        Path(path.into())
    }

    pub(crate) fn child(&self, name: &str) -> Path {
        if self.0.is_empty() { Path(name.to_owned()) } else { Path(format!("{}.{name}", self.0)) }
    }

    pub(crate) fn index(&self, index: usize) -> Path {
        Path(format!("{}[{index}]", self.0))
    }

    pub(crate) fn key(&self, key: &str) -> Path {
        Path(format!("{}[{key}]", self.0))
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Causes(pub(crate) Vec<Cause>);

impl Causes {
    pub(crate) fn required(&mut self, path: &Path, detail: &str) {
        let message = match detail {
            "" => "Required value".to_owned(),
            detail => format!("Required value: {detail}"),
        };
        self.push(CauseReason::Required, path, message);
    }

    pub(crate) fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: &str) {
        let message = format!("Invalid value: {}: {detail}", value.into());
        self.push(CauseReason::Invalid, path, message);
    }

    pub(crate) fn not_supported(&mut self, path: &Path, value: &str, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let list = supported.join(", ");
        let message = format!("Unsupported value: {value:?}: supported values: {list}");
        self.push(CauseReason::NotSupported, path, message);
    }

    pub(crate) fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(CauseReason::Duplicate, path, format!("Duplicate value: {}", value.into()));
    }

    pub(crate) fn forbidden(&mut self, path: &Path, detail: &str) {
        self.push(CauseReason::Forbidden, path, format!("Forbidden: {detail}"));
    }

    pub(crate) fn forbids(&self, path: &Path) -> bool {
        let forbids = |cause: &Cause| cause.reason == CauseReason::Forbidden;
        self.0.iter().any(|cause| forbids(cause) && cause.field == path.0)
    }

    pub(crate) fn too_long(&mut self, path: &Path, bytes: usize) {
        let message = format!("Too long: may not be more than {bytes} bytes");
        self.push(CauseReason::TooLong, path, message);
    }

    pub(crate) fn not_found(&mut self, path: &Path, value: &str) {
        self.push(CauseReason::NotFound, path, format!("Not found: {value:?}"));
    }

    pub(crate) fn push(&mut self, reason: CauseReason, path: &Path, message: String) {
        self.0.push(Cause { reason, field: path.to_string(), message });
    }
}
