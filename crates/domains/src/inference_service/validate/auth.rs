//! Who may call the server, and whether an administrator who requires a key gets his will.

use k8s_openapi::api::core::v1::EnvVar;
use windlass_api::serving::zerfoo_inference_service::{SecretKeyRef, ZerfooInferenceServiceSpec};

use super::{Rule, check};
use crate::inference_service::Settings;
use crate::inference_service::objects::deployment::API_KEY_VARIABLE;

/// Who may call the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ApiKey(SecretKeyRef),
    /// The user's own environment or arguments configure it.
    Custom,
    Anyone,
}

/// The second value tells whether the endpoint is open without anybody having asked for it.
pub(super) fn access(
    spec: &ZerfooInferenceServiceSpec,
    settings: &Settings,
) -> Result<(Access, bool), Rule> {
    let auth = spec.auth.clone().unwrap_or_default();
    let knowingly = auth.allow_no_auth == Some(true);
    if settings.require_auth {
        check(!knowingly, Rule::AuthRequired)?;
        check_arguments(&spec.extra_args)?;
    }
    match auth.api_key_secret_ref {
        Some(_) if knowingly => Err(Rule::AuthAmbiguous),
        // The key of the Secret would be silently replaced, perhaps by nothing.
        Some(_) if key_variable(spec).is_some() => Err(Rule::ApiKeyReplaced),
        Some(key) => Ok((Access::ApiKey(key), false)),
        None if spec.auth.is_some() && !knowingly => Err(Rule::AuthAmbiguous),
        None if configures_auth(spec) => Ok((Access::Custom, false)),
        None if settings.require_auth => Err(Rule::AuthRequired),
        None => Ok((Access::Anyone, !knowingly)),
    }
}

/// Arguments that would open the server, or might: the kubelet puts in variables before the server
/// reads its flags, so a flag must not be made of them.
fn check_arguments(arguments: &[String]) -> Result<(), Rule> {
    for argument in arguments {
        check(flag(argument) != Some("allow-no-auth"), Rule::AuthSwitchedOff)?;
        let name = argument.split('=').next().unwrap_or_default();
        check(!name.contains("$("), Rule::ArgumentUnclear)?;
    }
    Ok(())
}

/// Whether the user hands the server a key by other means.
fn configures_auth(spec: &ZerfooInferenceServiceSpec) -> bool {
    let has_value = |variable: &EnvVar| {
        let text = variable.value.as_deref().unwrap_or_default();
        !text.trim().is_empty() || variable.value_from.is_some()
    };
    key_variable(spec).is_some_and(has_value) || has_key_argument(&spec.extra_args)
}

/// The server takes an empty key for none.
fn has_key_argument(arguments: &[String]) -> bool {
    arguments.iter().enumerate().any(|(at, argument)| {
        let value = match argument.split_once('=') {
            Some((_, value)) => value,
            None => arguments.get(at + 1).map_or("", String::as_str),
        };
        matches!(flag(argument), Some("api-key" | "keystore")) && !value.trim().is_empty()
    })
}

/// Of several entries the last one counts.
fn key_variable(spec: &ZerfooInferenceServiceSpec) -> Option<&EnvVar> {
    spec.env.iter().rfind(|variable| variable.name == API_KEY_VARIABLE)
}

/// Name of a long flag, written with one dash or two.
fn flag(argument: &str) -> Option<&str> {
    let name = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?;
    name.split('=').next()
}
