//! The embedded API server and the real one give the same answers.
//!
//! `cases/` holds the cases as data. Each runs on both servers; each answer is compared with what
//! the case wants and with the answer of the other server. `WINDLASS_CONFORMANCE` names the
//! servers (`real,embedded`), `WINDLASS_CASES` the beginnings of the cases' names.

// All of this runs only inside tests, where failing loudly is the point.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod case;
mod expect;
mod history;
mod normal;
mod run;
mod server;
mod transcript;

use futures::{StreamExt, future::join_all, stream};

use case::Case;
use server::Server;

/// Cases mostly wait for controllers.
const AT_ONCE: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_answer_every_case_alike() {
    let servers = Server::all().await;
    let chosen = std::env::var("WINDLASS_CASES").unwrap_or_default();
    let mut cases = case::load_all();
    cases.retain(|case| chosen.split(',').any(|chosen| case.name.starts_with(chosen)));
    // A restart would disturb the others.
    let (alone, together): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.restarts());
    let check = |case| judge(case, &servers);
    let mut failures: Vec<_> =
        stream::iter(together).map(check).buffered(AT_ONCE).collect::<Vec<_>>().await;
    for case in alone {
        failures.push(judge(case, &servers).await);
    }
    let failures = failures.concat();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Runs a case on every server; the failures in words.
async fn judge(case: &Case, servers: &[Server]) -> Vec<String> {
    let runs = join_all(servers.iter().map(|server| run::run(case, server))).await;
    let mut failures = Vec::new();
    for (server, records) in servers.iter().zip(&runs) {
        for record in records {
            let place = format!(
                "{} on the {} server ({}), {}",
                case.name,
                server.name(),
                case.title,
                record.label
            );
            failures.extend(record.problems.iter().map(|problem| format!("{place}: {problem}")));
        }
    }
    if let [one, other] = &runs[..] {
        let answers = normal::normalise(one).into_iter().zip(normal::normalise(other));
        for (record, (one, other)) in one.iter().zip(answers) {
            if one != other {
                let difference = normal::difference(&one, &other);
                let place = format!("{}, {}", case.name, record.label);
                failures.push(format!("{place}: answers differ: {difference}"));
            }
        }
    }
    failures
}
