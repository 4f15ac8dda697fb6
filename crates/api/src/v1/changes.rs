//! Changes since a cursor, for polling clients (S9).

use std::sync::Arc;
use std::time::Duration;

use domain::{Timestamp, World};
use engine::{HistoryError, Passed, Published, Stride, WorldHandle};
use http::Reply;
use market::Snapshot;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use super::{Admitted, Answered};
use crate::admission::refusal::{charged, refused_by_history};
use crate::answers::{Answer, HashedSelector, List, Selector};
use crate::error::{ApiError, ErrorCode};
use crate::position::{LogPlace, LogPosition, place_of, sought};
use crate::response_head::begin_head;
use crate::v1::param::Param;
use crate::v1::wire::stream::Mode;
use crate::v1::wire::{Between, Delta};

/// Maximum clock difference to the node that issued a sandbox cursor.
const AHEAD_MAX_MS: u64 = 60_000;
/// Maximum wait for this node to reach a position, and the interval of checks in addition to each publication.
const AHEAD_WAIT_MAX: Duration = Duration::from_secs(10);
const AHEAD_LOOK_EVERY: Duration = Duration::from_millis(500);

impl Admitted<'_> {
    /// The changes of a selection since a position.
    pub(super) async fn select_since(&self, selector: &Selector, since: LogPosition) -> Answered {
        let Selector::List(list) = selector else { return Err(ApiError::internal()) };
        let world = self.world();
        let present = Arc::clone(&self.api.world(world).published());
        if since.world != world {
            return Err(expired());
        }
        if since.selection != LogPosition::of(world, &present.snapshot, list).selection {
            let text = "`since` is the cursor of another selection; first read this selection without `since`";
            return Err(ApiError::param(Param::Since.name(), text));
        }
        let (published, answer) = self.delta(list, since, present).await?;
        let encoded = answer.encoded(self.request.accept_encoding.as_deref());
        // Not the time of the request: it may have waited.
        let mut head = begin_head(&published, encoded, self.api.clock.now());
        if answer.units == 0 {
            return Ok((Reply::empty(204, head), None));
        }
        if self.request.holds(&encoded.etag) {
            return Ok((Reply::empty(304, head), None));
        }
        let standing = charged(self.api.accounts.charge_quota(self.entry, self.now).await)?;
        head.put_bytes("content-type", b"application/json");
        encoded.put_encoding(&mut head);
        let reply = Reply { body: encoded.body.clone(), ..Reply::empty(200, head) };
        Ok((reply, Some(standing)))
    }

    /// The response, computed once for all clients at the same position, and the publication up to which it goes.
    async fn delta(
        &self,
        list: &List,
        since: LogPosition,
        present: Arc<Published>,
    ) -> Result<(Arc<Published>, Arc<Answer>), ApiError> {
        let world = self.world();
        let key = Selector::Delta(Box::new(list.clone()), (since.at, since.check));
        let key = HashedSelector::new(key);
        let mut found = self.api.answers(world, &present).find(&key);
        if let Ok(ready) = found {
            return Ok((present, ready.answer));
        }
        let (from, next, published) = self.base(since).await?;
        let answers = self.api.answers(world, &published);
        if !Arc::ptr_eq(&present, &published) {
            found = answers.find(&key);
        }
        let missing = match found {
            Ok(ready) => return Ok((Arc::clone(&published), ready.answer)),
            Err(missing) => missing,
        };
        let position = LogPosition::of(world, &published.snapshot, list);
        let make = |passed: Option<Arc<Passed>>| {
            let (from, to) = (Arc::clone(&from.snapshot), Arc::clone(&published.snapshot));
            let list = list.clone();
            let made = tokio::task::spawn_blocking(move || {
                let between = Between { passed: passed.as_deref(), skipped: &[] };
                let delta = Delta::between((&list, to.catalogue()), Some(&from), &to, &between);
                if delta.is_too_large() {
                    return Err(expired());
                }
                let (empty, cursor) = (delta.is_empty(), position.encode());
                let body = if empty { Vec::new() } else { delta.into_body(&cursor, &to) };
                let answer = Answer::new(body, None).with_units(u32::from(!empty));
                Ok(answer.of_publication(to.cut_at, Some(&cursor)))
            });
            async { made.await.map_err(|_| ApiError::internal())? }
        };
        // Looking up a distant past takes long, so an answer that is too large anyway must fail before it.
        let place = sought(world, since.at);
        let handle = self.api.world(world);
        let far = handle.step_from(place, &published.snapshot, Stride::Long).await;
        if far.map_err(|error| not_passed(&error))?.is_some() {
            make(None).await?;
        }
        let passed = self.passed((&*from, next), &published).await?;
        let answer = make(passed).await?;
        let answer = answers.make(&key, missing, || answer);
        Ok((Arc::clone(&published), answer))
    }

    /// Records that may have appeared and disappeared between the client's publication and `to`. The last page a
    /// client read may be of a later publication than its cursor. If `to` is the next publication, nothing can be
    /// missing and nothing is looked up.
    async fn passed(
        &self,
        (from, next): (&Published, Option<Timestamp>),
        to: &Published,
    ) -> Result<Option<Arc<Passed>>, ApiError> {
        let is_last = (from.seq(), from.snapshot.cut_at) == (to.seq(), to.snapshot.cut_at);
        if !from.is_between && (is_last || next == Some(to.snapshot.cut_at)) {
            return Ok(None);
        }
        let handle = self.api.world(self.world());
        let (is_live, key) = (from.is_between, self.number());
        let passed = handle.passed(&from.snapshot, &to.snapshot, is_live, key).await;
        passed.map(Some).map_err(|error| not_passed(&error))
    }

    /// The number of the key.
    fn number(&self) -> u64 {
        xxh3_64(self.entry.grant.key_id.as_str().as_bytes())
    }

    /// The publication that a client holds, the time of the next one, and the current one, which is not older. Waits
    /// for this node to reach it.
    async fn base(
        &self,
        since: LogPosition,
    ) -> Result<(Arc<Published>, Option<Timestamp>, Arc<Published>), ApiError> {
        let (handle, place) = (self.api.world(self.world()), (since.at, since.check));
        let key = self.number();
        let mut publications = handle.publications();
        let until = Instant::now() + AHEAD_WAIT_MAX;
        loop {
            let base = Base::find(handle, place, Mode::Publication, key).await;
            let is_known = match base.map_err(|error| refused_by_history(&error))? {
                Base::Held(held, next) => {
                    let published = Arc::clone(&handle.published());
                    // The entry of a publication arrives before it is current. What was shown live in the current
                    // interval is later than its publication.
                    let (current, _) = place_of(handle.world, &published.snapshot);
                    if since.at <= current || held.snapshot.cut_at < published.until {
                        return Ok((held, next, published));
                    }
                    true
                }
                Base::Ahead => false,
                Base::Expired | Base::Unknown => return Err(expired()),
            };
            if Instant::now() >= until {
                if !is_known && never_comes(handle, self.api.clock.now()) {
                    return Err(expired());
                }
                let text = "this node is behind the one that gave the cursor; try again";
                return Err(ApiError::unavailable(text));
            }
            // Without further publications the timeout still applies.
            let publication = async {
                if publications.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = publication => {}
                () = tokio::time::sleep(AHEAD_LOOK_EVERY) => {}
            }
        }
    }
}

