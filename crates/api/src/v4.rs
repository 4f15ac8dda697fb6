//! `/v4`: the prior interface over the same snapshots, for programs written for it. Authentication, limits, credits
//! and the operations, in the order of checks of V4.

pub(crate) mod error;
mod history;
pub mod param;
pub(crate) mod parsed;
mod query;
pub(crate) mod selection;
pub(crate) mod settings;
mod target_path;
pub(crate) mod wire;

use std::borrow::Cow;
use std::sync::Arc;

use accounts::{Charge, KeyEntry, KeyRefusal, Owner, Refusal, Standing, Window};
use domain::{SportId, Timestamp};
use engine::{PastPublication, Published};
use http::percent::decode;
use http::{Answering, Method, Reply, Request, RequestId, SingleHeader};
use tokio::time::Instant;

use crate::admission::last_request::LastRequest;
use crate::admission::refusal::{
    admit, admit_in, charged, check_permission, key_status_unknown, no_such_path, not_yet,
};
use crate::admission::{self, find_or_make, refusal_log, world_of};
use crate::answers::{Answers, HashedSelector, Ready, Selector};
use crate::connection::Connection;
use crate::context::Api;
use crate::error::ApiError;
use crate::operation::Operation;
use crate::response_head::{begin_head, begin_head_of_past};
use crate::v1::query::Query;
use crate::v4::error::Refused;
use crate::v4::param::KEY_PARAMS;
use crate::v4::parsed::Parsed;
use crate::v4::query::Values;
use crate::v4::selection::{SportFilter, SportSet, What};
use crate::v4::target_path::{Subject, TargetPath};
use crate::v4::wire::{Source, V4};

pub use error::Code;
pub use selection::Selection;
pub use settings::{Credits, DOCS_PATH, Origins, V4Settings};
pub(crate) use wire::Publication;

/// True if a path belongs to this interface.
pub fn covers(path: &str) -> bool {
    path.strip_prefix("/v4").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Handles a request under `/v4`. The returned operation is for the metrics.
pub fn answer<'a>(
    api: &'a Api,
    request: &'a Request<'a>,
    connection: &'a mut Connection,
    request_id: RequestId,
) -> Answering<'a, (Operation, Reply)> {
    Box::pin(respond(api, request, connection, request_id))
}

async fn respond(
    api: &Api,
    request: &Request<'_>,
    connection: &mut Connection,
    request_id: RequestId,
) -> (Operation, Reply) {
    let query = Query::new(request.query);
    let (operation, mut reply) = match authenticate(api, request, &query, connection) {
        Ok(entry) => {
            let sends_file = connection.sends_files && request.method == Method::Get;
            let (now, begun, entry) = (connection.now, connection.begun, &*entry);
            let admitted = Admitted { api, request, query, entry, now, begun, sends_file };
            admitted.answer(request_id, &mut connection.memory.last_v4).await
        }
        Err(refused) => (Operation::Unknown, refused.into_reply(&api.settings.v4)),
    };
    put_origin(&api.settings.v4, request.page.origin, &mut reply);
    (operation, reply)
}

/// A refusal in the form of `/v4`, for failures before or instead of handling.
pub fn refuse(settings: &V4Settings, error: ApiError, request: Option<&Request<'_>>) -> Reply {
    let mut reply = Refused::from(error).into_reply(settings);
    put_origin(settings, request.and_then(|request| request.page.origin), &mut reply);
    reply
}

/// Allows pages of the configured origins to read the response and its headers. If some origins are allowed and others
/// not, `Vary` is set on every response.
fn put_origin(settings: &V4Settings, origin: Option<&[u8]>, reply: &mut Reply) {
    let origins = &settings.allow_origins;
    if origins.depend_on_request() {
        reply.head.put_bytes("vary", b"Origin");
    }
    let Some(allowed) = origins.allow(origin) else { return };
    reply.head.put("access-control-allow-origin", allowed);
    let exposed = b"x-requests-remaining, x-requests-used, x-requests-last";
    reply.head.put_bytes("access-control-expose-headers", exposed);
}

