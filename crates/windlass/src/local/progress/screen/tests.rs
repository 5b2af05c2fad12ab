use super::*;

fn lines(all: &[&str]) -> Vec<Line> {
    all.iter().map(|text| Line { text: (*text).to_owned(), width: text.len() }).collect()
}

fn text(old: &[&str], new: &[&str], width: usize) -> String {
    String::from_utf8(redraw(&lines(old), &lines(new), width)).unwrap()
}

#[test]
fn a_drawing_is_written_over_the_one_before() {
    for (old, new, width, want) in [
        (&[][..], &["a"][..], 80, "a\x1b[K\r\n"),
        (&["a", "b"], &["c"], 80, "\r\x1b[2Ac\x1b[K\r\n\x1b[J"),
        (&["a"], &[], 80, "\r\x1b[1A\x1b[J"),
        (&[], &[], 80, ""),
        // What was one row is two in a window that has become narrower.
        (&["abcdef"], &["a"], 4, "\r\x1b[2Aa\x1b[K\r\n\x1b[J"),
        // Clearing behind a full row would take its last letter.
        (&[], &["abcd"], 4, "abcd\r\n"),
        (&[], &["ab"], 0, "ab\r\n"),
    ] {
        assert_eq!(text(old, new, width), want, "{old:?} {new:?} {width}");
    }
}
