//! Looking for words in texts written by people and programs.

/// Whether the text holds the phrase as whole words, whatever the case; `401` in a digest is none.
pub(super) fn has_phrase(text: &str, phrase: &str) -> bool {
    find_phrase(&text.to_lowercase(), phrase).is_some()
}

/// Where the phrase ends in a text that is in lower case already.
fn find_phrase(text: &str, phrase: &str) -> Option<usize> {
    text.match_indices(phrase).map(|(at, _)| (at, at + phrase.len())).find_map(|(start, end)| {
        let joined = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let alone =
            !joined(text[..start].chars().next_back()) && !joined(text[end..].chars().next());
        alone.then_some(end)
    })
}

/// Whether the marks follow each other on one line in lower case.
///
/// Numbers have to stand alone, other marks may be parts of words: `FileNotFoundError` counts as
/// `file`, `not`, `found`.
pub(super) fn has_sequence(line: &str, marks: &[&str]) -> bool {
    let mut rest = line;
    marks.iter().all(|mark| {
        let is_number = mark.bytes().all(|byte| byte.is_ascii_digit());
        let end = if is_number {
            find_phrase(rest, mark)
        } else {
            rest.find(mark).map(|at| at + mark.len())
        };
        if let Some(end) = end {
            rest = &rest[end..];
        }
        end.is_some()
    })
}
