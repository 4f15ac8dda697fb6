//! `openapi.json` and `openapi-v4.json` are generated from the code and committed; both must be the same bytes.

use std::fs;

use anyhow::{Context as _, Result, bail};

use shell::repository::Repository;

/// Each file, and the arguments with which the program prints it.
const FILES: [(&str, &[&str]); 2] =
    [("openapi.json", &["openapi"]), ("openapi-v4.json", &["openapi", "--v4"])];

pub(crate) fn check(repository: &Repository) -> Result<()> {
    for (file, args) in FILES {
        let committed = repository.read(file).context("make it with `cargo xtask openapi`")?;
        let generated = generate(repository, args)?;
        if let Some(difference) = difference(&committed, &generated) {
            bail!("{file} is not what the program prints: {difference}; run `cargo xtask openapi`");
        }
    }
    Ok(())
}

pub(crate) fn rewrite(repository: &Repository) -> Result<()> {
    for (file, args) in FILES {
        let generated = generate(repository, args)?;
        fs::write(repository.root.join(file), generated)
            .with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

fn generate(repository: &Repository, args: &[&str]) -> Result<String> {
    let program = repository.build_program()?;
    shell::output(shell::command(program, &repository.root).args(args))
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
