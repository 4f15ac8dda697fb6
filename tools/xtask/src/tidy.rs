//! Rules about files that no compiler checks.

use std::{env, path::Path};

use anyhow::{Result, ensure};

use shell::repository::{Repository, TextFile};

use crate::{links, log_events, promises, prose};

/// Maximum number of lines: longer files have two subjects.
const LINES_MAX: usize = 600;

/// Types of handwritten files, which can be split; data, fixtures and generated files cannot.
const HAND_WRITTEN: [&str; 6] = [".rs", ".toml", ".sql", ".md", ".py", ".ts"];

/// Folders of our code.
const OURS: [&str; 3] = ["crates/", "tools/", "sdk/"];

/// Generated from `openapi.json` by `cargo xtask sdk`.
const GENERATED: [&str; 2] = ["sdk/python/src/linesman/types.py", "sdk/typescript/src/types.ts"];

/// Unfinished work and tests that do not run. Split into parts, so that this file does not match itself.
const FORBIDDEN: [&str; 3] = [concat!("todo", "!"), concat!("dbg", "!"), concat!("#[", "ignore")];

/// Commands that the README must show: how to start the service and how to use it.
const README_COMMANDS: [&str; 3] = ["cargo run --release", "cargo xtask test", "curl "];

/// The page of failures, which quotes lines of the log.
const FAILURES: &str = "docs/operations/failures.md";

pub(crate) fn check(repository: &Repository) -> Result<()> {
    let files = repository.text_files()?;
    let mut complaints = sources(&files);
    complaints.extend(prose::complaints(&files));
    complaints.extend(links::complaints(&files, &repository.root));
    complaints.extend(log_events::complaints(&files));
    complaints.extend(machine_paths(&files, &private_paths(&repository.root)));
    match repository.read("README.md") {
        Ok(readme) => complaints.extend(readme_complaints(&readme)),
        Err(error) => complaints.push(format!("{error:#}")),
    }
    match repository.read(promises::PAGE) {
        Ok(text) => complaints.extend(promises::complaints(&text, &files)),
        Err(error) => complaints.push(format!("{error:#}")),
    }
    match repository.read(FAILURES) {
        Ok(text) => complaints.extend(unsaid_lines(&text, &files)),
        Err(error) => complaints.push(format!("{error:#}")),
    }
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

/// Log lines that the operators' page quotes and that no source contains.
fn unsaid_lines(page: &str, files: &[TextFile]) -> Vec<String> {
    let sources = || files.iter().filter(|file| file.path.ends_with(".rs"));
    let quoted = page.split("`\"").skip(1).filter_map(|rest| rest.split_once("\"`"));
    quoted
        .map(|(line, _)| line)
        .filter(|line| !sources().any(|file| file.text.contains(&format!("\"{line}\""))))
        .map(|line| format!("{FAILURES} quotes \"{line}\", which no source logs"))
        .collect()
}

fn sources(files: &[TextFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for TextFile { path, text } in files {
        let lines = text.lines().count();
        let is_hand_written = HAND_WRITTEN.iter().any(|ending| path.ends_with(ending))
            && !GENERATED.contains(&path.as_str())
            && !path.contains(prose::FIXTURES);
        let is_ours = OURS.iter().any(|folder| path.starts_with(folder));
        if is_ours && is_hand_written && lines > LINES_MAX {
            complaints.push(format!("{path} has {lines} lines; split it below {LINES_MAX}"));
        }
        if !path.ends_with(".rs") {
            continue;
        }
        for (n, line) in text.lines().enumerate() {
            for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{path}:{} has {word}", n + 1));
            }
        }
    }
    complaints
}

fn readme_complaints(readme: &str) -> Vec<String> {
    let missing = README_COMMANDS.iter().filter(|command| !readme.contains(**command));
    missing.map(|command| format!("README.md does not show `{}`", command.trim())).collect()
}

/// Paths of this machine: the home folder and the location of the repository.
fn private_paths(root: &Path) -> Vec<String> {
    let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
    let home = home.map(|home| home.to_string_lossy().into_owned());
    // A path with one segment, such as `/linesman` in a container, is too common to count.
    let root = root.to_string_lossy().into_owned();
    let root = Some(root).filter(|root| root.matches(['/', '\\']).count() > 1);
    home.into_iter().chain(root).filter(|path| path.len() > 1).collect()
}

fn machine_paths(files: &[TextFile], private: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for TextFile { path, text } in files {
        for (n, line) in text.lines().enumerate() {
            for found in private.iter().filter(|path| names_path(line, path)) {
                complaints.push(format!("{path}:{} has {found}, a path of one machine", n + 1));
            }
        }
    }
    complaints
}

/// True if the line contains the path as whole segments: `/home/ann/x`, not `/home/anna` or `a/home/ann`.
fn names_path(line: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    line.match_indices(path).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let after = rest.strip_prefix(path).unwrap_or_default();
        !before.chars().next_back().is_some_and(is_part)
            && !after.chars().next().is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn unfinished_work_is_told_with_its_line() {
        for word in FORBIDDEN {
            let found = sources(&[file("crates/x/src/lib.rs", &format!("fn a() {{\n{word}"))]);
            assert_eq!(found, [format!("crates/x/src/lib.rs:2 has {word}")]);
        }
    }

    #[test]
    fn long_sources_are_told_and_long_data_is_not() {
        let text = "\n".repeat(LINES_MAX + 1);
        let files = [
            file("crates/x/src/lib.rs", &text),
            file("tools/x/src/main.rs", &text),
            file("sdk/python/src/linesman/_client.py", &text),
            file("crates/x/tests/fixtures/a.json", &text),
            file(GENERATED[0], &text),
            file("docs/long.md", &text),
        ];
        assert_eq!(
            sources(&files),
            [
                "crates/x/src/lib.rs has 601 lines; split it below 600",
                "tools/x/src/main.rs has 601 lines; split it below 600",
                "sdk/python/src/linesman/_client.py has 601 lines; split it below 600",
            ]
        );
    }

    #[test]
    fn paths_of_one_machine_are_told() {
        let private = ["/home/ann".to_owned()];
        let files = [file("a.md", "ok\nsee /home/ann/x"), file("b.md", "/home/anna ./x/home/ann")];
        assert_eq!(
            machine_paths(&files, &private),
            ["a.md:2 has /home/ann, a path of one machine"]
        );
    }

    #[test]
    fn a_line_of_the_log_that_nobody_writes_is_told() {
        let files = [file("crates/x/src/lib.rs", "warn!(\"the disk is full\");")];
        let page = "| `\"the disk is full\"` | `\"the disk is empty\"` | \"loose\" |";
        let found = unsaid_lines(page, &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("the disk is empty"));
    }

    #[test]
    fn the_readme_shows_how_to_start() {
        assert!(
            readme_complaints("cargo run --release\ncargo xtask test\ncurl -s http://…").is_empty()
        );
        assert_eq!(readme_complaints("curl -s").len(), 2);
    }
}
