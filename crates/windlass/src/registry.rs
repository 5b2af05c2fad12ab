//! `windlass registry`: a registry of OCI artifacts on this machine.

use std::{
    fs::{File, TryLockError},
    io::BufRead,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context;
use clap::{Args, Subcommand};
use tokio::{net::TcpListener, time::sleep};
use windlass_kit::registry::{Account, Registry, Settings};

use crate::{exit::BadInput, operator::logging};

/// For requests that are under way at the end.
const GRACE: Duration = Duration::from_secs(5);
/// Between looks for what nothing leads to.
const SWEEP: Duration = Duration::from_secs(60 * 60);
/// How old a blob is that no manifest names, where a push may be under way; and where none can be.
const UNNAMED: Duration = Duration::from_secs(24 * 60 * 60);
const ALONE: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve until Ctrl-C or SIGTERM
    Serve(ServeFlags),
    /// Remove blobs that no manifest leads to, and uploads that nobody ends
    Gc(GcFlags),
}

#[derive(Debug, Args)]
#[group(id = "registry-serve")]
pub(crate) struct ServeFlags {
    /// Where everything is kept
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Address to listen on; whoever reaches it may push, unless there is a user
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5000")]
    listen: SocketAddr,
    /// Who may ask; the password is read from standard input, one line
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Take nothing new
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    logging: logging::Flags,
}

#[derive(Debug, Args)]
#[group(id = "registry-gc")]
pub(crate) struct GcFlags {
    /// Where everything is kept
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Only tell what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = match command {
        Command::Serve(flags) => runtime.block_on(serve(flags)),
        Command::Gc(flags) => runtime.block_on(collect(&flags)),
    };
    // Nothing that is half done is under its name.
    runtime.shutdown_timeout(GRACE);
    outcome
}

/// For us alone as long as the file lives: what another process stores would be swept here.
pub(crate) fn open(settings: Settings) -> anyhow::Result<(Arc<Registry>, File)> {
    let root = settings.root.clone();
    let failed = || format!("cannot use {}", root.display());
    let registry = Registry::open(settings).with_context(failed)?;
    let lock = File::options().create(true).truncate(false).write(true).open(root.join("lock"));
    let lock = lock.with_context(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok((registry, lock)),
        Err(TryLockError::WouldBlock) => {
            Err(BadInput(format!("another process serves or sweeps {}", root.display())).into())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(failed),
    }
}

async fn serve(flags: ServeFlags) -> anyhow::Result<()> {
    logging::start(&flags.logging, &logging::Zap::default(), logging::Usual::UP)?;
    let account = flags.user.as_deref().map(account).transpose()?;
    let only_here = flags.listen.ip().is_loopback();
    let settings = Settings { root: flags.root, account, read_only: flags.read_only, only_here };
    let (registry, _lock) = open(settings)?;
    let socket = TcpListener::bind(flags.listen)
        .await
        .with_context(|| format!("cannot listen on {}", flags.listen))?;
    println!("the registry is at http://{}; Ctrl-C ends it", socket.local_addr()?);
    let stop = crate::operator::stop_on_signal()?;
    let serving = axum::serve(socket, registry.router())
        .with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::select! {
        served = serving => served.context("the registry has failed"),
        // Whoever still sends then goes on from what has come.
        () = async { stop.cancelled().await; sleep(GRACE).await } => Ok(()),
        () = tidy_up(&registry), if !flags.read_only => Ok(()),
    }
}

/// Now and then, for ever.
pub(crate) async fn tidy_up(registry: &Registry) {
    loop {
        match registry.sweep(SystemTime::now(), UNNAMED, false).await {
            Ok(swept) => tracing::debug!(?swept, "swept"),
            Err(error) => tracing::warn!(%error, "cannot remove what nothing leads to"),
        }
        sleep(SWEEP).await;
    }
}

fn account(user: &str) -> anyhow::Result<Account> {
    let mut password = String::new();
    std::io::stdin().lock().read_line(&mut password).context("cannot read the password")?;
    let password = password.trim_end_matches(['\r', '\n']);
    if user.contains(':') || password.is_empty() {
        let text = "a user has no colon, and its password stands on standard input";
        return Err(BadInput(text.to_owned()).into());
    }
    Ok(Account::new(user, password))
}

async fn collect(flags: &GcFlags) -> anyhow::Result<()> {
    if !flags.root.join("blobs").is_dir() {
        let text = format!("there is no registry in {}", flags.root.display());
        return Err(BadInput(text).into());
    }
    let (registry, _lock) = open(Settings { root: flags.root.clone(), ..Settings::default() })?;
    let swept = registry.sweep(SystemTime::now(), ALONE, flags.dry_run).await?;
    let verb = if flags.dry_run { "would be removed" } else { "removed" };
    println!("{} blobs and {} uploads {verb}, {} bytes", swept.blobs, swept.uploads, swept.bytes);
    Ok(())
}
