//! GPUs: the devices that the machine has, and which container has which of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use k8s_openapi::api::core::v1::Container;

use super::pod::Role;
use crate::builtin::quantity::Quantity;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    resource: &'static str,
    /// What programs read to learn which devices are theirs, by number.
    variables: &'static [&'static str],
}

const NVIDIA: Kind = Kind {
    resource: "nvidia.com/gpu",
    variables: &["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"],
};
/// The variables of HIP and OpenCL count within what this one leaves, from zero again.
const AMD: Kind = Kind { resource: "amd.com/gpu", variables: &["ROCR_VISIBLE_DEVICES"] };

/// All devices, and who has them.
#[derive(Debug, Default)]
pub struct Devices {
    counts: BTreeMap<Kind, u32>,
    /// Of these the node offers more than it has: who finds none free has all, as the others do.
    shared: BTreeSet<Kind>,
    /// By pod and container.
    held: BTreeMap<(String, String), Held>,
}

/// The devices that a container asks for are not free yet.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("waiting for {wanted} of {resource}, of which {free} are free")]
pub struct Busy {
    resource: &'static str,
    wanted: usize,
    free: usize,
}

#[derive(Debug, Default)]
struct Held {
    devices: BTreeSet<(Kind, u32)>,
    /// It has ended when the next container of its pod starts, which may have its devices then.
    is_passing: bool,
}

impl Devices {
    /// Those of this machine.
    pub fn find() -> Self {
        Self::under(Path::new("/"))
    }

    fn under(root: &Path) -> Self {
        let entries = |path: &str| {
            let all = fs::read_dir(root.join(path)).into_iter().flatten();
            all.filter_map(|entry| Some(entry.ok()?.path()))
        };
        let nvidia = entries("proc/driver/nvidia/gpus").count();
        // Processors are nodes there too, with the number zero.
        let is_gpu = |node: &Path| {
            let id = fs::read_to_string(node.join("gpu_id")).unwrap_or_default();
            !matches!(id.trim(), "" | "0")
        };
        let amd = entries("sys/class/kfd/kfd/topology/nodes").filter(|node| is_gpu(node)).count();
        let found = [(NVIDIA, nvidia), (AMD, amd)].into_iter().filter(|(_, count)| *count > 0);
        let counts = found.filter_map(|(kind, count)| Some((kind, u32::try_from(count).ok()?)));
        Self { counts: counts.collect(), ..Self::default() }
    }

    /// With what the user says that the node offers instead.
    pub fn offered(mut self, resources: &BTreeMap<String, String>) -> Self {
        let is_more = |(kind, count): (&Kind, &u32)| {
            let said = resources.get(kind.resource).and_then(|text| Quantity::parse(text).ok());
            said.is_some_and(|said| said.nano() > i128::from(*count) * 1_000_000_000)
        };
        let more = self.counts.iter().filter(|one| is_more(*one));
        self.shared = more.map(|(kind, _)| *kind).collect();
        self
    }

    /// What the node offers.
    pub fn capacity(&self) -> BTreeMap<String, String> {
        let counts = self.counts.iter();
        counts.map(|(kind, count)| (kind.resource.to_owned(), count.to_string())).collect()
    }

    /// Gives a container its devices, or those it has already. Those of init containers, which have
    /// ended by then, are given to others of the pod first: together they count once. The variables
    /// name the devices; a container that asks for none sees none. If there are too few, somebody who
    /// is about to go still has them.
    pub fn take(
        &mut self,
        uid: &str,
        role: Role,
        container: &Container,
    ) -> Result<BTreeMap<String, String>, Busy> {
        let key = (uid.to_owned(), container.name.clone());
        let before = self.held.remove(&key).unwrap_or_default();
        let mut own = BTreeSet::new();
        let mut variables = BTreeMap::new();
        for (kind, count) in &self.counts {
            let wanted = wanted(container, kind.resource);
            let passing = self.of(*kind, |holder, held| held.is_passing && holder == uid);
            let taken = self.of(*kind, |holder, held| !held.is_passing || holder != uid);
            let numbers = before.devices.iter().filter(|(of, _)| of == kind).map(|(_, n)| *n);
            let spare = passing.difference(&taken).copied();
            let free = (0..*count).filter(|number| !taken.contains(number));
            let mut given: Vec<u32> = Vec::new();
            for number in numbers.chain(spare).chain(free) {
                if !given.contains(&number) && given.len() < wanted {
                    given.push(number);
                }
            }
            if given.len() < wanted && self.shared.contains(kind) {
                continue;
            }
            if given.len() < wanted {
                let busy = Busy { resource: kind.resource, wanted, free: given.len() };
                // What it had before, it has.
                self.held.insert(key, before);
                return Err(busy);
            }
            given.sort_unstable();
            let text: Vec<_> = given.iter().map(u32::to_string).collect();
            own.extend(given.into_iter().map(|number| (*kind, number)));
            let all = kind.variables.iter().map(|name| ((*name).to_owned(), text.join(",")));
            variables.extend(all);
        }
        self.held.insert(key, Held { devices: own, is_passing: role == Role::Init });
        Ok(variables)
    }

    /// The numbers of the devices that some containers have.
    fn of(&self, kind: Kind, are_meant: impl Fn(&str, &Held) -> bool) -> BTreeSet<u32> {
        let holders = self.held.iter().filter(|((uid, _), held)| are_meant(uid, held));
        let devices = holders.flat_map(|(_, held)| &held.devices);
        devices.filter(|(of, _)| *of == kind).map(|(_, number)| *number).collect()
    }

