//! `windlass kit`: models are packed, pushed, pulled and unpacked, with the commands and flags of kit.

use std::{
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use clap::{ArgAction, Args, Subcommand};
use tokio::{
    runtime::Handle,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::timeout,
};

mod artifact;
mod flags;
mod import;
mod inspect;
mod list;
mod login;
mod outcome;
mod output;
mod pack;
mod packing;
mod progress;
mod publish;
mod pull;
mod push;
mod remove;
mod session;
mod storage;
mod tag;
mod unpack;
mod verify;

use outcome::Interrupted;
pub(crate) use progress::size_of;
use session::Session;

/// For what is half done at the end: its files are removed or kept to go on with.
const GRACE: Duration = Duration::from_secs(5);
/// For a command that waits for a lock, a disk or its input, none of which can be told to end.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[group(id = "kit")]
pub(crate) struct Flags {
    #[command(flatten)]
    global: flags::Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Download a model and pack it
    Import(Box<import::Flags>),
    /// Pack a directory as its Kitfile says
    Pack(Box<pack::Flags>),
    /// Write the files of an artifact into a directory
    Unpack(Box<unpack::Flags>),
    /// Send an artifact of the local storage to a registry
    Push(push::Flags),
    /// Fetch an artifact from a registry into the local storage
    Pull(pull::Flags),
    /// Give an artifact of the local storage another name
    Tag(tag::Flags),
    /// List artifacts of the local storage, or the tags of a repository
    List(list::Flags),
    /// Print the manifest and the Kitfile of an artifact as JSON
    Inspect(inspect::InspectFlags),
    /// Print the Kitfile of an artifact
    Info(inspect::InfoFlags),
    /// Keep a password for a registry
    Login(login::LoginFlags),
    /// Forget the password for a registry
    Logout(login::LogoutFlags),
    /// Take an artifact, or one of its tags, out of the local storage or a registry
    Remove(remove::Flags),
    /// Tell whether an artifact of a registry is signed by the holder of a key
    Verify(verify::Flags),
    /// Look after what unfinished work has left
    #[command(subcommand)]
    Cache(storage::CacheCommand),
    /// Look after the local storage
    #[command(subcommand)]
    Store(storage::StoreCommand),
    /// Import a model and push it, as the variables of the Job of an artifact say
    #[command(hide = true)]
    Publish(publish::Flags),
    /// Print the version
    Version,
}

pub(crate) fn run(flags: Flags) -> ExitCode {
    match start(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => outcome::report(&error),
    }
}

fn start(flags: Flags) -> anyhow::Result<()> {
    let mut global = flags.global;
    if let Command::Publish(flags) = &flags.command {
        global.config.get_or_insert_with(|| flags.home());
    }
    let session = Arc::new(Session::new(&global)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut done = beside(&session, flags.command, runtime.handle().clone());
    let (outcome, is_free) = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let told = tokio::select! {
            outcome = &mut done => return anyhow::Ok((outcome?, true)),
            _ = interrupt.recv() => Interrupted::Interrupt,
            _ = terminate.recv() => Interrupted::Terminate,
        };
        session.stop.cancel();
        let is_free = timeout(PATIENCE, done).await.is_ok();
        Ok((Err(told.into()), is_free))
    })?;
    session.stop.cancel();
    match is_free {
        true => runtime.shutdown_timeout(GRACE),
        false => runtime.shutdown_background(),
    }
    session.out.end();
    outcome
}

/// On a thread of its own: whatever a command waits for, signals are heard.
fn beside(
    session: &Arc<Session>,
    command: Command,
    runtime: Handle,
) -> oneshot::Receiver<anyhow::Result<()>> {
    let (done, told) = oneshot::channel();
    let session = session.clone();
    thread::spawn(move || {
        let outcome = runtime.block_on(async {
            tokio::select! {
                outcome = Box::pin(perform(&session, command)) => outcome,
                () = session.stop.cancelled() => Ok(()),
            }
        });
        // Nobody listens any more where it took too long to end.
        drop(done.send(outcome));
    });
    told
}

async fn perform(session: &Session, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Import(flags) => import::run(session, &flags).await,
        Command::Pack(flags) => pack::run(session, &flags).await,
        Command::Unpack(flags) => with_each_login(session, &flags).await,
        Command::Push(flags) => push::run(session, &flags).await,
        Command::Pull(flags) => pull::run(session, &flags).await,
        Command::Tag(flags) => tag::run(session, &flags),
        Command::List(flags) => list::run(session, &flags).await,
        Command::Inspect(flags) => inspect::inspect(session, &flags).await,
        Command::Info(flags) => inspect::info(session, &flags).await,
        Command::Login(flags) => login::login(session, &flags).await,
        Command::Logout(flags) => login::logout(session, &flags),
        Command::Remove(flags) => remove::run(session, &flags).await,
        Command::Verify(flags) => verify::run(session, &flags).await,
        Command::Cache(command) => storage::cache(session, &command),
        Command::Store(command) => storage::store(session, &command, SystemTime::now()),
        Command::Publish(flags) => publish::run(session, &flags).await,
        Command::Version => version(session),
    }
}

fn version(session: &Session) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    match session.out.json {
        true => session.out.object(&serde_json::json!({"version": version})),
        false => session.out.data(format!("Version: {version}\n")),
    }
}

/// As images are pulled: where there are several sets of credentials, one after the other is tried.
async fn with_each_login(session: &Session, flags: &unpack::Flags) -> anyhow::Result<()> {
    loop {
        let unpacked = unpack::run(session, flags).await;
        // Many registries say that something is not there to those who may not see it.
        match unpacked {
            Err(error) if outcome::is_for_others(&error) && session.next_login() => {
                session.out.warn(format!("{error:#}; the next credentials are tried"));
            }
            unpacked => return unpacked,
        }
    }
}

/// The original takes `--flag=false` for every flag that has no value.
pub(crate) fn with_values_for_switches(cli: clap::Command) -> clap::Command {
    cli.mut_subcommand("kit", |mut kit| {
        let names: Vec<String> = kit.get_subcommands().map(|c| c.get_name().to_owned()).collect();
        for name in names {
            kit = kit.mut_subcommand(name, |command| command.mut_args(with_value));
        }
        kit.mut_args(with_value)
    })
}

fn with_value(arg: clap::Arg) -> clap::Arg {
    if !matches!(arg.get_action(), ArgAction::SetTrue) {
        return arg;
    }
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .default_value("false")
        .value_name("BOOL")
        .hide_default_value(true)
        .hide_possible_values(true)
}

/// A usage error of the original ends with 1, and is told as its other errors.
pub(crate) fn parse(cli: clap::Command, arguments: Vec<std::ffi::OsString>) -> clap::ArgMatches {
    match with_values_for_switches(cli).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            eprint!("[ERROR] {}", output::capital(text));
            std::process::exit(1)
        }
        Err(error) => error.exit(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_switch_of_the_commands_takes_a_value_too() {
        let cli = with_values_for_switches(crate::cli::Cli::command());
        cli.clone().debug_assert();
        for (given, want) in [("--push", true), ("--push=true", true), ("--push=false", false)] {
            let matches = cli.clone().get_matches_from(["windlass", "kit", "pack", given, "dir"]);
            let (_, kit) = matches.subcommand().unwrap();
            let (_, pack) = kit.subcommand().unwrap();
            assert_eq!(pack.get_one::<bool>("push"), Some(&want), "{given}");
            assert_eq!(pack.get_one::<bool>("plain_http"), Some(&false));
        }
    }
}
