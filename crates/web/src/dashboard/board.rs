//! The board: a live odds screen. Events are rows, bookmakers columns; the best price of each outcome is marked, prices
//! that are too old are greyed with their age. Each event has a page of its own with the paths of its prices.
//!
//! Made from the snapshot in force, as the API's answers are, once for everybody who looks at the same. The pages
//! work as they stand; a script lets them renew themselves with every publication ([`live`]).

mod chance;
mod chart;
mod choice;
mod delta;
mod event;
mod history;
mod keeper;
mod live;
mod screen;
mod spark;
mod turns;

use std::sync::{Arc, RwLock};

use askama::Template;
use domain::market::PointRule;
use domain::{EventId, Format, Market, Timestamp, World};

use crate::context::Web;
use crate::dashboard::asset;
use crate::dashboard::board::choice::{Choice, Link};
use crate::dashboard::board::history::History;
use crate::dashboard::board::live::{Gallery, NoPlace, PageKey, View, Watch};
use crate::dashboard::board::screen::{Fixture, Screen};
use crate::dashboard::board::turns::{NoTurn, Turns};
use crate::dashboard::form::Form;
use crate::dashboard::page::{self, Shell, Trouble};
use crate::dashboard::route::{self, BoardAct, Page};
use crate::dashboard::visit::Visit;
use api::Asset;
use http::{Method, Peer, Reply, Request};

pub use self::keeper::keep_pages;

/// Longest text to look for; further letters do not count.
const FIND_CHARS_MAX: usize = 80;

/// What the boards are made from and who looks at them.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) history: RwLock<History>,
    pub(crate) gallery: Gallery,
    turns: Turns,
}

impl Board {
    /// How many paths of prices are kept.
    pub(crate) fn paths(&self) -> usize {
        self.history.read().unwrap_or_else(std::sync::PoisonError::into_inner).len()
    }
}

#[derive(Template)]
#[template(path = "board.html")]
struct BoardPage {
    shell: Shell,
    frame: Frame,
    sports: Vec<Link>,
    sport: String,
    sport_key: String,
    find: String,
    /// The same in small letters.
    wanted: String,
    /// What the search form sends along.
    kept: [(&'static str, &'static str); 3],
    screen: Arc<Screen>,
    query: String,
    linked: bool,
}

impl BoardPage {
    /// The events that are looked for.
    fn found(&self) -> impl Iterator<Item = &Fixture> {
        self.screen.fixtures.iter().filter(|own| own.is_about(&self.wanted))
    }
}

/// What both kinds of page have: the switches, the table's dress, where news comes from.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
    pub(crate) sandbox: bool,
    pub(crate) market: &'static str,
    pub(crate) markets: Vec<Link>,
    pub(crate) formats: Vec<Link>,
    pub(crate) regions: Vec<Link>,
    pub(crate) stream: String,
    pub(crate) cut: Timestamp,
    pub(crate) cut_text: String,
    /// How wide a price is, from `w1` to `w3`.
    pub(crate) width: &'static str,
}

impl Frame {
    pub(crate) fn new(web: &Web, choice: &Choice, path: &str, cut: Timestamp) -> Self {
        let [markets, formats, regions] = choice.switches(&web.api.catalogue, path);
        Self {
            style: asset::board_style_path(),
            script: asset::board_path(),
            sandbox: web.settings.board == Some(World::Sandbox),
            market: choice.market_title(),
            markets,
            formats,
            regions,
            stream: format!("{path}/stream{}", choice.query()),
            cut,
            cut_text: clock_text(cut),
            width: width(choice.market, choice.format),
        }
    }
}

/// The time of day, to the second.
fn clock_text(at: Timestamp) -> String {
    at.to_string().get(11..19).unwrap_or_default().to_owned()
}

fn width(market: Market, format: Format) -> &'static str {
    let has_line = market.point_rule() != PointRule::None;
    match (has_line, format) {
        (false, Format::American | Format::Decimal) => "w1",
        (true, Format::American | Format::Decimal) | (false, Format::Fractional) => "w2",
        (true, Format::Fractional) => "w3",
    }
}

pub(crate) async fn answer(visit: &Visit<'_>, page: BoardAct) -> Result<Reply, Trouble> {
    let web = visit.web;
    web.settings.board.ok_or(Trouble::NotFound)?;
    match page {
        BoardAct::Front => {
            let (_, first) = web.api.catalogue.sports().next().ok_or(Trouble::NotFound)?;
            Ok(page::redirect(&format!("/board/{}", first.key)))
        }
        BoardAct::Board | BoardAct::Event => {
            let view = view(web, visit.id, page, &visit.query)?;
            shown(visit, view).await
        }
        // Whoever asks for the head only; watching begins in [`watch`].
        BoardAct::Stream | BoardAct::EventStream => {
            view(web, visit.id, page, &visit.query)?;
            Ok(page::guarded(Reply::new(200, "text/event-stream", "")))
        }
    }
}

