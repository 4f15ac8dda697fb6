//! Files of the service are readable by their owner only.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::harness::{TestProgram, bout};

/// All files and folders at or below a path.
fn walk(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if path.is_dir() {
        for item in fs::read_dir(path).unwrap() {
            all.extend(walk(&item.unwrap().path()));
        }
    }
    all
}

#[track_caller]
fn expect_private(folder: &Path, at_least: usize) {
    let mut seen = Vec::new();
    for path in walk(folder) {
        let mode = match fs::metadata(&path) {
            Ok(metadata) => metadata.permissions().mode(),
            // A running service creates and removes files.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => panic!("{}: {error}", path.display()),
        };
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
        seen.push(path);
    }
    assert!(seen.len() >= at_least, "{seen:?}");
}

#[tokio::test]
async fn all_that_is_written_is_for_its_owner_alone() {
    let program = TestProgram::new().set("LINESMAN_SANDBOX__ENABLED", "true");
    let service = program.start().await;
    let (key, token) = (program.live_key().await, program.feed("one").await);
    service.push_all(&token, &[bout("r", "Anderson", "Opponent")]).await;
    service.records("/v1/sports/mma/events", &key, 1).await;
    expect_private(&program.data(), 8);
    let backup = program.path().join("backup");
    program.ok(&[OsStr::new("backup"), backup.as_os_str()]).await;
    expect_private(&backup, 5);
    service.stop().await;
    expect_private(&program.data(), 6);
    assert!(program.data().join("freshness.json").exists());
}

#[tokio::test]
async fn a_folder_that_others_could_read_is_closed_to_them() {
    let program = TestProgram::new();
    program.start().await.stop().await;
    for path in walk(&program.data()) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    // A link in place of the control socket: neither the link's target nor its mode is used.
    let target = program.write("target", "mine");
    symlink(&target, program.data().join("control.sock")).unwrap();
    let service = program.start().await;
    expect_private(&program.data(), 6);
    assert!(service.stderr().contains("other users could read this"), "{}", service.stderr());
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    let backup = program.path().join("backup");
    program.ok(&[OsStr::new("backup"), backup.as_os_str()]).await;
    expect_private(&backup, 3);
    service.stop().await;
}

#[tokio::test]
async fn a_folder_with_other_things_in_it_keeps_its_mode_and_is_warned_of() {
    let program = TestProgram::new();
    fs::create_dir(program.data()).unwrap();
    fs::write(program.data().join("thesis.tex"), "not ours").unwrap();
    for path in walk(&program.data()) {
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let service = program.start().await;
    for path in [program.data(), program.data().join("thesis.tex")] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o755);
    }
    expect_private(&program.data().join("live"), 2);
    assert!(service.stderr().contains("folder.open_to_others"), "{}", service.stderr());
    service.stop().await;
}
