//! Contracts: each row of a table of rules names the test that proves it.

use std::collections::BTreeSet;

use super::{File, Finding};

/// Rows of tables with a column `test` in `docs/contracts/*.md` and `ARCHITECTURE.md`. A name in backticks is a test
/// function or a case folder under `crates/`, `tests/` or `xtask/`.
pub(super) fn rows_name_tests(files: &[File]) -> Vec<Finding> {
    let known = known_tests(files);
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_contract(&file.path)) {
        for (line, cell) in test_cells(&file.text) {
            let names = names_in(cell);
            if names.is_empty() {
                findings.push(file.finding(line, "the row names no test"));
            }
            for name in names.iter().filter(|name| !known.contains(**name)) {
                findings.push(file.finding(line, format!("there is no test named {name}")));
            }
        }
    }
    findings
}

fn is_contract(path: &str) -> bool {
    path == "ARCHITECTURE.md" || (path.starts_with("docs/contracts/") && path.ends_with(".md"))
}

fn known_tests(files: &[File]) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    let places = ["crates/", "tests/", "xtask/"];
    for file in files.iter().filter(|file| places.iter().any(|place| file.path.starts_with(place)))
    {
        let mut folders: Vec<&str> = file.path.split('/').collect();
        folders.pop();
        known.extend(folders);
        if file.is_rust() {
            known.extend(file.code().filter_map(|(_, code)| function_name(code)));
        }
    }
    known
}

fn function_name(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let is_item = before.split_whitespace().all(|word| word.chars().all(|c| c.is_alphanumeric()));
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (is_item && end > 0).then(|| &after[..end])
}

/// The cells of the column `test`, with their line numbers.
fn test_cells(text: &str) -> Vec<(usize, &str)> {
    let mut column = None;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            column = None;
            continue;
        };
        match column {
            None => {
                let is_test = |cell: &&str| cell.eq_ignore_ascii_case("test");
                // A table without such a column keeps a column number that no row reaches.
                column = Some(cells.iter().position(is_test).unwrap_or(usize::MAX));
            }
            Some(_) if cells.iter().all(|cell| cell.chars().all(|c| c == '-' || c == ':')) => {}
            Some(usize::MAX) => {}
            Some(column) => found.push((index + 1, cells.get(column).copied().unwrap_or_default())),
        }
    }
    found
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('|')?;
    let row = row.strip_suffix('|').unwrap_or(row);
    // `\|` inside a cell would split it; the column `test` holds plain names and comes last.
    Some(row.split('|').map(str::trim).collect())
}

/// The last part of each name in backticks: `module::name` and `cases/name` mean `name`.
fn names_in(cell: &str) -> Vec<&str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    let last = |name| str::rsplit(name, [':', '/']).next().unwrap_or_default();
    quoted.map(last).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::file, *};

    #[test]
    fn each_row_names_a_test_that_exists() {
        let table = "# Rules\n\n\
            | rule | mandatory | test |\n|---|---|---|\n\
            | a | yes | `known_function` |\n\
            | b | yes | `plan::known_function`, `cases/known-folder` |\n\
            | c | no | |\n\
            | d | yes | `unknown` |\n\n\
            | other | table |\n|---|---|\n| x | y |\n";
        let files = [
            file("docs/contracts/kind.md", table),
            file("docs/other.md", table),
            file("crates/a/src/plan/tests.rs", "    async fn known_function() {\n"),
            file("crates/a/tests/cases/known-folder/given.yaml", ""),
        ];
        let found: Vec<String> = rows_name_tests(&files).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/contracts/kind.md:7: the row names no test",
                "docs/contracts/kind.md:8: there is no test named unknown",
            ]
        );
    }
}
