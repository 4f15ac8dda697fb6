//! The v1 API: authentication, limits, and the operations, in the order of checks of D3.

mod authentication;
mod changes;
pub(crate) mod export;
mod history;
pub(crate) mod param;
pub(crate) mod parsed_target;
pub(crate) mod query;
pub(crate) mod region;
pub mod stream;
pub(crate) mod target_path;
pub(crate) mod wire;

use std::pin::pin;
use std::sync::Arc;

use accounts::{KeyEntry, KeyRefusal, Maintenance, Standing};
use domain::{Catalogue, SportId, Timestamp, World};
use market::analysis::Analysis;
use tokio::time::Instant;

use crate::admission::last_request::LastRequest;
use crate::admission::refusal::{
    admit, admit_in, charged, key_status_unknown, no_such_path, not_yet, too_busy,
};
use crate::admission::refusal_log::{self, Refused};
use crate::admission::{self, find_or_make, world_of};
use crate::answers::{Answer, Answers, Encoded, HashedSelector, Missing, Ready};
use crate::connection::Connection;
use crate::context::Api;
use crate::error::{ApiError, ErrorCode};
use crate::operation::Operation;
use crate::panics::catch_panics;
use crate::position::LogPosition;
use crate::response_head::{begin_head, begin_head_of_past};
pub use crate::v1::authentication::authenticate_agent;
use crate::v1::authentication::{KeySource, authenticate};
pub use crate::v1::param::Param;
use crate::v1::parsed_target::ParsedTarget;
use crate::v1::query::Lookup;
use crate::v1::query::Query;
use crate::v1::region::RegionTable;
use crate::v1::target_path::TargetPath;
pub use crate::v1::wire::coverage::event_cells;
use engine::{PastPublication, Published};
use http::{Head, Method, Reply, Request, RequestId};

/// Answers a request under `/v1`. The operation is for the metrics.
pub async fn answer(
    api: &Arc<Api>,
    request: &Request<'_>,
    connection: &mut Connection,
    request_id: RequestId,
) -> (Operation, Reply) {
    let now = connection.now;
    let query = Query::new(request.query);
    let (entry, source) = match authenticate(api, request, &query, connection) {
        Ok(found) => found,
        Err(refusal) => {
            let error = match refusal {
                KeyRefusal::Unknown => {
                    authentication::refuse(request, &query, api.settings.query_key_enabled)
                }
                KeyRefusal::Unconfirmed => key_status_unknown(),
            };
            return (Operation::Unknown, error.into_reply(request_id));
        }
    };
    let sends_file = connection.sends_files && request.method == Method::Get;
    let admitted =
        Admitted { api, request, query, entry: &entry, now, begun: connection.begun, sends_file };
    let (operation, mut reply) = admitted.answer(request_id, &mut connection.memory.last_v1).await;
    if source == KeySource::Query {
        // RFC 9745 and RFC 8594: the start and the end of the deprecation of the query form.
        reply.head.put("deprecation", QUERY_KEY_DEPRECATED_SINCE);
        reply.head.put("sunset", &api.settings.query_key_sunset);
    }
    (operation, reply)
}

/// Answers a request that a page makes on behalf of an account, with one of its keys. Except for the connection, it is
/// handled as if the account's owner had sent it.
pub async fn answer_as(api: &Arc<Api>, request: &Request<'_>, entry: &Arc<KeyEntry>) -> Reply {
    let request_id = api.next_request_id();
    let (now, begun) = (api.clock.now(), Instant::now());
    let answering = async {
        let query = Query::new(request.query);
        let admitted = Admitted { api, request, query, entry, now, begun, sends_file: false };
        let (operation, reply) = admitted.answer(request_id, &mut LastRequest::default()).await;
        api.metrics.note_answer(operation, &reply, begun.elapsed());
        Ok(reply)
    };
    let answered = catch_panics(&api.metrics, pin!(answering)).await;
    let mut reply = answered.unwrap_or_else(|error| error.into_reply(request_id));
    request_id.put(&mut reply.head);
    reply
}

/// Counts towards the burst limit of a key an action that is not a request under `/v1`.
///
/// # Errors
/// The limit is reached, or the request cannot be counted.
pub async fn count_burst(api: &Api, entry: &KeyEntry) -> Result<(), ApiError> {
    charged(api.accounts.charge_burst(entry, api.clock.now()).await).map(drop)
}

