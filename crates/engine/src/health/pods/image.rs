//! Images that cannot be pulled.

use k8s_openapi::api::core::v1::{Event, Pod};

use super::words::has_phrase;
use super::{containers, waiting};
use crate::error::Error;
use crate::health::{events, reasons};

const PULLING: [&str; 4] =
    ["ImagePullBackOff", "ErrImagePull", "RegistryUnavailable", "ImageInspectError"];

const DENIED: [&str; 7] =
    ["unauthorized", "authentication", "401", "403", "forbidden", "denied", "credentials"];
const ABSENT: [&str; 5] = ["not found", "404", "manifest unknown", "name unknown", "no such"];
/// Names a host that does not resolve, not an image that does not exist.
const NO_HOST: &str = "no such host";

pub(super) fn problem(pod: &Pod, all_events: &[Event]) -> Option<Error> {
    containers(pod).find_map(|(_, container)| {
        let (reason, said) = waiting(container)?;
        let message = format!("Container {}: {said}", container.name);
        match reason {
            "InvalidImageName" => Some(Error::invalid_spec("InvalidImageName", message)),
            "ErrImageNeverPull" => Some(Error::missing_upstream(reasons::IMAGE_NOT_FOUND, message)),
            reason if PULLING.contains(&reason) => Some(pull_error(pod, all_events, said, message)),
            _ => None,
        }
    })
}

/// While backing off, some kubelets no longer say why; the event of the last attempt does.
fn pull_error(pod: &Pod, all_events: &[Event], said: &str, message: String) -> Error {
    let known = classify(said, &message);
    let ours = all_events.iter().filter(|event| events::is_about(event, "Pod", &pod.metadata));
    let attempts = ours.filter(|event| {
        event.message.as_deref().is_some_and(|text| has_phrase(text, "failed to pull image"))
    });
    let attempt = || events::newest(attempts, &["Failed"]).and_then(|e| e.message.as_deref());
    known
        .or_else(|| attempt().and_then(|text| classify(text, &format!("{message}: {text}"))))
        .unwrap_or_else(|| Error::infrastructure(reasons::IMAGE_PULL_BACK_OFF, message))
}

fn classify(text: &str, message: &str) -> Option<Error> {
    if has_phrase(text, NO_HOST) {
        None
    } else if DENIED.iter().any(|word| has_phrase(text, word)) {
        Some(Error::auth(reasons::IMAGE_PULL_AUTH_FAILURE, message))
    } else if ABSENT.iter().any(|word| has_phrase(text, word)) {
        Some(Error::missing_upstream(reasons::IMAGE_NOT_FOUND, message))
    } else {
        None
    }
}
