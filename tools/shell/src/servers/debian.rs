//! Packages of another Debian release, unpacked into a folder, without changes to the system and without root.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, anyhow, ensure};

/// Default mirror of Debian; used if the machine's own sources name no other.
const MIRROR: &str = "http://deb.debian.org/debian/";
/// Debian's own keys. Packages must be signed with one of them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Timeout for unreachable networks; it applies to each of two mirrors.
const FETCH_SECONDS_MAX: &str = "180";

/// Unpacks packages into a folder under `folder`, which is deleted after `take` has copied the needed files.
pub(super) fn unpack<T>(
    release: &str,
    packages: &[&str],
    folder: &Path,
    take: impl Fn(&Path) -> Result<T>,
) -> Result<T> {
    ensure!(Path::new(KEYRING).is_file(), "there is no {KEYRING} to check packages with");
    let names = packages.join(", ");
    crate::say(&format!("   fetching {names} of Debian {release}"));
    // One folder per run, because several may fetch at the same time.
    let apt = folder.join(format!("apt-{}", std::process::id()));
    fs::create_dir_all(&apt)?;
    let own = own_mirror(&apt).filter(|own| own != MIRROR);
    let mut mirrors = own.into_iter().chain([MIRROR.to_owned()]);
    let mut why = anyhow!("there is no place to ask");
    let taken = loop {
        let Some(mirror) = mirrors.next() else { break Err(why) };
        let fetched = fetch_from(&mirror, release, packages, &apt);
        match fetched.and_then(|content| take(&content)) {
            Ok(taken) => break Ok(taken),
            Err(error) => why = error.context(format!("from {mirror}")),
        }
    };
    clear(&apt)?;
    taken.with_context(|| {
        format!(
            "Debian {release}'s {names} cannot be had (where a key is missing: apt-get install \
             debian-archive-keyring)"
        )
    })
}

/// Extracts the content of the packages.
fn fetch_from(mirror: &str, release: &str, packages: &[&str], apt: &Path) -> Result<PathBuf> {
    crate::say(&format!("   from {mirror}"));
    clear(&apt.join("lists"))?;
    fs::create_dir_all(apt.join("lists").join("partial"))?;
    fs::create_dir_all(apt.join("cache"))?;
    fs::write(apt.join("sources.list"), source(release, mirror))?;
    fs::write(apt.join("apt.conf"), settings(release, apt))?;
    crate::output(private_apt(apt).arg("update"))?;
    crate::output(private_apt(apt).arg("download").args(packages))?;
    let mut fetched = 0;
    for entry in fs::read_dir(apt)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "deb") {
            crate::output(crate::command("dpkg-deb", apt).arg("-x").arg(path).arg("content"))?;
            fetched += 1;
        }
    }
    ensure!(fetched >= packages.len(), "apt-get has put {fetched} packages there");
    Ok(apt.join("content"))
}

fn clear(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// `apt-get` with its own settings in addition to the machine's; proxies still apply.
fn private_apt(apt: &Path) -> Command {
    let mut command = crate::command("timeout", apt);
    command.args([FETCH_SECONDS_MAX, "apt-get", "-q", "-c", "apt.conf"]);
    command
}

/// Lists, sources and cache in this folder, and an empty list of installed packages. No hooks, which would clean up on
/// the machine. Apt's own user may lack access to the folder. Without `Error-Mode`, an `update` that reached no server
/// succeeds.
fn settings(release: &str, apt: &Path) -> String {
    let apt = apt.display();
    format!(
        "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n\
         Dir::State::Lists \"{apt}/lists\";\nDir::State::Status \"/dev/null\";\nDir::Cache \"{apt}/cache\";\n\
         Dir::Etc::SourceList \"{apt}/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
         Dir::Etc::Preferences \"/dev/null\";\nDir::Etc::PreferencesParts \"/dev/null\";\n\
         Acquire::AllowInsecureRepositories \"false\";\nAcquire::AllowWeakRepositories \"false\";\n\
         APT::Get::AllowUnauthenticated \"false\";\nAPT::Sandbox::User \"\";\nAPT::Default-Release \"{release}\";\n\
         APT::Update::Error-Mode \"any\";\nAcquire::Languages \"none\";\nAcquire::Retries \"2\";\n\
         Acquire::http::Timeout \"20\";\n"
    )
}

fn source(release: &str, mirror: &str) -> String {
    format!("deb [signed-by={KEYRING}] {mirror} {release} main\n")
}

/// The mirror that this machine uses for Debian packages.
fn own_mirror(folder: &Path) -> Option<String> {
    let mut apt = crate::command("apt-get", folder);
    apt.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]);
    debian_mirror(&crate::output(&mut apt).ok()?)
}

/// The first address of Debian's own packages in lines of label and address.
fn debian_mirror(targets: &str) -> Option<String> {
    targets.lines().find_map(|line| line.strip_prefix("Debian ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_mirror_is_that_of_debian_itself() {
        let targets = "Debian-Security http://security.example/debian-security/\n\
                       Debian http://mirror.example/debian/\nDebian http://other.example/debian/\n";
        assert_eq!(debian_mirror(targets).unwrap(), "http://mirror.example/debian/");
        // Before the first `apt-get update` the origin of packages is unknown.
        assert_eq!(debian_mirror("$(LABEL) http://mirror.example/debian/\n"), None);
        assert_eq!(debian_mirror("Ubuntu http://mirror.example/ubuntu/\n"), None);
    }

    #[test]
    fn what_is_fetched_is_checked_with_debians_keys() {
        assert_eq!(
            source("trixie", "http://mirror.example/debian/"),
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian/ trixie main\n"
        );
        let settings = settings("trixie", Path::new("private"));
        assert!(settings.contains("Acquire::AllowInsecureRepositories \"false\";"));
        assert!(settings.contains("Dir::Etc::SourceList \"private/sources.list\";"));
        assert!(settings.contains("Dir::Etc::SourceParts \"/dev/null\";"));
    }
}
