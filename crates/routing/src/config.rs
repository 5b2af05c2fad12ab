//! EndpointPickerConfig: which plugins there are, and the profiles they form.
//!
//! `raw` (the document) → `plugins` (each entry by its type) → `build` (profiles, handler, defaults).
//! What is parsed is valid: the picker has nothing left to refuse.

mod build;
mod params;
mod plugins;
mod raw;
mod selector;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use selector::Selector;

/// Whose meaning the configuration has. The API version says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `inference.networking.x-k8s.io/v1alpha1`
    #[default]
    Gaie,
    /// `llm-d.ai/v1alpha1`
    LlmD,
}

/// What a picker is made of.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) dialect: Dialect,
    /// Prefix data is there for the decider, not only for scores.
    pub(crate) prepare_data: bool,
    pub(crate) producers: Vec<Producer>,
    pub(crate) scorers: Vec<Scorer>,
    pub(crate) scorer_names: Vec<Named>,
    /// At least one.
    pub(crate) profiles: Vec<Profile>,
    pub(crate) handler: Handler,
    /// The profile whose endpoint becomes the prefill header.
    pub(crate) prefill_header: Option<String>,
    /// Answers tell which endpoint served, for conformance tests.
    pub(crate) served_verifier: bool,
    pub(crate) saturation: Saturation,
    pub(crate) endpoints_file: Option<EndpointsFile>,
    pub(crate) metrics_path: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// A plugin by what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Named {
    /// The type is its name unless another is given.
    fn by_type(kind: &str) -> Self {
        Self { kind: kind.into(), name: kind.into() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) filters: Vec<Filter>,
    pub(crate) filter_names: Vec<Named>,
    /// Numbers of scorers, with their weights.
    pub(crate) scorers: Vec<(usize, f64)>,
    pub(crate) choice: Choice,
    pub(crate) choice_name: Named,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    Decode,
    Prefill,
    Encode,
    Label {
        label: String,
        values: Vec<String>,
        absent: bool,
    },
    Selector(Selector),
    /// The endpoints that a header names.
    Header,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scorer {
    Queue,
    Running,
    KvCache,
    LoadAware { threshold: u32 },
    Lora,
    Session,
    ActiveRequests { timeout: Duration, idle: u32, busy: f64 },
    NoHitLru { size: usize },
    Prefix { producer: usize, length_weight: f64, length_scale: f64 },
}

/// What knows how much of a prompt each endpoint has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) name: String,
    /// The size of blocks and the number of hashes come from the endpoints where they tell them.
    pub(crate) auto_tune: bool,
    pub(crate) block_tokens: usize,
    pub(crate) max: Limit,
    pub(crate) lru_capacity: usize,
}

/// How much of a prompt counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Blocks(usize),
    Tokens(usize),
    None,
}

/// How endpoints are taken once they have their scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) by: By,
    /// At least one.
    pub(crate) endpoints: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    MaxScore,
    Random,
    WeightedRandom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    Single {
        /// Above zero, the chosen port goes into a header and this one is the destination.
        primary_port: u16,
    },
    Disaggregated {
        decode: String,
        prefill: String,
        decider: Decider,
        primary_port: u16,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decider {
    Always,
    PrefixBased { non_cached: i64, prompt: i64 },
}

/// When a pool counts as full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Saturation {
    pub(crate) queue_depth: f64,
    pub(crate) kv_cache: f64,
    /// `None`: by how often the figures are read.
    pub(crate) staleness: Option<Duration>,
}

impl Default for Saturation {
    fn default() -> Self {
        Self { queue_depth: 5.0, kv_cache: 0.8, staleness: None }
    }
}

/// A file that names the endpoints, instead of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointsFile {
    pub path: String,
    pub watch: bool,
}

