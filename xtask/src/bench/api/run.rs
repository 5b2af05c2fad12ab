//! The order of a run: both servers stand all the time and take turns, so that a machine that gets
//! slower or faster meanwhile is slow or fast for both.

use std::{future::Future, time::Duration};

use anyhow::{Context, Result, bail};

use super::{
    arguments::Arguments,
    fanout, load,
    objects::{self, Kind},
    report::{Figures, Measured, Ratios, Report},
    servers::{self, Server},
};
use crate::{
    bench::target::judge, cluster::Assets, interrupt::Interrupted, program::Profile,
    scratch::Folder,
};

/// Not measured: caches fill, and code that is compiled or paged in on first use is.
const WARM_UP: &str = "bench-warm";

/// Prints the report as one line on standard output, and as a table for people. Fails where a target
/// is missed, but for debug builds, whose figures mean nothing.
pub(in crate::bench) fn run(arguments: &Arguments) -> Result<()> {
    say("programs: control plane and embedded API server");
    let assets = Assets::ensure()?;
    let profile = if arguments.debug { Profile::Debug } else { Profile::Release };
    let program = servers::build(profile)?;
    let interrupted = Interrupted::listen()?;
    let folder = Folder::new("bench")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    let outcome = runtime.block_on(unless(&interrupted, async {
        let real = Server::real(&assets, &folder.path().join("real")).await?;
        let embedded = Server::embedded(&program, &folder.path().join("embedded")).await?;
        measure(arguments, [real, embedded]).await
    }));
    let report = outcome?;
    println!("{}", serde_json::to_string(&report).context("cannot write the report")?);
    eprint!("{report}");
    if arguments.debug { Ok(()) } else { judge(&report.targets()) }
}

fn say(text: &str) {
    eprintln!("bench: {text}");
}

/// Until it is done or Ctrl-C is pressed.
async fn unless<T>(interrupted: &Interrupted, work: impl Future<Output = Result<T>>) -> Result<T> {
    let pressed = async {
        while !interrupted.is_set() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        outcome = work => outcome,
        () = pressed => bail!("interrupted"),
    }
}

async fn measure(arguments: &Arguments, servers: [Server; 2]) -> Result<Report> {
    let kinds = objects::kinds()?;
    let rounds: Vec<String> =
        (1..=arguments.rounds).map(|round| format!("bench-{round}")).collect();
    let mut namespaces = rounds.clone();
    namespaces.push(WARM_UP.to_owned());
    for server in &servers {
        server.furnish(&namespaces).await?;
        let few = Arguments { objects: arguments.objects.div_ceil(5), ..*arguments };
        load::apply(&server.client, &kinds, WARM_UP, &few).await?;
    }
    let mut measured = [Measured::default(), Measured::default()];
    for (number, namespace) in rounds.iter().enumerate() {
        // The one that goes first changes, as the first may find more room on the disk.
        let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
        for at in order {
            round(&servers[at], &kinds, namespace, arguments, &mut measured[at]).await?;
        }
    }
    for (server, measured) in servers.iter().zip(&mut measured) {
        measured.memory = server.memory().context("cannot read the memory of a process")?;
    }
    let [real, embedded] = measured.map(Figures::of);
    let kinds = u32::try_from(kinds.len())?;
    Ok(Report {
        objects: arguments.objects * kinds * arguments.rounds,
        applies: arguments.objects * kinds * arguments.rounds * (arguments.changes + 1),
        watchers: arguments.watchers,
        samples: arguments.samples * arguments.rounds,
        rounds: arguments.rounds,
        ratio: Ratios::of(&embedded, &real),
        real,
        embedded,
    })
}

async fn round(
    server: &Server,
    kinds: &[Kind],
    namespace: &str,
    arguments: &Arguments,
    measured: &mut Measured,
) -> Result<()> {
    let before = server.cpu();
    let (applies, time) = load::apply(&server.client, kinds, namespace, arguments).await?;
    measured.cpu += server.cpu().saturating_sub(before);
    measured.applied.push((applies, time));
    let kind = kinds.first().context("there is no kind")?;
    measured.fanout.extend(fanout::measure(&server.client, kind, namespace, arguments).await?);
    let each = f64::from(applies) / time.as_secs_f64();
    say(&format!("{}, {namespace}: {each:.0} applies per second", server.name));
    Ok(())
}
