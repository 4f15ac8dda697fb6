//! `openapi.json` is generated from the code and committed; the two must be the same bytes.

use std::fs;

use anyhow::{Context as _, Result, bail};

use shell::repository::Repository;

const FILE: &str = "openapi.json";

pub(crate) fn check(repository: &Repository) -> Result<()> {
    let committed = repository.read(FILE).context("make it with `cargo xtask openapi`")?;
    let generated = generate(repository)?;
    if let Some(difference) = difference(&committed, &generated) {
        bail!("{FILE} is not what the program prints: {difference}; run `cargo xtask openapi`");
    }
    Ok(())
}

pub(crate) fn rewrite(repository: &Repository) -> Result<()> {
    let generated = generate(repository)?;
    fs::write(repository.root.join(FILE), generated).with_context(|| format!("cannot write {FILE}"))
}

fn generate(repository: &Repository) -> Result<String> {
    let program = repository.build_program()?;
    shell::output(shell::command(program, &repository.root).arg("openapi"))
}

/// The first line that differs.
fn difference(committed: &str, generated: &str) -> Option<String> {
    if committed == generated {
        return None;
    }
    let mut lines = committed.lines().zip(generated.lines()).enumerate();
    let line = lines.find(|(_, (committed, generated))| committed != generated).map(|(n, _)| n + 1);
    Some(
        line.map_or_else(
            || "one goes on after the other".to_owned(),
            |n| format!("line {n} differs"),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\n", "a\nc\n").as_deref(), Some("line 2 differs"));
        assert_eq!(difference("a\n", "a\nb\n").as_deref(), Some("one goes on after the other"));
    }
}
