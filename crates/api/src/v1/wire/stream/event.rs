//! An event in its format: as a Server-Sent Event, or as a message of a WebSocket.

use bytes::Bytes;
use http::websocket::{close_frame, ping_frame, text_frame};

/// The transport of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transport {
    ServerSentEvents,
    WebSocket,
}

impl Transport {
    pub(crate) const ALL: [Self; 2] = [Self::ServerSentEvents, Self::WebSocket];

    /// Label in metrics.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::ServerSentEvents => "sse",
            Self::WebSocket => "websocket",
        }
    }

    /// The heartbeat.
    pub(crate) fn heartbeat(self, seconds: u32) -> Bytes {
        match self {
            Self::ServerSentEvents => format!(": {seconds}\n\n").into(),
            Self::WebSocket => ping_frame(),
        }
    }

    /// The bytes after the last event.
    pub(crate) fn closing(self, code: u16) -> Vec<u8> {
        match self {
            Self::ServerSentEvents => Vec::new(),
            Self::WebSocket => close_frame(Some(code), ""),
        }
    }
}

/// One event, independent of its transport.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    /// Cursor; set only on cuts.
    pub(crate) id: Option<String>,
    /// Delay before a client reconnects, in milliseconds.
    pub(crate) retry_ms: Option<u32>,
    /// One line of JSON.
    pub(crate) data: Vec<u8>,
}

impl Event {
    pub(super) fn new(name: &'static str, data: impl Into<Vec<u8>>) -> Self {
        Self { name, id: None, retry_ms: None, data: data.into() }
    }

    pub(crate) fn encode(&self, transport: Transport) -> Vec<u8> {
        match transport {
            Transport::ServerSentEvents => self.encode_lines(),
            Transport::WebSocket => self.encode_message(),
        }
    }

    fn encode_lines(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data.len() + 128);
        // Never alone in a block: some clients treat that as an event.
        if let Some(retry_ms) = self.retry_ms {
            out.extend(format!("retry: {retry_ms}\n").as_bytes());
        }
        out.extend(format!("event: {}\n", self.name).as_bytes());
        if let Some(id) = &self.id {
            out.extend(format!("id: {id}\n").as_bytes());
        }
        out.extend(b"data: ");
        out.extend_from_slice(&self.data);
        out.extend(b"\n\n");
        out
    }

    fn encode_message(&self) -> Vec<u8> {
        let id = self.id.as_ref().map(|id| format!("\"id\":\"{id}\",")).unwrap_or_default();
        let before = format!("{{\"event\":\"{}\",{id}\"data\":", self.name);
        text_frame(&[before.as_bytes(), &self.data, b"}"])
    }
}
