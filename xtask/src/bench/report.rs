//! The line of JSON that a run ends with.

use std::collections::BTreeMap;

use serde::Serialize;

use super::audit::Tally;

/// What a field means is said in CONTRIBUTING.md. `None` is what could not be read.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) kind: String,
    /// The command line of another operator.
    pub(super) operator: Option<String>,
    pub(super) services: u32,
    pub(super) children_per_service: f64,
    /// The mean of the next two.
    pub(super) writer_seconds: f64,
    pub(super) writer_seconds_before: f64,
    pub(super) writer_seconds_after: f64,
    pub(super) operator_seconds: f64,
    /// How many times as long as the writer the operator took.
    pub(super) ratio: f64,
    #[serde(flatten)]
    pub(super) requests: Requests,
    pub(super) cpu_seconds: Option<f64>,
    /// Of the API server and etcd, for the writer's work and for the operator's.
    pub(super) writer_api_cpu_seconds: f64,
    pub(super) operator_api_cpu_seconds: f64,
    pub(super) peak_memory_mb: Option<f64>,
    pub(super) rest_seconds: u64,
    pub(super) writes_at_rest: u64,
    pub(super) writes_after_restart: u64,
    pub(super) foreign: Option<Foreign>,
}

#[derive(Debug, Serialize)]
pub(super) struct Requests {
    pub(super) requests_per_service: f64,
    pub(super) writes_per_service: f64,
    pub(super) requests_per_service_by_verb: BTreeMap<String, f64>,
}

/// Peaks of an operator that is started over converged objects.
#[derive(Debug, Serialize)]
pub(super) struct Foreign {
    /// Of each kind.
    pub(super) objects: u32,
    pub(super) peak_memory_mb_without: Option<f64>,
    pub(super) peak_memory_mb_with: Option<f64>,
    pub(super) growth_mb: Option<f64>,
}

impl Requests {
    pub(super) fn of(tally: &Tally, services: u32) -> Self {
        // No run comes near the numbers that a float cannot hold.
        let each = |count: u64| round(count as f64 / f64::from(services), 2);
        let by_verb = tally.by_verb();
        let by_verb = by_verb.into_iter().map(|(verb, count)| (verb.to_owned(), each(count)));
        Self {
            requests_per_service: each(tally.total()),
            writes_per_service: each(tally.writes()),
            requests_per_service_by_verb: by_verb.collect(),
        }
    }
}

impl Foreign {
    pub(super) fn new(objects: u32, without: Option<u64>, with: Option<u64>) -> Self {
        let (without, with) = (without.map(megabytes), with.map(megabytes));
        Self {
            objects,
            peak_memory_mb_without: without,
            peak_memory_mb_with: with,
            growth_mb: without.zip(with).map(|(without, with)| round(with - without, 1)),
        }
    }
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    round(bytes as f64 / 1e6, 1)
}

pub(super) fn round(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_report_is_one_flat_line() {
        let line = |verb: &str| {
            format!(r#"{{"stage":"ResponseComplete","verb":"{verb}","user":{{"username":"op"}}}}"#)
        };
        let log = [vec![line("list"); 9], vec![line("patch"); 60]].concat().join("\n");
        let tally = Tally::of(&log, "op");
        let report = Report {
            kind: "Widget".to_owned(),
            operator: None,
            services: 10,
            children_per_service: 5.0,
            writer_seconds: 0.5,
            writer_seconds_before: 0.4,
            writer_seconds_after: 0.6,
            operator_seconds: 1.0,
            ratio: 2.0,
            requests: Requests::of(&tally, 10),
            cpu_seconds: Some(0.25),
            writer_api_cpu_seconds: 0.75,
            operator_api_cpu_seconds: 0.8,
            peak_memory_mb: None,
            rest_seconds: 30,
            writes_at_rest: 0,
            writes_after_restart: 0,
            foreign: Some(Foreign::new(10_000, Some(20_000_000), Some(21_550_000))),
        };
        let text = serde_json::to_string(&report).unwrap();
        assert!(!text.contains('\n'));
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({
                "kind": "Widget", "operator": null, "services": 10, "children_per_service": 5.0,
                "writer_seconds": 0.5, "writer_seconds_before": 0.4, "writer_seconds_after": 0.6,
                "operator_seconds": 1.0, "ratio": 2.0,
                "requests_per_service": 6.9, "writes_per_service": 6.0,
                "requests_per_service_by_verb": {"list": 0.9, "patch": 6.0},
                "cpu_seconds": 0.25, "writer_api_cpu_seconds": 0.75, "operator_api_cpu_seconds": 0.8,
                "peak_memory_mb": null,
                "rest_seconds": 30, "writes_at_rest": 0, "writes_after_restart": 0,
                "foreign": {
                    "objects": 10_000, "peak_memory_mb_without": 20.0,
                    "peak_memory_mb_with": 21.6, "growth_mb": 1.6,
                },
            })
        );
    }

    #[test]
    fn a_peak_that_could_not_be_read_has_no_growth() {
        assert_eq!(Foreign::new(1, None, Some(7)).growth_mb, None);
    }
}
