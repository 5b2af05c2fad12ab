//! The node of a local cluster: pods as processes of this machine.

use std::{collections::BTreeMap, env, net::SocketAddr, path::Path, sync::Arc};

use anyhow::Context;
use clap::Args;
use tokio::task::JoinHandle;
use windlass_local::{
    http::Server,
    node::{self, Ending, Settings, images::Rule, places::Places, recovery},
};

use super::{home::Home, own_rules::own_rules};

const NAME: &str = "local";

#[derive(Debug, Clone, Args)]
#[group(id = "node")]
pub(super) struct Flags {
    /// Which program a container image stands for, before the rules of images.toml, as in
    /// `ghcr.io/acme/*=/usr/bin/server --host {podIP}`; may be repeated
    #[arg(long, value_name = "PATTERN=PROGRAM", value_parser = rule)]
    image_rule: Vec<Rule>,
    /// A resource that the node offers beyond what the machine has, as in `nvidia.com/gpu=4`; may be
    /// repeated
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = pair)]
    node_resource: Vec<(String, String)>,
    /// A label of the node; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    node_label: Vec<(String, String)>,
    /// Let pods wait that ask for more processors or memory than the machine has left
    #[arg(long)]
    pub(super) strict_resources: bool,
}

fn rule(text: &str) -> Result<Rule, String> {
    Rule::parse_flag(text).map_err(|error| error.to_string())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    match key.is_empty() {
        true => Err("expected KEY=VALUE".to_owned()),
        false => Ok((key.to_owned(), value.to_owned())),
    }
}

/// The directories of the pods. What is to leave nothing behind is in one place.
pub(super) fn places(home: &Home) -> Places {
    let user = env::var_os("XDG_RUNTIME_DIR").filter(|_| !home.is_ephemeral());
    Places::choose(home.path(), user.as_deref().map(Path::new))
}

/// Ends what a killed one has left. A process that did not come to run its own program yet has all the
/// open files of who made it: the store, the registry and the ports, none of which could be had.
pub(super) fn end_left(home: &Home) {
    // The node reads the records again, for what they say of each pod.
    drop(recovery::end_processes(&places(home).pods()));
}

/// Runs pods until told to stop, and then ends them within their grace.
pub(super) fn start(
    flags: Flags,
    server: Arc<Server>,
    places: Places,
    api: SocketAddr,
    ending: Ending,
) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
    let settings = Settings {
        name: NAME.to_owned(),
        places,
        api,
        windlass: env::current_exe().context("cannot tell where this program is")?,
        first_rules: flags.image_rule,
        last_rules: own_rules(),
        resources: BTreeMap::from_iter(flags.node_resource),
        labels: BTreeMap::from_iter(flags.node_label),
    };
    Ok(tokio::spawn(async move {
        let ran = Box::pin(node::run(server, settings, ending.clone())).await;
        let ran = ran.context("cannot run pods");
        // Without it nothing would ever start.
        ending.stop.cancel();
        ran
    }))
}
