//! Relative links in Markdown: each leads to a file of the repository, and a label that is a file name matches the
//! target. Decisions and the architecture also name source files without a link; those have to exist, too.

use std::path::Path;

use shell::repository::TextFile;

use crate::prose;

/// Pages whose quoted paths are checked.
const QUOTING: [&str; 2] = ["docs/adr/", "ARCHITECTURE.md"];

/// Links of Markdown files whose target does not exist below `root`, or differs from their label, and quoted paths of
/// source files that do not exist.
pub(crate) fn complaints(files: &[TextFile], root: &Path) -> Vec<String> {
    let mut complaints = missing_sources(files);
    for TextFile { path, text } in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, line) in prose::markdown(text) {
            for (label, target) in links(line) {
                let Some(file) = relative(target) else { continue };
                let folder = Path::new(path).parent().unwrap_or(Path::new(""));
                if !root.join(folder).join(file).exists() {
                    complaints.push(format!("{path}:{number} links to {target}, which is no file"));
                } else if names_file(label) && !file.ends_with(label) {
                    complaints.push(format!("{path}:{number} calls {target} {label}"));
                }
            }
        }
    }
    complaints
}

/// Paths in backticks, such as `query/analysis.rs`, with which no file's path ends.
fn missing_sources(files: &[TextFile]) -> Vec<String> {
    let exists = |name: &str| {
        let is_it = |path: &str| path.strip_suffix(name).is_some_and(is_folder);
        files.iter().any(|file| is_it(&file.path))
    };
    let is_quoting = |page: &str| QUOTING.iter().any(|prefix| page.starts_with(prefix));
    let pages = files.iter().filter(|file| is_quoting(&file.path) && file.path.ends_with(".md"));
    let mut complaints = Vec::new();
    for TextFile { path, text } in pages {
        for (number, line) in prose::markdown(text) {
            let quoted = line.split('`').skip(1).step_by(2);
            for name in quoted.filter(|name| names_file(name) && name.contains('/')) {
                if !exists(name) {
                    complaints.push(format!("{path}:{number} names {name}, which is no file"));
                }
            }
        }
    }
    complaints
}

/// True if a path can be followed by the name of a file.
fn is_folder(path: &str) -> bool {
    path.is_empty() || path.ends_with('/')
}

/// The links of a line as label and target. If a label begins on the line before, only its end is returned.
fn links(line: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = line.split("](").collect();
    let pairs = parts.iter().zip(parts.iter().skip(1));
    pairs
        .filter_map(|(before, after)| {
            let (target, _) = after.split_once(')')?;
            let label = before.rsplit_once('[').map_or(*before, |(_, label)| label);
            Some((label.trim_matches('`'), target))
        })
        .collect()
}

/// The target file of a link, unless it is a URL, an absolute path or a heading of the same page.
fn relative(target: &str) -> Option<&str> {
    let file = target.split(['#', '?', ' ']).next().unwrap_or_default();
    let is_elsewhere = file.is_empty() || file.starts_with('/') || file.contains(':');
    (!is_elsewhere).then_some(file)
}

/// True if a label is the name of a source file, such as `query/analysis.rs`.
fn names_file(label: &str) -> bool {
    label.ends_with(".rs") && !label.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = TextFile { path: "docs/a.md".to_owned(), text: text.to_owned() };
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("docs/b")).unwrap();
        std::fs::write(root.path().join("docs/b/c.rs"), "").unwrap();
        complaints(&[file], root.path())
    }

    #[test]
    fn links_to_files_that_do_not_exist_are_reported() {
        assert_eq!(
            found("[c](b/c.rs), [`b/c.rs`](b/c.rs#part)\nand [d](b/d.rs) or ![e](../e.png)"),
            [
                "docs/a.md:2 links to b/d.rs, which is no file",
                "docs/a.md:2 links to ../e.png, which is no file",
            ]
        );
    }

    #[test]
    fn a_label_that_names_another_file_is_reported() {
        assert_eq!(found("see [`old.rs`](b/c.rs)"), ["docs/a.md:1 calls b/c.rs old.rs"]);
    }

    #[test]
    fn quoted_paths_of_sources_in_decisions_have_to_exist() {
        let file =
            |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let text = "`b/c.rs`, `src/b/c.rs`, `c.rs`, `d.rs`, `b/` and\n`old/c.rs` or `a b/c.rs`";
        let files = |page| [file(page, text), file("crates/x/src/b/c.rs", "")];
        let root = tempfile::tempdir().unwrap();
        for page in ["docs/adr/0001-a.md", "ARCHITECTURE.md"] {
            let expected = format!("{page}:2 names old/c.rs, which is no file");
            assert_eq!(complaints(&files(page), root.path()), [expected]);
        }
        assert_eq!(complaints(&files("docs/other.md"), root.path()), [""; 0]);
    }

    #[test]
    fn addresses_headings_and_code_are_no_links_to_files() {
        let text =
            "[a](https://example.com/x.md) [b](#there) [c](/docs/x)\n\n```\n[d](none.md)\n```";
        assert_eq!(found(text), [""; 0]);
    }
}
