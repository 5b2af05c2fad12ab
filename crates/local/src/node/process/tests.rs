use std::time::Instant;

use super::*;

fn sh(script: &str) -> Launch {
    let path = std::env::var("PATH").unwrap_or_default();
    Launch {
        program: "sh".into(),
        args: ["-c", script].map(str::to_owned).into(),
        env: [("PATH".to_owned(), path)].into(),
        dir: "/".into(),
        ..Launch::default()
    }
}

fn done(output: &str) -> Outcome {
    Outcome::Done { code: 0, output: output.to_owned() }
}

/// Of the process that a script has told of.
fn identify(output: &Outcome) -> Identity {
    let Outcome::Done { output, .. } = output else { panic!("{output:?}") };
    processes::identify(output.trim().parse().unwrap()).expect("it lives")
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_the_container() {
    let long = Duration::from_secs(60);
    let left = run(&sh("sleep 4706 >/dev/null 2>&1 & echo $!"), "left", long).await;
    let sleeper = identify(&left);
    assert!(processes::lives(&sleeper));
    processes::end_marked("left");
    assert!(!processes::lives(&sleeper));
}

#[tokio::test]
async fn a_command_has_ended_although_its_output_is_still_open() {
    let start = Instant::now();
    let left = run(&sh("sleep 4707 & echo $!"), "open", Duration::from_secs(60)).await;
    let sleeper = identify(&left);
    assert!(start.elapsed() < Duration::from_secs(30));
    processes::end_marked("open");
    assert!(!processes::lives(&sleeper));
}

#[tokio::test]
async fn a_command_that_takes_too_long_goes_with_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch { dir: dir.path().into(), ..sh("sleep 4708 & echo $! > pid; wait") };
    assert_eq!(run(&launch, "slow", Duration::from_millis(500)).await, Outcome::TooLong);
    let pid: i32 = std::fs::read_to_string(dir.path().join("pid")).unwrap().trim().parse().unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while processes::identify(pid).is_some_and(|known| processes::lives(&known)) {
        assert!(Instant::now() < until, "it still runs");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn output_is_what_both_streams_say() {
    let both = run(&sh("echo out; echo err >&2"), "both", Duration::from_secs(60)).await;
    assert_eq!(both, done("out\nerr\n"));
}

#[tokio::test]
async fn the_time_limit_is_for_the_command_and_not_for_what_it_has_said() {
    // It has ended at once; somebody keeps its output open for as long as it is waited for.
    let left = run(&sh("sleep 4709 & echo $!"), "limit", LAST_OUTPUT / 2).await;
    let sleeper = identify(&left);
    processes::end_marked("limit");
    assert!(!processes::lives(&sleeper));
}

/// It has no environment, a session of its own, and no parent that is known.
const STRAY: &str = "(env -i $(command -v setsid) sh -c 'echo $$ > pid.new; mv pid.new pid; exec \
                     sleep 4710' >/dev/null 2>&1 &); ";

async fn pid_in(dir: &std::path::Path) -> i32 {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(text) = std::fs::read_to_string(dir.join("pid")) {
            return text.trim().parse().unwrap();
        }
        assert!(Instant::now() < until, "it has not begun");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stray_without_environment_or_session_ends_with_its_container() {
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch { dir: dir.path().into(), ..sh(&format!("{STRAY} exec sleep 4711")) };
    let running = start(&launch, "stray").unwrap();
    let stray = processes::identify(pid_in(dir.path()).await).unwrap();
    assert!(processes::lives(&stray));
    running.process.kill();
    running.end.await.unwrap();
    assert!(!processes::lives(&stray));
}

#[tokio::test]
async fn a_stray_of_a_command_beside_it_ends_with_the_container_too() {
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch { dir: dir.path().into(), ..sh(STRAY) };
    run(&launch, "beside", Duration::from_secs(60)).await;
    let stray = processes::identify(pid_in(dir.path()).await).unwrap();
    processes::end_marked("other");
    assert!(processes::lives(&stray));
    processes::end_marked("beside");
    assert!(!processes::lives(&stray));
}
