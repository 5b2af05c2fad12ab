use super::*;

fn run(restarts: i32) -> LogKey {
    LogKey {
        namespace: "n".into(),
        pod: "p".into(),
        container: "c".into(),
        container_id: "i".into(),
        restart_count: restarts,
        previous: false,
    }
}

#[test]
fn w26_the_log_of_one_run_of_a_container_is_read_once() {
    let logs = Logs::default();
    logs.keep(&run(1), "first");
    assert_eq!(logs.get(&run(1)).as_deref(), Some("first"));
    assert_eq!(logs.get(&run(2)), None, "the next run has a log of its own");
}

#[test]
fn w26_only_so_many_logs_are_kept() {
    let logs = Logs::default();
    let many = i32::try_from(LOGS).unwrap() + 1;
    for restarts in 0..many {
        logs.keep(&run(restarts), "text");
    }
    assert_eq!(logs.get(&run(0)), None);
    assert!(logs.get(&run(many - 1)).is_some());
}

#[tokio::test]
async fn of_a_long_output_the_end_is_kept() {
    let mut long = vec![b'x'; 3 * OUTPUT_BYTES];
    long.extend_from_slice(b"the end");
    let kept = last_of(long.as_slice()).await.unwrap();
    assert_eq!(kept.len(), OUTPUT_BYTES);
    assert!(kept.ends_with(b"the end"));
    assert_eq!(last_of(&b"short \xff"[..]).await.unwrap(), b"short \xff");
}

#[tokio::test]
async fn an_output_without_end_is_given_up() {
    let endless = futures::io::repeat(b'[');
    assert_eq!(last_of(endless).await.unwrap_err().reason, "LogTooLong");
}