/// 2026-11-01T00:00:00Z, the start of this service; the header was preferred from the beginning.
const QUERY_KEY_DEPRECATED_SINCE: &str = "@1793491200";

/// One authenticated request.
struct Admitted<'a> {
    api: &'a Arc<Api>,
    request: &'a Request<'a>,
    query: Query<'a>,
    entry: &'a Arc<KeyEntry>,
    now: Timestamp,
    begun: Instant,
    /// True if the body may be sent with sendfile.
    sends_file: bool,
}

/// Checks if a path and query under `/v1` are valid, without answering them.
///
/// # Errors
/// The error code of the response.
pub fn check_target(path: &str, query: &str, catalogue: &Catalogue) -> Result<(), ErrorCode> {
    let target = TargetPath::parse(path).ok_or(ErrorCode::NotFound)?;
    let sport = match target.sport {
        Some(key) => Some(catalogue.sport_id(key).ok_or(ErrorCode::SportNotFound)?),
        None => None,
    };
    let values = Query::new(query).values(target.operation, true).map_err(|error| error.code)?;
    if target.operation.is_file() {
        return export::parse(target).map(drop).map_err(|error| error.code);
    }
    let regions = &RegionTable::new(catalogue);
    values
        .selector(target, sport, Lookup { catalogue, regions })
        .map(drop)
        .map_err(|error| error.code)
}

/// A cursor of a position in the log, in its canonical form; `None` if the text is not one.
pub fn read_cursor(text: &str) -> Option<String> {
    LogPosition::decode(text).map(|position| position.encode())
}

fn no_such_sport(catalogue: &Catalogue, key: &str) -> ApiError {
    let text = format!("there is no such sport; {}", catalogue.sports_hint(key));
    ApiError::new(ErrorCode::SportNotFound, text)
}

type Answered = Result<(Reply, Option<Standing>), ApiError>;

