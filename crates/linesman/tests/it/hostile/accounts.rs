//! A lost account store is never silently created again, and a copy of it is not readable by other users.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::harness::TestProgram;

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_gone_or_emptied_is_not_made_anew() {
    let program = TestProgram::new();
    let service = program.start().await;
    let key = service.first_key().unwrap().to_owned();
    service.stop().await;
    let (path, kept) = (program.data().join("accounts.db"), program.path().join("kept.db"));
    fs::rename(&path, &kept).unwrap();
    for emptied in [false, true] {
        for side in ["accounts.db-wal", "accounts.db-shm"] {
            // Whether SQLite left such a file does not matter.
            drop(fs::remove_file(program.data().join(side)));
        }
        if emptied {
            fs::write(&path, b"").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        }
        for words in [&["serve"][..], &["keys", "list"], &["keys", "create", "--kind", "sandbox"]] {
            let refused = program.run(words).await;
            let said = refused.sentence(1);
            assert!(said.contains("was used before") && said.contains("--new-accounts"), "{said}");
        }
        assert!(fs::metadata(&path).map_or(true, |found| found.len() == 0), "nothing was made");
    }
    // After it is restored, everything is as before.
    fs::copy(&kept, &path).unwrap();
    let service = program.start().await;
    assert_eq!(service.first_key(), None);
    assert_eq!(service.get("/v1/status", &key).await.status, 200);
    service.stop().await;
    // Or the operator confirms that it is intended.
    fs::remove_file(&path).unwrap();
    let service = program.start_with(&["--new-accounts"]).await;
    assert!(service.first_key().is_some());
    assert_eq!(service.get("/v1/status", &key).await.status, 401);
    service.stop().await;
    program.start().await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_copy_of_the_store_is_private_whatever_the_mask_says() {
    let program = TestProgram::new();
    program.start().await.stop().await;
    let to = program.path().join("copy");
    let backup = program.command(&["backup", to.to_str().unwrap()]);
    // A umask that removes no permissions.
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", "umask 0; exec \"$0\" \"$@\""]);
    shell.arg(backup.as_std().get_program()).args(backup.as_std().get_args());
    shell.current_dir(program.path());
    assert!(shell.status().await.unwrap().success());
    let mode = fs::metadata(to.join("accounts.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}
