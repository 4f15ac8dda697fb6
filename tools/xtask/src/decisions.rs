//! `docs/decisions.md` lists every decision with the test that holds it; this checks that the tests exist.
//!
//! A row is a line of the table whose first cell is the decision's number. Its last cell names the tests,
//! each in backticks, with or without the path of their module.

use std::collections::BTreeSet;

use shell::repository::TextFile;

/// Decisions are numbered D1 to this.
const DECISIONS: u32 = 32;

pub(crate) fn complaints(decisions: &str, files: &[TextFile]) -> Vec<String> {
    let functions: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs"))
        .flat_map(|file| functions(&file.text))
        .collect();
    let mut complaints = Vec::new();
    for n in 1..=DECISIONS {
        let number = format!("D{n}");
        let Some(cells) =
            decisions.lines().filter_map(cells).find(|cells| is_about(cells, &number))
        else {
            complaints.push(format!("docs/decisions.md has no row for {number}"));
            continue;
        };
        let tests = backticked(cells.last().copied().unwrap_or_default());
        if tests.is_empty() {
            complaints.push(format!("docs/decisions.md: {number} names no test in its last cell"));
        }
        for test in tests {
            let name = test.rsplit("::").next().unwrap_or(test);
            if !functions.contains(name) {
                complaints.push(format!(
                    "docs/decisions.md: {number} names {test}, which is no function"
                ));
            }
        }
    }
    complaints
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// The first cell may carry more than the number: `**D1** Error body`.
fn is_about(cells: &[&str], number: &str) -> bool {
    let first = cells.first().copied().unwrap_or_default();
    first.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty()) == Some(number)
}

fn backticked(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The names after `fn`.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.split_at(end).0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(decisions: &str) -> Vec<String> {
        let text = "#[test]\nfn first_holds() {}\nasync fn second_holds() {}".to_owned();
        let files = [TextFile { path: "crates/serve/tests/it/main.rs".to_owned(), text }];
        complaints(decisions, &files)
    }

    #[test]
    fn a_row_with_existing_tests_is_accepted() {
        let told = told("| D1 | `limit` is strict | `first_holds`, `serve::it::second_holds` |");
        assert!(
            told.iter().all(|line| !line.contains("D1:") && !line.ends_with("for D1")),
            "{told:?}"
        );
        assert_eq!(told.len(), 31);
    }

    #[test]
    fn a_missing_row_and_a_missing_test_are_told() {
        let told = told(
            "| D1 | words | no test |\n| **D2** x | words | `third_holds` |\n| D31 | | `first_holds` |",
        );
        assert!(told.contains(&"docs/decisions.md: D1 names no test in its last cell".to_owned()));
        assert!(
            told.contains(
                &"docs/decisions.md: D2 names third_holds, which is no function".to_owned()
            )
        );
        assert!(told.contains(&"docs/decisions.md has no row for D3".to_owned()));
        assert!(!told.iter().any(|line| line.contains("D31")));
    }
}
