//! Patterns with `*` for any letters, slashes too, and `?` for one.

/// Takes time in proportion to the product of both lengths at most.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // Where the last star was, and how much of the text it stands for.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(&letter) if letter == b'?' || letter == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((stood, taken)) => {
                    star = Some((stood, taken + 1));
                    at = stood + 1;
                    seen = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}
