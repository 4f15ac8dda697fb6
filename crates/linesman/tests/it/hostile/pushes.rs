//! Pushes designed to use memory or time: the memory of the process, and that it still stops.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::harness::{Service, TestProgram, wait_for};

const MIB: u64 = 1 << 20;

/// Peak memory of the process in bytes.
fn peak(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kib * 1024
}

async fn metric(service: &Service, series: &str) -> u64 {
    let page = service.client.get(service.metrics()).send().await.unwrap().text().await.unwrap();
    let value = page.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    value.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receipts_that_nobody_reads_cost_what_they_hold_and_no_more() {
    const PUSHES: u64 = 8;
    const LINES: u32 = 199_000;
    let program = TestProgram::new();
    let service = program.start().await;
    let token = program.feed("noise").await;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&b"[]\n".repeat(usize::try_from(LINES).unwrap())).unwrap();
    let body = packer.finish().unwrap();
    let head = format!(
        "POST /ingest/v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\
         content-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let before = peak(&service);
    let mut open = Vec::new();
    for _ in 0..PUSHES {
        let mut stream = TcpStream::connect(service.address()).await.unwrap();
        stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        open.push(stream);
    }
    let begun = Instant::now();
    let refused = "linesman_feed_rejects_total{feed=\"noise\",code=\"invalid_json\"}";
    while metric(&service, refused).await < PUSHES * u64::from(LINES) {
        // Slow without optimisation and next to other tests; the test measures the memory meanwhile.
        assert!(begun.elapsed() < Duration::from_secs(600), "the pushes were not all taken");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Text, parsed messages and receipts of all pushes, at 340 MB each, would be 2.7 GB.
    let grown = peak(&service) - before;
    assert!(grown < 150 * MIB, "{} MiB", grown / MIB);
    drop(open);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_the_middle_of_long_pushes_is_in_time() {
    let program = TestProgram::new();
    let mut service = program.start().await;
    let token = program.feed("busy").await;
    let mut body = String::new();
    for number in 0..90_000 {
        let (minute, second, ms) = (number / 60_000, number / 1000 % 60, number % 1000);
        let ts = format!("2026-01-01T11:{minute:02}:{second:02}.{ms:03}Z");
        writeln!(body, r#"{{"type":"heartbeat","bookmaker":"caesars","sport":"mma","ts":"{ts}"}}"#)
            .unwrap();
    }
    let head = format!(
        "POST /ingest/v1/messages HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(service.address()).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        open.push(stream);
    }
    wait_for("the first lines", async || {
        let seq = metric(&service, "linesman_log_seq{world=\"live\"}").await;
        (seq > 100).then_some(())
    })
    .await;
    let begun = Instant::now();
    service.terminate().await;
    assert_eq!(service.ended().await.code(), Some(0), "{}", service.stderr());
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
}
