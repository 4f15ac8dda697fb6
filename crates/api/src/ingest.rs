//! The ingest endpoint (`docs/ingest.md`): a feed's NDJSON, accepted line by line, durable before the response.
//!
//! A push is processed in pieces of whole lines. The next piece is parsed while the writer handles the previous one,
//! so that a push holds its body and a few parsed pieces, however many lines it has. Its memory is bounded per feed
//! and over all feeds (`budget`).

mod body;
pub(crate) mod budget;
mod receipt;

use std::collections::VecDeque;
use std::sync::Arc;

use accounts::{FeedGrant, KeyRefusal};
use bytes::Bytes;
use domain::{Timestamp, World};
use feeds::push::Rights;
use tokio::sync::oneshot;

pub(crate) use self::body::{BODY_BYTES_MAX, LINES_MAX};
use self::body::{Packing, no_room};
pub use self::budget::Budget;
use self::budget::Held;
pub use self::budget::PushLimits;
pub(crate) use self::receipt::LISTED_MAX;
use self::receipt::Total;
use crate::admission::refusal::key_status_unknown;
use crate::context::Api;
use crate::error::{ApiError, ErrorCode};
use engine::feed_stats::{Push as Noted, Stamps};
use engine::{Lines, NotTaken, Outcome, Piece, Sender, Terms, WorldHandle};
use http::{Reply, Request, RequestBody};

/// Path of the endpoint.
pub const PATH: &str = "/ingest/v1/messages";
/// `Retry-After` for a paused feed, in seconds.
const PAUSED_RETRY_S: u32 = 60;
/// Maximum number of pieces of a push that wait for the writer, so that the writer always has the next one.
const PIECES_AHEAD_MAX: usize = 8;

/// The request headers that the endpoint needs.
#[derive(Debug)]
struct Delivery {
    authorization: Option<Token>,
    packing: Option<String>,
}

impl Delivery {
    fn of(request: &Request<'_>) -> Self {
        let packing = request.page.content_encoding.once();
        Self {
            authorization: request.page.authorization.once().map(|token| Token(token.to_vec())),
            packing: packing.map(|value| String::from_utf8_lossy(value).into_owned()),
        }
    }
}

/// A bearer token, which is never printed.
struct Token(Vec<u8>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Accepts a push.
///
/// # Errors
/// The push was not accepted, or not all of it.
pub async fn take(
    api: &Arc<Api>,
    request: &Request<'_>,
    body: impl RequestBody,
) -> Result<Reply, ApiError> {
    let delivery = Delivery::of(request);
    let arrived = api.clock.now();
    let feed = admit(api, &delivery)?;
    let packing = Packing::parse(delivery.packing.as_deref())?;
    let mut held = api.pushes.enter(&feed.name).map_err(no_room)?;
    let packed = body::read(body, &mut held).await?;
    let turn = api.world(World::Live).turn(&feed.name).await;
    // Decompressing megabytes must not block a thread that answers requests.
    let opened = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        packing.open(packed, &mut held).map(|pieces| (pieces, held))
    });
    let (pieces, mut held) = opened.await.map_err(|_| ApiError::internal())??;
    let rights = rights_of(api, &feed)?;
    let mut push = Push {
        api: Arc::clone(api),
        delivery: Arc::new(delivery),
        feed,
        rights,
        arrived,
        waiting: VecDeque::new(),
        is_handed_over: false,
        total: Total::default(),
    };
    for piece in pieces {
        push.send(piece).await?;
    }
    while !push.waiting.is_empty() {
        push.settle().await?;
    }
    let json = push.total.to_json();
    held.shrink(json.len());
    // Released after the response is written, so that a client that does not read keeps using its share of memory.
    let json = Bytes::from_owner(Answer { json, _held: held });
    Ok(Reply::new(200, "application/json", json))
}

/// A receipt being sent.
struct Answer {
    json: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

/// A push in progress.
struct Push {
    api: Arc<Api>,
    delivery: Arc<Delivery>,
    feed: Arc<FeedGrant>,
    rights: Rights,
    arrived: Timestamp,
    waiting: VecDeque<Sent>,
    /// True once another node writes: all further pieces are forwarded there, so that they stay in order.
    is_handed_over: bool,
    total: Total,
}

/// A piece that is not yet known to be durable.
struct Sent {
    piece: Piece,
    stamps: Stamps,
    /// Receives the outcome; `None` if this node does not write.
    taken: Option<oneshot::Receiver<Outcome>>,
}

impl Push {
    fn world(&self) -> &WorldHandle {
        self.api.world(World::Live)
    }

    /// Submits a piece; waits for earlier pieces if too many are pending.
    async fn send(&mut self, piece: Piece) -> Result<(), ApiError> {
        // The body and the writer may have been slow, so the feed's state is checked again.
        admit(&self.api, &self.delivery)?;
        let sent = if self.is_handed_over || !self.world().leads() {
            let turn = self.world().turn(&self.feed.name).await;
            let (_, stamps) = self.parse(&piece).await?;
            drop(turn);
            Sent { piece, stamps, taken: None }
        } else {
            let reserved = self.world().reserve(&self.feed.name, &piece).await;
            let reserved = reserved.map_err(|why| self.not_taken(why))?;
            let (lines, stamps) = self.parse(&piece).await?;
            let (api, delivery) = (Arc::clone(&self.api), Arc::clone(&self.delivery));
            let stands =
                move || authenticate(&api, &delivery).is_ok_and(|feed| feed.paused_at.is_none());
            let terms = Terms { before: None, stands: Some(Arc::new(stands)) };
            let taken = reserved.put(lines, terms).map_err(|why| self.not_taken(why))?;
            Sent { piece, stamps, taken: Some(taken) }
        };
        self.waiting.push_back(sent);
        while self.waiting.len() > PIECES_AHEAD_MAX
            || self.waiting.front().is_some_and(|sent| sent.taken.is_none())
        {
            self.settle().await?;
        }
        Ok(())
    }

