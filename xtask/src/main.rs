//! `cargo xtask`: see `cargo xtask --help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks there")]

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::Result;
use xtask::{
    bench, check, churn,
    cluster::{
        Assets, CRD_SETS, ControlPlane, NodeAssets, Options, ensure_crds, ensure_helm,
        ensure_kserve, standing,
    },
    demo, fuzz, generate, test, tidy, types,
    workspace::project_root,
};

const HELP: &str = "\
cargo xtask COMMAND

  demo [--once]              a language model served on this machine, and asked; `demo --help`
  bench converge --services N
                             how fast it is, as one line of JSON; `bench --help`
  bench up                   how soon `windlass up` answers and what it holds, likewise
  bench api                  how fast the embedded API is beside the real one; `bench api --help`
  bench inference            how fast `windlass serve` answers; `bench inference --help`

  churn [--seed N] [--minutes N]
                             changes and crashes at random on a local cluster; `churn --help`
  fuzz [TARGET] [--seconds N]
                             what reads foreign input, fed with all sorts of it; `fuzz --help`

  check                      format, tidy rules, lints, generated files, dependencies
  tidy                       the tidy rules alone
  generate                   write the generated files under deploy/
  types                      write the type table of the embedded API from a real one
  test [-- NEXTEST ARGS]     every tier of tests this machine can run, with counts

  cluster build [--all]      build what a control plane needs; --all: fake nodes, Helm, KServe too
  cluster up [--nodes] [--crds NAME,...]
                             a control plane that stays; --nodes: two fake GPU nodes
  cluster status             what of it runs (exit 1 if not all of it)
  cluster down               end it and remove its data
  cluster run --dir DIR      a control plane that ends with this command

Environment
  WINDLASS_CACHE             where programs are kept; default: windlass in the user's cache folder
  KUBEBUILDER_ASSETS         a folder with kube-apiserver, etcd, kubectl, looked into first
  WINDLASS_REQUIRE=real-api  tests fail if there is no control plane, instead of skipping
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            Ok(true)
        }
        ["demo", "--help" | "-h"] => {
            print!("{}", demo::HELP);
            Ok(true)
        }
        ["bench", "--help" | "-h"] | ["bench", "converge" | "up", "--help" | "-h"] => {
            print!("{}", bench::HELP);
            Ok(true)
        }
        ["bench", "api", "--help" | "-h"] => {
            print!("{}", bench::API_HELP);
            Ok(true)
        }
        ["bench", "kit", "--help" | "-h"] => {
            print!("{}", bench::KIT_HELP);
            Ok(true)
        }
        ["bench", "inference", "--help" | "-h"] => {
            print!("{}", bench::INFERENCE_HELP);
            Ok(true)
        }
        ["bench", what, rest @ ..] => bench::run(what, rest),
        ["churn", "--help" | "-h"] => {
            print!("{}", churn::HELP);
            Ok(true)
        }
        ["churn", rest @ ..] => churn::run(rest),
        ["fuzz", "--help" | "-h"] => {
            print!("{}", fuzz::HELP);
            Ok(true)
        }
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["demo", rest @ ..] => match demo::run(rest) {
            Some(outcome) => outcome,
            None => return usage(),
        },
        ["check"] => check::run().map(|()| true),
        ["tidy"] => tidy::check(&project_root()).map(|()| true),
        ["generate"] => generate::write().map(|()| true),
        ["types"] => types::write().map(|()| true),
        ["test"] => test::run(&[]),
        ["test", "--", rest @ ..] => {
            test::run(&rest.iter().map(|argument| argument.to_string()).collect::<Vec<_>>())
        }
        ["cluster", command, rest @ ..] => match cluster(command, rest) {
            Some(outcome) => outcome,
            None => return usage(),
        },
        _ => return usage(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprint!("{HELP}");
    ExitCode::from(2)
}

/// `None` if the arguments are not understood.
fn cluster(command: &str, arguments: &[&str]) -> Option<Result<bool>> {
    Some(match (command, arguments) {
        ("build", []) => build(false).map(|()| true),
        ("build", ["--all"]) => build(true).map(|()| true),
        ("up", rest) => standing::up(&wanted(rest)?).map(|()| true),
        ("status", []) => standing::status(),
        ("down", []) => standing::down().map(|()| true),
        ("run", ["--dir", dir]) => run(dir.into()),
        _ => return None,
    })
}

fn wanted(arguments: &[&str]) -> Option<standing::Wanted> {
    let mut wanted = standing::Wanted::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--nodes" => wanted.nodes = true,
            "--crds" => wanted.crds.extend(rest.next()?.split(',').map(str::to_owned)),
            _ => return None,
        }
    }
    Some(wanted)
}

fn build(all: bool) -> Result<()> {
    let assets = Assets::ensure()?;
    for program in
        [&assets.etcd, &assets.kube_apiserver, &assets.kube_controller_manager, &assets.kubectl]
    {
        println!("{}", program.display());
    }
    if all {
        let nodes = NodeAssets::ensure()?;
        println!("{}\n{}", nodes.kube_scheduler.display(), nodes.kwok.display());
        println!("{}\n{}", ensure_helm()?.display(), ensure_kserve()?.display());
    }
    for folder in ensure_crds(&CRD_SETS)? {
        println!("{}", folder.display());
    }
    Ok(())
}

/// Waits for a process that ends only with this one: the children die with us, however we die.
fn run(dir: PathBuf) -> Result<bool> {
    let mut plane = ControlPlane::start(&Assets::ensure()?, Options::in_dir(dir))?;
    println!("{}", plane.kubeconfig().display());
    match plane.wait()? {}
}
