//! Locations: the root of the repository, its files, the build folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The repository this program was built from.
#[derive(Debug)]
pub struct Repository {
    pub root: PathBuf,
    builds: Builds,
}

/// How the program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Builds {
    ByItself,
    /// With the additional features of the tests, which are already built.
    WithTests,
}

/// A text file of the repository.
#[derive(Debug)]
pub struct TextFile {
    /// Relative to the root, with forward slashes.
    pub path: String,
    pub text: String,
}

impl Repository {
    pub fn find() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).context("this crate stands in no folder")?.to_owned();
        Ok(Self { root, builds: Builds::ByItself })
    }

    /// The repository for steps after the tests: the program is not rebuilt with other features.
    pub fn with_tests(&self) -> Self {
        Self { root: self.root.clone(), builds: Builds::WithTests }
    }

    /// The output of `cargo metadata` for the workspace.
    pub fn metadata(&self) -> Result<Value> {
        let arguments = ["metadata", "--format-version", "1", "--no-deps"];
        let text = crate::output(crate::cargo(self).args(arguments))?;
        serde_json::from_str(&text).context("cargo metadata printed something else than JSON")
    }

    /// Cargo's target folder.
    pub fn target(&self) -> Result<PathBuf> {
        let metadata = self.metadata()?;
        let target = metadata.get("target_directory").and_then(Value::as_str);
        Ok(target.context("cargo metadata names no target directory")?.into())
    }

    /// Builds the program and returns its path.
    pub fn build_program(&self) -> Result<PathBuf> {
        let arguments = match self.builds {
            Builds::ByItself => ["build", "-q", "-p", "linesman"].as_slice(),
            Builds::WithTests => &["test", "-q", "--workspace", "--no-run"],
        };
        crate::run(crate::cargo(self).args(arguments))?;
        let program = self.target()?.join("debug").join("linesman");
        Ok(program.with_extension(std::env::consts::EXE_EXTENSION))
    }

    /// Reads a file of the repository.
    pub fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The text files tracked by git, and those that `git add --all` would add.
    pub fn text_files(&self) -> Result<Vec<TextFile>> {
        let mut git = crate::command("git", &self.root);
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = crate::output(&mut git)?;
        let mut files = Vec::new();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            // A deleted file that is not committed is still listed; a file that is not text is skipped.
            let Ok(text) = fs::read_to_string(self.root.join(path)) else {
                continue;
            };
            files.push(TextFile { path: path.to_owned(), text });
        }
        ensure!(!files.is_empty(), "git lists no files here");
        Ok(files)
    }
}
