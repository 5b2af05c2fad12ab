//! Fields that Kubernetes knows and a local node does not act on. Some are refused and some are
//! stored with a warning, but none is passed over in silence: nobody is to wait for what will not
//! happen. Which they are is in `data/fields.txt`.

use serde_json::Value;

use super::{
    Resource,
    causes::{Causes, Path},
    fields::{Effect, Found, found},
    object::{at, items, text},
};

const REFUSED: &str = "not supported on a local node";
const WARNED: &str = "has no effect on a local node";
const NOT_CHOSEN: &str = "has no effect on a local node that is not run by root";

/// What was stored before it was refused may stay. What Kubernetes forbids anyway is told in its words.
pub(super) fn check(resource: &Resource, new: &Value, old: Option<&Value>, causes: &mut Causes) {
    let stored = old.map(|old| refused(resource, old)).unwrap_or_default();
    for Found { path, value } in refused(resource, new) {
        let may_stay = stored.iter().any(|stored| stored.path == path && stored.value == value);
        if !may_stay && !causes.forbids(&path) {
            causes.forbidden(&path, REFUSED);
        }
    }
}

fn refused<'a>(resource: &Resource, object: &'a Value) -> Vec<Found<'a>> {
    let mut all = found(resource, object, Effect::Refused);
    if let Some((spec, path)) = pod(resource, object) {
        all.extend(own_policies(spec, &path));
    }
    all
}

/// What the object says of its pods, and where.
fn pod<'a>(resource: &Resource, object: &'a Value) -> Option<(&'a Value, Path)> {
    let place: &[&str] = match (&*resource.group, &*resource.kind) {
        ("", "Pod") => &["spec"],
        ("apps" | "batch", _) => &["spec", "template", "spec"],
        _ => return None,
    };
    Some((at(object, place)?, Path::new(place.join("."))))
}

/// A container that is restarted although its pod says otherwise. Only of an init container this means
/// something here: it is a sidecar.
fn own_policies<'a>(spec: &'a Value, path: &Path) -> Vec<Found<'a>> {
    let of_pod = text(spec, &["restartPolicy"]);
    let containers = items(spec, &["containers"]).iter().enumerate();
    let own = containers.filter_map(|(index, container)| {
        let value = at(container, &["restartPolicy"])?;
        let path = path.child("containers").index(index).child("restartPolicy");
        (value == "Always" && of_pod != "Always").then_some(Found { path, value })
    });
    own.collect()
}

pub(super) fn warnings(resource: &Resource, object: &Value) -> Vec<String> {
    let warned = found(resource, object, Effect::Warned);
    warned.into_iter().map(|Found { path, .. }| format!("{path}: {WARNED}")).collect()
}

/// Who runs the node, as numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runner {
    pub(super) user: u32,
    pub(super) group: u32,
}

impl Runner {
    pub(super) fn this_process() -> Self {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Self { user: user.as_raw(), group: group.as_raw() }
    }
}

/// As whom containers are to run. Only root can choose that; others run them as themselves.
pub(super) fn users(resource: &Resource, object: &Value, runner: Runner) -> Vec<String> {
    let Some((spec, path)) = pod(resource, object).filter(|_| runner.user != 0) else {
        return Vec::new();
    };
    let lists = ["initContainers", "containers"].into_iter().flat_map(|list| {
        let all = items(spec, &[list]).iter().enumerate();
        let path = path.child(list);
        all.map(move |(index, container)| (container, path.index(index)))
    });
    let contexts = [(spec, path.clone())].into_iter().chain(lists);
    let told = contexts.flat_map(|(owner, path)| {
        let own =
            [("runAsUser", runner.user), ("runAsGroup", runner.group), ("fsGroup", runner.group)];
        own.into_iter().filter_map(move |(field, own)| {
            let wanted = at(owner, &["securityContext", field])?.as_i64()?;
            let path = path.child("securityContext").child(field);
            (wanted != i64::from(own)).then(|| format!("{path}: {NOT_CHOSEN}"))
        })
    });
    told.collect()
}
