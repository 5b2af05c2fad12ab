//! Rules on the text of files: length, nothing unfinished, no sleeping tests, no machine paths.

use super::{File, Finding};

const LONGEST: usize = 600;

// Put together from parts, or these rules would find themselves.
const UNFINISHED: [&str; 3] =
    [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
const SLEEPS: [&str; 2] = [concat!("thread::", "sleep"), concat!("time::", "sleep")];
const MACHINE_PATHS: [&str; 3] =
    [concat!("/", "home/"), concat!("/", "root/"), concat!("/", "Users/")];
const TEST_MARK: &str = concat!("#[cfg(", "test)]");

/// The one place where a test may pause: between two looks at a condition with a deadline.
const WAITING_FILE: &str = "tests/src/wait.rs";

pub(super) fn short_files(files: &[File]) -> Vec<Finding> {
    let rust = files.iter().filter(|file| file.is_rust());
    let long = rust.filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > LONGEST)
            .then(|| file.finding(0, format!("has {lines} lines, at most {LONGEST} are allowed")))
    });
    long.collect()
}

/// No placeholders and no ignored tests anywhere, no sleeps in tests.
pub(super) fn finished(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut in_tests = is_test_file(&file.path);
        for (line, code) in file.code() {
            in_tests |= code.trim() == TEST_MARK;
            if let Some(word) = UNFINISHED.iter().find(|word| code.contains(**word)) {
                findings.push(file.finding(line, format!("`{word}` is not for finished code")));
            }
            let may_sleep = !in_tests || file.path == WAITING_FILE;
            if !may_sleep && SLEEPS.iter().any(|word| code.contains(word)) {
                let message = "a test waits for a condition with a deadline; it does not sleep";
                findings.push(file.finding(line, message));
            }
        }
    }
    findings
}

fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Paths of the machine a file was written on mean nothing elsewhere.
pub(super) fn no_machine_paths(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(path) = MACHINE_PATHS.iter().find(|path| starts_path(line, path)) {
                findings.push(file.finding(index + 1, format!("names the machine path {path}")));
            }
        }
    }
    findings
}

/// `a/home/b` and `$X/home/b` are other folders.
fn starts_path(line: &str, path: &str) -> bool {
    let within = |c: char| c.is_alphanumeric() || "_-.~}*]".contains(c);
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(within))
}

#[cfg(test)]
mod tests {
    use super::{super::file, *};

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn long_files_are_found() {
        let long = "\n".repeat(LONGEST + 1);
        let files = [file("a.rs", &long), file("a.md", &long), file("b.rs", &long[1..])];
        let found = short_files(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "a.rs");
    }

    #[test]
    fn tests_do_not_sleep() {
        let sleep = format!("tokio::{}(x);\n{TEST_MARK}\nstd::{}(x);\n", SLEEPS[1], SLEEPS[0]);
        for (path, want) in [
            ("crates/engine/src/apply.rs", &[3][..]),
            ("crates/engine/src/apply/tests.rs", &[1, 3]),
            ("tests/real_api/main.rs", &[1, 3]),
            ("tests/src/wait.rs", &[]),
        ] {
            assert_eq!(lines(&finished(&[file(path, &sleep)])), want, "{path}");
        }
    }

    #[test]
    fn unfinished_code_is_found() {
        let text = format!("{})\nok()\n{}]\n", UNFINISHED[0], UNFINISHED[2]);
        assert_eq!(lines(&finished(&[file("crates/api/src/lib.rs", &text)])), [1, 3]);
    }

    #[test]
    fn machine_paths_are_found() {
        let [home, root, _] = MACHINE_PATHS;
        let text = format!("cd {home}x\nhome{root}x\n\"{root}\"\n$DIR{home}\n${{DIR}}{home}\n");
        assert_eq!(lines(&no_machine_paths(&[file("a.sh", &text)])), [1, 3]);
    }
}
