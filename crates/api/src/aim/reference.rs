//! Objects that another one was found to depend on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedReference {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Absent if the object belongs to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// Whether the object belongs to a namespace or to the cluster; unknown if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = Scope::ALL.map(Scope::as_str)))]
    pub scope: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// What an object belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Namespace,
    Cluster,
    /// The object does not exist.
    Unknown,
}

impl Scope {
    const ALL: [Self; 3] = [Self::Namespace, Self::Cluster, Self::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::Cluster => "Cluster",
            Self::Unknown => "Unknown",
        }
    }
}
