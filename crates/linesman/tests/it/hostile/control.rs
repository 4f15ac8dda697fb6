//! The control socket: only its owner can use it, and its path may be of any length.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::harness::TestProgram;

#[tokio::test]
async fn connections_that_send_nothing_do_not_keep_commands_out() {
    let program = TestProgram::new();
    let service = program.start().await;
    let socket = program.data().join("control.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(UnixStream::connect(&socket).await.unwrap());
    }
    let begun = Instant::now();
    let key = program.live_key().await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(service.get("/v1/status", &key).await.status, 200);
    drop(silent);
    service.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_command_reaches_a_server_whose_folder_has_a_long_path() {
    let root = TempDir::new().unwrap();
    let program = TestProgram::at(TempDir::with_prefix_in("long".repeat(40), &root).unwrap());
    let service = program.start().await;
    let key = program.live_key().await;
    assert_eq!(service.get("/v1/status", &key).await.status, 200);
    service.stop().await;
}
