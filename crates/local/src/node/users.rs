//! As whom containers run: the users that pods name, where the node is root and may choose. Elsewhere
//! all run as whoever runs the node.
//!
//! Directories in which we write stay ours: in one of somebody else's a link could lead us anywhere.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, lchown},
    path::Path,
};

use k8s_openapi::api::core::v1::{Container, Pod};

use super::{pod::full_name, sources::containers};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
}

/// Whether this process can run others as whom it likes.
pub fn may_choose() -> bool {
    rustix::process::geteuid().is_root()
}

/// As whom a container runs; `None` as whoever runs the node. The error is kubelet's.
pub fn of(pod: &Pod, container: &Container, may_choose: bool) -> Result<Option<User>, String> {
    if !may_choose {
        return Ok(None);
    }
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let uid = own.and_then(|own| own.run_as_user).or_else(|| of_pod?.run_as_user);
    let not_root = own.and_then(|own| own.run_as_non_root).or_else(|| of_pod?.run_as_non_root);
    let wrong = |what: &str| {
        let (pod, name) = (full_name(pod), &container.name);
        Err(format!("{what} (pod: \"{pod}\", container: {name})"))
    };
    let uid = match uid {
        None if not_root == Some(true) => {
            return wrong("container has runAsNonRoot and image will run as root");
        }
        Some(0) if not_root == Some(true) => {
            return wrong("container's runAsUser breaks non-root policy");
        }
        None | Some(0) => return Ok(None),
        Some(uid) => uid,
    };
    // Root's group, which a cluster would take, has rights on this machine. No other groups can be
    // given to a process, so that of its volumes is its own.
    let group = own.and_then(|own| own.run_as_group).or_else(|| of_pod?.run_as_group);
    let gid = group.or_else(|| of_pod?.fs_group).unwrap_or(uid);
    match (u32::try_from(uid), u32::try_from(gid)) {
        (Ok(uid), Ok(gid)) => Ok(Some(User { uid, gid })),
        _ => wrong(&format!("there is no user {uid} of group {gid}")),
    }
}

/// Whom a volume is for, beside root, who may use everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Whoever runs the node.
    Node,
    One(User),
    Group(u32),
    Everybody,
}

impl Readers {
    /// Of a volume of the pod. A container that cannot run is told of when it starts.
    pub fn of(pod: &Pod, volume: &str, may_choose: bool) -> Self {
        let mounts = |container: &&Container| {
            container.volume_mounts.iter().flatten().any(|mount| mount.name == volume)
        };
        let users = containers(pod).filter(mounts);
        let users = users.filter_map(|container| of(pod, container, may_choose).ok()?);
        let users: Vec<User> = users.collect::<BTreeSet<_>>().into_iter().collect();
        match &users[..] {
            [] => Self::Node,
            [user] => Self::One(*user),
            [user, others @ ..] if others.iter().all(|other| other.gid == user.gid) => {
                Self::Group(user.gid)
            }
            _ => Self::Everybody,
        }
    }

    /// A directory in which they may do as they like. One that others had before is theirs still.
    pub fn may_fill(self, dir: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(dir)?;
        match self {
            Self::Node => Ok(()),
            Self::One(user) if found.uid() == user.uid => Ok(()),
            Self::One(user) if found.uid() == 0 => lchown(dir, Some(user.uid), Some(user.gid)),
            Self::Group(gid) if found.uid() == 0 => {
                lchown(dir, None, Some(gid))?;
                set_mode(dir, &found, 0o2770)
            }
            Self::One(_) | Self::Group(_) | Self::Everybody => set_mode(dir, &found, 0o777),
        }
    }

    /// A directory of ours that they may look into.
    pub fn may_list(self, dir: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(dir)?;
        match self {
            Self::Node => Ok(()),
            Self::One(User { gid, .. }) | Self::Group(gid) => {
                if found.gid() != gid {
                    lchown(dir, None, Some(gid))?;
                }
                set_mode(dir, &found, 0o750)
            }
            Self::Everybody => set_mode(dir, &found, 0o755),
        }
    }

    /// A file of ours that they may read, with what its mode has to be for that.
    pub fn may_read(self, mode: u32) -> (Option<u32>, Option<u32>, u32) {
        match self {
            Self::Node | Self::Everybody => (None, None, mode),
            Self::One(user) => (Some(user.uid), Some(user.gid), mode),
            Self::Group(gid) => (None, Some(gid), mode | 0o040),
        }
    }
}

fn set_mode(dir: &Path, found: &Metadata, mode: u32) -> io::Result<()> {
    if found.mode() & 0o7777 == mode {
        return Ok(());
    }
    fs::set_permissions(dir, Permissions::from_mode(mode))
}

