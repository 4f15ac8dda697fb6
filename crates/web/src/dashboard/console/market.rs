//! Events and their sources; pairs that may be one event; and an operator's decisions on them.
//!
//! The pages show the state that the writer last published for operators: a read never waits and blocks nothing.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use accounts::AuditAction;
use askama::Template;
use domain::message::{Fixture, RejectCode};
use domain::{Catalogue, EventId, SportId, World};
use market::snapshot::EventRow;
use market::{Operation, Snapshot, Unsure};

use crate::dashboard::cells::Cells;
use crate::dashboard::confirm::{self, Question};
use crate::dashboard::console::feeds::SampleLine;
use crate::dashboard::form;
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::{self, PageError};
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::MarketAct;
use crate::dashboard::time_text::{TimeText, number};
use engine::feed_stats::Sample;
use engine::{EventView, Identities, OperateError, RefView};
use http::Reply;

/// Maximum number of events on one page.
const EVENTS_SHOWN_MAX: usize = 50;
/// Maximum number of pairs on one page: each takes half a screen.
const PAIRS_SHOWN_MAX: usize = 20;
/// Maximum number of rejected messages on an event's page: those that explain why a price is missing today.
const REJECTED_SHOWN_MAX: usize = 20;
/// Maximum number of characters used of a search text.
const SEARCH_CHARS_MAX: usize = 200;

/// A ref as the pages show it.
struct RefLine {
    feed: String,
    reference: String,
    names: String,
    competition: String,
    starts: TimeText,
    swapped: bool,
    why: String,
}

struct EventLine {
    id: String,
    sport: String,
    names: String,
    competition: String,
    starts: TimeText,
    refs: Vec<RefLine>,
}

struct Choice {
    key: String,
    title: String,
    chosen: bool,
}

