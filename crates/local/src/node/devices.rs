//! GPUs: the devices that the machine has, and which container has which of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use k8s_openapi::api::core::v1::Container;

use super::pod::Role;

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
const AMD: Kind =
    Kind { resource: "amd.com/gpu", variables: &["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"] };

/// All devices, and who has them.
#[derive(Debug, Default)]
pub struct Devices {
    counts: BTreeMap<Kind, u32>,
    /// By pod and container.
    held: BTreeMap<(String, String), Held>,
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
        Self { counts: counts.collect(), held: BTreeMap::new() }
    }

    /// What the node offers.
    pub fn capacity(&self) -> BTreeMap<String, String> {
        let counts = self.counts.iter();
        counts.map(|(kind, count)| (kind.resource.to_owned(), count.to_string())).collect()
    }

    /// Gives a container its devices, or those it has already. Those of init containers, which have
    /// ended by then, are given to others of the pod first: together they count once. The variables
    /// name the devices; a container that asks for none sees none. If there are too few, the node was
    /// told to offer more than it has, and then all are shared.
    pub fn take(
        &mut self,
        uid: &str,
        role: Role,
        container: &Container,
    ) -> BTreeMap<String, String> {
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
            if given.len() < wanted {
                continue;
            }
            given.sort_unstable();
            let text: Vec<_> = given.iter().map(u32::to_string).collect();
            own.extend(given.into_iter().map(|number| (*kind, number)));
            let all = kind.variables.iter().map(|name| ((*name).to_owned(), text.join(",")));
            variables.extend(all);
        }
        self.held.insert(key, Held { devices: own, is_passing: role == Role::Init });
        variables
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
        api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity,
    };

    use super::*;

    fn asking(count: &str) -> Container {
        let limits = [(NVIDIA.resource.to_owned(), Quantity(count.to_owned()))];
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
        devices.take(uid, Role::Main, &asking(count)).get("CUDA_VISIBLE_DEVICES").cloned()
    }

    #[test]
    fn containers_have_the_devices_of_the_init_containers_before_them() {
        let mut all = Devices { counts: [(NVIDIA, 4)].into(), held: BTreeMap::new() };
        let mut of = |uid: &str, name: &str, role: Role, count: &str| {
            let container = Container { name: name.into(), ..asking(count) };
            all.take(uid, role, &container).get("CUDA_VISIBLE_DEVICES").cloned()
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
        let mut all = Devices { counts: [(NVIDIA, 3)].into(), held: BTreeMap::new() };
        assert_eq!(visible(&mut all, "1", "2").as_deref(), Some("0,1"));
        assert_eq!(visible(&mut all, "2", "1").as_deref(), Some("2"));
        assert_eq!(visible(&mut all, "1", "2").as_deref(), Some("0,1"), "the same after a restart");
        assert_eq!(visible(&mut all, "3", "0").as_deref(), Some(""));
        assert_eq!(visible(&mut all, "4", "1"), None, "more were offered than there are");
        all.give_back("1");
        assert_eq!(visible(&mut all, "4", "1").as_deref(), Some("0"));
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