/// Lets everybody pass through the directories from `top` to the path, without looking around there.
/// The error says who cannot come that far.
pub fn open_way(path: &Path, top: &Path, user: User) -> Result<(), String> {
    let told = |dir: &Path, error: io::Error| format!("{}: {error}", dir.display());
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    for dir in above {
        let found = fs::metadata(dir).map_err(|error| told(dir, error))?;
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        if dir.starts_with(top) && (!is_own || found.mode() & 0o022 != 0) {
            // From here on it is theirs, links and all.
            return Ok(());
        }
        if passes(&found, user) {
            continue;
        }
        if !dir.starts_with(top) {
            let (path, dir) = (path.display(), dir.display());
            let User { uid, .. } = user;
            return Err(format!("user {uid} cannot reach {path}, as {dir} is closed to others"));
        }
        let mode = found.mode() & 0o7777 | 0o011;
        fs::set_permissions(dir, Permissions::from_mode(mode)).map_err(|error| told(dir, error))?;
    }
    Ok(())
}

fn passes(found: &Metadata, user: User) -> bool {
    let bit = match (found.uid() == user.uid, found.gid() == user.gid) {
        (true, _) => 0o100,
        (_, true) => 0o010,
        _ => 0o001,
    };
    found.mode() & bit != 0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(of_pod: Value, own: Value) -> Pod {
        let container = json!({"name": "c", "securityContext": own,
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
        let spec = json!({"securityContext": of_pod, "containers": [container]});
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn a_container_runs_as_its_own_user_or_that_of_its_pod() {
        let (root, breaks) = (
            "container has runAsNonRoot and image will run as root (pod: \"p_ns(u)\", container: c)",
            "container's runAsUser breaks non-root policy (pod: \"p_ns(u)\", container: c)",
        );
        for (of_pod, own, want) in [
            (json!({}), json!({}), Ok(None)),
            (json!({"runAsUser": 7}), json!({}), Ok(Some((7, 7)))),
            (json!({"runAsUser": 7, "fsGroup": 9}), json!({}), Ok(Some((7, 9)))),
            (
                json!({"runAsUser": 7, "runAsGroup": 8, "fsGroup": 9}),
                json!({"runAsUser": 5}),
                Ok(Some((5, 8))),
            ),
            (json!({"runAsUser": 7}), json!({"runAsUser": 0}), Ok(None)),
            (json!({"runAsNonRoot": true}), json!({}), Err(root)),
            (json!({"runAsNonRoot": true}), json!({"runAsNonRoot": false}), Ok(None)),
            (json!({"runAsNonRoot": true}), json!({"runAsUser": 3}), Ok(Some((3, 3)))),
            (json!({"runAsUser": 0}), json!({"runAsNonRoot": true}), Err(breaks)),
        ] {
            let pod = pod(of_pod.clone(), own.clone());
            let container = &pod.spec.as_ref().unwrap().containers[0];
            let want = want.map(|user| user.map(|(uid, gid)| User { uid, gid }));
            assert_eq!(of(&pod, container, true), want.map_err(str::to_owned), "{of_pod} {own}");
            assert_eq!(of(&pod, container, false), Ok(None), "{of_pod} {own}");
        }
        let pod = pod(json!({"runAsUser": -1}), json!({}));
        assert!(of(&pod, &pod.spec.as_ref().unwrap().containers[0], true).is_err());
    }

    #[test]
    fn a_volume_is_for_those_who_mount_it() {
        let user = |uid: u32| json!({"runAsUser": uid});
        for (users, group, want) in [
            (&[][..], None, Readers::Node),
            (&[0], None, Readers::Node),
            (&[7, 0, 7], None, Readers::One(User { uid: 7, gid: 7 })),
            (&[7, 8], None, Readers::Everybody),
            (&[7, 8], Some(9), Readers::Group(9)),
        ] {
            let mut pod = pod(json!({"fsGroup": group}), json!({}));
            let spec = pod.spec.as_mut().unwrap();
            let container = spec.containers.remove(0);
            for uid in users {
                let context = serde_json::from_value(user(*uid)).unwrap();
                let other = Container { security_context: Some(context), ..container.clone() };
                spec.containers.push(other);
            }
            spec.containers.push(Container { volume_mounts: None, ..container });
            assert_eq!(Readers::of(&pod, "v", true), want, "{users:?} {group:?}");
            assert_eq!(Readers::of(&pod, "v", false), Readers::Node);
        }
    }

    #[test]
    fn ways_are_opened_only_below_the_own_directories() {
        let dir = tempfile::tempdir().unwrap();
        let (top, user) = (dir.path().join("top"), User { uid: 7, gid: 7 });
        let inside = top.join("a/b");
        fs::create_dir_all(&inside).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for path in [dir.path(), &top, &top.join("a"), &inside] {
            set(path, 0o700).unwrap();
        }
        let closed = open_way(&inside, &top, user).unwrap_err();
        let want = format!("as {} is closed to others", dir.path().display());
        assert!(closed.starts_with("user 7 cannot reach ") && closed.ends_with(&want), "{closed}");
        assert_eq!(mode(&top), 0o700);
        set(dir.path(), 0o755).unwrap();
        open_way(&inside, &top, user).unwrap();
        assert_eq!([mode(&top), mode(&top.join("a")), mode(&inside)], [0o711, 0o711, 0o700]);
    }
}
