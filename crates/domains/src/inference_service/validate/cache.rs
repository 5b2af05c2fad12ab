//! Where models are kept, and what is fetched into it ahead of time.

use windlass_api::serving::zerfoo_inference_service::{
    Cache, EmptyDirCache, HostPathCache, Prefetch, ZerfooInferenceServiceSpec,
};
use windlass_engine::quantity;

use super::{Rule, check};
use crate::inference_service::{Settings, aliases};

pub(super) fn check_cache(
    spec: &ZerfooInferenceServiceSpec,
    settings: &Settings,
) -> Result<(), Rule> {
    let Some(cache) = &spec.cache else { return Ok(()) };
    let Cache { empty_dir, persistent_volume_claim, host_path, prefetch } = cache;
    let kinds = [empty_dir.is_some(), persistent_volume_claim.is_some(), host_path.is_some()];
    check(kinds.into_iter().filter(|used| *used).count() <= 1, Rule::CacheAmbiguous)?;
    if let Some(directory) = empty_dir {
        check_size_limit(directory)?;
    }
    if let Some(claim) = persistent_volume_claim {
        check(!claim.claim_name.is_empty(), Rule::ClaimNameRequired)?;
    }
    if let Some(directory) = host_path {
        check_host_path(directory, settings)?;
    }
    if let Some(prefetch) = prefetch {
        check_prefetch(spec, prefetch)?;
    }
    Ok(())
}

fn check_size_limit(directory: &EmptyDirCache) -> Result<(), Rule> {
    let Some(limit) = &directory.size_limit else { return Ok(()) };
    let positive = quantity::parse(&limit.0).is_some_and(quantity::Nano::is_positive);
    check(positive, Rule::Quantity("cache emptyDir sizeLimit"))
}

fn check_host_path(directory: &HostPathCache, settings: &Settings) -> Result<(), Rule> {
    let allowed = &settings.host_path_prefixes;
    check(!allowed.is_empty(), Rule::HostPathForbidden)?;
    let holds = allowed.iter().any(|prefix| lies_below(&directory.path, prefix));
    check(holds, Rule::HostPathOutside(allowed.clone()))
}

/// By whole names, so that `/models-of-others` is not below `/models`.
fn lies_below(path: &str, prefix: &str) -> bool {
    let names = |path: &str| -> Vec<String> {
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let path = names(path);
    let leaves = path.iter().any(|name| matches!(name.as_str(), "." | ".."));
    prefix.starts_with('/') && !leaves && path.starts_with(&names(prefix))
}

fn check_prefetch(spec: &ZerfooInferenceServiceSpec, prefetch: &Prefetch) -> Result<(), Rule> {
    let quant = prefetch.quant.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let matches =
        quant.first().is_some_and(u8::is_ascii_alphanumeric) && quant.iter().all(is_inner);
    check(matches, Rule::Quant)?;
    let canary = spec.canary.as_ref().map(|canary| ("canary modelRef", &canary.model_ref));
    for (what, model_ref) in [("modelRef", &spec.model_ref)].into_iter().chain(canary) {
        check(aliases::repository(model_ref).is_some(), Rule::PrefetchOfAlias(what))?;
    }
    Ok(())
}
