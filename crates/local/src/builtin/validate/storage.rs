//! Claims, volumes and their classes.

use serde_json::Value;

use super::{container, immutable, names, selectors};
use crate::builtin::{
    causes::{Causes, Path},
    object::{at, items, text},
    quantity::Quantity,
};

const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn claim(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    access_modes(spec, "at least 1 access mode is required", &path, causes);
    if let Some(selector) = at(spec, &["selector"]) {
        selectors::check(selector, &path.child("selector"), causes);
    }
    let field = path.child("resources").key("storage");
    match amount(object) {
        None => causes.required(&field, ""),
        Some(amount) if amount.nano() <= 0 => {
            causes.invalid(&field, amount.to_string(), "must be greater than zero");
        }
        Some(_) => {}
    }
    let class = text(spec, &["storageClassName"]);
    if !class.is_empty() {
        for problem in names::subdomain(class) {
            causes.invalid(&path.child("storageClassName"), class, &problem);
        }
    }
    container::one_of(spec, "volumeMode", &["Block", "Filesystem"], &path, causes);
    if let Some(old) = old {
        claim_update(object, old, &path, causes);
    }
}

fn amount(claim: &Value) -> Option<Quantity> {
    let amount = at(claim, &["spec", "resources", "requests", "storage"])?;
    Quantity::parse(amount.as_str()?).ok()
}

fn access_modes(spec: &Value, none: &str, path: &Path, causes: &mut Causes) {
    let field = path.child("accessModes");
    let modes = items(spec, &["accessModes"]);
    if modes.is_empty() {
        causes.required(&field, none);
    }
    for mode in modes.iter().filter_map(Value::as_str).filter(|mode| !MODES.contains(mode)) {
        causes.not_supported(&field, mode, MODES);
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        causes.forbidden(&field, "may not use ReadWriteOncePod with other access modes");
    }
}

fn claim_update(object: &Value, old: &Value, path: &Path, causes: &mut Causes) {
    let bound = text(object, &["status", "phase"]) == "Bound";
    if masked(object, old, bound) != masked(old, old, bound) {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims";
        causes.forbidden(path, detail);
    }
    if let (Some(new), Some(stored)) = (amount(object), amount(old))
        && new < stored
    {
        let capacity = at(old, &["status", "capacity", "storage"]).and_then(Value::as_str);
        let capacity = capacity.and_then(|text| Quantity::parse(text).ok());
        if capacity.is_none_or(|capacity| new <= capacity) {
            let path = Path::new("spec.resources.requests.storage");
            causes.forbidden(&path, "field can not be less than status.capacity");
        }
    }
}

/// Why the claim may not grow, in the words of the admission plugin that looks at it after all else.
pub(crate) fn refused_growth(
    claim: &Value,
    old: &Value,
    class: Option<&Value>,
) -> Option<&'static str> {
    let grows = amount(claim) > amount(old);
    let name = |claim| text(claim, &["spec", "storageClassName"]);
    let may = !name(old).is_empty()
        && name(old) == name(claim)
        && class.and_then(|class| class.get("allowVolumeExpansion")) == Some(&Value::Bool(true));
    match text(old, &["status", "phase"]) {
        _ if !grows => None,
        "Bound" if may => None,
        "Bound" => Some(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions \
             the pvc must support resize",
        ),
        _ => Some("Only bound persistent volume claims can be expanded"),
    }
}

/// The spec without what may change: the volume while there is none, the size of a bound claim.
fn masked(claim: &Value, old: &Value, bound: bool) -> Value {
    let mut spec = at(claim, &["spec"]).cloned().unwrap_or_default();
    if let Some(map) = spec.as_object_mut() {
        if text(old, &["spec", "volumeName"]).is_empty() {
            map.remove("volumeName");
        }
        if bound {
            map.remove("volumeAttributesClassName");
            let requests = map.get_mut("resources").and_then(|value| value.get_mut("requests"));
            if let Some(requests) = requests.and_then(Value::as_object_mut) {
                requests.remove("storage");
            }
        }
        if at(old, &["spec", "storageClassName"]).is_none() {
            map.remove("storageClassName");
        }
    }
    spec
}

pub(super) fn volume(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("spec");
    let none = Value::Null;
    let spec = at(object, &["spec"]).unwrap_or(&none);
    access_modes(spec, "", &path, causes);
    let capacity = at(spec, &["capacity"]);
    if capacity.is_none() {
        causes.required(&path.child("capacity"), "");
    }
    if capacity.is_none_or(|capacity| capacity.get("storage").is_none()) {
        let capacity = capacity.cloned().unwrap_or_default();
        let message = format!("Unsupported value: {capacity}: supported values: \"storage\"");
        let reason = crate::error::CauseReason::NotSupported;
        causes.push(reason, &path.child("capacity"), message);
    }
    let policies = &["Delete", "Recycle", "Retain"];
    container::one_of(spec, "persistentVolumeReclaimPolicy", policies, &path, causes);
    if let Some(old) = old
        && source(spec) != source(at(old, &["spec"]).unwrap_or(&none))
    {
        let detail = "spec.persistentvolumesource is immutable after creation";
        causes.forbidden(&path.child("persistentvolumesource"), detail);
    }
}

fn source(spec: &Value) -> Vec<(&String, &Value)> {
    const SETTINGS: &[&str] = &[
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let fields = spec.as_object().into_iter().flatten();
    fields.filter(|(name, _)| !SETTINGS.contains(&name.as_str())).collect()
}

pub(super) fn class(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let path = Path::new("");
    if text(object, &["provisioner"]).is_empty() {
        causes.required(&path.child("provisioner"), "");
    }
    container::one_of(object, "reclaimPolicy", &["Delete", "Retain"], &path, causes);
    let modes = &["Immediate", "WaitForFirstConsumer"];
    container::one_of(object, "volumeBindingMode", modes, &path, causes);
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            immutable(object, old, &[field], causes);
        }
    }
}