fn authenticate(
    api: &Api,
    request: &Request<'_>,
    query: &Query<'_>,
    connection: &mut Connection,
) -> Result<Arc<KeyEntry>, Refused> {
    let invalid = || {
        let text = "; check it in the dashboard, and that nothing was cut off when it was copied";
        Refused::new(Code::InvalidKey, text)
    };
    let sent;
    let key = match request.key {
        SingleHeader::Once(key) if !key.is_empty() => key,
        SingleHeader::Repeated => return Err(invalid()),
        SingleHeader::Once(_) | SingleHeader::Absent => {
            let by_query = api.settings.query_key_enabled;
            let mut named = KEY_PARAMS.iter().filter_map(|name| first_filled(query, name));
            sent = named.next().filter(|_| by_query).ok_or_else(|| {
                let text = if by_query {
                    "; send it as query parameter apiKey or in the request header X-API-Key"
                } else {
                    "; send it in the request header X-API-Key"
                };
                Refused::new(Code::MissingKey, text)
            })?;
            sent.as_bytes()
        }
    };
    let memory = &mut connection.memory;
    let found = api.accounts.keys.authenticate_again(key, connection.now, &mut memory.key);
    found.map_err(|refusal| match refusal {
        KeyRefusal::Unknown => invalid(),
        KeyRefusal::Unconfirmed => key_status_unknown().into(),
    })
}

/// One authenticated request.
struct Admitted<'a> {
    api: &'a Api,
    request: &'a Request<'a>,
    query: Query<'a>,
    entry: &'a KeyEntry,
    now: Timestamp,
    begun: Instant,
    /// True if the body may be sent with sendfile.
    sends_file: bool,
}

/// A reply, the credits charged, and the key's standing afterwards if it is known.
type Answered = Result<(Reply, u32, Option<Standing>), Refused>;

