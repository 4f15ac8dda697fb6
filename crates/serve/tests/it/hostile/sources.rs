//! One source that opens as many connections as it can: other sources can still connect.

use std::net::SocketAddr;

use tokio::net::TcpSocket;

use crate::harness::{Raw, TestApp, wait_for};

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";

async fn open(addr: SocketAddr, from: &str) -> Raw {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    Raw::over(socket.connect(addr).await.unwrap())
}

async fn status(raw: &mut Raw) -> u16 {
    raw.send(REQUEST).await;
    raw.read_answer().await.unwrap().status
}

#[tokio::test]
async fn connections_of_one_source_leave_room_for_the_others() {
    let app = TestApp::builder().connections_max(20).connections_per_source_max(5).start().await;
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut raw = open(app.addr, "127.0.0.2").await;
        assert_eq!(status(&mut raw).await, 200);
        held.push(raw);
    }
    for _ in 0..3 {
        let mut over = open(app.addr, "127.0.0.2").await;
        over.send(REQUEST).await;
        let answer = over.read_answer().await.unwrap();
        assert_eq!(answer.refusal(), (503, "unavailable".to_owned()));
        assert!(answer.message().contains("from your address"), "{}", answer.message());
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(over.is_closed().await);
    }
    assert_eq!(status(&mut open(app.addr, "127.0.0.3").await).await, 200);
    let metrics = app.get_operator("/metrics").await;
    assert!(metrics.text().contains("\nlinesman_connections_refused_source_total 3\n"));
    assert!(metrics.text().contains("\nlinesman_connections_refused_total 0\n"));
    // Existing connections stay, and closed ones free a place.
    assert_eq!(status(&mut held[0]).await, 200);
    held.pop();
    let mut again = open(app.addr, "127.0.0.2").await;
    while status(&mut again).await != 200 {
        again = open(app.addr, "127.0.0.2").await;
    }
}

#[tokio::test]
async fn a_proxy_stands_for_many_and_whoever_runs_the_service_gets_in() {
    let builder = TestApp::builder().connections_max(20).connections_per_source_max(2);
    let app = builder.behind_a_proxy().start().await;
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut raw = Raw::connect(app.addr).await;
        assert_eq!(status(&mut raw).await, 200);
        held.push(raw);
    }
    drop(held);
    let app = TestApp::builder().connections_per_source_max(1).start().await;
    let mut one = Raw::connect(app.addr).await;
    assert_eq!(status(&mut one).await, 200);
    for _ in 0..3 {
        let mut operator = Raw::connect(app.operator_addr).await;
        assert_eq!(status(&mut operator).await, 200);
    }
    drop(one);
    wait_for("its place", || std::net::TcpStream::connect(app.addr).is_ok()).await;
}
