//! What pods ask of a node and what it has.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Node, Pod, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};

use crate::builtin::quantity;

/// In billionths.
pub(super) type Amounts = BTreeMap<String, i128>;

/// One more pod, where pods are counted.
const PODS: &str = "pods";

/// Which resources a node can run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Devices and the like: a machine shares its processors and memory as it does otherwise.
    Devices,
    Everything,
}

impl Counting {
    fn counts(self, name: &str) -> bool {
        let devices = name.starts_with("hugepages-")
            || name.split_once('/').is_some_and(|(domain, _)| {
                domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io")
            });
        devices || self == Counting::Everything
    }
}

/// What the node offers to pods.
pub(super) fn offered(node: &Node, counting: Counting) -> Amounts {
    let status = node.status.as_ref();
    let given = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
    let all = given.into_iter().flatten();
    all.filter(|(name, _)| counting.counts(name))
        .map(|(name, quantity)| (name.clone(), nano(quantity)))
        .collect()
}

/// What a pod holds while it runs: its containers together, or one that runs before them if that
/// asks for more.
pub(super) fn wanted(pod: &Pod, counting: Counting) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let mut running = Amounts::new();
    let mut highest = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut running, &own);
            raise(&mut highest, &running);
        } else {
            let mut together = running.clone();
            add(&mut together, &own);
            raise(&mut highest, &together);
        }
    }
    for container in &spec.containers {
        add(&mut running, &of_container(container));
    }
    raise(&mut highest, &running);
    let whole = spec.resources.as_ref().map(of_resources).unwrap_or_default();
    highest.extend(whole);
    let overhead = spec.overhead.iter().flatten();
    add(&mut highest, &overhead.map(|(name, value)| (name.clone(), nano(value))).collect());
    highest.insert(PODS.into(), nano(&Quantity("1".into())));
    highest.retain(|name, amount| *amount > 0 && counting.counts(name));
    highest
}

/// What is not enough, in the words of the scheduler.
pub(super) fn shortages(free: &Amounts, wanted: &Amounts) -> Vec<String> {
    let missing = wanted
        .iter()
        .filter(|(name, amount)| free.get(*name).copied().unwrap_or_default() < **amount);
    let told = missing.map(|(name, _)| match &**name {
        PODS => "Too many pods".to_owned(),
        name => format!("Insufficient {name}"),
    });
    told.collect()
}

pub(super) fn take(free: &mut Amounts, wanted: &Amounts) {
    for (name, amount) in wanted {
        *free.entry(name.clone()).or_default() -= amount;
    }
}

fn of_container(container: &Container) -> Amounts {
    container.resources.as_ref().map(of_resources).unwrap_or_default()
}

/// A limit is also a request where there is no other.
fn of_resources(resources: &ResourceRequirements) -> Amounts {
    let limits = resources.limits.iter().flatten();
    let all = limits.chain(resources.requests.iter().flatten());
    all.map(|(name, value)| (name.clone(), nano(value))).collect()
}

fn add(total: &mut Amounts, own: &Amounts) {
    for (name, amount) in own {
        let sum = total.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

fn raise(highest: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let held = highest.entry(name.clone()).or_default();
        *held = (*held).max(*amount);
    }
}

fn nano(Quantity(text): &Quantity) -> i128 {
    quantity::Quantity::parse(text).map_or(0, quantity::Quantity::nano)
}
