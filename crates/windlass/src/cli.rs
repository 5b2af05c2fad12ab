//! Commands and flags. What a flag means is settled in each command's own module.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{
    config, demo, exit, install, instead_of, kit, local, names, operator, registry, render, serve,
};

/// Serves AI models on Kubernetes: artifacts, disaggregated serving, a catalogue, autoscaling.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, args_override_self = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show it all at work: a language model is fetched, packed, served on this machine and asked
    Demo(demo::Flags),
    /// Run an API of its own and the controllers on it, on this machine and without a cluster
    Up(Box<local::UpFlags>),
    /// End what `up` runs
    Down(local::DownFlags),
    /// Run the controllers against the current kubeconfig or the cluster the program runs in
    Operator(Box<operator::Flags>),
    /// Serve OCI artifacts from a directory of this machine
    #[command(subcommand)]
    Registry(registry::Command),
    /// Pack, push, pull and unpack models
    Kit(Box<kit::Flags>),
    /// Answer requests by a model on the CPU of this machine, as vLLM does
    Serve(Box<serve::Flags>),
    /// Print the objects that manifests become, without a cluster
    Render(Box<RenderFlags>),
    /// Print the CustomResourceDefinitions
    Crds,
    /// Print the whole install: namespace, CRDs, account, rights, deployment
    Manifests(install::Flags),
    /// Be what an image of others stands for on this machine
    #[command(hide = true)]
    InsteadOf(instead_of::Flags),
    /// Print the rules of the operator's roles, for the chart
    #[command(hide = true)]
    Rules(install::RulesFlags),
    /// Print the roles for people who use the kinds, for the chart
    #[command(hide = true)]
    UserRoles,
}

#[derive(Debug, Args)]
pub(crate) struct RenderFlags {
    /// Manifest to read; `-` for standard input; may be given several times
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Namespace of objects that name none
    #[arg(short, long, default_value = "default", value_parser = names::dns_label)]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) kinds: crate::kinds::Flags,
}

pub(crate) fn run() -> ExitCode {
    match read(std::env::args_os().collect()) {
        Ok(cli) => perform(cli.command),
        Err(error) => exit::report(Err(error)),
    }
}

fn read(arguments: Vec<OsString>) -> anyhow::Result<Cli> {
    let arguments = as_kit(arguments);
    if arguments.get(1).is_some_and(|command| command == "kit") {
        let matches = kit::parse(Cli::command(), arguments);
        return Ok(Cli::from_arg_matches(&matches)?);
    }
    if arguments.get(1).is_some_and(|command| command == "instead-of") {
        return Ok(Cli::parse_from(arguments));
    }
    if arguments.get(1).is_some_and(|command| command == "serve") {
        return Ok(read_serve(arguments));
    }
    Ok(Cli::parse_from(config::expand(go_style(arguments))?))
}

fn read_serve(arguments: Vec<OsString>) -> Cli {
    let command = Cli::command();
    let command = command.find_subcommand("serve").unwrap_or(&command);
    Cli::parse_from(serve::mark_foreign(command, arguments))
}

/// `windlass serve` with these words.
pub(crate) fn serve(arguments: Vec<OsString>) -> anyhow::Result<()> {
    match read_serve(arguments).command {
        Command::Serve(flags) => serve::run(*flags),
        _ => anyhow::bail!("these are no words of `windlass serve`"),
    }
}

fn perform(command: Command) -> ExitCode {
    exit::report(match command {
        Command::Demo(flags) => demo::run(flags),
        Command::Up(flags) => local::up(*flags),
        Command::Down(flags) => local::down(&flags),
        Command::Operator(flags) => operator::run(*flags),
        Command::Registry(command) => registry::run(command),
        // It has exit codes of its own.
        Command::Kit(flags) => return kit::run(*flags),
        Command::Serve(flags) => serve::run(*flags),
        Command::Render(flags) => render::run(&flags),
        Command::Crds => crate::output::print_yaml(&windlass_api::crds()),
        Command::Manifests(flags) => install::run(&flags),
        Command::InsteadOf(flags) => instead_of::run(flags),
        Command::Rules(flags) => crate::output::print_yaml(&[install::rules(flags.scope)]),
        Command::UserRoles => crate::output::print_yaml(&[install::user_roles()]),
    })
}

/// Scripts for the original run unchanged where a link of its name leads to this program.
fn as_kit(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name());
    if name.is_some_and(|name| name == "kit") {
        arguments.splice(..1, ["windlass", "kit"].map(OsString::from));
    }
    arguments
}

/// The Go originals accept long flags with one dash; their manifests may use that.
fn go_style(mut arguments: Vec<OsString>) -> Vec<OsString> {
    // Other commands have short flags: there only a name with a dash inside is surely a long one.
    let all_long = arguments.get(1).is_some_and(|command| command == "operator");
    for argument in arguments.iter_mut().skip(1) {
        if let Some(text) = argument.to_str().filter(|text| is_single_dashed(text, all_long)) {
            *argument = format!("-{text}").into();
        }
    }
    arguments
}

fn is_single_dashed(text: &str, all_long: bool) -> bool {
    let Some(name) = text.strip_prefix('-') else { return false };
    let name = name.split('=').next().unwrap_or_default();
    let long = name.contains('-') || (all_long && name.len() > 1);
    long && name.starts_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests;
