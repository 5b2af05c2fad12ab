//! From a container to what is run for it.

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    net::SocketAddr,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use k8s_openapi::{
    api::core::v1::{Container, Pod, Service},
    apimachinery::pkg::api::resource::Quantity,
};

use super::{
    bubblewrap,
    command::argv,
    environment::{self, Base, Facts},
    images::{self, Executables, Images, PathMode, Placeholders, Rule, find_executable},
    places::Places,
    pod::Cause,
    process::Launch,
    sources::Sources,
    translate::Mounts,
    users::{self, Readers, User},
    volumes::{self, Directories},
};

/// What is the same for all pods of a node.
pub struct Shared {
    pub places: Places,
    pub images: Images,
    pub executables: Executables,
    pub node: String,
    pub host: String,
    pub allocatable: BTreeMap<String, Quantity>,
    /// Where processes reach the API.
    pub api: SocketAddr,
    /// The running program.
    pub windlass: PathBuf,
}

/// What is known of one pod when a container starts.
pub struct Given {
    pub pod: Arc<Pod>,
    pub address: String,
    pub sources: Sources,
    /// Of its namespace.
    pub services: Vec<Service>,
    pub directories: Directories,
    /// Which devices are the container's.
    pub devices: BTreeMap<String, String>,
}

/// A container that can be run.
pub struct Ready {
    pub launch: Launch,
    pub image_id: String,
    pub mounts: Arc<Mounts>,
}

/// A container that cannot.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is tried again without a run.
    Waits(Cause, String),
    /// Its program cannot be run, which counts as a run.
    Fails(String),
}

impl Shared {
    pub fn facts<'a>(&'a self, address: &'a str) -> Facts<'a> {
        Facts {
            node_name: &self.node,
            host_ip: &self.host,
            pod_ip: address,
            allocatable: &self.allocatable,
            api: self.api,
        }
    }

    /// Waits for the disk.
    pub fn ready(&self, given: &Given, container: &Container) -> Result<Ready, Refused> {
        let config =
            |error: &dyn std::fmt::Display| Refused::Waits(Cause::Config, error.to_string());
        let pod = &*given.pod;
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let (rule, name) = self.rule(container)?;
        let user = users::of(pod, container, users::may_choose()).map_err(|text| config(&text))?;
        let facts = self.facts(&given.address);
        let of_pod = environment::of_pod(pod, container, &given.sources, &given.services, facts)
            .map_err(|error| config(&error))?;
        let dirs = &given.directories;
        let mounts = volumes::mounts(pod, container, user, &self.places, dirs, &of_pod)
            .map_err(|error| config(&error))?;
        let create =
            |error: &dyn std::fmt::Display| Refused::Waits(Cause::Create, error.to_string());
        let kubeconfig = volumes::write_kubeconfig(pod, user, &mounts, &self.places, self.api)
            .map_err(|error| create(&error))?;
        let scratch = self.scratch(uid, user).map_err(|error| create(&error))?;
        if let Some(user) = user {
            let used = mounts
                .iter()
                .map(|mount| &*mount.real)
                .chain([&*scratch])
                .chain(kubeconfig.as_deref());
            self.open_ways(used, user).map_err(|text| config(&text))?;
        }
        let ports = ports(container);
        let placeholders = Placeholders {
            windlass: &self.windlass,
            pod_ip: &given.address,
            state: &self.places.state,
            name: &name,
            ports: &ports,
        };
        let base = Base {
            ambient: &|name| std::env::var(name).ok(),
            hostname: environment::hostname(pod),
            pod_ip: &given.address,
            scratch: &scratch.to_string_lossy(),
            kubeconfig: kubeconfig.as_ref().and_then(|path| path.to_str()),
        };
        // A sandbox has the paths as they are written.
        let in_sandbox = rule.path == PathMode::Bwrap;
        let none = Mounts::default();
        let paths = if in_sandbox { &none } else { &mounts };
        let mut env = environment::of_process(base, &rule, placeholders, &of_pod, paths)
            .map_err(|error| config(&error))?;
        for (name, value) in &given.devices {
            env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let lookup = |name: &str| of_pod.get(name).cloned();
        let words =
            argv(&rule, placeholders, container, lookup, paths).map_err(|error| config(&error))?;
        let wanted = container.working_dir.as_deref().filter(|dir| !dir.is_empty());
        let real = wanted.and_then(|dir| mounts.real(dir)).filter(|dir| dir.is_dir());
        let dir = real.unwrap_or_else(|| scratch.clone());
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        let fails = |error: images::Missing| Refused::Fails(error.to_string());
        let first = words.first().map(String::as_str).unwrap_or_default();
        let program = find_executable(first, path, &dir).map_err(fails)?;
        let image_id = self.executables.id(&program).map_err(fails)?;
        let mut launch = Launch { program, args: words, env, dir, user };
        match in_sandbox {
            true => sandbox(&mut launch, &mounts, wanted)?,
            false => drop(launch.args.drain(..1)),
        }
        Ok(Ready { launch, image_id, mounts: Arc::new(mounts) })
    }

    /// Made for who runs there.
    fn scratch(&self, uid: &str, user: Option<User>) -> Result<PathBuf, String> {
        let dir = match user {
            None => self.places.scratch(uid),
            Some(user) => self.places.scratch_of(uid, user.uid),
        };
        let dir = dir.map_err(|error| error.to_string())?;
        let readers = user.map_or(Readers::Node, Readers::One);
        let made = make_dir(&dir).and_then(|()| readers.may_fill(&dir));
        made.map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(dir)
    }

    /// What is ours on the way to files of a pod may be passed by its users.
    fn open_ways<'a>(
        &self,
        paths: impl Iterator<Item = &'a Path>,
        user: User,
    ) -> Result<(), String> {
        let Places { state, runtime } = &self.places;
        for path in paths {
            let top = [state, runtime].into_iter().find(|top| path.starts_with(top));
            if let Some(top) = top {
                users::open_way(path, top, user)?;
            }
        }
        Ok(())
    }

