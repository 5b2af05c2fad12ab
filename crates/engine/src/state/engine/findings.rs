//! All errors of a pass, sorted by what they drive.

use super::{Failure, FailureWords, Phase, Retry};
use crate::conditions::{messages, reasons};
use crate::error::{Category, Error, InfrastructureError};
use crate::health::ComponentHealth;

/// The messages are those of the parent conditions that the errors turn to False.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) infrastructure: Vec<Error>,
    pub(super) infrastructure_message: String,
    /// Whether a write is among the infrastructure errors; no component speaks for those.
    pub(super) write_unreachable: bool,
    pub(super) auth: Option<String>,
    pub(super) invalid_spec: Option<String>,
    /// Whether that is a foreign object under a name of ours.
    in_the_way: bool,
    pub(super) missing_upstream: Option<String>,
}

impl Findings {
    pub(super) fn of<'a>(
        components: impl IntoIterator<Item = &'a ComponentHealth>,
        failures: &[Failure],
    ) -> Self {
        let mut findings = Self::default();
        for error in components.into_iter().flat_map(|component| &component.errors) {
            findings.add(error);
        }
        // The last one noted gives its words, and that shall be the first failed delete.
        for phase in [Phase::Apply, Phase::Delete] {
            for failure in failures.iter().rev().filter(|failure| failure.phase == phase) {
                findings.add_failure(failure);
            }
        }
        findings
    }

    /// The first error of its kind is told with its words: a person reads the parent's condition first.
    fn add(&mut self, error: &Error) {
        let told = |general: &str| match error.message.as_str() {
            "" => Some(general.to_owned()),
            detail => Some(format!("{general}: {detail}")),
        };
        match error.category {
            Category::Infrastructure | Category::Unknown => {
                self.infrastructure.push(error.clone());
                messages::NOT_REACHABLE.clone_into(&mut self.infrastructure_message);
            }
            Category::Auth => self.auth = self.auth.take().or_else(|| told(messages::AUTH_ERROR)),
            Category::InvalidSpec => {
                self.invalid_spec =
                    self.invalid_spec.take().or_else(|| told(messages::INVALID_SPEC));
            }
            Category::MissingUpstream => {
                let known = self.missing_upstream.take();
                self.missing_upstream = known.or_else(|| told(messages::REFERENCE_NOT_FOUND));
            }
            Category::MissingDownstream | Category::ResourceExhaustion => {}
        }
    }

    /// A failed write has no component, so the parent condition tells the whole story.
    fn add_failure(&mut self, Failure { phase, error }: &Failure) {
        let verb = match phase {
            Phase::Apply => "apply",
            Phase::Delete => "delete",
        };
        let message = format!("Failed to {verb} resources: {error}");
        match error.category {
            Category::Auth => self.auth = Some(message),
            Category::InvalidSpec => {
                self.in_the_way = error.reason == reasons::NOT_OWNED;
                self.invalid_spec = Some(message);
            }
            Category::MissingUpstream => self.missing_upstream = Some(message),
            // A write that failed has to be repeated, whatever else was the matter.
            Category::Infrastructure
            | Category::Unknown
            | Category::MissingDownstream
            | Category::ResourceExhaustion => {
                self.infrastructure.push(error.clone());
                self.infrastructure_message = message;
                self.write_unreachable = true;
            }
        }
    }

    pub(super) fn auth_problem(&self) -> Option<(&str, &str)> {
        self.auth.as_deref().map(|message| (reasons::AUTH_ERROR, message))
    }

    pub(super) fn config_problem(&self) -> Option<(&str, &str)> {
        let invalid = self.invalid_spec.as_deref().map(|text| (reasons::INVALID_SPEC, text));
        let missing = self.missing_upstream.as_deref();
        invalid.or_else(|| missing.map(|text| (reasons::REFERENCE_NOT_FOUND, text)))
    }

    /// The reason and message of what the user should look at first.
    pub(super) fn headline(&self, words: FailureWords) -> Option<(&str, &str)> {
        let general = (reasons::INFRASTRUCTURE_ERROR, messages::INFRASTRUCTURE_ERROR);
        let unreachable = (!self.infrastructure.is_empty()).then_some(match words {
            FailureWords::OnReady { failed, .. } => (failed, self.infrastructure_message.as_str()),
            _ => general,
        });
        let auth = self.auth_problem().map(|(usual, message)| match words {
            FailureWords::OnReady { failed, .. } => (failed, message),
            _ => (usual, message),
        });
        let config = self.config_problem().map(|(usual, message)| match words {
            FailureWords::OnReady { in_the_way, .. } if self.in_the_way => (in_the_way, message),
            _ => (usual, message),
        });
        auth.or(config).or(unreachable)
    }

    pub(super) fn retry(&self) -> Retry {
        match self.backoff() {
            Retry::None if self.auth.is_some() || self.missing_upstream.is_some() => Retry::Slow,
            retry => retry,
        }
    }

    pub(super) fn backoff(&self) -> Retry {
        if self.infrastructure.is_empty() {
            return Retry::None;
        }
        Retry::Backoff(InfrastructureError { causes: self.infrastructure.clone() })
    }
}
