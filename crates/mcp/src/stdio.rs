//! The transport over standard input and output: one message a line.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::message::{self, Message};
use crate::reader::Reader;
use crate::server::{MESSAGE_BYTES_MAX, Server};

/// Messages that are answered at the same time; the next is read when one of them is done.
const AT_ONCE_MAX: usize = 16;
const CANCELLED: &str = "notifications/cancelled";

/// Answers messages until the input ends and the last is answered.
///
/// # Errors
/// The input cannot be read, or the output cannot be written.
pub async fn serve(
    server: Arc<Server>,
    reader: Arc<dyn Reader>,
    mut input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (answers, mut answered) = mpsc::channel::<Vec<u8>>(AT_ONCE_MAX);
    let mut running = JoinSet::new();
    // Those that can still be cancelled, by their id as it is written.
    let mut cancellable: HashMap<String, AbortHandle> = HashMap::new();
    let mut line = Vec::new();
    let mut is_open = true;
    while is_open || !running.is_empty() {
        tokio::select! {
            read = read_line(&mut input, &mut line), if is_open && running.len() < AT_ONCE_MAX => {
                is_open = read?;
                let bytes = std::mem::take(&mut line);
                if !is_open || bytes.trim_ascii().is_empty() {
                    continue;
                }
                cancellable.retain(|_, task| !task.is_finished());
                let id = match message::parse(&bytes) {
                    Ok(Message::Notification { method, params }) if method == CANCELLED => {
                        let id = params.get("requestId").map(Value::to_string);
                        if let Some(task) = id.and_then(|id| cancellable.remove(&id)) {
                            task.abort();
                        }
                        continue;
                    }
                    Ok(Message::Request { id, .. }) => Some(id.to_string()),
                    Ok(_) | Err(_) => None,
                };
                let (server, reader) = (Arc::clone(&server), Arc::clone(&reader));
                let answers = answers.clone();
                let task = running.spawn(async move {
                    let answer = server.answer(&*reader, None, &bytes).await;
                    if let Some(body) = answer.body {
                        // Where nobody takes it, the output has failed.
                        answers.send(body).await.unwrap_or_default();
                    }
                });
                cancellable.extend(id.map(|id| (id, task)));
            }
            Some(body) = answered.recv() => write(&mut output, &body).await?,
            Some(_) = running.join_next() => {}
        }
    }
    while let Ok(body) = answered.try_recv() {
        write(&mut output, &body).await?;
    }
    Ok(())
}

async fn write(output: &mut (impl AsyncWrite + Unpin), body: &[u8]) -> io::Result<()> {
    output.write_all(body).await?;
    output.write_all(b"\n").await?;
    output.flush().await
}

/// Reads a line, or what is there of one that is too long: it is no message, and is refused as such. `false` at the
/// end. What was read is kept in `line` when the future is dropped.
async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    loop {
        let (used, is_end) = {
            let buffer = input.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(!line.is_empty());
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = end.map_or(buffer, |end| buffer.get(..end).unwrap_or_default());
            // One byte more than a message may have is enough to refuse it.
            let room = (MESSAGE_BYTES_MAX + 1).saturating_sub(line.len());
            line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            (end.map_or(buffer.len(), |end| end + 1), end.is_some())
        };
        input.consume(used);
        if is_end {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::BufReader;

    use super::*;
    use crate::Call;
    use crate::page::{Page, Refused};
    use crate::reader::Answering;

    /// Never answers a request.
    struct Silent;

    impl Reader for Silent {
        fn get<'a>(&'a self, _call: &'a Call) -> Answering<'a, Result<Page, Refused>> {
            Box::pin(std::future::pending())
        }

        fn count(&self) -> Answering<'_, Result<(), Refused>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn messages_are_answered_beside_each_other_until_the_input_ends() {
        let openapi = serde_json::from_str(include_str!("../../../openapi.json")).unwrap();
        let server = Arc::new(Server::new(&openapi, Vec::new()));
        let request = |id: u32, method: &str, name: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "name": name } });
        let cancel = json!({
            "jsonrpc": "2.0", "method": CANCELLED, "params": { "requestId": 1 },
        });
        let mut input =
            format!("{}\n\n{}\n", request(1, "tools/call", "get_status"), request(2, "ping", ""));
        input.push_str(&"x".repeat(MESSAGE_BYTES_MAX + 10));
        input.push_str(&format!("\n{cancel}\n{}", request(3, "ping", "")));
        let mut output = Vec::new();
        // Ends only because the first is cancelled.
        serve(
            server,
            Arc::new(Silent),
            BufReader::with_capacity(100, input.as_bytes()),
            &mut output,
        )
        .await
        .unwrap();
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut told: Vec<String> = lines
            .map(|line| serde_json::from_slice::<Value>(line).unwrap())
            .map(|answer| format!("{} {}", answer["id"], answer["error"]["code"]))
            .collect();
        told.sort();
        assert_eq!(told, ["2 null", "3 null", "null -32600"]);
    }
}
