//! The clients in `sdk/`: types generated from `openapi.json`, and tests against the running program.

mod examples;
mod relax;
mod testing;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use shell::repository::Repository;

use crate::packages;

pub(crate) use self::testing::test;

/// Generator for Python; that for TypeScript is in `sdk/typescript/package.json`.
const GENERATOR: &str = "datamodel-code-generator==0.89.0";

/// The types of each language.
const TYPES: [&str; 2] = ["sdk/python/src/linesman/types.py", "sdk/typescript/src/types.ts"];

/// Writes the types.
pub(crate) fn write(repository: &Repository) -> Result<()> {
    for (file, generated) in TYPES.into_iter().zip(generate(repository)?) {
        fs::copy(&generated, repository.root.join(file))
            .with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

/// Checks that the committed types are the generated ones.
pub(crate) fn check(repository: &Repository) -> Result<()> {
    for (file, generated) in TYPES.into_iter().zip(generate(repository)?) {
        let committed = repository.read(file).context("make it with `cargo xtask sdk`")?;
        let generated = fs::read_to_string(generated).context("cannot read generated types")?;
        if committed != generated {
            bail!("{file} is not what the generator makes of openapi.json; run `cargo xtask sdk`");
        }
    }
    Ok(())
}

/// The step of `cargo xtask test`.
pub(crate) fn check_and_test(repository: &Repository) -> Result<()> {
    check(repository)?;
    test(repository)
}

/// Generates the types into the build folder, in the order of [`TYPES`].
fn generate(repository: &Repository) -> Result<[PathBuf; 2]> {
    let folder = repository.target()?.join("sdk");
    fs::create_dir_all(&folder).context("cannot make a folder")?;
    let text = repository.read("openapi.json")?;
    let mut document: Value = serde_json::from_str(&text).context("openapi.json is not JSON")?;
    relax::relax(&mut document);
    let relaxed = folder.join("openapi.json");
    fs::write(&relaxed, format!("{document:#}\n")).context("cannot write the document")?;
    Ok([python_types(repository, &relaxed)?, typescript_types(repository, &relaxed)?])
}

fn python_types(repository: &Repository, document: &Path) -> Result<PathBuf> {
    let programs = packages::python(repository, "sdk-generator", &[GENERATOR])?;
    let types = document.with_file_name("types.py");
    let mut generator = shell::command(programs.join("datamodel-codegen"), &repository.root);
    generator
        .args(["--input-file-type", "openapi", "--output-model-type", "typing.TypedDict"])
        .args(["--target-python-version", "3.11", "--enum-field-as-literal", "all"])
        .args(["--use-schema-description", "--use-field-description"])
        .args(["--use-single-line-docstring", "--use-double-quotes", "--formatters", "builtin"])
        .args(["--disable-timestamp", "--ignore-pyproject", "--input"])
        .arg(document)
        .arg("--output")
        .arg(&types);
    shell::run(&mut generator)?;
    Ok(types)
}

fn typescript_types(repository: &Repository, document: &Path) -> Result<PathBuf> {
    let folder = repository.root.join("sdk/typescript");
    packages::npm(&folder)?;
    let types = document.with_file_name("types.ts");
    let mut generator =
        shell::command(folder.join("node_modules/.bin/openapi-typescript"), &folder);
    generator.arg(document).args(["--root-types", "--root-types-no-schema-prefix", "-o"]);
    // It reports its progress on stdout.
    shell::output(generator.arg(&types))?;
    Ok(types)
}
