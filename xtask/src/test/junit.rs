//! Reads the counts out of a JUnit report, as nextest writes it.

use super::report::Counts;

/// The tests of one binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) counts: Counts,
}

/// Each `<testsuite …>` carries its sums as attributes, so no XML reader is needed.
pub(super) fn suites(report: &str) -> Vec<Suite> {
    let tags = report.split("<testsuite ").skip(1);
    tags.filter_map(|tag| suite(tag.split('>').next().unwrap_or_default())).collect()
}

fn suite(tag: &str) -> Option<Suite> {
    let number = |name: &str| attribute(tag, name).and_then(|value| value.parse().ok());
    let tests: usize = number("tests")?;
    let failed = number("failures").unwrap_or(0) + number("errors").unwrap_or(0);
    let skipped = number("skipped").unwrap_or(0);
    let passed = tests.saturating_sub(failed + skipped);
    Some(Suite { name: attribute(tag, "name")?.into(), counts: Counts { passed, failed, skipped } })
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let tag = tag.trim_start();
    let start = if tag.starts_with(&format!("{name}=\"")) {
        name.len() + 2
    } else {
        let opening = format!(" {name}=\"");
        tag.find(&opening)? + opening.len()
    };
    tag[start..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_read_with_their_counts() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5" failures="1" errors="1">
    <testsuite name="windlass-tests::real_api" tests="4" skipped="0" errors="1" failures="1">
        <testcase name="tests=&quot;" classname="windlass-tests::real_api"></testcase>
    </testsuite>
    <testsuite name="xtask" tests="1" skipped="0" errors="0" failures="0"></testsuite>
</testsuites>"#;
        let suite = |name: &str, passed, failed| Suite {
            name: name.into(),
            counts: Counts { passed, failed, skipped: 0 },
        };
        assert_eq!(suites(report), [suite("windlass-tests::real_api", 2, 2), suite("xtask", 1, 0)]);
    }
}
