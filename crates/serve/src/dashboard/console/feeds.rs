//! Feeds: their tokens, and how fresh what they say is.

use accounts::Deed;
use askama::Template;
use domain::World;

use crate::dashboard::moment::{Moment, span};
use crate::dashboard::page::{self, Notice, Shell, Trouble};
use crate::dashboard::visit::Visit;
use crate::reply::Reply;

struct FeedLine {
    name: String,
    bookmaker: String,
    created: Moment,
    revoked: Option<Moment>,
    taken: u64,
    refused: u64,
    reasons: String,
}

struct SourceLine {
    sport: String,
    bookmaker: String,
    read: Moment,
    age: String,
    latency_ms: u32,
    stale: bool,
}

#[derive(Template)]
#[template(path = "feeds.html")]
struct FeedsPage {
    shell: Shell,
    feeds: Vec<FeedLine>,
    sources: Vec<SourceLine>,
    bookmakers: Vec<(String, String)>,
    stale_after: String,
}

#[derive(Template)]
#[template(path = "feed_new.html")]
struct NewFeedPage {
    shell: Shell,
    name: String,
    secret: String,
    base: String,
}

pub(super) async fn show(visit: &Visit<'_>, notice: Option<Notice>) -> Result<Reply, Trouble> {
    let app = visit.app;
    let feeds = app.accounts.list_feeds().await?.into_iter().map(|feed| {
        let (taken, reasons) = app.metrics.ledger.figures(&feed.name);
        let words: Vec<String> =
            reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        FeedLine {
            bookmaker: feed.bookmaker.unwrap_or_else(|| "any".to_owned()),
            created: Moment::new(feed.created_at, visit.now),
            revoked: feed.revoked_at.map(|at| Moment::new(at, visit.now)),
            name: feed.name,
            taken,
            refused: reasons.iter().map(|(_, count)| count).sum(),
            reasons: words.join(", "),
        }
    });
    let live = app.world(World::Live);
    let mut sources: Vec<SourceLine> = live
        .vitals()
        .sources
        .iter()
        .map(|(sport, bookmaker, source)| SourceLine {
            sport: app.catalogue.sport(*sport).title.to_string(),
            bookmaker: app.catalogue.bookmaker(*bookmaker).title.to_string(),
            read: Moment::new(source.read_at, visit.now),
            age: span(visit.now.since(source.read_at)),
            latency_ms: source.latency_ms,
            stale: source.is_stale(visit.now, live.stale_after()),
        })
        .collect();
    // What needs a look comes first.
    sources
        .sort_by(|a, b| (b.stale, &a.sport, &a.bookmaker).cmp(&(a.stale, &b.sport, &b.bookmaker)));
    let titled = |key: &str, title: &str| (key.to_owned(), title.to_owned());
    let page = FeedsPage {
        shell: Shell::new(visit, "Feeds", "feeds").with(notice),
        feeds: feeds.collect(),
        sources,
        bookmakers: app
            .catalogue
            .bookmakers()
            .map(|(_, own)| titled(&own.key, &own.title))
            .collect(),
        stale_after: span(live.stale_after()),
    };
    page::render(200, &page)
}

pub(super) async fn create(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let name = visit.form.get("name").trim();
    let bookmaker = Some(visit.form.get("bookmaker")).filter(|key| !key.is_empty());
    if bookmaker.is_some_and(|key| visit.app.catalogue.bookmaker_id(key).is_none()) {
        return Err(Trouble::Refused("There is no such bookmaker in the catalogue.".to_owned()));
    }
    let (token, record) = visit.app.accounts.create_feed(name, bookmaker).await?;
    let detail = bookmaker.unwrap_or("any bookmaker");
    visit.app.people.note(&visit.actor()?, Deed::FeedCreated, &record.name, detail).await?;
    let page = NewFeedPage {
        shell: Shell::new(visit, "A feed's token", "feeds"),
        name: record.name,
        secret: token.expose().to_owned(),
        base: visit.base(),
    };
    page::render(200, &page)
}

pub(super) async fn revoke(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    visit.app.accounts.revoke_feed(visit.id).await?;
    visit.app.people.note(&visit.actor()?, Deed::FeedRevoked, visit.id, "").await?;
    Ok(page::redirect("/console/feeds?done=feed-revoked"))
}
