//! The document as it is written.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Dialect, Error, Saturation};

const GAIE: &str = "inference.networking.x-k8s.io/v1alpha1";
const LLM_D: &str = "llm-d.ai/v1alpha1";
const KIND: &str = "EndpointPickerConfig";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Raw {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) feature_gates: Option<Vec<String>>,
    #[serde(default)]
    pub(super) plugins: Option<Vec<Plugin>>,
    #[serde(default)]
    pub(super) scheduling_profiles: Option<Vec<Profile>>,
    #[serde(default)]
    pub(super) saturation_detector: Option<Detector>,
    #[serde(default)]
    pub(super) data: Option<DataLayer>,
    #[serde(default)]
    pub(super) data_layer: Option<DataLayer>,
    #[serde(default)]
    pub(super) flow_control: Option<FlowControl>,
    #[serde(default)]
    pub(super) request_handler: Option<RequestHandler>,
    #[serde(default)]
    pub(super) parser: Option<Value>,
    #[serde(skip)]
    pub(super) dialect: Dialect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plugin {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) parameters: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) plugins: Option<Vec<Used>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Used {
    #[serde(default)]
    pub(super) plugin_ref: String,
    #[serde(default)]
    pub(super) weight: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Detector {
    #[serde(default)]
    queue_depth_threshold: Option<f64>,
    #[serde(default)]
    kv_cache_util_threshold: Option<f64>,
    #[serde(default)]
    metrics_staleness_threshold: Option<String>,
    #[serde(default)]
    pub(super) plugin_ref: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DataLayer {
    #[serde(default)]
    pub(super) sources: Option<Vec<Source>>,
    #[serde(default)]
    pub(super) discovery: Option<Reference>,
    #[serde(default, rename = "injectDefaults")]
    _inject_defaults: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Source {
    #[serde(default)]
    pub(super) plugin_ref: String,
    #[serde(default)]
    pub(super) extractors: Option<Vec<Reference>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Reference {
    #[serde(default)]
    pub(super) plugin_ref: String,
}

/// Its values are not read yet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FlowControl {
    #[serde(default)]
    pub(super) saturation_detector: Option<Reference>,
    #[serde(default, rename = "maxBytes")]
    _max_bytes: Option<Value>,
    #[serde(default, rename = "maxRequests")]
    _max_requests: Option<Value>,
    #[serde(default, rename = "defaultRequestTTL")]
    _default_request_ttl: Option<Value>,
    #[serde(default, rename = "noEndpointRequestTTL")]
    _no_endpoint_request_ttl: Option<Value>,
    #[serde(default, rename = "defaultPriorityBand")]
    _default_priority_band: Option<Value>,
    #[serde(default, rename = "priorityBands")]
    _priority_bands: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestHandler {
    #[serde(default)]
    pub(super) parsers: Option<Vec<Value>>,
}

pub(super) fn read(text: &str) -> Result<Raw, Error> {
    let mut raw: Raw =
        serde_saphyr::from_str(text).map_err(|error| Error::Syntax(error.to_string()))?;
    if raw.kind != KIND {
        return Err(Error::Field { field: "kind".into(), rule: KIND, got: raw.kind });
    }
    raw.dialect = match raw.api_version.as_str() {
        GAIE => Dialect::Gaie,
        LLM_D => Dialect::LlmD,
        _ => {
            let rule = "inference.networking.x-k8s.io/v1alpha1 or llm-d.ai/v1alpha1";
            return Err(Error::Field { field: "apiVersion".into(), rule, got: raw.api_version });
        }
    };
    Ok(raw)
}

impl Detector {
    /// Values out of range mean the default.
    pub(super) fn saturation(&self) -> Result<Saturation, Error> {
        let default = Saturation::default();
        let staleness = match &self.metrics_staleness_threshold {
            None => None,
            Some(text) => Some(duration(text).ok_or_else(|| Error::Field {
                field: "saturationDetector.metricsStalenessThreshold".into(),
                rule: "a duration like 200ms",
                got: text.clone(),
            })?),
        };
        Ok(Saturation {
            queue_depth: self
                .queue_depth_threshold
                .filter(|depth| *depth > 0.0)
                .unwrap_or(default.queue_depth),
            kv_cache: self
                .kv_cache_util_threshold
                .filter(|usage| *usage > 0.0 && *usage < 1.0)
                .unwrap_or(default.kv_cache),
            staleness: staleness.filter(|staleness| !staleness.is_zero()),
        })
    }
}

/// As Go writes them: `1h30m`, `200ms`, `1.5s`. Not negative.
pub(super) fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut seconds) = (text.strip_prefix('+').unwrap_or(text), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(|c: char| c.is_ascii_digit() || c == '.');
        let unit = unit.map_or(rest.len(), |length| digits + length);
        seconds += number
            * match &rest[digits..unit] {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}
