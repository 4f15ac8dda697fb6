//! `docs/api/promises.md` names for every promise the tests that verify it; this checks that they exist.
//!
//! A promise is a section with a heading such as `## D1 Error body`, or the name of a subject. Its paragraphs that
//! begin with `Tests:` name the tests, each in backticks.

use std::collections::BTreeSet;

use shell::repository::TextFile;

/// The document.
pub(crate) const PAGE: &str = "docs/api/promises.md";

/// Number of the last promise.
const PROMISES: u32 = 32;

/// Sections that contain several promises.
const SUBJECTS: [&str; 8] =
    ["Analytics", "History", "Changes", "Streams", "Coverage", "Names", "Tables", "Documentation"];

pub(crate) fn complaints(page: &str, files: &[TextFile]) -> Vec<String> {
    let functions: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs"))
        .flat_map(|file| functions(&file.text))
        .collect();
    let mut complaints = Vec::new();
    let numbered = (1..=PROMISES).map(|n| format!("D{n}"));
    for promise in numbered.chain(SUBJECTS.map(str::to_owned)) {
        let Some(section) = section(page, &promise) else {
            complaints.push(format!("{PAGE} has no heading for {promise}"));
            continue;
        };
        let tests = tests(section);
        if tests.is_empty() {
            complaints.push(format!("{PAGE}: {promise} names no test"));
        }
        for test in tests.into_iter().filter(|test| !functions.contains(test)) {
            complaints.push(format!("{PAGE}: {promise} names {test}, which is not a function"));
        }
    }
    complaints
}

/// The text under the heading of a promise.
fn section<'a>(page: &'a str, promise: &str) -> Option<&'a str> {
    page.split("\n## ").find(|section| section.split_whitespace().next() == Some(promise))
}

/// The names of the tests of a section.
fn tests(section: &str) -> Vec<&str> {
    let paragraphs = section.split("\n\n").filter(|paragraph| paragraph.starts_with("Tests:"));
    paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2)).collect()
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

    fn found(page: &str) -> Vec<String> {
        let text = "#[test]\nfn first_holds() {}\nasync fn second_holds() {}".to_owned();
        let files = [TextFile { path: "crates/serve/tests/it/main.rs".to_owned(), text }];
        complaints(page, &files)
    }

    #[test]
    fn a_promise_with_existing_tests_is_accepted() {
        let page = "# Page\n\n## D1 Limit\n\n`limit` is strict.\n\nTests: `first_holds`,\n`second_holds`.\n";
        let found = found(page);
        assert!(!found.iter().any(|line| line.contains("D1:") || line.ends_with("for D1")));
        assert_eq!(found.len(), 39);
    }

    #[test]
    fn a_missing_promise_and_a_missing_test_are_reported() {
        let page = "# Page\n\n## D1 One\n\nText, no test.\n\n## D2 Two\n\nTests: `third_holds`.\n\n\
                    ## D31 Last\n\nTests: `first_holds`.\n\n## Coverage\n\nTests: C1 `no_test`.\n\n\
                    ## Streams\n\nTests: `first_holds`.\n\nMore.\n\nTests: S2 `nor_this`.\n";
        let found = found(page);
        assert!(found.contains(&format!("{PAGE}: D1 names no test")));
        assert!(found.contains(&format!("{PAGE}: D2 names third_holds, which is not a function")));
        assert!(found.contains(&format!("{PAGE} has no heading for D3")));
        let missing = format!("{PAGE}: Coverage names no_test, which is not a function");
        assert!(found.contains(&missing), "{found:?}");
        let second = format!("{PAGE}: Streams names nor_this, which is not a function");
        assert!(found.contains(&second), "{found:?}");
        assert!(!found.iter().any(|line| line.contains("D31")));
    }
}