/// Links to further pages.
struct Paging {
    from: usize,
    to: usize,
    all: String,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage {
    shell: Shell,
    query: String,
    sports: Vec<Choice>,
    events: Vec<EventLine>,
    paging: Paging,
    unsure: usize,
    left_out: usize,
}

#[derive(Template)]
#[template(path = "event.html")]
struct EventPage {
    shell: Shell,
    event: EventLine,
    also: Vec<String>,
    records: usize,
    /// Its cells for clients; `None` if clients cannot see it.
    cells: Option<Cells>,
    /// Rejected messages of its feeds.
    rejected: Vec<SampleLine>,
    pairs: Vec<Pair>,
}

/// One line of a comparison.
struct Compared {
    what: &'static str,
    one: String,
    other: String,
    differs: bool,
}

/// Two events that may be one, side by side.
struct Pair {
    one: EventLine,
    other: EventLine,
    lines: Vec<Compared>,
    doubt: String,
    evidence: String,
    turned: bool,
}

#[derive(Template)]
#[template(path = "unsure.html")]
struct UnsurePage {
    shell: Shell,
    pairs: Vec<Pair>,
    paging: Paging,
}

pub(super) async fn answer(
    page_request: &PageRequest<'_>,
    page: MarketAct,
) -> Result<Reply, PageError> {
    match page {
        MarketAct::Events => events_page(page_request).await,
        MarketAct::Event => event_page(page_request),
        MarketAct::Unsure => unsure_page(page_request),
        MarketAct::Merge => {
            let (one, other) = (event_in(page_request, "one")?, event_in(page_request, "other")?);
            if !confirm::is_confirmed(page_request) {
                return ask_merge(page_request, one, other);
            }
            operate(page_request, Operation::Merge { one, other }, "merged").await
        }
        MarketAct::Part => {
            let (one, other) = (event_in(page_request, "one")?, event_in(page_request, "other")?);
            operate(page_request, Operation::Part { one, other }, "parted").await
        }
        MarketAct::Split => {
            let event = EventId::parse(page_request.id).ok_or(PageError::NotFound)?;
            let (feed, reference) =
                (page_request.form.get("feed"), page_request.form.get("reference"));
            if !confirm::is_confirmed(page_request) {
                return ask_split(page_request, event);
            }
            let (feed, reference) = (feed.into(), reference.into());
            operate(page_request, Operation::Split { event, feed, reference }, "split").await
        }
    }
}

/// The event in a form field.
fn event_in(page_request: &PageRequest<'_>, field: &str) -> Result<EventId, PageError> {
    EventId::parse(page_request.form.get(field).trim()).ok_or_else(|| {
        PageError::Refused("An event's id is needed, such as evt_8ZDGX3VOhGx.".to_owned())
    })
}

fn ask_merge(
    page_request: &PageRequest<'_>,
    one: EventId,
    other: EventId,
) -> Result<Reply, PageError> {
    let identities = page_request.web.api.world(World::Live).identities();
    let named = |id: EventId| match identities.event(id) {
        Some(event) => Ok(format!("{} ({id}, {})", event.fixture, event.competition)),
        None => Err(PageError::Refused(format!("There is no event {id}."))),
    };
    let (first, second) = (named(one)?, named(other)?);
    if one == other {
        return Err(PageError::Refused("An event cannot be merged with itself.".to_owned()));
    }
    let question = Question {
        here: "unsure",
        heading: "Merge these two events?".to_owned(),
        points: vec![
            first,
            second,
            "With the next snapshot clients see one event with the prices of both. Both ids keep working.".to_owned(),
            "The names of both are remembered: later listings under either name join this event.".to_owned(),
            "To undo it, split a feed's listing off on the event's page.".to_owned(),
        ],
        fields: &["one", "other", "back"],
        button: "Merge them",
        back: match page_request.form.get("back") {
            "unsure" => "/console/unsure".to_owned(),
            _ => format!("/console/events/{one}"),
        },
    };
    confirm::ask(page_request, question)
}

fn ask_split(page_request: &PageRequest<'_>, id: EventId) -> Result<Reply, PageError> {
    let identities = page_request.web.api.world(World::Live).identities();
    let event = identities.event(id).ok_or(PageError::NotFound)?;
    let (feed, reference) = (page_request.form.get("feed"), page_request.form.get("reference"));
    let held = event.refs.iter().find(|own| *own.feed == *feed && *own.reference == *reference);
    let Some(held) = held.filter(|_| event.refs.len() > 1) else {
        let text = "Only one of several listings of an event can be split off.";
        return Err(PageError::Refused(text.to_owned()));
    };
    let question = Question {
        here: "events",
        heading: format!("Split {feed}:{reference} off this event?"),
        points: vec![
            format!("{feed} calls it {}; the event is {}.", event.fixture_of(held), event.fixture),
            "It becomes an event of its own, with its former id or a new one, and its prices go with it.".to_owned(),
            "Clients see it with the next snapshot. The listing is not put back here by itself.".to_owned(),
            "To undo it, merge the two events.".to_owned(),
        ],
        fields: &["feed", "reference"],
        button: "Split it off",
        back: format!("/console/events/{id}"),
    };
    confirm::ask(page_request, question)
}

/// Executes an operator's decision and records the operator in the audit log.
async fn operate(
    page_request: &PageRequest<'_>,
    operation: Operation,
    done: &'static str,
) -> Result<Reply, PageError> {
    let actor = page_request.actor()?;
    let (action, subject, detail) = written(&operation);
    let shown = match &operation {
        Operation::Merge { one, .. } | Operation::Part { one, .. } => Some(*one),
        Operation::Split { event, .. } => Some(*event),
        Operation::Teach { .. } | Operation::Drop { .. } => None,
    };
    match page_request.web.api.world(World::Live).operate(operation).await {
        Ok(_) => {}
        Err(
            error @ (OperateError::NotDone(_)
            | OperateError::Busy
            | OperateError::Overtaken
            | OperateError::NoWriter),
        ) => {
            return Err(PageError::Refused(page_error::sentence(&error)));
        }
        Err(error @ OperateError::LogFailed) => return Err(PageError::Failed(Box::new(error))),
    }
    page_request.web.people.note(&actor, action, &subject, &detail).await?;
    Ok(page::redirect(&match (page_request.form.get("back"), shown) {
        ("unsure", _) | (_, None) => format!("/console/unsure?done={done}"),
        (_, Some(event)) => format!("/console/events/{event}?done={done}"),
    }))
}

/// An operation in the form of the audit log: action, event, details.
pub fn written(operation: &Operation) -> (AuditAction, String, String) {
    match operation {
        Operation::Merge { one, other } => {
            (AuditAction::EventsMerged, one.to_string(), format!("and {other} are one"))
        }
        Operation::Part { one, other } => {
            (AuditAction::EventsParted, one.to_string(), format!("and {other} are two"))
        }
        Operation::Split { event, feed, reference } => {
            (AuditAction::EventSplit, event.to_string(), format!("{feed}:{reference} is another"))
        }
        Operation::Teach { aliases } => {
            (AuditAction::AliasesTaught, "names".to_owned(), format!("{} aliases", aliases.len()))
        }
        Operation::Drop { feed } => {
            (AuditAction::FeedDropped, feed.to_string(), "all that it listed".to_owned())
        }
    }
}

async fn events_page(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let query: String = page_request.query.get("q").trim().chars().take(SEARCH_CHARS_MAX).collect();
    let catalogue = &page_request.web.api.catalogue;
    let sport = catalogue.sport_id(page_request.query.get("sport"));
    let identities = Arc::clone(&page_request.web.api.world(World::Live).identities());
    let (unsure, left_out) = (identities.unsure().len(), identities.left_out());
    // Searching a hundred thousand events must not block a request thread.
    let looked_for = query.clone();
    let found = tokio::task::spawn_blocking(move || search(&identities, &looked_for, sport));
    let found = found.await.map_err(|error| PageError::Failed(Box::new(error)))?;
    let page = page_asked(page_request);
    let shown = found.iter().skip(page * EVENTS_SHOWN_MAX).take(EVENTS_SHOWN_MAX);
    let lines = shown.map(|event| EventLine::new(event, page_request)).collect();
    let sport_key = sport.map_or("", |sport| &*catalogue.sport(sport).key);
    let fields = [("q", query.as_str()), ("sport", sport_key)];
    let page = EventsPage {
        shell: Shell::new(page_request, "Events", "events"),
        sports: catalogue
            .sports()
            .map(|(id, own)| Choice {
                key: own.key.to_string(),
                title: own.title.to_string(),
                chosen: sport == Some(id),
            })
            .collect(),
        events: lines,
        paging: Paging::new("/console/events", &fields, page, EVENTS_SHOWN_MAX, found.len()),
        query,
        unsure,
        left_out,
    };
    page::render(200, &page)
}

/// Events that contain every word, by start.
fn search(identities: &Identities, query: &str, sport: Option<SportId>) -> Vec<Arc<EventView>> {
    let words: Vec<String> = query.split_whitespace().map(fold).collect();
    let fits = |event: &&Arc<EventView>| {
        sport.is_none_or(|sport| event.sport == sport) && (words.is_empty() || has(event, &words))
    };
    let mut found: Vec<Arc<EventView>> = identities.events().filter(fits).map(Arc::clone).collect();
    found.sort_unstable_by_key(|event| (event.commence_time, event.id));
    found
}

fn has(event: &EventView, words: &[String]) -> bool {
    let mut text = format!("{} {} {}", event.id, event.fixture, event.competition);
    for id in &event.also {
        text.push_str(&format!(" {id}"));
    }
    for held in &event.refs {
        let names = event.fixture_of(held);
        let competition = event.competition_of(held);
        text.push_str(&format!(" {}:{} {names} {competition}", held.feed, held.reference));
    }
    let text = fold(&text);
    words.iter().all(|word| text.contains(word.as_str()))
}

/// Folds text for searches: without case and, for Latin letters, without accents.
fn fold(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { market::plain_letters(text) }
}

fn page_asked(page_request: &PageRequest<'_>) -> usize {
    page_request.query.get("page").parse::<usize>().unwrap_or(1).clamp(1, 1_000_000) - 1
}

fn event_page(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let id = EventId::parse(page_request.id).ok_or(PageError::NotFound)?;
    let live = page_request.web.api.world(World::Live);
    let identities = live.identities();
    let event = identities.event(id).ok_or(PageError::NotFound)?;
    let concerned =
        identities.unsure().iter().filter(|pair| [pair.one, pair.other].contains(&event.id));
    let published = live.published();
    let row = published.snapshot.sport(event.sport).event(event.id);
    let page = EventPage {
        shell: Shell::new(page_request, "Event", "events"),
        pairs: concerned
            .take(PAIRS_SHOWN_MAX)
            .filter_map(|pair| Pair::new(pair, &identities, page_request))
            .collect(),
        event: EventLine::new(event, page_request),
        also: event.also.iter().map(ToString::to_string).collect(),
        records: row.map_or(0, |row| row.records.len()),
        cells: row.map(|row| cells(&published.snapshot, event, row)),
        rejected: rejected(page_request, &published.snapshot, event),
    };
    page::render(200, &page)
}

/// The cells with their feeds, and the refs under which feeds list the event.
fn cells(snapshot: &Snapshot, event: &EventView, row: &EventRow) -> Cells {
    let named = |feed: &str| {
        let refs = event.refs.iter().filter(|held| *held.feed == *feed);
        let refs: Vec<String> = refs.map(|held| format!("{feed}:{}", held.reference)).collect();
        if refs.is_empty() { feed.to_owned() } else { refs.join(" ") }
    };
    Cells::new(snapshot, event.sport, row).with_feeds(snapshot, event.sport, named)
}

/// The newest rejected messages of feeds that list an event or quote its bookmakers.
fn rejected(
    page_request: &PageRequest<'_>,
    snapshot: &Snapshot,
    event: &EventView,
) -> Vec<SampleLine> {
    let mut feeds: BTreeSet<&str> = event.refs.iter().map(|held| &*held.feed).collect();
    for (bookmaker, _) in snapshot.catalogue().bookmakers() {
        feeds.extend(snapshot.feeds_quoting(event.sport, bookmaker));
    }
    let is_reject = |sample: &Sample| RejectCode::ALL.iter().any(|code| code.slug() == sample.code);
    let mut found: Vec<(Sample, &str)> = Vec::new();
    for feed in feeds {
        let samples = page_request.web.api.feed_stats.samples(feed).into_iter().filter(is_reject);
        found.extend(samples.map(|sample| (sample, feed)));
    }
    found.sort_by_key(|(sample, _)| Reverse(sample.at));
    let newest = found.into_iter().take(REJECTED_SHOWN_MAX);
    newest.map(|(sample, feed)| SampleLine::new(sample, Some(feed), page_request.now)).collect()
}

fn unsure_page(page_request: &PageRequest<'_>) -> Result<Reply, PageError> {
    let identities = page_request.web.api.world(World::Live).identities();
    let mut pairs: Vec<&Unsure> = identities.unsure().iter().collect();
    // Events that start first have to be decided first.
    pairs.sort_by_key(|pair| {
        let start = |id| identities.event(id).map(|event| event.commence_time);
        (start(pair.one).min(start(pair.other)), pair.one, pair.other)
    });
    let page = page_asked(page_request);
    let shown = pairs.iter().skip(page * PAIRS_SHOWN_MAX).take(PAIRS_SHOWN_MAX);
    let page = UnsurePage {
        shell: Shell::new(page_request, "Possible duplicates", "unsure"),
        paging: Paging::new("/console/unsure", &[], page, PAIRS_SHOWN_MAX, pairs.len()),
        pairs: shown.filter_map(|pair| Pair::new(pair, &identities, page_request)).collect(),
    };
    page::render(200, &page)
}

impl EventLine {
    fn new(event: &EventView, page_request: &PageRequest<'_>) -> Self {
        let catalogue: &Catalogue = &page_request.web.api.catalogue;
        let line = |held: &RefView| RefLine {
            feed: held.feed.to_string(),
            reference: held.reference.to_string(),
            names: event.fixture_of(held).to_string(),
            competition: event.competition_of(held).to_owned(),
            starts: TimeText::new(held.commence_time, page_request.now),
            swapped: held.swapped,
            why: held.why.to_string(),
        };
        Self {
            id: event.id.to_string(),
            sport: catalogue.sport(event.sport).title.to_string(),
            names: event.fixture.to_string(),
            competition: event.competition.to_string(),
            starts: TimeText::new(event.commence_time, page_request.now),
            refs: event.refs.iter().map(line).collect(),
        }
    }