    fn rule(&self, container: &Container) -> Result<(Arc<Rule>, String), Refused> {
        let image = container.image.as_deref().unwrap_or_default();
        let command = container.command.as_deref().unwrap_or_default();
        let never = container.image_pull_policy.as_deref() == Some("Never");
        match self.images.find(image, command) {
            Ok((rule, reference)) => Ok((rule, reference.name().to_owned())),
            Err(error @ images::Error::Name { .. }) => {
                Err(Refused::Waits(Cause::ImageName, error.to_string()))
            }
            Err(error) if never => {
                let text = format!(
                    "Container image {image:?} is not present with pull policy of Never: {error}"
                );
                Err(Refused::Waits(Cause::NeverPull, text))
            }
            Err(error) => Err(Refused::Waits(Cause::Pull, error.to_string())),
        }
    }
}

/// The program's own words come after those of the sandbox.
fn sandbox(launch: &mut Launch, mounts: &Mounts, wanted: Option<&str>) -> Result<(), Refused> {
    let path = launch.env.get("PATH").map(String::as_str).unwrap_or_default();
    let outer = find_executable("bwrap", path, &launch.dir).map_err(|_| {
        let text = "the image rule wants a sandbox, and bwrap is not installed";
        Refused::Waits(Cause::Config, text.to_owned())
    })?;
    let inside = launch.dir.to_string_lossy().into_owned();
    let mut words = bubblewrap::words(mounts, wanted.unwrap_or(&inside), bubblewrap::list);
    words.extend(std::mem::take(&mut launch.args));
    launch.args = words.split_off(1);
    launch.program = outer;
    Ok(())
}

/// Those with a name, to be filled into rules.
fn ports(container: &Container) -> BTreeMap<String, u16> {
    let all = container.ports.iter().flatten();
    all.filter_map(|port| Some((port.name.clone()?, u16::try_from(port.container_port).ok()?)))
        .collect()
}

/// With all above it, for the owner alone.
pub fn make_dir(dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
