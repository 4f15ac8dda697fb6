//! The ingest endpoint (`docs/ingest.md`): a feed's NDJSON, taken line by line, durable before the answer.
//!
//! A push is worked on in pieces of whole lines. The next is parsed while the writer is at the one before, so that a
//! push holds its body and a few parsed pieces, however many lines it has. What it holds is bounded for each feed and
//! for all (`budget`).

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
use crate::context::Api;
use crate::error::{ApiError, ErrorCode};
use crate::v1::key_status_unknown;
use engine::feed_stats::{Push as Noted, SAMPLES_MAX, Stamps, cut};
use engine::{Lines, NotTaken, Outcome, Piece, Receipt, Sender, Terms, WorldHandle};
use http::{Reply, Request, RequestBody};

/// Where the endpoint is.
pub const PATH: &str = "/ingest/v1/messages";
/// When a paused feed is asked to come back.
const PAUSED_RETRY_S: u32 = 60;
/// Pieces of a push that may wait for the writer: enough for it to have the next when it is done with one.
const PIECES_AHEAD_MAX: usize = 8;

/// What the request's headers say that the endpoint needs.
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

/// A bearer token, which is never shown.
struct Token(Vec<u8>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Takes a push.
///
/// # Errors
/// It was not taken, or not all of it.
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
    // Unpacking megabytes is not for a thread that answers requests.
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
    // Held until it is written: whoever does not read has their share of memory in it.
    let json = Bytes::from_owner(Answer { json, _held: held });
    Ok(Reply::new(200, "application/json", json))
}

/// A receipt on its way out.
struct Answer {
    json: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

/// A push that is being taken.
struct Push {
    api: Arc<Api>,
    delivery: Arc<Delivery>,
    feed: Arc<FeedGrant>,
    rights: Rights,
    arrived: Timestamp,
    waiting: VecDeque<Sent>,
    /// Another node writes: all further pieces go there, so that they stay in their order.
    is_handed_over: bool,
    total: Total,
}

/// A piece that is not known to be durable yet.
struct Sent {
    piece: Piece,
    stamps: Stamps,
    /// Where its receipt comes; `None`: this node does not write.
    taken: Option<oneshot::Receiver<Outcome>>,
}

impl Push {
    fn world(&self) -> &WorldHandle {
        self.api.world(World::Live)
    }

    /// Has a piece taken, and waits for earlier ones where too many are on their way.
    async fn send(&mut self, piece: Piece) -> Result<(), ApiError> {
        // The body may have taken its time, and the writer too: what holds is what holds now.
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
            let mut stamps = Stamps::default();
            for message in lines.iter().filter_map(|(_, line)| line.as_ref().ok()) {
                stamps.add(message.ts);
            }
            (lines, stamps)
        });
        parsing.await.map_err(|_| ApiError::internal())
    }

    /// Waits until the first piece that is on its way is durable.
    async fn settle(&mut self) -> Result<(), ApiError> {
        let Some(Sent { piece, stamps, taken }) = self.waiting.pop_front() else { return Ok(()) };
        let mut outcome = match taken {
            Some(taken) => taken.await.unwrap_or(Err(NotTaken::Stopped)),
            None => Err(NotTaken::Overtaken),
        };
        if outcome.as_ref().is_err_and(|why| *why == NotTaken::Overtaken) {
            self.is_handed_over = true;
            // Those after it follow it there, also where this node took them: in their order, the last word is the
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
            sent: &sent_lines(&piece, &receipt),
        };
        self.api.feed_stats.note(&self.feed.name, &noted);
        self.total.add(receipt);
        Ok(())
    }

    fn not_taken(&self, why: NotTaken) -> ApiError {
        match why {
            NotTaken::LogFailed => ApiError::unavailable(
                "the push could not be made durable; send it again, which doubles nothing",
            ),
            NotTaken::Stopped => ApiError::unavailable(
                "the service is stopping, and not all of the push was taken; send it again, which doubles nothing",
            ),
            NotTaken::Overtaken | NotTaken::NoWriter | NotTaken::Overdue => ApiError::unavailable(
                "the leader did not confirm the push, so it may not be stored; retry it (retries are idempotent)",
            ),
            NotTaken::Withdrawn => admit(&self.api, &self.delivery).err().unwrap_or_else(|| {
                ApiError::unavailable(
                    "the feed was stopped in the middle of the push; send it again, which doubles nothing",
                )
            }),
        }
    }
}

fn paused(feed: &str) -> ApiError {
    let text = format!(
        "feed `{feed}` is paused by the operator, and this was not taken, or not all of it; push again once it is resumed"
    );
    ApiError::new(ErrorCode::FeedPaused, text).retry_after(PAUSED_RETRY_S)
}

/// What the last lines that were refused or odd looked like, for an operator to see.
fn sent_lines(piece: &Piece, receipt: &Receipt) -> Vec<(usize, String)> {
    let rejected = receipt.rejected.iter().map(|(line, _)| *line);
    let mut wanted: Vec<usize> = rejected.chain(receipt.odd.iter().map(|odd| odd.line)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let wanted = wanted.split_off(wanted.len().saturating_sub(SAMPLES_MAX));
    if wanted.is_empty() {
        return Vec::new();
    }
    piece
        .lines()
        .filter(|(number, _)| wanted.contains(number))
        .map(|(number, line)| (number, cut(&String::from_utf8_lossy(line))))
        .collect()
}

/// The feed of a push, where it may push; a push that a paused feed tried is counted.
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

/// What a feed may send. A token bound to a bookmaker that has left the catalogue may send nothing.
fn rights_of(api: &Api, feed: &FeedGrant) -> Result<Rights, ApiError> {
    let Some(key) = &feed.bookmaker else { return Ok(Rights { bookmaker: None, scores: true }) };
    let bookmaker = api.catalogue.bookmaker_id(key).ok_or_else(|| {
        let text =
            format!("this token is bound to bookmaker `{key}`, which the catalogue no longer has");
        ApiError::new(ErrorCode::Forbidden, text)
    })?;
    Ok(Rights { bookmaker: Some(bookmaker), scores: feed.scores })
}
