//! What is told of a service: state and conditions, in steps. Each of them may end the report; the
//! first that finds something missing does.

mod running;
mod stop;

use windlass_api::aim::service::AimService;
use windlass_engine::conditions::{ConditionSet, ConditionUpdate, Observability, Status, types};
use windlass_engine::error::Error;
use windlass_engine::state::State;

use super::compose::Observed;
use super::reasons;
use super::resolution::{Outcome, Resolution, Template};
use super::route_health::{self, Route};
use stop::Stop;

/// Messages of a pass that came to nothing.
pub(super) const UNRESOLVED: &str = "Template resolution pending due to reconciliation failure";
pub(super) const HALTED: &str = "Reconciliation halted due to failure";

/// Of a cache that nothing is known of yet.
pub(super) const COLD: &str = "Waiting for cache warm-up";

pub(super) struct Report {
    pub(super) state: State,
    pub(super) conditions: ConditionSet,
}

pub(super) fn report(service: &AimService, observed: &Observed) -> Report {
    let mut report = Report::before(service);
    report.cache(service);
    let routed = report.routing(observed);
    if let Some(error) = observed.unread.first() {
        report.unread(error);
        return report;
    }
    if routed {
        report.nothing_failed();
    }
    let Some(template) = report.template(observed.resolution.as_ref()) else { return report };
    if let Some(stop) = stop::stop(observed, service, template) {
        report.stop(&stop);
        return report;
    }
    report.cached(service);
    report.running(observed, routed);
    report
}

impl Report {
    /// What was told before: a condition keeps its place from pass to pass. A failure of the past is
    /// over unless a step finds another one; where there was none it takes a step to speak of it.
    fn before(service: &AimService) -> Self {
        let stored = service.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let mut conditions = ConditionSet::from_stored(stored);
        conditions.retain(|condition| reasons::TYPES.contains(&condition.type_.as_str()));
        let mut report = Self { state: State::Pending, conditions };
        if report.conditions.get(reasons::FAILURE).is_some() {
            report.nothing_failed();
        }
        report
    }

    fn set(&mut self, type_: &str, status: Status, reason: &str, message: &str) {
        let update = ConditionUpdate::new(type_, status, reason, message);
        self.conditions.set(update.with(Observability::silent()));
    }

    fn cache(&mut self, service: &AimService) {
        let (status, reason, message) = if service.spec.cache_model {
            (Status::False, reasons::WAITING_FOR_CACHE, COLD)
        } else {
            (Status::True, reasons::CACHE_WARM, "Caching not requested")
        };
        self.set(reasons::CACHE_READY, status, reason, message);
    }

    fn cached(&mut self, service: &AimService) {
        if service.spec.cache_model {
            let message = "Template caching enabled";
            self.set(reasons::CACHE_READY, Status::True, reasons::CACHE_WARM, message);
        }
    }

    fn nothing_failed(&mut self) {
        let message = "No active failures";
        self.set(reasons::FAILURE, Status::False, reasons::RESOLVED_REASON, message);
    }

    /// Whether nothing about routing stands in the way.
    fn routing(&mut self, observed: &Observed) -> bool {
        if let Some(failure) = self.route(observed) {
            self.set(reasons::FAILURE, Status::True, reasons::ROUTE_FAILED, &failure);
        }
        self.conditions.all_true(&[reasons::ROUTING_READY])
    }

    /// What has failed, if something has.
    fn route(&mut self, observed: &Observed) -> Option<String> {
        let Some(routing) = &observed.routing else {
            let message = "Routing disabled";
            self.set(reasons::ROUTING_READY, Status::True, reasons::ROUTE_READY, message);
            return None;
        };
        let Some(gateway) = &routing.gateway else {
            let message = "routing.gatewayRef must be specified via AIMService or runtime config \
                           when routing is enabled";
            self.set(reasons::ROUTING_READY, Status::False, reasons::ROUTE_FAILED, message);
            self.state = State::Failed;
            return Some("Routing gateway reference is missing".to_owned());
        };
        let (reason, message) = match route_health::judge(&observed.route, gateway) {
            Route::NotReady { reason, message } => (reason, message),
            Route::Ready => {
                let message = "HTTPRoute is ready";
                self.set(reasons::ROUTING_READY, Status::True, reasons::ROUTE_READY, message);
                return None;
            }
        };
        self.set(reasons::ROUTING_READY, Status::False, &reason, &message);
        let failed = reason == reasons::ROUTE_FAILED;
        if failed {
            self.state = State::Degraded;
        }
        failed.then_some(message)
    }

    fn unread(&mut self, error: &Error) {
        let (reason, message) =
            (reasons::VALIDATION_FAILED, format!("Observation failed: {error}"));
        self.state = State::Failed;
        self.set(reasons::FAILURE, Status::True, reason, &message);
        self.set(reasons::RESOLVED, Status::False, reason, UNRESOLVED);
        self.set(reasons::RUNTIME_READY, Status::False, reason, &message);
        self.set(types::PROGRESSING, Status::False, reason, HALTED);
        self.set(types::READY, Status::False, reason, &message);
    }

    /// The template to go on with.
    fn template<'a>(&mut self, resolution: Option<&'a Resolution>) -> Option<&'a Template> {
        let resolution = resolution?;
        match &resolution.outcome {
            Outcome::Found(template) => {
                let message = format!("Resolved template \"{}\"", template.name);
                self.set(reasons::RESOLVED, Status::True, reasons::RESOLVED_REASON, &message);
                Some(template)
            }
            Outcome::Unmade(_) => {
                self.template_unmade();
                None
            }
            Outcome::Missing => {
                self.template_missing(resolution.base.as_deref());
                None
            }
        }
    }

    fn template_unmade(&mut self) {
        let reason = reasons::TEMPLATE_NOT_FOUND;
        let message = "Template not found; creating derived template";
        self.state = State::Pending;
        self.set(reasons::RESOLVED, Status::False, reason, message);
        let message = "Waiting for template creation";
        self.set(reasons::RUNTIME_READY, Status::False, reasons::CREATING_RUNTIME, message);
        let message = "Waiting for template to be created";
        self.set(types::PROGRESSING, Status::True, reason, message);
        self.set(types::READY, Status::False, reason, "Template missing");
    }

    fn template_missing(&mut self, base: Option<&str>) {
        let reason = reasons::TEMPLATE_NOT_FOUND;
        let message = match base {
            Some(base) => format!(
                "Template \"{base}\" not found. Create the template or verify the template name."
            ),
            None => "No template reference specified and no default template found on the image. \
                     Provide spec.templateRef or configure the image's defaultServiceTemplate \
                     field."
                .to_owned(),
        };
        self.set(reasons::FAILURE, Status::True, reason, &message);
        self.set(reasons::RESOLVED, Status::False, reason, &message);
        self.stop(&Stop {
            state: State::Degraded,
            reason: reason.to_owned(),
            failure: None,
            runtime: "Referenced template does not exist".to_owned(),
            progressing: (Status::False, "Cannot proceed without template"),
            ready: "Template missing".to_owned(),
        });
    }

    fn stop(&mut self, stop: &Stop) {
        let Stop { state, reason, failure, runtime, progressing, ready } = stop;
        self.state = *state;
        if let Some(failure) = failure {
            self.set(reasons::FAILURE, Status::True, reason, failure);
        }
        self.set(reasons::RUNTIME_READY, Status::False, reason, runtime);
        self.set(types::PROGRESSING, progressing.0, reason, progressing.1);
        self.set(types::READY, Status::False, reason, ready);
    }
}