    pub fn give_back(&mut self, uid: &str) {
        self.held.retain(|(holder, _), _| holder != uid);
    }
}

/// Devices are asked for as a limit, and only as whole numbers.
fn wanted(container: &Container, resource: &str) -> usize {
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    limits.and_then(|limits| limits.get(resource)?.0.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity as Text,
    };

    use super::*;

    fn asking(count: &str) -> Container {
        asking_for(NVIDIA, count)
    }

    fn asking_for(kind: Kind, count: &str) -> Container {
        let limits = [(kind.resource.to_owned(), Text(count.to_owned()))];
        Container {
            name: "c".into(),
            resources: Some(ResourceRequirements {
                limits: Some(limits.into()),
                ..ResourceRequirements::default()
            }),
            ..Container::default()
        }
    }

    fn visible(devices: &mut Devices, uid: &str, count: &str) -> Option<String> {
        let given = devices.take(uid, Role::Main, &asking(count)).unwrap();
        given.get("CUDA_VISIBLE_DEVICES").cloned()
    }

    /// More are offered than there are.
    fn shared(count: u32) -> Devices {
        let offered = BTreeMap::from([(NVIDIA.resource.to_owned(), "8".to_owned())]);
        found(count).offered(&offered)
    }

    fn found(count: u32) -> Devices {
        Devices { counts: [(NVIDIA, count)].into(), ..Devices::default() }
    }

    #[test]
    fn who_asks_for_devices_that_another_still_has_waits_for_them() {
        let mut all = found(2).offered(&BTreeMap::from([(NVIDIA.resource.into(), "2".into())]));
        assert_eq!(visible(&mut all, "old", "1").as_deref(), Some("0"));
        let busy = Busy { resource: NVIDIA.resource, wanted: 2, free: 1 };
        assert_eq!(all.take("new", Role::Main, &asking("2")), Err(busy));
        // Nor does it keep from others what it does not have.
        assert_eq!(visible(&mut all, "third", "1").as_deref(), Some("1"));
        all.give_back("old");
        all.give_back("third");
        assert_eq!(visible(&mut all, "new", "2").as_deref(), Some("0,1"));
    }

    #[test]
    fn containers_have_the_devices_of_the_init_containers_before_them() {
        let mut all = shared(4);
        let mut of = |uid: &str, name: &str, role: Role, count: &str| {
            let container = Container { name: name.into(), ..asking(count) };
            all.take(uid, role, &container).unwrap().get("CUDA_VISIBLE_DEVICES").cloned()
        };
        for (uid, name, role, count, want) in [
            ("1", "a", Role::Init, "2", Some("0,1")),
            ("1", "s", Role::Sidecar, "1", Some("0")),
            ("1", "b", Role::Init, "1", Some("1")),
            ("1", "c", Role::Main, "1", Some("1")),
            ("1", "d", Role::Main, "1", Some("2")),
            ("2", "a", Role::Init, "1", Some("3")),
            ("2", "c", Role::Main, "1", Some("3")),
            ("3", "c", Role::Main, "1", None),
        ] {
            assert_eq!(of(uid, name, role, count).as_deref(), want, "{uid} {name}");
        }
    }

    #[test]
    fn no_two_containers_have_one_device() {
        let mut all = shared(3);
        assert_eq!(visible(&mut all, "1", "2").as_deref(), Some("0,1"));
        assert_eq!(visible(&mut all, "2", "1").as_deref(), Some("2"));
        assert_eq!(visible(&mut all, "1", "2").as_deref(), Some("0,1"), "the same after a restart");
        assert_eq!(visible(&mut all, "3", "0").as_deref(), Some(""));
        assert_eq!(visible(&mut all, "4", "1"), None, "more were offered than there are");
        all.give_back("1");
        assert_eq!(visible(&mut all, "4", "1").as_deref(), Some("0"));
    }

    #[test]
    fn devices_of_amd_are_named_only_where_they_are_counted_first() {
        let mut all = Devices { counts: [(AMD, 2)].into(), ..Devices::default() };
        for (uid, count, want) in [("1", "1", "0"), ("2", "1", "1"), ("3", "0", "")] {
            let given = all.take(uid, Role::Main, &asking_for(AMD, count)).unwrap();
            let given: Vec<_> = given.iter().map(|(name, text)| (&**name, &**text)).collect();
            assert_eq!(given, [("ROCR_VISIBLE_DEVICES", want)], "{uid}");
        }
    }

    #[test]
    fn devices_are_found_where_the_drivers_show_them() {
        let root = tempfile::tempdir().unwrap();
        assert!(Devices::under(root.path()).capacity().is_empty());
        for gpu in ["0000:01:00.0", "0000:02:00.0"] {
            fs::create_dir_all(root.path().join("proc/driver/nvidia/gpus").join(gpu)).unwrap();
        }
        for (node, id) in [("0", "0\n"), ("1", "4711\n")] {
            let node = root.path().join("sys/class/kfd/kfd/topology/nodes").join(node);
            fs::create_dir_all(&node).unwrap();
            fs::write(node.join("gpu_id"), id).unwrap();
        }
        let found = Devices::under(root.path()).capacity();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [
                ("amd.com/gpu".to_owned(), "1".to_owned()),
                ("nvidia.com/gpu".to_owned(), "2".to_owned()),
            ]
        );
    }
}
