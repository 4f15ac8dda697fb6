//! A stop loses nothing, and clients do not notice a restart of one node after the other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::harness::{Service, TestProgram, wait_for};

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

/// One request on its own connection, as a balancer sends it.
fn ask(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[tokio::test]
async fn who_has_asked_a_stalled_service_before_it_stops_is_answered() {
    let program = TestProgram::new();
    for stop in 0..3 {
        let mut service = program.start().await;
        service.signal("STOP").await;
        // The system accepts the connections; the service does not know them yet.
        let asked: Vec<TcpStream> = (0..100)
            .map(|_| {
                let mut stream = TcpStream::connect(service.address()).unwrap();
                stream.write_all(REQUEST).unwrap();
                stream
            })
            .collect();
        service.terminate().await;
        service.signal("CONT").await;
        let reading = tokio::task::spawn_blocking(|| {
            let answered = asked.into_iter().map(|mut stream| {
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let mut answer = String::new();
                let read = stream.read_to_string(&mut answer);
                read.is_ok() && answer.starts_with("HTTP/1.1 200 OK\r\n")
            });
            answered.filter(|answered| *answered).count()
        });
        assert_eq!(reading.await.unwrap(), 100, "stop {stop}");
        assert!(service.ended().await.success());
    }
}

/// The answers that a balancer's clients get.
#[derive(Default)]
struct Seen {
    answered: AtomicUsize,
    failed: AtomicUsize,
    done: AtomicBool,
}

/// Asks one node and, if that fails before an answer, the other one, as nginx does by default.
fn keep_asking(nodes: &[String; 2], seen: &Seen) {
    let mut turn = 0;
    while !seen.done.load(Ordering::Relaxed) {
        turn += 1;
        let answer = ask(&nodes[turn % 2]).or_else(|_| ask(&nodes[(turn + 1) % 2]));
        let good = answer.is_ok_and(|text| text.starts_with("HTTP/1.1 200 OK\r\n"));
        let count = if good { &seen.answered } else { &seen.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_restart_of_one_node_after_the_other_is_not_seen_behind_a_balancer() {
    let homes = [TestProgram::new(), TestProgram::new()];
    let nodes = [(); 2].map(|()| format!("127.0.0.1:{}", test_servers::free_port().unwrap()));
    let mut services: Vec<Service> = Vec::new();
    for (address, program) in nodes.iter().zip(&homes) {
        services.push(program.start_at(address, "all").await);
    }
    let seen = Arc::new(Seen::default());
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (nodes, seen) = (nodes.clone(), Arc::clone(&seen));
            std::thread::spawn(move || keep_asking(&nodes, &seen))
        })
        .collect();
    for _ in 0..2 {
        for (n, program) in homes.iter().enumerate() {
            let before = seen.answered.load(Ordering::Relaxed);
            services[n].terminate().await;
            assert!(services[n].ended().await.success());
            services[n] = program.start_at(&nodes[n], "all").await;
            assert!(ask(&nodes[n]).unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
            wait_for("more answers", async || {
                (seen.answered.load(Ordering::Relaxed) > before + 50).then_some(())
            })
            .await;
        }
    }
    seen.done.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(seen.failed.load(Ordering::Relaxed), 0);
}
