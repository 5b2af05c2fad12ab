//! Text that is meant to be pasted into a shell.

use std::path::Path;

/// A path as one word.
pub(crate) fn word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_word() {
        for (path, want) in [
            ("/a/.local/state/windlass", "/a/.local/state/windlass"),
            ("/a b", "'/a b'"),
            ("/it's", r"'/it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(word(Path::new(path)), want);
        }
    }
}
