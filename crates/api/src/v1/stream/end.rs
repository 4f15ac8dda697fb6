//! Ends of streams, as reported to clients (S13).

use std::borrow::Cow;

use http::websocket::close_code;

use crate::error::ApiError;
use crate::v1::wire::stream::EndCode;

/// Time after which clients should reconnect if no better value is known.
const RETRY_AFTER_S: u32 = 30;
/// Interval over which the clients of a stopping node reconnect.
const STOP_RETRY_MS_MAX: u32 = 5000;
/// Step that spreads clients over the interval: coprime to it, and far from its divisors.
const STOP_RETRY_MS_STEP: u64 = 1237;

/// The end of a stream.
#[derive(Debug)]
pub(super) struct End {
    pub(super) code: EndCode,
    pub(super) message: Cow<'static, str>,
    pub(super) retry_after_s: u32,
    pub(super) retry_ms: Option<u32>,
    /// Close code of a WebSocket.
    pub(super) close_code: u16,
}

impl From<ApiError> for End {
    fn from(error: ApiError) -> Self {
        let code = EndCode::of(error.code);
        Self {
            code,
            close_code: code.close_code(),
            retry_after_s: error.retry_after_s.unwrap_or(RETRY_AFTER_S),
            message: error.message,
            retry_ms: None,
        }
    }
}

impl End {
    fn now(code: EndCode, message: &'static str) -> Self {
        let (message, close_code) = (message.into(), code.close_code());
        Self { code, message, retry_after_s: 0, retry_ms: None, close_code }
    }

    pub(super) fn done() -> Self {
        Self::now(EndCode::Done, "the stream has come to `until`")
    }

    pub(super) fn slow() -> Self {
        Self::now(EndCode::Slow, "no ping was answered; connect again and go on from the last cut")
    }

    /// The stream's events were dropped, because they were not read for too long and memory was needed.
    pub(super) fn given_up() -> Self {
        let text = "these events were read too slowly and dropped; connect again and continue from the last cut";
        Self::now(EndCode::Slow, text)
    }

    /// The node cannot count its streams any more: other nodes may use the slots.
    pub(super) fn uncounted() -> Self {
        let text = "this node cannot count streams at the moment; connect again and go on from the last cut";
        ApiError::unavailable(text).into()
    }

    /// The node stops. `number`: number of streams that began before this one.
    pub(super) fn stopping(number: u64) -> Self {
        let text = "this node stops; connect again and go on from the last cut";
        // Spreads reconnects in both units: a WebSocket has only the seconds.
        let retry_ms = number.wrapping_mul(STOP_RETRY_MS_STEP) % u64::from(STOP_RETRY_MS_MAX);
        let retry_ms = u32::try_from(retry_ms).unwrap_or(STOP_RETRY_MS_MAX);
        let retry_after_s = 1 + retry_ms / 1000;
        let (retry_ms, close_code) = (Some(retry_ms), close_code::GOING_AWAY);
        Self { retry_ms, retry_after_s, close_code, ..ApiError::unavailable(text).into() }
    }
}
