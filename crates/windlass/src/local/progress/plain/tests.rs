use jiff::Timestamp;

use super::*;

fn row(name: &str, state: State, ready: usize, pods: usize, text: &str) -> Row {
    Row {
        name: name.into(),
        state,
        ready,
        pods,
        text: text.into(),
        paste: Vec::new(),
        since: Timestamp::UNIX_EPOCH,
    }
}

#[test]
fn each_change_is_said_once() {
    let mut plain = Plain::default();
    let stuck = |ready| row("n/a", State::Stuck, ready, 2, "no rule");
    for (rows, want) in [
        (vec![], &[][..]),
        (vec![row("n/a", State::Starting, 0, 2, "")], &["n/a: starts, 0 of 2 ready"]),
        (vec![row("n/a", State::Starting, 0, 2, "")], &[]),
        (vec![stuck(0)], &["n/a: stuck, 0 of 2 ready: no rule"]),
        // It goes to and fro.
        (vec![row("n/a", State::Starting, 0, 2, "")], &[]),
        (vec![stuck(0)], &[]),
        (vec![stuck(1)], &["n/a: stuck, 1 of 2 ready: no rule"]),
        (vec![row("n/a", State::Ready, 2, 2, "")], &["n/a: ready, 2 of 2 ready"]),
        (vec![row("n/a", State::Ready, 2, 2, "")], &[]),
        // What was said before it was ready is news again.
        (vec![stuck(1)], &["n/a: stuck, 1 of 2 ready: no rule"]),
        (
            vec![row("n/a", State::Ready, 1, 1, ""), row("n/b", State::Done, 0, 0, "")],
            &["n/a: ready", "n/b: done"],
        ),
        (vec![row("n/b", State::Done, 0, 0, "")], &["n/a: gone"]),
        (vec![], &["n/b: gone"]),
        (vec![], &[]),
    ] {
        assert_eq!(plain.next(&View { rows: rows.clone() }), want, "{rows:?}");
    }
}

#[test]
fn what_to_paste_follows_its_line() {
    let mut stuck = row("n/a", State::Stuck, 0, 1, "add");
    stuck.paste = vec!["[[image]]".into(), "match = \"x\"".into()];
    let lines = Plain::default().next(&View { rows: vec![stuck] });
    assert_eq!(lines, ["n/a: stuck: add", "    [[image]]", "    match = \"x\""]);
}

#[test]
fn what_never_ends_is_not_remembered_for_ever() {
    let mut plain = Plain::default();
    let mut next =
        |text: &str| plain.next(&View { rows: vec![row("n/a", State::Stuck, 0, 1, text)] });
    for count in 0..1000 {
        assert_eq!(next(&format!("restarted {count} times")).len(), 1, "{count}");
        // Between any two of them, and said once.
        assert_eq!(next("starts").len(), usize::from(count == 0), "{count}");
    }
    assert!(plain.rows["n/a"].lines.len() <= REMEMBERED);
}