    /// True if removing the ref would leave the event without one.
    fn is_single(&self) -> bool {
        self.refs.len() < 2
    }

    fn feeds(&self) -> String {
        let names: Vec<String> =
            self.refs.iter().map(|held| format!("{}:{}", held.feed, held.reference)).collect();
        names.join(", ")
    }
}

impl Pair {
    /// `None` if one of the two does not exist any more.
    fn new(pair: &Unsure, identities: &Identities, page_request: &PageRequest<'_>) -> Option<Self> {
        let (one, other) = (identities.event(pair.one)?, identities.event(pair.other)?);
        let turned = pair.evidence.swapped;
        let line =
            |what, one: String, other: String| Compared { what, differs: one != other, one, other };
        let mut lines = match (&one.fixture, &other.fixture) {
            (
                Fixture::HeadToHead { home, away },
                Fixture::HeadToHead { home: their_home, away: their_away },
            ) => {
                let (first, second) =
                    if turned { (their_away, their_home) } else { (their_home, their_away) };
                vec![
                    line("Home", home.to_string(), first.to_string()),
                    line("Away", away.to_string(), second.to_string()),
                ]
            }
            (ours, theirs) => vec![line("Title", ours.to_string(), theirs.to_string())],
        };
        let (one, other) = (EventLine::new(one, page_request), EventLine::new(other, page_request));
        lines.push(line("Starts", one.starts.text.clone(), other.starts.text.clone()));
        lines.push(line("Competition", one.competition.clone(), other.competition.clone()));
        let feeds = Compared { differs: false, ..line("Listed by", one.feeds(), other.feeds()) };
        lines.push(feeds);
        let (doubt, evidence) =
            (page_error::as_sentence(&pair.doubt.to_string()), pair.evidence.to_string());
        Some(Self { one, other, lines, doubt, evidence, turned })
    }
}

impl Paging {
    fn new(path: &str, fields: &[(&str, &str)], page: usize, shown_max: usize, all: usize) -> Self {
        let to_page = |page: usize| {
            let number = page.saturating_add(1).to_string();
            let mut fields = fields.to_vec();
            if page > 0 {
                fields.push(("page", &number));
            }
            format!("{path}{}", form::query(&fields))
        };
        let from = page.saturating_mul(shown_max);
        Self {
            from: (from + 1).min(all),
            to: from.saturating_add(shown_max).min(all),
            all: number(u64::try_from(all).unwrap_or(u64::MAX)),
            before: page.checked_sub(1).map(to_page),
            after: (from.saturating_add(shown_max) < all).then(|| to_page(page + 1)),
        }
    }
}
