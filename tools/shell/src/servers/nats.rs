//! A NATS that keeps what it acknowledged. Debian 12's own package is too old for that, so the next release's is
//! unpacked into the folder that cargo builds into; nothing on the machine is changed, and nobody has to be root for
//! it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use test_servers::{NatsProgram, NatsVersion};

use crate::repository::Repository;

const PACKAGE: &str = "nats-server";
const IN_PACKAGE: &str = "usr/sbin/nats-server";
/// The release of Debian whose package is fetched: 2.10.27.
const RELEASE: &str = "trixie";
/// Where Debian says that its packages are; taken where the machine's own sources name no other place.
const MIRROR: &str = "http://deb.debian.org/debian/";
/// Debian's own keys. What is not signed with one of them is refused.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A network that swallows everything keeps nobody waiting for longer, twice.
const FETCH_SECONDS_MAX: &str = "180";

/// Finds a current NATS, or gets one. An old one is better than none, but is not passed over in silence.
pub(super) fn ensure_current(
    repository: &Repository,
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let found = test_servers::nats_program();
    if found.as_ref().is_ok_and(NatsProgram::is_current) {
        return Ok(());
    }
    let why = match fetch(&repository.target()?.join("servers")) {
        Ok(fetched) => {
            crate::say(&format!("   fetched {fetched}"));
            return Ok(());
        }
        Err(why) => why,
    };
    let found = found.or_else(|_| {
        install()?;
        test_servers::nats_program()
    });
    match found {
        Ok(current) if current.is_current() => {}
        Ok(old) => crate::say(&warning(&old, &why)),
        Err(missing) => return Err(why.context(format!("{missing:#}"))),
    }
    Ok(())
}

/// What is said of a server that may lose what it acknowledged.
fn warning(old: &NatsProgram, why: &anyhow::Error) -> String {
    format!(
        "   WARNING: {old} is run, and it is older than {}: it loses acknowledged entries when its servers are cut off \
         from each other one after the other, so faults that do this may break rules that a newer one keeps. \
         A newer one in /usr/local/bin is taken before it. None could be fetched: {why:#}",
        NatsVersion::MIN
    )
}

/// Unpacks the package of a newer Debian.
fn fetch(folder: &Path) -> Result<NatsProgram> {
    ensure!(Path::new(KEYRING).is_file(), "there is no {KEYRING} to check packages with");
    crate::say(&format!("   no current NATS is installed: fetching that of Debian {RELEASE}"));
    // A folder for each run: another one may be fetching, too.
    let apt = folder.join(format!("apt-{}", std::process::id()));
    fs::create_dir_all(&apt)?;
    let own = own_mirror(&apt).filter(|own| own != MIRROR);
    let mut mirrors = own.into_iter().chain([MIRROR.to_owned()]);
    let mut why = anyhow!("there is no place to ask");
    let program = loop {
        let Some(mirror) = mirrors.next() else { break Err(why) };
        match fetch_from(&mirror, &apt).and_then(|program| put(&program, folder)) {
            Ok(program) => break Ok(program),
            Err(error) => why = error.context(format!("from {mirror}")),
        }
    };
    clear(&apt)?;
    program.with_context(|| {
        format!(
            "Debian {RELEASE}'s {PACKAGE} does not come (where a key is missing: apt-get install \
             debian-archive-keyring)"
        )
    })
}

fn fetch_from(mirror: &str, apt: &Path) -> Result<PathBuf> {
    crate::say(&format!("   from {mirror}"));
    clear(&apt.join("lists"))?;
    fs::create_dir_all(apt.join("lists").join("partial"))?;
    fs::create_dir_all(apt.join("cache"))?;
    fs::write(apt.join("sources.list"), source(mirror))?;
    fs::write(apt.join("apt.conf"), settings(apt))?;
    crate::output(private_apt(apt).arg("update"))?;
    crate::output(private_apt(apt).args(["download", PACKAGE]))?;
    let package = fs::read_dir(apt)?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = package.into_iter().find(|path| path.extension().is_some_and(|it| it == "deb"));
    let package = package.context("apt-get has put no package there")?;
    crate::output(crate::command("dpkg-deb", apt).arg("-x").arg(package).arg("content"))?;
    Ok(apt.join("content").join(IN_PACKAGE))
}

/// Puts the program where it is looked for, in one step: others may be looking.
fn put(program: &Path, folder: &Path) -> Result<NatsProgram> {
    let fetched = NatsProgram::at(program.to_owned())?;
    ensure!(fetched.is_current(), "Debian {RELEASE} has {fetched}, which is too old, too");
    let path = folder.join(PACKAGE);
    fs::rename(program, &path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(NatsProgram { path, ..fetched })
}

fn clear(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// `apt-get` with settings of its own on top of the machine's; their proxies still apply.
fn private_apt(apt: &Path) -> Command {
    let mut command = crate::command("timeout", apt);
    command.args([FETCH_SECONDS_MAX, "apt-get", "-q", "-c", "apt.conf"]);
    command
}

/// Lists, sources and cache in this folder, and nothing known of what is installed here. Hooks would clean up on the
/// machine. The folder may be one that apt's own user may not enter. By default, `update` that reached no server is
/// a success.
fn settings(apt: &Path) -> String {
    let apt = apt.display();
    format!(
        "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n\
         Dir::State::Lists \"{apt}/lists\";\nDir::State::Status \"/dev/null\";\nDir::Cache \"{apt}/cache\";\n\
         Dir::Etc::SourceList \"{apt}/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n\
         Dir::Etc::Preferences \"/dev/null\";\nDir::Etc::PreferencesParts \"/dev/null\";\n\
         Acquire::AllowInsecureRepositories \"false\";\nAcquire::AllowWeakRepositories \"false\";\n\
         APT::Get::AllowUnauthenticated \"false\";\nAPT::Sandbox::User \"\";\nAPT::Default-Release \"{RELEASE}\";\n\
         APT::Update::Error-Mode \"any\";\nAcquire::Languages \"none\";\nAcquire::Retries \"2\";\n\
         Acquire::http::Timeout \"20\";\n"
    )
}

fn source(mirror: &str) -> String {
    format!("deb [signed-by={KEYRING}] {mirror} {RELEASE} main\n")
}

/// Where this machine gets Debian's packages from.
fn own_mirror(folder: &Path) -> Option<String> {
    let mut apt = crate::command("apt-get", folder);
    apt.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]);
    debian_mirror(&crate::output(&mut apt).ok()?)
}

/// The first place of Debian's own packages, among lines of label and place.
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
        // Before the first `apt-get update` nobody knows whose packages they are.
        assert_eq!(debian_mirror("$(LABEL) http://mirror.example/debian/\n"), None);
        assert_eq!(debian_mirror("Ubuntu http://mirror.example/ubuntu/\n"), None);
    }

    #[test]
    fn what_is_fetched_is_checked_with_debians_keys() {
        assert_eq!(
            source("http://mirror.example/debian/"),
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/debian/ trixie main\n"
        );
        let settings = settings(Path::new("private"));
        assert!(settings.contains("Acquire::AllowInsecureRepositories \"false\";"));
        assert!(settings.contains("Dir::Etc::SourceList \"private/sources.list\";"));
        assert!(settings.contains("Dir::Etc::SourceParts \"/dev/null\";"));
    }

    #[test]
    fn a_program_that_is_no_server_is_not_put_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(put(Path::new("/bin/true"), folder.path()).is_err());
        assert!(!folder.path().join(PACKAGE).exists());
    }
}