impl Admitted<'_> {
    /// Answers the request and charges the key for it.
    async fn answer(
        &self,
        request_id: RequestId,
        last_request: &mut LastRequest<ParsedTarget>,
    ) -> (Operation, Reply) {
        let (entry, now) = (self.entry, self.now);
        let mut operation = Operation::Unknown;
        let (mut reply, standing) = match self.run(&mut operation, last_request).await {
            Ok((reply, standing)) => (reply, standing),
            Err(error) => {
                refusal_log::note(
                    entry,
                    self.request,
                    operation,
                    Refused::from(&error),
                    request_id,
                    now,
                );
                (error.into_reply(request_id), None)
            }
        };
        admission::end(self.request, entry, operation, &mut reply, standing, now);
        (operation, reply)
    }

    async fn run(
        &self,
        operation: &mut Operation,
        last_request: &mut LastRequest<ParsedTarget>,
    ) -> Answered {
        let (api, request, entry, now) = (self.api, self.request, self.entry, self.now);
        admission::begin(api, request, entry, now).await?;
        let recalled = last_request.is_again(self.request);
        *operation = match last_request.parsed().filter(|_| recalled) {
            Some(parsed) => parsed.operation,
            None => self.target_path()?.operation,
        };
        admission::enter(api, request, entry, *operation, now).await?;
        if operation.is_stream() {
            // Boxed, or every connection would be as large as one that opens a stream.
            return Box::pin(self.open_stream()).await;
        }
        if operation.is_file() {
            return Box::pin(self.export()).await;
        }
        if operation.is_of_past_prices() {
            return Box::pin(self.past_prices(*operation)).await;
        }
        let read;
        let parsed = match last_request.parsed().filter(|_| recalled) {
            Some(parsed) => {
                parsed.sport.map(|sport| self.admit(sport)).transpose()?;
                parsed
            }
            None => {
                read = match self.read() {
                    Ok(read) => read,
                    // Boxed like the stream.
                    Err(error) => {
                        return Box::pin(self.select_as_of_then(*operation, error)).await;
                    }
                };
                last_request.learn(self.request, &read);
                &read
            }
        };
        if *operation == Operation::GetStatus {
            return Ok((self.status(), None));
        }
        if *operation == Operation::GetHistory {
            return Ok((Box::pin(self.history()).await?, None));
        }
        let world = self.api.world(self.world());
        if !world.has_begun() {
            return Err(not_yet());
        }
        match (parsed.as_of, parsed.since) {
            (None, None) => self.select(*operation, &parsed.asked, &world.published(), None).await,
            // Boxed like the stream.
            (_, Some(since)) => Box::pin(self.select_since(&parsed.asked, since)).await,
            (Some(at), None) => Box::pin(self.select_as_of(*operation, Some(parsed), at)).await,
        }
    }

    fn target_path(&self) -> Result<TargetPath<'_>, ApiError> {
        let path = self.request.path;
        let found = TargetPath::parse(path);
        let found =
            found.filter(|found| !found.operation.is_stream() || self.api.streams.settings.enabled);
        found.ok_or_else(|| {
            let whole = path.trim_end_matches('/');
            no_such_path(whole != path && TargetPath::parse(whole).is_some())
        })
    }

    /// Parses the path and the query, with the permissions of the key.
    fn read(&self) -> Result<ParsedTarget, ApiError> {
        let target = self.target_path()?;
        let sport = target.sport.map(|key| self.open_sport(key)).transpose()?;
        self.read_target(target, sport, self.api.lookup())
    }

    /// The same with the names of another catalogue. The permissions of the key are the current ones.
    fn read_with(&self, catalogue: &Catalogue) -> Result<ParsedTarget, ApiError> {
        let target = self.target_path()?;
        let then = |key| {
            let sport = catalogue.sport_id(key).ok_or_else(|| no_such_sport(catalogue, key))?;
            admit_in(&self.entry.grant, &self.api.catalogue, (catalogue, sport))?;
            Ok::<SportId, ApiError>(sport)
        };
        let sport = target.sport.map(then).transpose()?;
        let regions = &RegionTable::new(catalogue);
        self.read_target(target, sport, Lookup { catalogue, regions })
    }

    fn read_target(
        &self,
        target: TargetPath<'_>,
        sport: Option<SportId>,
        lookup: Lookup<'_>,
    ) -> Result<ParsedTarget, ApiError> {
        let operation = target.operation;
        let values = self.query.values(operation, self.api.settings.query_key_enabled)?;
        let asked = HashedSelector::new(values.selector(target, sport, lookup)?);
        let (as_of, since) = (values.as_of()?, values.since()?);
        Ok(ParsedTarget { operation, sport, asked, as_of, since })
    }

    /// The answer to a selection of a publication, from the cache or computed now. `past` has the adjacent
    /// publications, if the publication was requested by its time.
    async fn select(
        &self,
        operation: Operation,
        selector: &HashedSelector,
        published: &Arc<Published>,
        past: Option<&PastPublication>,
    ) -> Answered {
        wire::check_found(selector, published)?;
        let answers = self.api.answers(self.world(), published);
        let (world, snapshot) = (self.world(), &published.snapshot);
        let make = || wire::answer(world, selector, snapshot, &answers.fragments);
        let Ready { answer, popular } = if selector.is_slow() {
            Box::pin(self.find_or_compute(selector, published)).await?
        } else {
            find_or_make(self.api, answers, selector, self.begun, make)?
        };
        let encoded = answer.encoded(self.request.accept_encoding.as_deref());
        let head = match past {
            None => begin_head(published, encoded, self.now),
            Some(past) => begin_head_of_past(past, encoded, self.now),
        };
        let as_of = past.map(|_| snapshot.cut_at);
        let delivered = self.deliver(operation, head, (&answer, encoded), as_of).await;
        let (mut reply, standing) = delivered?;
        if self.sends_file && popular && reply.status == 200 {
            reply.file = encoded.file(answers);
        }
        Ok((reply, standing))
    }

    /// The slow answer of this epoch, from the cache or computed now.
    async fn find_or_compute(
        &self,
        selector: &HashedSelector,
        published: &Arc<Published>,
    ) -> Result<Ready, ApiError> {
        match self.api.answers(self.world(), published).find(selector) {
            Ok(ready) => Ok(ready),
            Err(missing) if !missing.asked_before && self.api.server.load.sheds(self.begun) => {
                Err(too_busy())
            }
            Err(missing) => {
                let answer = self.compute(selector, missing, published).await?;
                Ok(Ready { answer, popular: false })
            }
        }
    }

    /// Computes an answer that takes longer than a request thread may be occupied: on another thread, a few at a time,
    /// and kept like any other.
    async fn compute(
        &self,
        selector: &HashedSelector,
        missing: Missing,
        published: &Arc<Published>,
    ) -> Result<Arc<Answer>, ApiError> {
        let turn = Arc::clone(&self.api.analyses).acquire_owned().await;
        let turn = turn.map_err(|_| ApiError::internal())?;
        // The previous holder of the turn may have computed the same answer.
        if let Ok(ready) = self.api.answers(self.world(), published).find(selector) {
            return Ok(ready.answer);
        }
        let (published, selector) = (Arc::clone(published), selector.clone());
        let (world, figures) = (self.world(), Arc::clone(self.api.figures(self.world())));
        let making = tokio::task::spawn_blocking(move || {
            // The turn ends with the work, even if nobody waits for the result any more.
            let _turn = turn;
            let analysis = published.per_publication(Analysis::default);
            let (answers, snapshot) = (Answers::of(&published, &figures), &published.snapshot);
            let fragments = &answers.fragments;
            let answer = wire::slow_answer(world, &selector, snapshot, fragments, analysis)?;
            Ok(answers.make(&selector, missing, || answer))
        });
        let made = making.await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => ApiError::internal(),
        })?;
        made.map_err(|error: serde_json::Error| {
            tracing::error!(event = "answer.failed", %error, path = self.request.path, "an answer cannot become a table");
            ApiError::internal()
        })
    }

    /// The sport in a path, if the key may read it.
    fn open_sport(&self, key: &str) -> Result<SportId, ApiError> {
        let sport = self.known_sport(key)?;
        self.admit(sport)?;
        Ok(sport)
    }

    /// The sport in a path, regardless of permissions.
    fn known_sport(&self, key: &str) -> Result<SportId, ApiError> {
        let catalogue = &self.api.catalogue;
        catalogue.sport_id(key).ok_or_else(|| no_such_sport(catalogue, key))
    }

    /// Refuses a sport that the key may not read.
    fn admit(&self, sport: SportId) -> Result<(), ApiError> {
        admit(&self.entry.grant, &self.api.catalogue, sport)
    }

    fn world(&self) -> World {
        world_of(&self.entry.grant)
    }

    fn status(&self) -> Reply {
        let mut health = self.api.world(self.world()).health(self.now);
        let adapters = self.api.adapters.get().filter(|_| self.world() == World::Live);
        health.degraded |= adapters.is_some_and(|adapters| adapters.is_degraded(self.now));
        let maintenance = self.api.accounts.maintenance() != Maintenance::Off;
        let body = wire::status(maintenance, health, &self.entry.grant.limits, self.now);
        let mut reply = Reply::new(200, "application/json", body);
        // The current publication must not be stored (D14).
        reply.head.put("cache-control", "no-store");
        reply
    }

    /// `as_of`: the instant of the publication, if it was requested by its time.
    async fn deliver(
        &self,
        operation: Operation,
        mut head: Head,
        (answer, encoded): (&Answer, &Encoded),
        as_of: Option<Timestamp>,
    ) -> Answered {
        if let Some(next) = &answer.next {
            self.put_next_page(&mut head, answer, next, as_of);
        }
        if answer.empty {
            head.line("link", |line| self.query.put_help(line, self.request.path, as_of));
        }
        if self.request.holds(&encoded.etag) {
            return Ok((Reply::empty(304, head), None));
        }
        let standing = match operation.is_metered() {
            true => Some(charged(self.api.accounts.charge_credits(self.entry, 1, self.now).await)?),
            false => None,
        };
        head.put_bytes("content-type", answer.content_type.as_bytes());
        encoded.put_encoding(&mut head);
        let reply = Reply { body: encoded.body.clone(), ..Reply::empty(200, head) };
        Ok((reply, standing))
    }

    fn put_next_page(
        &self,
        head: &mut Head,
        answer: &Answer,
        next: &str,
        as_of: Option<Timestamp>,
    ) {
        let Request { path, query, .. } = *self.request;
        if as_of.is_none()
            && let Some(line) = answer.next_line(path, query)
        {
            return head.put_lines(line);
        }
        let mut line = Head::default();
        line.line("link", |line| self.query.put_next_page(line, path, next, as_of));
        head.put_lines(&line);
        if as_of.is_none() {
            answer.keep_next_line(line, path, query);
        }
    }
}
