//! `windlass up`.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use kube::Client;
use tokio::time::timeout;
use windlass_local::{auth::User, node::Ending, store::Store};

use super::{
    api::{self, Api, Wanted},
    gateway::{self, Gateway},
    home::{self, Home},
    install, node, open_files,
    progress::{self, Screen},
    registry::{self, Registry},
    shell, signals, third_party,
};
use crate::operator::{self, Work, logging};

/// How long the end waits for answers that have begun, and then for the store.
const GRACE: Duration = Duration::from_secs(2);
/// How long the greeting waits for the gateway to know its routes.
const ROUTED: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    home: home::Flags,
    /// Keep nothing: everything is gone when this ends
    #[arg(long, conflicts_with = "dir")]
    ephemeral: bool,
    /// End when standard input ends, and so with whoever has started this
    #[arg(long, hide = true)]
    end_with_stdin: bool,
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
    registry: registry::Flags,

    #[command(flatten)]
    node: node::Flags,

    #[command(flatten)]
    progress: progress::Flags,

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
    let usual = logging::Usual::UP;
    let screen = flags.progress.screen(flags.logging.is_json(usual));
    logging::start_on(&flags.logging, &logging::Zap::default(), usual, screen.clone())?;
    open_files::raise_limit();
    let home = if flags.ephemeral { Home::ephemeral() } else { Home::open(&flags.home) }?;
    node::end_left(&home);
    let store = api::open_store(&home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(serve(flags, &home, store.clone(), &screen));
    screen.finish();
    // Ends what still runs, such as watches, and with it all other handles of the store.
    runtime.shutdown_timeout(GRACE);
    if !store.close(GRACE) {
        tracing::warn!("the store is still in use; it loses nothing that was answered");
    }
    outcome.and(home.close())
}

async fn serve(
    flags: Flags,
    home: &Home,
    store: Store,
    screen: &Arc<Screen>,
) -> anyhow::Result<()> {
    let ending = signals::listen()?;
    let Ending { stop, now } = ending.clone();
    if flags.end_with_stdin {
        signals::end_with_stdin(stop.clone());
    }
    let allows_everything = flags.authorization == Authorization::AllowAll;
    let strict_resources = flags.node.strict_resources;
    let wanted = Wanted { port: flags.port, allows_everything, strict_resources };
    let gateway = Gateway::bind(&flags.gateway).await?;
    let registry = Registry::bind(&flags.registry, home).await?;
    let Api { server, url, address, tls, caches, serving } =
        Api::start(home, store, &wanted).await?;
    let mut greeting = vec![gateway.to_string()];
    if let Some(registry) = registry {
        greeting.push(registry.to_string());
        registry.start(stop.clone());
    }
    let places = node::places(home);
    let node = node::start(flags.node, server.clone(), places, address, ending)?;
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
        let routed = gateway.start(&server, caches, tls, stop.clone());
        // Whoever asks right after the greeting should meet the routes that were there before.
        let _ = timeout(ROUTED, stop.run_until_cancelled(routed)).await;
        announce(home, &url, &greeting.join("\n"));
        // Only tells of others' work, so nothing depends on its end.
        drop(tokio::spawn(progress::follow(admin, screen.clone(), stop.clone())));
        let operator = server.service(operator);
        let operating = operator::operate_within(operator, &namespace, flags.work, stop.clone());
        let operating = Box::pin(operating);
        // Whoever is in a hurry does not wait for passes that have begun either.
        let _ = now.run_until_cancelled(operating).await;
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

/// Whoever does not listen any more is no reason to end.
fn announce(home: &Home, url: &str, served: &str) {
    let kept = match home.is_ephemeral() {
        true => "nothing is kept".to_owned(),
        false => format!("its state is in {}", home.path().display()),
    };
    let kubeconfig = shell::word(&home.kubeconfig());
    let told = writeln!(
        io::stdout(),
        "windlass is up at {url}; {kept}\n\
         {served}\n\
         export KUBECONFIG={kubeconfig}\n\
         Ctrl-C or `{}` ends it",
        home.down
    );
    if let Err(error) = told {
        tracing::warn!(%error, "cannot say that it is up");
    }
}
