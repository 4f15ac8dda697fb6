//! The pages of the board: resolves an address and renders its page.

use std::sync::Arc;

use askama::Template;
use domain::EventId;
use engine::Published;

use crate::context::Web;
use crate::dashboard::board::choice::{Choice, Link};
use crate::dashboard::board::filter::{self, Filter};
use crate::dashboard::board::frame::{Frame, owned};
use crate::dashboard::board::live::{BoardHub, NotWatched, PageKey, View};
use crate::dashboard::board::past::{EventPast, EventPasts};
use crate::dashboard::board::screen::{Fixture, Screen};
use crate::dashboard::board::worker_slots::NoWorkerSlot;
use crate::dashboard::board::{event, value};
use crate::dashboard::form::Form;
use crate::dashboard::page::{self, Shell};
use crate::dashboard::page_error::PageError;
use crate::dashboard::page_request::PageRequest;
use crate::dashboard::route::{self, BoardAct, Page};
use api::Asset;
use http::{BodyStream, Method, Peer, Reply, Request};

#[derive(Template)]
#[template(path = "board.html")]
struct BoardPage {
    shell: Shell,
    frame: Frame,
    sports: Vec<Link>,
    sport: String,
    sport_key: String,
    filter: Filter,
    /// Hidden fields of the filter form.
    kept: Vec<(&'static str, String)>,
    screen: Arc<Screen>,
    query: String,
    linked: bool,
}

impl BoardPage {
    /// Events that match the filter.
    fn found(&self) -> impl Iterator<Item = &Fixture> {
        self.screen.fixtures.iter().filter(|own| self.filter.fits(own))
    }
}

/// The page for an address without a board.
#[derive(Template)]
#[template(path = "board_missing.html")]
struct MissingPage {
    shell: Shell,
}

pub(crate) async fn answer(
    page_request: &PageRequest<'_>,
    page: BoardAct,
) -> Result<Reply, PageError> {
    let web = page_request.web;
    web.settings.board.ok_or(PageError::NotFound)?;
    match page {
        BoardAct::Front => {
            let (_, first) = web.api.catalogue.sports().next().ok_or(PageError::NotFound)?;
            Ok(page::redirect(&format!("/board/{}", first.key)))
        }
        BoardAct::Board | BoardAct::Event => {
            let answered = match view(web, page_request.id, page, &page_request.query) {
                Ok(view) => shown(page_request, view).await,
                Err(error) => Err(error),
            };
            match answered {
                Err(PageError::NotFound) => {
                    let shell = Shell::new(page_request, "Page not found", "board");
                    page::render(404, &MissingPage { shell })
                }
                answered => answered,
            }
        }
        BoardAct::Value => {
            let (making, choice) =
                (Arc::clone(web), view(web, page_request.id, page, &page_request.query)?.choice);
            let shell =
                Shell { notice: None, ..Shell::new(page_request, "Value and arbitrage", "board") };
            // A page is shared if it shows no account and no selected bookmakers.
            let common = shell.email.is_none() && choice.bookmakers.is_none();
            let work = move || value::render(&making, shell, choice);
            let html = web.board.workers.take(work).await??;
            let page = Asset::new("text/html; charset=utf-8", html).guarded(&page::GUARD);
            let page = if common { page.checked() } else { page.private() };
            Ok(page.reply(page_request.request))
        }
        // HEAD requests; streams start in [`watch`].
        BoardAct::Stream | BoardAct::EventStream => {
            view(web, page_request.id, page, &page_request.query)?;
            Ok(page::guarded(Reply::new(200, "text/event-stream", "")))
        }
    }
}

/// Resolves an address.
fn view(web: &Web, id: &str, page: BoardAct, query: &Form) -> Result<View, PageError> {
    let catalogue = &web.api.catalogue;
    let world = web.settings.board.ok_or(PageError::NotFound)?;
    match page {
        BoardAct::Front | BoardAct::Board | BoardAct::Stream | BoardAct::Value => {
            let sport = catalogue.sport_id(id).ok_or(PageError::NotFound)?;
            Ok(View { world, choice: Choice::read(catalogue, sport, query)?, event: None })
        }
        BoardAct::Event | BoardAct::EventStream => {
            let id = EventId::parse(id).ok_or(PageError::NotFound)?;
            let published = web.api.world(world).published();
            let found = catalogue.sports().find_map(|(sport, _)| {
                let row = published.snapshot.sport(sport).event(id)?;
                Some((sport, row.id))
            });
            let (sport, id) = found.ok_or(PageError::NotFound)?;
            Ok(View { world, choice: Choice::read(catalogue, sport, query)?, event: Some(id) })
        }
    }
}

/// Returns a page rendered earlier for the same publication, or renders it.
async fn shown(page_request: &PageRequest<'_>, view: View) -> Result<Reply, PageError> {
    let web = page_request.web;
    let filter = Filter::read(&page_request.query);
    let shell = Shell { notice: None, ..Shell::new(page_request, "Board", "board") };
    // A page is shared if it shows no account, no selected bookmakers and no filter.
    let own = view.choice.bookmakers.is_some() || !filter.is_empty();
    let common = shell.email.is_none() && !own;
    // Only an event's page has a price history; elsewhere `outcome` would create identical cache entries.
    let outcome = if view.event.is_some() { page_request.query.get("outcome") } else { "" };
    let key = PageKey {
        view,
        outcome: outcome.chars().take(8).collect(),
        maintenance: shell.maintenance,
    };
    let published = Arc::clone(&web.api.world(view.world).published());
    if common && let Some(page) = web.board.hub.page(published.snapshot.cut_at, &key) {
        return Ok(page.reply(page_request.request));
    }
    let screen = web.board.hub.screen(&web.board, view, &published).await?;
    let past = EventPasts::find(&web.board, view, &published).await;
    let making = Arc::clone(web);
    let accepts = page_request.request.accept_encoding.as_deref().map(<[u8]>::to_vec);
    // Rendering and compressing a large page takes milliseconds; other requests must not wait for that.
    let work = move || {
        let shown = Shown { screen, published, past };
        make(&making, shell, key, filter, shown, common, accepts.as_deref())
    };
    let page = web.board.workers.take(work).await??;
    Ok(page.reply(page_request.request))
}

impl From<NoWorkerSlot> for PageError {
    fn from(why: NoWorkerSlot) -> Self {
        match why {
            NoWorkerSlot::Busy => Self::Busy,
            NoWorkerSlot::Failed(error) => Self::Failed(Box::new(error)),
        }
    }
}

/// Input of a rendered page.
struct Shown {
    screen: Arc<Screen>,
    published: Arc<Published>,
    /// Set on an event's page.
    past: Option<Arc<EventPast>>,
}

fn make(
    web: &Web,
    shell: Shell,
    key: PageKey,
    filter: Filter,
    Shown { screen, published, past }: Shown,
    common: bool,
    accepts: Option<&[u8]>,
) -> Result<Arc<Asset>, PageError> {
    let cut = screen.cut;
    let html = match key.view.event {
        Some(id) => event::render(web, shell, &key, id, (&screen, &published, past.as_deref()))?,
        None => render(web, shell, key.view.choice, filter, screen)?,
    };
    let page = Asset::new("text/html; charset=utf-8", html).guarded(&page::GUARD);
    let page = Arc::new(if common { page.checked() } else { page.private() });
    page.pack(accepts);
    if common {
        web.board.hub.keep_page(cut, key, &page);
    }
    Ok(page)
}

fn render(
    web: &Web,
    shell: Shell,
    choice: Choice,
    filter: Filter,
    screen: Arc<Screen>,
) -> Result<String, PageError> {
    let sport = web.api.catalogue.sport(choice.sport);
    let path = format!("/board/{}", sport.key);
    let page = BoardPage {
        shell,
        frame: Frame::new(web, &choice, &path, &screen, &filter),
        sports: choice.sports(&web.api.catalogue),
        sport: sport.title.to_string(),
        sport_key: sport.key.to_string(),
        filter,
        kept: owned(choice.fields(&web.api.catalogue).into_iter()),
        screen,
        query: choice.query(&web.api.catalogue),
        linked: true,
    };
    Ok(page.render()?)
}

/// Starts watching a board.
///
/// # Errors
/// There is no such board, or no free slot, or its screen cannot be rendered now.
pub(crate) async fn watch(web: &Arc<Web>, request: &Request<'_>) -> Result<BodyStream, NotWatched> {
    let (found, id) = route::find(Method::Get, request.path)?;
    let Page::Board(page) = found.page else {
        return Err(PageError::NotFound.into());
    };
    let query = Form::parse(request.query.as_bytes()).unwrap_or_default();
    let view = view(web, id, page, &query)?;
    // A reconnecting browser sends the id of the last event it saw; a new one names its page's publication.
    let seen = request.page.last_event_id.and_then(|id| std::str::from_utf8(id).ok());
    let seen = seen.unwrap_or_else(|| query.get("since"));
    let source = web.api.server.settings.proxies.client(Peer::current().address, &request.page);
    BoardHub::watch(&web.board, view, seen, source).await
}
