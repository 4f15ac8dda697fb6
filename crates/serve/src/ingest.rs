//! The push door (ingest.md): a feed's NDJSON, taken line by line, durable before the answer.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use accounts::{FeedGrant, KeyRefusal};
use bytes::Bytes;
use domain::World;
use feeds::push;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;

use crate::app::App;
use crate::error::{ApiError, ErrorCode};
use crate::ledger::{Push, SAMPLES_MAX, Stamps, cut};
use crate::reply::Reply;
use crate::v1::cannot_vouch;
use crate::world::{Delivered, Lines, NotTaken, Receipt};

/// Where the door is.
pub(crate) const PATH: &str = "/ingest/v1/messages";
/// Largest body, packed or unpacked.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;
/// Most lines in a body: what fits into 8 MiB at the size of the shortest message, and a bound on the answer.
pub(crate) const LINES_MAX: usize = 200_000;
/// How long a body may take to arrive (D32).
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// When a paused feed is told to come back.
const PAUSED_RETRY_S: u32 = 60;

/// What the request's headers say that the door needs.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) authorization: Option<Token>,
    pub(crate) packing: Option<String>,
}

/// A bearer token, which is never shown.
pub(crate) struct Token(pub(crate) Vec<u8>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Takes a push.
pub(crate) async fn take<B>(app: &Arc<App>, delivery: Delivery, body: B) -> Result<Reply, ApiError>
where
    B: BodyExt<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let arrived = app.clock.now();
    let feed = authenticate(app, &delivery)?;
    if feed.paused_at.is_some() {
        app.metrics.ledger.note_paused(&feed.name);
        return Err(paused(&feed.name));
    }
    let packing = Packing::parse(delivery.packing.as_deref())?;
    let body = read_whole(body).await?;
    let parser = Arc::clone(app);
    let (name, bookmaker) = (feed.name.clone(), feed.bookmaker.clone());
    let scores = feed.scores;
    // Unpacking and parsing megabytes is not for a thread that answers requests.
    let parsed = tokio::task::spawn_blocking(move || {
        let body = packing.unpack(body)?;
        parse(&parser, &feed, &body).map(|lines| (lines, body))
    });
    let (lines, body) = parsed.await.map_err(|_| ApiError::internal())??;
    let mut stamps = Stamps::default();
    for message in lines.iter().filter_map(|(_, line)| line.as_ref().ok()) {
        stamps.add(message.ts);
    }
    // The body may have taken its time: what holds is what holds now.
    if authenticate(app, &delivery)?.paused_at.is_some() {
        app.metrics.ledger.note_paused(&name);
        return Err(paused(&name));
    }
    let delivered = Delivered { feed: name.clone(), bookmaker, scores, body: body.clone(), lines };
    let receipt = app.world(World::Live).push(delivered).await.map_err(not_taken)?;
    let push = Push {
        receipt: &receipt,
        stamps: &stamps,
        arrived,
        durable: app.clock.now(),
        sent: &sent_lines(&body, &receipt),
    };
    app.metrics.ledger.note(&name, &push);
    Ok(Reply::new(200, "application/json", receipt_text(&receipt)))
}

fn paused(feed: &str) -> ApiError {
    let text = format!(
        "feed `{feed}` is paused by the operator and nothing of this was taken; push again once it is resumed"
    );
    ApiError::new(ErrorCode::FeedPaused, text).retry_after(PAUSED_RETRY_S)
}

/// What the last lines that were refused or odd looked like, for an operator to see.
fn sent_lines(body: &[u8], receipt: &Receipt) -> Vec<(usize, String)> {
    let rejected = receipt.rejected.iter().map(|(line, _)| *line);
    let mut wanted: Vec<usize> = rejected.chain(receipt.odd.iter().map(|odd| odd.line)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let wanted = wanted.split_off(wanted.len().saturating_sub(SAMPLES_MAX));
    if wanted.is_empty() {
        return Vec::new();
    }
    push::split_lines(body)
        .filter(|(number, _)| wanted.contains(number))
        .map(|(number, line)| (number, cut(&String::from_utf8_lossy(line))))
        .collect()
}

fn authenticate(app: &App, delivery: &Delivery) -> Result<Arc<FeedGrant>, ApiError> {
    let token = delivery.authorization.as_ref().and_then(|value| {
        let (scheme, token) = value.0.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
    });
    let found = token.ok_or(KeyRefusal::Unknown);
    found.and_then(|token| app.accounts.feeds.authenticate(token)).map_err(
        |refusal| match refusal {
            KeyRefusal::Unvouched => cannot_vouch(),
            KeyRefusal::Unknown => {
                let text = "a valid feed token is needed: Authorization: Bearer fk_…";
                let mut error = ApiError::new(ErrorCode::AuthenticationFailed, text);
                error.challenge = Some("Bearer realm=\"linesman feeds\"");
                error
            }
        },
    )
}

async fn read_whole<B>(body: B) -> Result<Bytes, ApiError>
where
    B: BodyExt<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limited = Limited::new(body, BODY_BYTES_MAX);
    match tokio::time::timeout(BODY_TIME_MAX, limited.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => {
            Err(ApiError::new(ErrorCode::InvalidBody, "the body ended before it was whole"))
        }
        Err(_) => {
            let text = "the body did not arrive within 30 s";
            Err(ApiError::new(ErrorCode::InvalidBody, text))
        }
    }
}

