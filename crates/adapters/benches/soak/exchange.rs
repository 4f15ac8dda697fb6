//! A fake exchange: its HTTP services and its stream, over real sockets and TLS.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use domain::{Clock, Timestamp};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

pub(crate) const MARKETS: u64 = 500;
pub(crate) const LINES_PER_SECOND: u64 = 20_000;
/// Number of bursts per second in which the lines are sent.
const BURSTS: u64 = 1_000;

/// The state of the sender.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    pub(crate) lines: AtomicU64,
    /// True while only heartbeats are sent.
    pub(crate) is_paused: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        Timestamp::from_millis(i64::try_from(since.as_millis()).expect("a time of this century"))
    }
}

/// The sign-in and catalogue services; the stream itself names the markets, so the catalogue is empty.
pub(crate) async fn services() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(answer(socket));
        }
    });
    url
}

async fn answer(mut socket: TcpStream) -> std::io::Result<()> {
    let (mut held, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = socket.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        held.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let text = String::from_utf8_lossy(&held).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        });
        if body.len() < length.unwrap_or(0) {
            continue;
        }
        held.clear();
        let body = if head.contains("/api/login") {
            r#"{"token":"t","product":"p","status":"SUCCESS","error":""}"#
        } else {
            "[]"
        };
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        socket.write_all(answer.as_bytes()).await?;
    }
}

/// An exchange that sends an image and then endless changes, except while paused. Writes its certificate into the
/// folder.
pub(crate) async fn exchange(dir: &Path, sending: Arc<Sending>) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("a certificate");
    std::fs::write(dir.join("ca.pem"), made.cert.pem()).expect("a file");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // The connection ends with the adapter; an earlier end is counted as a reconnection.
            let _ended = serve(&acceptor, socket, &sending).await;
        }
    });
    format!("localhost:{port}")
}

async fn serve(
    acceptor: &TlsAcceptor,
    socket: TcpStream,
    sending: &Sending,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let (reader, mut writer) = tokio::io::split(acceptor.accept(socket).await?);
    let mut asked = BufReader::new(reader).lines();
    writer.write_all(b"{\"op\":\"connection\",\"connectionId\":\"c\"}\r\n").await?;
    for id in [1, 2] {
        asked.next_line().await?;
        let status = format!(
            "{{\"op\":\"status\",\"id\":{id},\"statusCode\":\"SUCCESS\",\"connectionClosed\":false}}\r\n"
        );
        writer.write_all(status.as_bytes()).await?;
    }
    writer.write_all(image().as_bytes()).await?;
    let mut ticks =
        tokio::time::interval(Duration::from_secs(1) / u32::try_from(BURSTS).unwrap_or(1));
    let (mut n, mut ticked, mut burst) = (0, 0_u64, String::new());
    loop {
        ticks.tick().await;
        let published = RealClock.now().as_millis();
        burst.clear();
        ticked += 1;
        if sending.is_paused.load(Ordering::SeqCst) {
            // Twice a second, so that the connection counts as alive.
            if ticked % (BURSTS / 2) == 0 {
                let heartbeat = format!(
                    r#"{{"op":"mcm","id":2,"clk":"AAAA{n}","pt":{published},"ct":"HEARTBEAT"}}"#
                );
                writer.write_all(format!("{heartbeat}\r\n").as_bytes()).await?;
                writer.flush().await?;
            }
            continue;
        }
        for _ in 0..LINES_PER_SECOND / BURSTS {
            n += 1;
            let (market, price, size, runner) = (n % MARKETS, 51 + n % 40, 12 + n % 90, 1 + n % 2);
            burst.push_str(&format!(
                r#"{{"op":"mcm","id":2,"clk":"AAAA{n}","pt":{published},"mc":[{{"id":"1.{market}","rc":[{{"batb":[[0,1.{price},{size}.5],[1,1.5,20]],"batl":[[0,2.5,31.2]],"id":{runner}}}],"con":true}}]}}"#
            ));
            burst.push_str("\r\n");
        }
        writer.write_all(burst.as_bytes()).await?;
        writer.flush().await?;
        sending.lines.fetch_add(LINES_PER_SECOND / BURSTS, Ordering::SeqCst);
    }
}

/// Every market, open, with names.
fn image() -> String {
    let (now, day) = (RealClock.now(), Duration::from_secs(86_400));
    let market = |n: u64| {
        format!(
            r#"{{"id":"1.{n}","img":true,"marketDefinition":{{"status":"OPEN","inPlay":false,"marketType":"MATCH_ODDS","eventId":"{n}","eventTypeId":"2","eventName":"Ann Player{n} v Bea Other{n}","marketTime":"{}","runners":[{{"id":1,"sortPriority":1,"status":"ACTIVE","name":"Ann Player{n}"}},{{"id":2,"sortPriority":2,"status":"ACTIVE","name":"Bea Other{n}"}}]}},"rc":[{{"id":1,"batb":[[0,1.9,50]]}},{{"id":2,"batb":[[0,1.9,50]]}}]}}"#,
            now.plus(day)
        )
    };
    let markets: Vec<String> = (0..MARKETS).map(market).collect();
    format!(
        "{{\"op\":\"mcm\",\"id\":2,\"initialClk\":\"i\",\"clk\":\"a\",\"pt\":{},\"ct\":\"SUB_IMAGE\",\"mc\":[{}]}}\r\n",
        now.as_millis(),
        markets.join(",")
    )
}
