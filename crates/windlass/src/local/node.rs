//! The node of a local cluster: pods as processes of this machine.

use std::{collections::BTreeMap, env, net::SocketAddr, path::Path, sync::Arc};

use anyhow::Context;
use clap::Args;
use tokio::task::JoinHandle;
use windlass_local::{
    http::Server,
    node::{self, Ending, Settings, images::Rule, places::Places},
};

use super::home::Home;

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

/// The image of the install is the program that runs, in all versions: there is no other here.
fn own_rules() -> Vec<Rule> {
    let any = |version| format!("{}{version}={{windlass}}", crate::install::REPOSITORY);
    [":*", "@*"].into_iter().filter_map(|version| Rule::parse_flag(&any(version)).ok()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_own_image_have_a_rule() {
        assert_eq!(own_rules().len(), 2);
    }
}