/// Result of looking up a client's position.
pub(super) enum Base {
    /// The publication at the position, and the time of the next one of the mode.
    Held(Arc<Published>, Option<Timestamp>),
    /// This node may still reach the position.
    Ahead,
    /// The position is older than what is kept.
    Expired,
    /// The position is of another log.
    Unknown,
}

impl Base {
    /// Looks up a position of a world. `key` identifies the caller if the publication has to be rebuilt.
    pub(super) async fn find(
        handle: &WorldHandle,
        place: LogPlace,
        mode: Mode,
        key: u64,
    ) -> Result<Self, HistoryError> {
        let (at, _) = place;
        if !has_come_to(handle, at) {
            let (now, _) = place_of(handle.world, &handle.published().snapshot);
            let near = handle.world == World::Sandbox && at.saturating_sub(now) <= AHEAD_MAX_MS;
            return Ok(if near || handle.shared.is_some() { Self::Ahead } else { Self::Unknown });
        }
        let (sought, world) = (sought(handle.world, at), handle.world);
        let is = move |held: &Snapshot| place_of(world, held) == place;
        let found = match mode {
            Mode::Publication => handle.publication_of(sought, &is, key).await,
            Mode::Live => handle.shown_at(sought, &is, key).await,
        };
        Ok(match found {
            // It was made with a catalogue that is no longer available.
            Ok(None) | Err(HistoryError::NoCatalogue) => Self::Expired,
            Err(error) => return Err(error),
            Ok(Some((held, next))) if place_of(handle.world, &held.snapshot) == place => {
                Self::Held(held, next)
            }
            Ok(Some(_)) => Self::Unknown,
        })
    }
}

/// True if a position that this node has not reached is not of its log, because the node has read the whole log.
pub(super) fn never_comes(handle: &WorldHandle, now: Timestamp) -> bool {
    handle.world == World::Live && handle.is_up_to_date(now)
}

/// True if this node has reached a position. Positions of the sandbox are times; its current publication covers the
/// time until the next one.
pub(super) fn has_come_to(handle: &WorldHandle, at: u64) -> bool {
    match handle.world {
        World::Live => at <= handle.last_entry(),
        World::Sandbox => {
            i64::try_from(at).is_ok_and(|at| at < handle.published().until.as_millis())
        }
    }
}

/// The API error if changes in between cannot be looked up.
fn not_passed(error: &HistoryError) -> ApiError {
    match error {
        HistoryError::Busy | HistoryError::Unreadable(_) => refused_by_history(error),
        HistoryError::Off
        | HistoryError::NotKept(_)
        | HistoryError::NoCatalogue
        | HistoryError::TooFar
        | HistoryError::TooMuch => expired(),
    }
}

fn expired() -> ApiError {
    let text = "the changes since this cursor are no longer available, or are too many; \
                read everything again without `since`";
    ApiError::new(ErrorCode::CursorExpired, text)
}
