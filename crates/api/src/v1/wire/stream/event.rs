//! An event as it goes out.

use bytes::Bytes;

/// One event, before it is known how it travels.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    /// Only of cuts.
    pub(crate) id: Option<String>,
    /// When to connect again, in milliseconds.
    pub(crate) retry_ms: Option<u32>,
    /// One line of JSON.
    pub(crate) data: Vec<u8>,
}

impl Event {
    pub(super) fn new(name: &'static str, data: impl Into<Vec<u8>>) -> Self {
        Self { name, id: None, retry_ms: None, data: data.into() }
    }

    /// As a Server-Sent Event.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data.len() + 128);
        // Never alone in a block: some clients make an event of that.
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
}

/// What says that nothing happened.
pub(crate) fn heartbeat(seconds: u32) -> Bytes {
    format!(": {seconds}\n\n").into()
}