impl Admitted<'_> {
    /// Handles the request and counts it for the key.
    async fn answer(
        &self,
        request_id: RequestId,
        last: &mut LastRequest<Parsed>,
    ) -> (Operation, Reply) {
        let (entry, now) = (self.entry, self.now);
        let mut operation = Operation::Unknown;
        let (mut reply, credits, standing) = match self.run(&mut operation, last).await {
            Ok(answered) => answered,
            Err(refused) => {
                let noted = refusal_log::Refused {
                    status: refused.code.status(),
                    code: refused.code.slug(),
                    message: &refused.message,
                };
                refusal_log::note(entry, self.request, operation, noted, request_id, now);
                (refused.into_reply(&self.api.settings.v4), 0, None)
            }
        };
        admission::end(self.request, entry, operation, &mut reply, standing, now);
        reply.head.put_number("x-requests-last", credits);
        (operation, reply)
    }

    async fn run(&self, operation: &mut Operation, last: &mut LastRequest<Parsed>) -> Answered {
        let (api, request, entry, now) = (self.api, self.request, self.entry, self.now);
        admission::begin(api, request, entry, now).await?;
        let target = match last.recall(self.request) {
            Some(parsed) => {
                *operation = parsed.operation;
                None
            }
            None => {
                let target =
                    TargetPath::parse(self.request.path).ok_or_else(|| no_such_path(false))?;
                *operation = target.operation;
                Some(target)
            }
        };
        admission::enter(api, request, entry, *operation, now).await?;
        let world = world_of(&self.entry.grant);
        let handle = self.api.world(world);
        if !handle.has_begun() {
            return Err(not_yet().into());
        }
        let published = handle.published();
        let answers = self.api.answers(world, &published);
        let (snapshot, publication) = (&published.snapshot, &answers.v4);
        let source = Source { snapshot, wire: V4(world), publication };
        if let Some(target) = target.filter(|target| target.is_historical()) {
            let answering: Answering<'_, Answered> = Box::pin(self.past(target, handle, &source));
            return answering.await;
        }
        let read;
        let parsed = match (target, last.recall(self.request)) {
            (Some(target), _) => {
                read = self.read(target, &source)?;
                // The sports of `upcoming` depend on the key, which may change with the next request.
                if !matches!(sport_of(&read.asked), Some(SportFilter::Upcoming(_))) {
                    last.learn(self.request, &read);
                }
                &read
            }
            (None, Some(parsed)) => {
                self.check_again(parsed, &source)?;
                parsed
            }
            (None, None) => return Err(ApiError::internal().into()),
        };
        self.select(parsed, &published, answers, &source, None).await
    }

    /// Parses the path and the query, and checks the key's scope.
    fn read(&self, target: TargetPath<'_>, source: &Source<'_>) -> Result<Parsed, Refused> {
        let operation = target.operation;
        let (sport, lasting) = if target.subject == Subject::Sports {
            (SportFilter::All, true)
        } else {
            self.open_sport(target, source)?
        };
        let values = Values::new(self.query, target)?;
        let (selection, price) = values.selection(target, sport, &self.api.catalogue)?;
        Ok(Parsed {
            operation,
            lasting,
            asked: HashedSelector::new(Selector::V4(selection)),
            price,
        })
    }

    /// The sport in the path if the key may read it, and whether it exists without events too.
    fn open_sport(
        &self,
        target: TargetPath<'_>,
        source: &Source<'_>,
    ) -> Result<(SportFilter, bool), Refused> {
        let (catalogue, grant) = (source.snapshot.catalogue(), &self.entry.grant);
        let key = target.sport;
        if key == UPCOMING
            && matches!(
                target.operation,
                Operation::V4Odds | Operation::V4Events | Operation::V4Scores
            )
        {
            check_permission(grant)?;
            let mut sports = SportSet::default();
            let open = catalogue.sports().filter(|(_, sport)| grant.covers_group(&sport.group));
            open.for_each(|(id, _)| sports.insert(id));
            return Ok((SportFilter::Upcoming(sports), true));
        }
        let of_key = |sport: SportId| SportFilter::Key(sport, key.into());
        let found = if let Some(entry) = catalogue.v4().sport(key) {
            let sport = entry.sport;
            Some((sport, if entry.whole { SportFilter::Whole(sport) } else { of_key(sport) }, true))
        } else if let Some(sport) = catalogue.sport_id(key) {
            Some((sport, SportFilter::Whole(sport), true))
        } else {
            source.index().sport_of(key).map(|sport| (sport, of_key(sport), false))
        };
        let (sport, filter, lasting) = found.ok_or_else(unknown_sport)?;
        admit_in(grant, &self.api.catalogue, (catalogue, sport))?;
        Ok((filter, lasting))
    }

    /// Repeats the checks that can change for an equal request: the key, and the existing sports.
    fn check_again(&self, parsed: &Parsed, source: &Source<'_>) -> Result<(), Refused> {
        let (SportFilter::Whole(sport) | SportFilter::Key(sport, _)) =
            sport_of(&parsed.asked).unwrap_or(&SportFilter::All)
        else {
            return Ok(());
        };
        if let (Some(SportFilter::Key(_, key)), false) = (sport_of(&parsed.asked), parsed.lasting)
            && source.index().sport_of(key) != Some(*sport)
        {
            return Err(unknown_sport());
        }
        Ok(admit(&self.entry.grant, &self.api.catalogue, *sport)?)
    }

    /// The response to a selection: from the cache of this epoch, or computed now.
    async fn select(
        &self,
        parsed: &Parsed,
        published: &Published,
        answers: &Answers,
        source: &Source<'_>,
        past: Option<&PastPublication>,
    ) -> Answered {
        let Selector::V4(selection) = &parsed.asked.selector else {
            return Err(ApiError::internal().into());
        };
        if let What::EventOdds(id) | What::EventMarkets(id) = selection.what {
            let found = id.and_then(|id| source.find_event(&selection.sport, id));
            found.ok_or_else(|| {
                let text = ": it may be final, cancelled, of another sport or never listed; \
                            /v4/sports/{sport}/events lists those that there are";
                Refused::new(Code::EventNotFound, text)
            })?;
        }
        let make = || source.make(selection).of_publication(published.snapshot.cut_at, None);
        let Ready { answer, popular } =
            find_or_make(self.api, answers, &parsed.asked, self.begun, make)?;
        let encoded = answer.encoded(self.request.accept_encoding.as_deref());
        let mut head = match past {
            Some(past) => begin_head_of_past(past, encoded, self.now),
            None => begin_head(published, encoded, self.now),
        };
        if self.request.holds(&encoded.etag) {
            return Ok((Reply::empty(304, head), 0, None));
        }
        let flat = self.api.settings.v4.credits == Credits::Flat;
        let credits = parsed.price.credits(answer.units, flat);
        let standing = self.charge(credits).await?;
        head.put_bytes("content-type", b"application/json");
        encoded.put_encoding(&mut head);
        let mut reply = Reply { body: encoded.body.clone(), ..Reply::empty(200, head) };
        if self.sends_file && popular {
            reply.file = encoded.file(answers);
        }
        Ok((reply, credits, standing))
    }

    /// Charges all of the credits or none. Free responses are served whatever is left.
    async fn charge(&self, credits: u32) -> Result<Option<Standing>, Refused> {
        if credits == 0 {
            return Ok(None);
        }
        match self.api.accounts.charge_credits(self.entry, credits, self.now).await {
            Charge::Refused(refusal) => Err(out_of_credits(&refusal, credits)),
            charge @ (Charge::Granted(_) | Charge::Unavailable) => Ok(Some(charged(charge)?)),
        }
    }
}

