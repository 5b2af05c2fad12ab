//! Reads counts and failures out of a JUnit report, as nextest writes it.

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

/// What is told of a failure. The rest is where nextest has printed it, far above.
const TOLD: usize = 2000;
/// Where the words of a failure end.
const TRACE: &str = "stack backtrace:";

/// Each test that has failed, and why. In texts and values no tag can stand, so that no XML reader is
/// needed for these either.
pub(super) fn failures(report: &str) -> Vec<String> {
    report.split("<testcase ").skip(1).filter_map(failure).collect()
}

fn failure(case: &str) -> Option<String> {
    let case = case.split("</testcase>").next()?;
    let tags = ["<failure ", "<error "];
    let (_, told) = tags.into_iter().find_map(|tag| case.split_once(tag))?;
    let value = |text, name| attribute(text, name).map(plain).unwrap_or_default();
    // The attribute `message` has but the first line, and in that of a panic no reason stands.
    let (_, text) = told.split_once('>')?;
    let text = plain(text.split('<').next()?);
    let why: String = text.split(TRACE).next()?.trim().chars().take(TOLD).collect();
    let (binary, test) = (value(case, "classname"), value(case, "name"));
    Some(format!("{binary} {test}: {}: {why}", value(told, "type")))
}

/// A value without what stands for characters that it cannot hold.
fn plain(value: &str) -> String {
    let parts = [("&#10;", "\n"), ("&quot;", "\""), ("&apos;", "'"), ("&lt;", "<"), ("&gt;", ">")];
    let plain = parts.iter().fold(value.to_owned(), |text, (from, to)| text.replace(from, to));
    // The last, as it may stand before others.
    plain.replace("&amp;", "&")
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

    #[test]
    fn a_failure_is_told_with_its_reason() {
        let report = r#"<testsuite name="a::pods" tests="2" failures="1">
        <testcase name="fine" classname="a::pods" time="1"><system-out>&lt;failure </system-out></testcase>
        <testcase name="churn::rest" classname="a::pods" time="31.7">
            <failure message="thread &apos;churn&apos; panicked at rest.rs:4:2" type="test failure with exit code 101">thread &apos;churn&apos; panicked at rest.rs:4:2:
it did not stay &amp;lt;
stack backtrace:
   0: rust_begin_unwind</failure>
        </testcase></testsuite>"#;
        assert_eq!(
            failures(report),
            ["a::pods churn::rest: test failure with exit code 101: \
              thread 'churn' panicked at rest.rs:4:2:\nit did not stay &lt;"]
        );
    }
}
