//! The control port, which every user of the machine can connect to.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Home;

async fn connect(home: &Home) -> TcpStream {
    let note = std::fs::read_to_string(home.data().join("control.json")).unwrap();
    let note: serde_json::Value = serde_json::from_str(&note).unwrap();
    TcpStream::connect(note["address"].as_str().unwrap()).await.unwrap()
}

#[tokio::test]
async fn nothing_is_read_behind_a_wrong_password() {
    let home = Home::new();
    let service = home.start().await;
    let mut stranger = connect(&home).await;
    // As much as a password has, and no end of the line.
    stranger.write_all(&[b'x'; 65]).await.unwrap();
    let mut told = String::new();
    let read = stranger.read_to_string(&mut told);
    tokio::time::timeout(Duration::from_secs(10), read).await.expect("an answer at once").unwrap();
    assert_eq!(told, "the server does not know this password\n");
    service.stop().await;
}

#[tokio::test]
async fn strangers_who_say_nothing_do_not_keep_commands_out() {
    let home = Home::new();
    let service = home.start().await;
    let mut strangers = Vec::new();
    for _ in 0..600 {
        strangers.push(connect(&home).await);
    }
    let begun = Instant::now();
    let key = home.live_key().await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(service.get("/v1/status", &key).await.status, 200);
    drop(strangers);
    service.stop().await;
}
