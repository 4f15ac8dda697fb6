//! `cargo xtask dist`: the release archive, with everything an operator installs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use shell::repository::Repository;

/// Maximum size of the program, which is copied to many machines.
const PROGRAM_BYTES_MAX: u64 = 33_000_000;
/// Files that are copied unchanged.
const FILES: [&str; 6] =
    ["README.md", "CHANGELOG.md", "LICENSE", "LICENSE-APACHE", "LICENSE-MIT", "openapi.json"];

/// Builds the program for release, and packs it with licences, completions, manual page and deployment files.
pub(crate) fn dist(repository: &Repository) -> Result<()> {
    let mut cargo = shell::cargo(repository);
    shell::run(cargo.args(["build", "--locked", "--profile", "dist", "-p", "linesman"]))?;
    let target = repository.target()?;
    let program = target.join("dist/linesman");
    let bytes = fs::metadata(&program).context("the program is not there")?.len();
    ensure!(
        bytes < PROGRAM_BYTES_MAX,
        "the program has {bytes} bytes, and {PROGRAM_BYTES_MAX} is the limit"
    );

    let version = shell::output(shell::command(&program, &target).arg("--version"))?;
    let version = version.split_whitespace().nth(1).context("the program prints no version")?;
    let name = format!("linesman-{version}-{}-{}", env::consts::ARCH, env::consts::OS);
    let dist = target.join("dist-archives");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the last archive's folder")?;
    }
    fill(repository, &program, &folder)?;
    let archive = pack(&dist, &name)?;
    shell::print(&format!("{}\n", archive.display()))
}

fn fill(repository: &Repository, program: &Path, folder: &Path) -> Result<()> {
    let completions = folder.join("completions");
    fs::create_dir_all(&completions).context("cannot make a folder")?;
    copy(program, &folder.join("linesman"))?;
    for name in FILES {
        copy(&repository.root.join(name), &folder.join(name))?;
    }
    let mut deploy = shell::command("cp", &repository.root);
    shell::run(deploy.args(["-R", "deploy"]).arg(folder.join("deploy")))?;
    let run = |arguments: &[&str]| shell::output(shell::command(program, folder).args(arguments));
    write(&folder.join("linesman.1"), &run(&["man"])?)?;
    for (shell, file) in
        [("bash", "linesman.bash"), ("zsh", "_linesman"), ("fish", "linesman.fish")]
    {
        write(&completions.join(file), &run(&["completions", shell])?)?;
    }
    write(&folder.join("THIRD-PARTY-LICENSES.txt"), &third_party(repository)?)
}

/// Reproducible: the same files give the same bytes, with sorted names, no owner and a fixed time.
fn pack(dist: &Path, name: &str) -> Result<PathBuf> {
    let archive = format!("{name}.tar.gz");
    let mut tar = shell::command("tar", dist);
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    shell::run(tar.args(["--use-compress-program=gzip -9n", "-cf", &archive, name]))?;
    let sum = shell::output(shell::command("sha256sum", dist).arg(&archive))?;
    write(&dist.join(format!("{archive}.sha256")), &sum)?;
    Ok(dist.join(archive))
}

/// Names and licences of all packages linked into the program, each licence text once.
fn third_party(repository: &Repository) -> Result<String> {
    let mut tree = shell::cargo(repository);
    tree.args(["tree", "-p", "linesman", "-e", "normal", "--prefix", "none", "--format", "{p}"]);
    let linked = shell::output(&mut tree)?;
    let linked: BTreeSet<(&str, &str)> = linked.lines().filter_map(package).collect();
    let mut metadata = shell::cargo(repository);
    let metadata = shell::output(metadata.args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is no JSON")?;

    let mut list = String::from("Linesman contains these packages.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let packages = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
    for package in packages {
        let field = |name: &str| package.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, version) = (field("name"), field("version"));
        // Packages of the workspace have no source: they are the program.
        if field("source").is_empty() || !linked.contains(&(name, version)) {
            continue;
        }
        list.push_str(&format!("{name} {version}: {}\n", field("license")));
        for text in licence_texts(Path::new(field("manifest_path")))? {
            texts.entry(text).or_default().push(name.to_owned());
        }
    }
    for (text, mut names) in texts {
        names.dedup();
        list.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", ")));
    }
    Ok(list)
}

/// Parses name and version from a line such as `serde v1.0.228 (*)`.
fn package(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

fn licence_texts(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest stands in no folder")?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).context("a package's folder cannot be read")? {
        let path = entry.context("a package's folder cannot be read")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];
        if path.is_file() && licence.iter().any(|start| name.starts_with(start)) {
            files.push(path);
        }
    }
    files.sort();
    let read = |path: &PathBuf| {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    files.iter().map(read).collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::package;

    #[test]
    fn a_line_of_the_tree_names_a_package() {
        assert_eq!(package("serde v1.0.228 (*)"), Some(("serde", "1.0.228")));
        assert_eq!(package("linesman v0.1.0 (/src/crates/linesman)"), Some(("linesman", "0.1.0")));
        assert_eq!(package(""), None);
    }
}
