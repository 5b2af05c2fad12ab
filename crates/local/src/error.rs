//! What can go wrong, without a word of HTTP.

use std::{collections::BTreeSet, fmt};

/// One thing that is wrong with an object, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub reason: CauseReason,
    /// Where, as in `spec.containers[0].name`; `<nil>` for the object as a whole.
    pub field: String,
    /// Without the field, as in `Required value: name or generateName is required`.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseReason {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
    NotFound,
    TypeInvalid,
}

impl CauseReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// The object or resource that an error is about, as messages name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Empty for the core group.
    pub group: String,
    /// The plural, or the kind where Kubernetes names that.
    pub kind: String,
    /// Empty when it is about the resource as a whole.
    pub name: String,
}

impl Subject {
    pub fn new(group: &str, kind: &str, name: &str) -> Self {
        Self { group: group.into(), kind: kind.into(), name: name.into() }
    }

    pub fn namespace(name: &str) -> Self {
        Self::new("", "namespaces", name)
    }

    /// With the group, as in `deployments.apps`.
    pub fn qualified(&self) -> String {
        match &*self.group {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }
}

/// Why a request is refused. The texts are those that clients read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Outside of everything that is served.
    #[error("404 page not found")]
    NoSuchPath,
    #[error("the server could not find the requested resource")]
    NoSuchResource,
    #[error("{} {:?} not found", .0.qualified(), .0.name)]
    NotFound(Subject),
    #[error("{} {:?} already exists", .0.qualified(), .0.name)]
    AlreadyExists(Subject),
    #[error("object is being deleted: {} {:?} already exists", .0.qualified(), .0.name)]
    StillExists(Subject),
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    #[error("{0}")]
    BadRequest(String),
    #[error("{} {:?} is invalid: {}", .subject.qualified(), .subject.name, list(.causes))]
    Invalid { subject: Subject, causes: Vec<Cause> },
    #[error("Operation cannot be fulfilled on {} {:?}: {text}", .subject.qualified(), .subject.name)]
    Conflict { subject: Subject, text: String },
    /// Each owner in the way, with the field it owns.
    #[error("{text}")]
    Owned { text: String, conflicts: Vec<(String, String)> },
    /// Kubernetes has no better name for some mistakes of its clients.
    #[error("{0}")]
    Unspecific(String),
    #[error("the server rejected our request due to an error in our request")]
    RejectedPatch,
    /// More operations than are done at once.
    #[error("{0}")]
    PatchTooLarge(String),
    #[error("{0}")]
    MediaType(MediaType),
    #[error("only the following media types are accepted: application/json")]
    NotAcceptable,
    #[error("Request entity too large: limit is {limit}")]
    TooLarge { limit: usize },
    #[error("{text}")]
    Expired { text: String, go_on: Option<String> },
    #[error("Timeout: Too large resource version: {asked}, current: {current}")]
    NotYet { asked: u64, current: u64 },
    /// The rest of the request does not come.
    #[error("Timeout: request did not complete within the allotted timeout")]
    Slow,
    #[error("Unauthorized")]
    Unauthorized,
    #[error("{}", forbidden(.subject, .text))]
    Forbidden {
        subject: Option<Subject>,
        text: String,
        causes: Vec<(&'static str, String, String)>,
    },
    /// The request came under a name that is not ours.
    #[error("this server answers on loopback names only")]
    Misdirected,
    #[error("too many requests, please try again later: {0}")]
    TooMany(String),
    /// Unlike other causes, this one is the caller's business too.
    #[error("nothing was changed, for there is no room left: {0}")]
    Full(String),
    /// The cause is for the log, not for the caller.
    #[error("the server cannot store or read objects")]
    Store,
    /// Work that was stopped by an error nobody foresaw; the log has it.
    #[error("an error inside the server, which its log describes")]
    Internal,
}

/// Which bodies would have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    Patch,
    CustomPatch,
    Object,
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepted = match self {
            Self::Patch => return f.write_str("415: Unsupported Media Type"),
            Self::CustomPatch => {
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            }
            Self::Object => {
                "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            }
        };
        write!(
            f,
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    }
}

impl Error {
    pub fn invalid(subject: Subject, cause: Cause) -> Self {
        Self::Invalid { subject, causes: vec![cause] }
    }

    pub fn forbidden(subject: Subject, text: impl Into<String>) -> Self {
        Self::Forbidden { subject: Some(subject), text: text.into(), causes: Vec::new() }
    }
}

/// Each text once, also where it has several causes.
fn list(causes: &[Cause]) -> String {
    let mut known = BTreeSet::new();
    let texts = causes.iter().map(Cause::to_string);
    let texts: Vec<String> = texts.filter(|text| known.insert(text.clone())).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn forbidden(subject: &Option<Subject>, text: &str) -> String {
    match subject {
        None => format!("forbidden: {text}"),
        Some(subject) if subject.name.is_empty() => {
            format!("{} is forbidden: {text}", subject.qualified())
        }
        Some(subject) => format!("{} {:?} is forbidden: {text}", subject.qualified(), subject.name),
    }
}
