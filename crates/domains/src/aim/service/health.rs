//! How the service is, for the engine.

use windlass_api::aim::service::AimService;
use windlass_engine::conditions::{Status, types};
use windlass_engine::domain::Health;
use windlass_engine::health::ComponentHealth;
use windlass_engine::state::{FailureWords, Manual, State, Told};

use super::compose::Observed;
use super::reasons;
use super::report::{self, COLD, HALTED, UNRESOLVED};

pub(super) fn health(service: &AimService, observed: &Observed) -> Health {
    let report = report::report(service, observed);
    Health {
        components: vec![ComponentHealth::new("Inputs").failed_with(observed.unread.clone())],
        manual: Some(Manual {
            state: report.state,
            conditions: report.conditions,
            failures: FailureWords::Told {
                conditions: match service.spec.cache_model {
                    true => &REFUSED_WRITE_WHEN_CACHING,
                    false => &REFUSED_WRITE,
                },
                state: Some(State::Failed),
                instead: false,
            },
        }),
        ..Health::default()
    }
}

const REFUSED_WRITE: [Told; 5] = [
    told(reasons::FAILURE, Status::True, "Apply failed: {}"),
    told(reasons::RESOLVED, Status::False, UNRESOLVED),
    told(reasons::RUNTIME_READY, Status::False, "Apply failed: {}"),
    told(types::PROGRESSING, Status::False, HALTED),
    told(types::READY, Status::False, "Apply failed: {}"),
];

/// The step that finds the cache warm comes after the one that tells of writes.
const REFUSED_WRITE_WHEN_CACHING: [Told; 6] = {
    let [failure, resolved, runtime, progressing, ready] = REFUSED_WRITE;
    [WAITING_FOR_CACHE, failure, resolved, runtime, progressing, ready]
};

const WAITING_FOR_CACHE: Told = Told {
    type_: reasons::CACHE_READY,
    status: Status::False,
    reason: reasons::WAITING_FOR_CACHE,
    message: COLD,
    in_place: true,
};

const fn told(type_: &'static str, status: Status, message: &'static str) -> Told {
    Told { type_, status, reason: reasons::RUNTIME_FAILED, message, in_place: false }
}
