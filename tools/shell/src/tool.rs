//! Cargo subcommands: the installed one, or one installed under the build folder, so that tests do not change the
//! user's tools.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::repository::Repository;

/// Finds `cargo NAME`, or installs it from crates.io without optimisation: that takes a third of the time, and speed
/// hardly matters here.
pub fn find(repository: &Repository, name: &str) -> Result<PathBuf> {
    let program = format!("cargo-{name}");
    let installed = PathBuf::from(&program);
    if crate::succeeds(crate::cargo(repository).args([name, "--version"])) {
        return Ok(installed);
    }
    let root = repository.target()?.join("tools");
    let own = root.join("bin").join(&program).with_extension(std::env::consts::EXE_EXTENSION);
    if !own.exists() {
        crate::say(&format!("   {program} is missing: installing it under the build folder"));
        let mut install = crate::cargo(repository);
        install.args(["install", "-q", "--locked", "--debug", &program, "--root"]).arg(&root);
        install.env("CARGO_PROFILE_DEV_DEBUG", "0");
        crate::run(&mut install)
            .with_context(|| format!("{program} is needed: `cargo install {program} --locked`"))?;
    }
    Ok(own)
}