fn too_large() -> ApiError {
    let text =
        "the body is larger than 8 MiB unpacked, or has more than 200000 lines; send it in parts";
    ApiError::new(ErrorCode::BodyTooLarge, text)
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    fn parse(header: Option<&str>) -> Result<Self, ApiError> {
        match header.map(str::trim) {
            None | Some("" | "identity") => Ok(Self::Plain),
            Some(name) if name.eq_ignore_ascii_case("gzip") => Ok(Self::Gzip),
            Some(name) if name.eq_ignore_ascii_case("zstd") => Ok(Self::Zstd),
            Some(_) => {
                let text = "Content-Encoding must be gzip, zstd or absent";
                Err(ApiError::new(ErrorCode::InvalidBody, text))
            }
        }
    }

    /// The body unpacked, never more than the door takes.
    fn unpack(self, body: Bytes) -> Result<Bytes, ApiError> {
        match self {
            Self::Plain => Ok(body),
            Self::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(&*body)),
            Self::Zstd => {
                let reader =
                    zstd::stream::read::Decoder::new(&*body).map_err(|_| badly_packed())?;
                read_bounded(reader)
            }
        }
    }
}

fn read_bounded(reader: impl Read) -> Result<Bytes, ApiError> {
    let mut unpacked = Vec::new();
    let bound = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(bound).read_to_end(&mut unpacked).map_err(|_| badly_packed())?;
    if unpacked.len() > BODY_BYTES_MAX { Err(too_large()) } else { Ok(unpacked.into()) }
}

fn badly_packed() -> ApiError {
    ApiError::new(ErrorCode::InvalidBody, "the body is not what its Content-Encoding says")
}

fn parse(app: &App, feed: &FeedGrant, body: &[u8]) -> Result<Lines, ApiError> {
    if !push::looks_like_text(body) {
        let text = "the body is not lines of text; send NDJSON, one message a line";
        return Err(ApiError::new(ErrorCode::InvalidBody, text));
    }
    if body.iter().filter(|byte| **byte == b'\n').count() > LINES_MAX {
        return Err(too_large());
    }
    // A token bound to a bookmaker that has left the catalogue speaks for nobody.
    let bound = match &feed.bookmaker {
        Some(key) => Some(app.catalogue.bookmaker_id(key).ok_or_else(|| {
            let text = format!(
                "this token is bound to bookmaker `{key}`, which the catalogue no longer has"
            );
            ApiError::new(ErrorCode::Forbidden, text)
        })?),
        None => None,
    };
    let parse = |line| {
        let message = push::parse_line(line, &app.catalogue, bound)?;
        if feed.scores { Ok(message) } else { push::refuse_score(message) }
    };
    Ok(push::split_lines(body).map(|(number, line)| (number, parse(line))).collect())
}

fn not_taken(why: NotTaken) -> ApiError {
    ApiError::unavailable(match why {
        NotTaken::Full => "the door is busy; send the batch again shortly",
        NotTaken::LogFailed => {
            "the batch could not be made durable and nothing of it was taken; send it again"
        }
        NotTaken::Stopped => "the service is stopping; send the batch again shortly",
        NotTaken::Overtaken | NotTaken::NoWriter | NotTaken::Overdue => {
            "no node that writes has confirmed the batch, so it may not be durable; send it again, which doubles nothing"
        }
    })
}

fn receipt_text(receipt: &Receipt) -> String {
    let rejected: Vec<_> = receipt
        .rejected
        .iter()
        .map(|(line, reject)| {
            json!({ "line": line, "code": reject.code.slug(), "message": reject.message })
        })
        .collect();
    json!({
        "accepted": receipt.accepted,
        "unchanged": receipt.unchanged,
        "superseded": receipt.superseded,
        "rejected": rejected,
    })
    .to_string()
}
