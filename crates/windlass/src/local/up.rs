//! `windlass up`.

use std::{
    fs,
    io::{self, Write},
    time::Duration,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windlass_local::{auth::User, store::Store};

use super::{
    api::{self, Api, Wanted},
    gateway::{self, Gateway},
    home::{self, Home},
    install, node, shell, third_party,
};
use crate::operator::{self, Work, logging};

/// How long the end waits for answers that have begun, and then for the store.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    home: home::Flags,
    /// Keep nothing: everything is gone when this ends
    #[arg(long, conflicts_with = "dir")]
    ephemeral: bool,
    /// Port of the API on 127.0.0.1; if not given, the one of the last time or else a free one
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// What users may do; the operator too
    #[arg(long, value_name = "MODE", default_value = "rbac")]
    authorization: Authorization,

    /// Bring no definitions of kinds of the Gateway API, of its inference extension and of KServe
    #[arg(long)]
    no_third_party_kinds: bool,

    #[command(flatten)]
    gateway: gateway::Flags,

    #[command(flatten)]
    node: node::Flags,

    #[command(flatten)]
    logging: logging::Flags,

    #[command(flatten)]
    work: Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Authorization {
    /// What their roles grant
    Rbac,
    /// Everything, for quick trials
    AllowAll,
}

pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    logging::start(&flags.logging, &logging::Zap::default(), logging::Usual::UP)?;
    let home = if flags.ephemeral { Home::ephemeral() } else { Home::open(&flags.home) }?;
    let store = api::open_store(&home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(flags, &home, store.clone()));
    // Ends what still runs, such as watches, and with it all other handles of the store.
    runtime.shutdown_timeout(GRACE);
    if !store.close(GRACE) {
        tracing::warn!("the store is still in use; it loses nothing that was answered");
    }
    outcome.and(home.close())
}

async fn serve(flags: Flags, home: &Home, store: Store) -> anyhow::Result<()> {
    let stop = operator::stop_on_signal()?;
    stop_on_hangup(stop.clone())?;
    let allows_everything = flags.authorization == Authorization::AllowAll;
    let strict_resources = flags.node.strict_resources;
    let wanted = Wanted { port: flags.port, allows_everything, strict_resources };
    let gateway = Gateway::bind(&flags.gateway).await?;
    let Api { server, url, address, caches, serving } = Api::start(home, store, &wanted).await?;
    let places = node::places(home);
    let node = node::start(flags.node, server.clone(), places, address, stop.clone())?;
    let working = async {
        let admin = Client::new(server.service(User::admin()), "default");
        let install = async {
            if !flags.no_third_party_kinds {
                third_party::define(&admin).await?;
            }
            install::apply(&admin).await
        };
        let Some(operator) = stop.run_until_cancelled(install).await else {
            return Ok(());
        };
        let (operator, namespace) = operator?;
        announce(home, &url, &gateway);
        gateway.start(&server, caches, stop.clone());
        operator::operate_within(server.service(operator), &namespace, flags.work, stop.clone())
            .await;
        Ok(())
    };
    let working = async {
        // Neither goes on without the other, however it has ended.
        let working = async {
            let worked = working.await;
            stop.cancel();
            worked
        };
        let (worked, ran) = tokio::join!(working, node);
        worked.and(ran.context("the node has failed inside")?)
    };
    tokio::select! {
        outcome = working => outcome,
        ended = serving => ended.context("the API has failed inside")?,
    }
}

/// The end of a terminal would leave the pods behind. Who has it ignored, as nohup does, means it so.
fn stop_on_hangup(stop: CancellationToken) -> anyhow::Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if ignored.is_some_and(|mask| mask & 1 == 1) {
        return Ok(());
    }
    let mut hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
    tokio::spawn(async move {
        hangup.recv().await;
        stop.cancel();
    });
    Ok(())
}

/// Whoever does not listen any more is no reason to end.
fn announce(home: &Home, url: &str, gateway: &Gateway) {
    let kept = match home.is_ephemeral() {
        true => "nothing is kept".to_owned(),
        false => format!("its state is in {}", home.path().display()),
    };
    let kubeconfig = shell::word(&home.kubeconfig());
    let told = writeln!(
        io::stdout(),
        "windlass is up at {url}; {kept}\n\
         {gateway}\n\
         export KUBECONFIG={kubeconfig}\n\
         Ctrl-C or `{}` ends it",
        home.down
    );
    if let Err(error) = told {
        tracing::warn!(%error, "cannot say that it is up");
    }
}