/// The key of live and upcoming events.
const UPCOMING: &str = "upcoming";

fn sport_of(selector: &Selector) -> Option<&SportFilter> {
    match selector {
        Selector::V4(selection) => Some(&selection.sport),
        Selector::Sports
        | Selector::Books
        | Selector::List(_)
        | Selector::Bouts(..)
        | Selector::Event(..)
        | Selector::Analysis(..)
        | Selector::Delta(..)
        | Selector::Csv(_)
        | Selector::Coverage(_)
        | Selector::Path(_)
        | Selector::Closing(_)
        | Selector::Explain(_) => None,
    }
}

/// The first non-empty value of a parameter.
fn first_filled<'a>(query: &Query<'a>, name: &str) -> Option<Cow<'a, str>> {
    let named = |key: &'a str| decode(key).is_some_and(|key| key == name);
    let values = query.pairs().filter(|(key, _)| named(key));
    values.filter_map(|(_, value)| decode(value)).find(|value| !value.is_empty())
}

fn unknown_sport() -> Refused {
    Refused::new(Code::UnknownSport, ": /v4/sports?all=true lists the sport keys")
}

fn out_of_credits(refusal: &Refusal, credits: u32) -> Refused {
    let Refusal { limit, remaining, retry_after_s, .. } = *refusal;
    let whose = match refusal.owner {
        Owner::Key => "key's",
        Owner::Account => "account's",
    };
    let span = match refusal.window {
        Window::Minute => "minute",
        Window::Day => "day (UTC)",
        Window::Month => "month (UTC)",
    };
    let text = format!(
        ": this response costs {credits}, and {remaining} are left of the {whose} usage limit of {limit} credits per \
         {span}; ask for fewer markets and regions, or wait as Retry-After says"
    );
    Refused::new(Code::OutOfUsageCredits, &text).retry_after(retry_after_s)
}
