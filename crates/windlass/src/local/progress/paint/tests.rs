use super::*;

fn row(name: &str, state: State, text: &str) -> Row {
    Row {
        name: name.into(),
        state,
        ready: 0,
        pods: 1,
        text: text.into(),
        paste: Vec::new(),
        since: Timestamp::UNIX_EPOCH,
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn painted(rows: Vec<Row>, width: usize, height: usize) -> Vec<String> {
    let size = Size { width, height };
    let lines = paint(&View { rows }, size, false, at(12));
    let used: usize = lines.iter().map(|line| line.rows(width)).sum();
    assert!(used < height.max(1), "{lines:?}");
    for line in &lines {
        assert_eq!(line.width, columns(&line.text));
    }
    lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn who_waits_has_a_line_and_the_rest_is_counted() {
    let chat = Row { ready: 1, pods: 3, ..row("default/chat", State::Stuck, "no room") };
    let rows = vec![
        chat,
        row("n/a", State::Starting, ""),
        Row { ready: 2, ..row("n/b", State::Ready, "") },
        row("n/c", State::Done, ""),
    ];
    assert_eq!(
        painted(rows, 80, 24),
        [
            "default/chat  stuck     1/3    12s  no room",
            "n/a           starts    0/1    12s",
            "3 ready, 1 done",
        ]
    );
    assert!(painted(Vec::new(), 80, 24).is_empty());
    let one = Row { ready: 1, ..row("n/a", State::Ready, "") };
    assert_eq!(painted(vec![one], 80, 24), ["1 ready"]);
}

#[test]
fn long_words_wrap_beneath_themselves_and_end_in_dots() {
    let text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen \
                fifteen sixteen";
    assert_eq!(
        painted(vec![row("n/a", State::Stuck, text)], 60, 24),
        [
            "n/a  stuck     0/1    12s  one two three four five six seven",
            "                           eight nine ten eleven twelve",
            "                           thirteen fourteen fifteen sixteen",
        ]
    );
    let lines = painted(vec![row("n/a", State::Stuck, &"x".repeat(500))], 60, 24);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| columns(line) == 60), "{lines:?}");
    assert!(lines[2].ends_with("x..."), "{lines:?}");
}

#[test]
fn a_narrow_terminal_has_the_text_on_lines_of_its_own() {
    let lines = painted(vec![row("default/chat", State::Stuck, "one two three")], 30, 24);
    assert_eq!(lines, ["default...  stuck     0/1    12s", "    one two three"]);
}

#[test]
fn no_size_is_too_small() {
    let rows: Vec<Row> = (0..9).map(|n| row(&format!("n/{n}"), State::Stuck, "a b 漢字")).collect();
    for width in 0..40 {
        for height in 0..12 {
            painted(rows.clone(), width, height);
        }
    }
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let rows = (0..9).map(|n| row(&format!("n/{n}"), State::Starting, "")).collect();
    let lines = painted(rows, 80, 6);
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[4], "... and 5 more");
}

#[test]
fn what_to_paste_is_whole_and_said_once() {
    let line = format!("match = \"{}\"", "x".repeat(100));
    let of = |name| Row { paste: vec![line.clone()], ..row(name, State::Stuck, "add") };
    let lines = painted(vec![of("n/a"), of("n/b")], 60, 24);
    assert_eq!(
        lines,
        [
            "n/a  stuck     0/1    12s  add",
            &format!("    {line}"),
            "n/b  stuck     0/1    12s  add",
        ]
    );
}

#[test]
fn wide_letters_take_two_columns() {
    assert_eq!(cut("漢字漢字", 7), "漢字...");
    assert_eq!(wrap("漢字 漢字", 5), ["漢字", "漢字"]);
    assert_eq!(wrap("漢字", 1).len(), MOST_ROWS.min(2));
}

#[test]
fn colours_take_no_room() {
    let view = View { rows: vec![row("n/a", State::Stuck, "x")] };
    let line = |colour| paint(&view, Size { width: 80, height: 24 }, colour, at(12)).remove(0);
    assert!(line(true).text.contains("\x1b[31mstuck \x1b[0m"), "{:?}", line(true));
    assert_eq!(line(true).width, line(false).width);
    assert!(!line(false).text.contains('\x1b'));
}

#[test]
fn times_are_told_in_few_letters() {
    for (seconds, want) in [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (7199, "119m"),
        (7200, "2h"),
        (200_000, "2d"),
    ] {
        assert_eq!(age(at(0), at(seconds)), want);
    }
}

#[test]
fn the_end_says_how_it_can_be_hurried() {
    let text = |pods, is_terminal| ending(pods, is_terminal).into_iter().map(|line| line.text);
    assert_eq!(text(0, true).count(), 0);
    let one = text(1, true).collect::<String>();
    assert_eq!(one, "ending 1 pod; Ctrl-C once more ends it at once");
    let many = text(3, false).collect::<String>();
    assert_eq!(many, "ending 3 pods; the same signal once more ends them at once");
}