/// Why a configuration is refused; the text names the item.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the EndpointPickerConfig: {0}")]
    Syntax(String),
    #[error("{field} must be {rule}, got {got:?}")]
    Field { field: String, rule: &'static str, got: String },
    #[error("the feature gate {0:?} is unknown")]
    Gate(String),
    #[error("the feature gate dataLayer needs the field data")]
    NoData,
    #[error("plugin {0} of the list has no type")]
    NoType(usize),
    #[error("the plugin name {0:?} is used twice")]
    DuplicatePlugin(String),
    #[error("plugin {name:?} has the unknown type {kind:?}")]
    UnknownType { name: String, kind: String },
    #[error("plugin {name:?}: {kind} is not supported yet: {reason}")]
    Unsupported { name: String, kind: String, reason: &'static str },
    #[error("plugin {plugin:?}: the parameter {parameter} must be {rule}")]
    Parameter { plugin: String, parameter: String, rule: &'static str },
    #[error("plugin {plugin:?} has the unknown parameter {parameter:?}")]
    UnknownParameter { plugin: String, parameter: String },
    #[error("scheduling profile {0} of the list has no name")]
    NoProfileName(usize),
    #[error("the profile name {0:?} is used twice")]
    DuplicateProfile(String),
    #[error("{user} refers to the plugin {plugin:?}, which is not declared")]
    Undefined { user: String, plugin: String },
    #[error("{user} refers to the plugin {plugin:?}, which is no {role}")]
    WrongRole { user: String, plugin: String, role: &'static str },
    #[error("the profile {0:?} has two pickers")]
    TwoPickers(String),
    #[error("there are several profiles but no profile handler")]
    NoHandler,
    #[error("there are two profile handlers, {0:?} and {1:?}")]
    TwoHandlers(String, String),
    #[error("the profile handler {handler:?} takes exactly one profile, there are {profiles}")]
    OneProfile { handler: String, profiles: usize },
    #[error("the profile handler {handler:?} needs the profile {profile:?}")]
    NoProfile { handler: String, profile: String },
}

impl Config {
    /// YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, Error> {
        build::config(raw::read(text)?)
    }

    /// What was ignored or is deprecated, for the log.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Where endpoints have their metrics, if a data source says so.
    pub fn metrics_path(&self) -> Option<&str> {
        self.metrics_path.as_deref()
    }

    pub fn endpoints_file(&self) -> Option<&EndpointsFile> {
        self.endpoints_file.as_ref()
    }
}

/// Queue 2, cache use 2, prefix 3.
impl Default for Config {
    fn default() -> Self {
        let scorers = vec![
            Scorer::Queue,
            Scorer::KvCache,
            Scorer::Prefix { producer: 0, length_weight: 0.0, length_scale: 8192.0 },
        ];
        let profile = Profile {
            name: "default".into(),
            filters: Vec::new(),
            filter_names: Vec::new(),
            scorers: vec![(0, 2.0), (1, 2.0), (2, 3.0)],
            choice: Choice { by: By::MaxScore, endpoints: 1 },
            choice_name: Named::by_type("max-score-picker"),
        };
        Self {
            dialect: Dialect::Gaie,
            prepare_data: false,
            producers: vec![Producer::gaie("prefix-cache-scorer")],
            scorers,
            scorer_names: ["queue-scorer", "kv-cache-utilization-scorer", "prefix-cache-scorer"]
                .map(Named::by_type)
                .to_vec(),
            profiles: vec![profile],
            handler: Handler::Single { primary_port: 0 },
            prefill_header: None,
            served_verifier: false,
            saturation: Saturation::default(),
            endpoints_file: None,
            metrics_path: None,
            warnings: Vec::new(),
        }
    }
}

impl Producer {
    fn gaie(name: &str) -> Self {
        Self {
            name: name.into(),
            auto_tune: true,
            block_tokens: 16,
            max: Limit::Blocks(256),
            lru_capacity: 31_250,
        }
    }

    fn llm_d(name: &str) -> Self {
        Self { max: Limit::Tokens(131_072), ..Self::gaie(name) }
    }
}
