//! Keys and tokens are never written to a readable place: not to logs, metrics, answers or the disk (D1, D18, D20).

use std::io::Write;
use std::sync::{Arc, Mutex};

use accounts::{Actor, KeyKind};
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::{INGEST_PATH, mistyped, unlimited};
use crate::test_market::TestMarket;

/// Everything that the service logs.
#[derive(Clone, Default)]
struct LogText(Arc<Mutex<Vec<u8>>>);

impl Write for LogText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogText {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[tokio::test]
async fn keys_and_tokens_reach_no_log_no_metric_and_no_answer() {
    let log_text = LogText::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log_text.clone())
        .finish();
    let _listening = tracing::subscriber::set_default(subscriber);
    tracing::trace!("the log is on");
    let board = TestMarket::start().await;
    let (key, feed) = (board.key.clone(), board.feed.clone());
    let sandbox = board.app.sandbox_key().await;
    let revoked = board.app.key(unlimited(KeyKind::Production)).await;
    board.app.service.api.accounts.revoke_key(&revoked, &Actor::command_line()).await.unwrap();
    let (wrong, wrong_feed) = (mistyped(&key), mistyped(&feed));
    let mut secrets = vec![sandbox.clone(), key, revoked, wrong];
    let mut shown = String::new();
    for secret in secrets.clone() {
        for request in [
            format!("GET /v1/books HTTP/1.1\r\nhost: a\r\nx-api-key: {secret}\r\n\r\n"),
            format!("GET /v1/books?api_key={secret} HTTP/1.1\r\nhost: a\r\n\r\n"),
            format!("GET /v1/books?API_KEY={secret}&api_key={secret} HTTP/1.1\r\nhost: a\r\n\r\n"),
            format!(
                "GET /v1/sports/mma/odds?limit=1&api_key={} HTTP/1.1\r\nhost: a\r\n\r\n",
                percent_encoded(&secret)
            ),
            format!(
                "GET /v1/sports/mma/odds?limit=1&api%5Fkey={secret} HTTP/1.1\r\nhost: a\r\nx-api-key: {sandbox}\r\n\r\n"
            ),
            format!("GET /v1/books?{secret}=1 HTTP/1.1\r\nhost: a\r\nx-api-key: {sandbox}\r\n\r\n"),
            format!("GET /v1/{secret} HTTP/1.1\r\nhost: a\r\nx-api-key: {sandbox}\r\n\r\n"),
            format!("GET /{secret} HTTP/1.1\r\nhost: a\r\n\r\n"),
            format!(
                "POST /v1/books?api_key={secret} HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx"
            ),
            format!("GET /v1/books?api_key={secret} HTTP/1.1\r\nx-api-key: {secret}\r\n\r\n"),
            format!("{secret}\r\n\r\n"),
        ] {
            let answer = board.app.raw_one(request).await;
            shown.push_str(&format!("{:?} {:?}\n", answer.headers, answer.body));
        }
    }
    for token in [feed, wrong_feed] {
        let answer = board
            .app
            .raw_one(format!(
                "POST {INGEST_PATH}?api_key={token} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-length: 3\r\n\r\n{{}}\n"
            ))
            .await;
        shown.push_str(&format!("{:?} {:?}\n", answer.headers, answer.body));
        secrets.push(token);
    }
    let metrics = board.app.get_operator("/metrics").await.text().to_owned();
    let log = String::from_utf8(log_text.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the log is on"));
    for secret in secrets {
        let secret = secret.rsplit_once('_').unwrap().1;
        // Even half of a key would be too much.
        let (start, encoded) = (&secret[..16], percent_encoded(&secret[..16]));
        for (place, text) in [("log", &log), ("metrics", &metrics), ("answers", &shown)] {
            let leak = text.lines().find(|line| line.contains(start) || line.contains(&encoded));
            assert_eq!(leak, None, "in the {place}");
        }
    }
}

#[tokio::test]
async fn keys_and_tokens_are_not_on_the_disk() {
    let board = TestMarket::start().await;
    let disk = board.app.copy_of_disk();
    let mut folders = vec![disk.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            for secret in [&board.key, &board.feed] {
                let secret = secret.rsplit_once('_').unwrap().1.as_bytes();
                let found = bytes.windows(12).any(|window| window == &secret[..12]);
                assert!(!found, "{}", path.display());
            }
        }
    }
    assert!(files >= 3);
}