/// What an address leads to.
fn view(web: &Web, id: &str, page: BoardAct, query: &Form) -> Result<View, Trouble> {
    let catalogue = &web.api.catalogue;
    match page {
        BoardAct::Front | BoardAct::Board | BoardAct::Stream => {
            let sport = catalogue.sport_id(id).ok_or(Trouble::NotFound)?;
            Ok(View { choice: Choice::read(catalogue, sport, query)?, event: None })
        }
        BoardAct::Event | BoardAct::EventStream => {
            let world = web.settings.board.ok_or(Trouble::NotFound)?;
            let id = EventId::parse(id).ok_or(Trouble::NotFound)?;
            let published = web.api.world(world).published();
            let found = catalogue.sports().find_map(|(sport, _)| {
                let row = published.snapshot.sport(sport).event(id)?;
                Some((sport, row.id))
            });
            let (sport, id) = found.ok_or(Trouble::NotFound)?;
            Ok(View { choice: Choice::read(catalogue, sport, query)?, event: Some(id) })
        }
    }
}

/// A page: one that was made before for the same publication, or a new one.
async fn shown(visit: &Visit<'_>, view: View) -> Result<Reply, Trouble> {
    let web = visit.web;
    let find: String = visit.query.get("q").trim().chars().take(FIND_CHARS_MAX).collect();
    let shell = Shell { notice: None, ..Shell::new(visit, "Board", "board") };
    // What has nobody's name on it, is everybody's.
    let common = shell.email.is_none() && find.is_empty();
    // Only an event's page has paths to choose from; elsewhere the word would make pages that are all alike.
    let outcome = if view.event.is_some() { visit.query.get("outcome") } else { "" };
    let key = PageKey {
        view,
        outcome: outcome.chars().take(8).collect(),
        maintenance: shell.maintenance,
    };
    if common {
        let world = web.api.world(web.settings.board.ok_or(Trouble::NotFound)?);
        let cut = world.published().snapshot.cut_at;
        if let Some(page) = web.board.gallery.page(cut, &key) {
            return Ok(page.reply(visit.request));
        }
    }
    let making = Arc::clone(web);
    let accepts = visit.request.accept_encoding.as_deref().map(<[u8]>::to_vec);
    // Making and packing a large page takes milliseconds, which other requests need not wait.
    let work = move || make(&making, shell, key, find, common, accepts.as_deref());
    let page = web.board.turns.take(work).await??;
    Ok(page.reply(visit.request))
}

impl From<NoTurn> for Trouble {
    fn from(why: NoTurn) -> Self {
        match why {
            NoTurn::Busy => Self::Busy,
            NoTurn::Failed(error) => Self::Failed(Box::new(error)),
        }
    }
}

fn make(
    web: &Web,
    shell: Shell,
    key: PageKey,
    find: String,
    common: bool,
    accepts: Option<&[u8]>,
) -> Result<Arc<Asset>, Trouble> {
    let screen = web.board.gallery.screen(web, key.view).ok_or(Trouble::NotFound)?;
    let cut = screen.cut;
    let html = match key.view.event {
        Some(id) => event::render(web, shell, &key, id, &screen)?,
        None => render(web, shell, key.view.choice, find, screen)?,
    };
    let page = Asset::new("text/html; charset=utf-8", html).guarded(&page::GUARD);
    let page = Arc::new(if common { page.checked() } else { page.private() });
    page.pack(accepts);
    if common {
        web.board.gallery.keep_page(cut, key, &page);
    }
    Ok(page)
}

fn render(
    web: &Web,
    shell: Shell,
    choice: Choice,
    find: String,
    screen: Arc<Screen>,
) -> Result<String, Trouble> {
    let sport = web.api.catalogue.sport(choice.sport);
    let path = format!("/board/{}", sport.key);
    let page = BoardPage {
        shell,
        frame: Frame::new(web, &choice, &path, screen.cut),
        sports: choice.sports(&web.api.catalogue),
        sport: sport.title.to_string(),
        sport_key: sport.key.to_string(),
        wanted: find.to_lowercase(),
        find,
        kept: choice.fields(),
        screen,
        query: choice.query(),
        linked: true,
    };
    Ok(page.render()?)
}

/// Why a board cannot be watched.
#[derive(Debug)]
pub(crate) enum NotWatched {
    Trouble(Trouble),
    NoPlace,
}

impl From<Trouble> for NotWatched {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<NoPlace> for NotWatched {
    fn from(NoPlace: NoPlace) -> Self {
        Self::NoPlace
    }
}

/// Begins to watch a board.
///
/// # Errors
/// There is no such board, or no place.
pub(crate) async fn watch(web: &Arc<Web>, request: &Request<'_>) -> Result<Watch, NotWatched> {
    let (found, id) = route::find(Method::Get, request.path)?;
    let Page::Board(page) = found.page else {
        return Err(Trouble::NotFound.into());
    };
    let query = Form::parse(request.query.as_bytes()).unwrap_or_default();
    let view = view(web, id, page, &query)?;
    // A browser that comes back says what it saw last; one that begins says which page it has.
    let seen = request.page.last_event_id.and_then(|id| std::str::from_utf8(id).ok());
    let seen = seen.unwrap_or_else(|| query.get("since")).parse().ok().map(Timestamp::from_millis);
    let source = web.api.server.settings.proxies.client(Peer::current().address, &request.page);
    let (source, making) = (source, Arc::clone(web));
    let work = move || making.board.gallery.watch(&making, view, seen, source);
    Ok(web.board.turns.take(work).await.map_err(Trouble::from)??)
}