    async fn parse(&self, piece: &Piece) -> Result<(Lines, Stamps), ApiError> {
        let (api, piece, rights) = (Arc::clone(&self.api), piece.clone(), self.rights);
        let parsing = tokio::task::spawn_blocking(move || {
            let lines = piece.parse(&api.catalogue, rights);
            let stamps = Stamps::of(&lines);
            (lines, stamps)
        });
        parsing.await.map_err(|_| ApiError::internal())
    }

    /// Waits until the oldest pending piece is durable.
    async fn settle(&mut self) -> Result<(), ApiError> {
        let Some(Sent { piece, stamps, taken }) = self.waiting.pop_front() else { return Ok(()) };
        let mut outcome = match taken {
            Some(taken) => taken.await.unwrap_or(Err(NotTaken::Stopped)),
            None => Err(NotTaken::Overtaken),
        };
        if outcome.as_ref().is_err_and(|why| *why == NotTaken::Overtaken) {
            self.is_handed_over = true;
            // Later pieces are forwarded too, even if this node accepted them: applied in order, the result is the
            // same.
            self.waiting.iter_mut().for_each(|sent| sent.taken = None);
            let FeedGrant { name, bookmaker, scores, .. } = &*self.feed;
            let from = Sender { feed: name, bookmaker: bookmaker.as_deref(), scores: *scores };
            outcome = self.world().forward(from, &piece).await;
        }
        let receipt = outcome.map_err(|why| self.not_taken(why))?;
        let noted = Noted {
            receipt: &receipt,
            stamps: &stamps,
            arrived: self.arrived,
            durable: self.api.clock.now(),
            piece: &piece,
        };
        self.api.feed_stats.note(&self.feed.name, &noted);
        self.total.add(receipt);
        Ok(())
    }

    fn not_taken(&self, why: NotTaken) -> ApiError {
        match why {
            NotTaken::LogFailed => ApiError::unavailable(
                "the push could not be stored; retry it (retries are idempotent)",
            ),
            NotTaken::Stopped => ApiError::unavailable(
                "the service is stopping, and the push may be stored only in part; retry it (retries are idempotent)",
            ),
            NotTaken::Overtaken | NotTaken::NoWriter | NotTaken::Overdue => ApiError::unavailable(
                "the leader did not confirm the push, so it may not be stored; retry it (retries are idempotent)",
            ),
            NotTaken::Withdrawn => admit(&self.api, &self.delivery).err().unwrap_or_else(|| {
                ApiError::unavailable(
                    "the feed was stopped during the push; retry it (retries are idempotent)",
                )
            }),
        }
    }
}

fn paused(feed: &str) -> ApiError {
    let text = format!(
        "feed `{feed}` is paused by the operator; the push was not stored, or only in part; push again once it is resumed"
    );
    ApiError::new(ErrorCode::FeedPaused, text).retry_after(PAUSED_RETRY_S)
}

/// The feed of a push if it may push; an attempt of a paused feed is counted.
fn admit(api: &Api, delivery: &Delivery) -> Result<Arc<FeedGrant>, ApiError> {
    let feed = authenticate(api, delivery)?;
    if feed.paused_at.is_some() {
        api.feed_stats.note_paused(&feed.name);
        return Err(paused(&feed.name));
    }
    Ok(feed)
}

fn authenticate(api: &Api, delivery: &Delivery) -> Result<Arc<FeedGrant>, ApiError> {
    let token = delivery.authorization.as_ref().and_then(|value| {
        let (scheme, token) = value.0.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
    });
    let found = token.ok_or(KeyRefusal::Unknown);
    found.and_then(|token| api.accounts.feeds.authenticate(token)).map_err(
        |refusal| match refusal {
            KeyRefusal::Unconfirmed => key_status_unknown(),
            KeyRefusal::Unknown => {
                let text = "a valid feed token is needed: Authorization: Bearer fk_…";
                let mut error = ApiError::new(ErrorCode::AuthenticationFailed, text);
                error.challenge = Some("Bearer realm=\"linesman feeds\"");
                error
            }
        },
    )
}

/// What a feed may send; nothing if its token is bound to a bookmaker that is no longer in the catalogue.
fn rights_of(api: &Api, feed: &FeedGrant) -> Result<Rights, ApiError> {
    let Some(key) = &feed.bookmaker else { return Ok(Rights { bookmaker: None, scores: true }) };
    let bookmaker = api.catalogue.bookmaker_id(key).ok_or_else(|| {
        let text =
            format!("this token is bound to bookmaker `{key}`, which the catalogue no longer has");
        ApiError::new(ErrorCode::Forbidden, text)
    })?;
    Ok(Rights { bookmaker: Some(bookmaker), scores: feed.scores })
}
