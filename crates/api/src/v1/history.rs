//! Answers as of an instant of the past (H4 to H9).

use domain::Timestamp;
use engine::{HistoryError, PastPublication};
use http::{Head, Reply};
use xxhash_rust::xxh3::xxh3_64;

use super::{Admitted, Answered, begin_head as begin_current, wire};
use crate::answers::Encoded;
use crate::error::{ApiError, ErrorCode};
use crate::operation::Operation;
use crate::v1::last_request::ParsedTarget;
use crate::v1::param::Param;

impl Admitted<'_> {
    /// The answer as it was at an instant.
    pub(super) async fn select_as_of(
        &self,
        operation: Operation,
        parsed: &ParsedTarget,
        at: Timestamp,
    ) -> Answered {
        if at > self.now {
            let text = "`as_of` is later than now; leave it out for the present";
            return Err(ApiError::param(Param::AsOf.name(), text));
        }
        let past = self
            .api
            .world(self.world())
            .as_of(at, xxh3_64(self.entry.grant.key_id.as_str().as_bytes()))
            .await;
        let past = past.map_err(|error| refused(&error))?;
        self.select(operation, &parsed.asked, &past.published, Some(&past)).await
    }

    /// How far history reaches.
    pub(super) async fn history(&self) -> Result<Reply, ApiError> {
        let world = self.api.world(self.world());
        let current = world.published().snapshot.cut_at;
        let reach = world.history.reach(current).await.map_err(|error| refused(&error))?;
        let mut reply = Reply::new(200, "application/json", wire::history(&reach));
        reply.head.put("cache-control", "no-store");
        Ok(reply)
    }
}

/// The header lines of an answer that was asked for by the time of its publication.
pub(crate) fn begin_head(past: &PastPublication, encoded: &Encoded, now: Timestamp) -> Head {
    let mut head = if past.current {
        begin_current(&past.published, encoded, now)
    } else {
        let mut head = Head::with_default_room();
        head.put_lines(&encoded.validators);
        // What was is not going to change.
        head.put_bytes("cache-control", b"private, max-age=86400, immutable");
        head
    };
    let beside = [("x-previous-publication", past.previous), ("x-next-publication", past.next)];
    for (name, at) in beside {
        if let Some(at) = at {
            head.put_bytes(name, &at.millis_text());
        }
    }
    head
}

pub(crate) fn refused(error: &HistoryError) -> ApiError {
    match error {
        HistoryError::Off => {
            ApiError::new(ErrorCode::NotInHistory, "this service keeps no history of this data")
        }
        HistoryError::NotKept(reach) => {
            let text = |at: Timestamp| String::from_utf8_lossy(&at.millis_text()).into_owned();
            let lost =
                if reach.gaps.is_empty() { "" } else { ", with gaps that /v1/history lists" };
            let (from, to) = (text(reach.from), text(reach.to));
            let text = format!(
                "there is no publication of that time; history reaches from {from} to {to}{lost}"
            );
            ApiError::new(ErrorCode::NotInHistory, text)
        }
        HistoryError::Busy => {
            ApiError::unavailable("other times are being looked up; try again shortly")
        }
        HistoryError::Unreadable(_) => {
            ApiError::unavailable("that time cannot be read at the moment; try again shortly")
        }
    }
}
