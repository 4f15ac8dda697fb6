//! The pages of `/docs`: guides from Markdown files, the reference from the OpenAPI document, and the search index.
//! Built once per service; content that depends on the reader is filled in later.

use api::Asset;
use askama::Template;
use askama::filters::Safe;
use serde_json::{Value, json};

use crate::docs::code;
use crate::docs::llms;
use crate::docs::markdown;
use crate::docs::reference::{self, Reference};
use crate::docs::refusal;
use crate::docs::shape::{at, text};

/// A handwritten page. It has a title of its own; the file's first heading is omitted.
struct Guide {
    group: &'static str,
    slug: &'static str,
    title: &'static str,
    /// Path of the file in the repository; its links are relative to it.
    file: &'static str,
    text: &'static str,
}

macro_rules! guide {
    ($group:ident, $slug:literal, $title:literal, $file:literal) => {
        Guide {
            group: $group,
            slug: $slug,
            title: $title,
            file: $file,
            text: include_str!(concat!("../../../../", $file)),
        }
    };
}

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

const START: &str = "Start";
const GUIDES_GROUP: &str = "Guides";
const API: &str = "The API";
const REFERENCE: &str = "Reference";
const FEEDS: &str = "Feeds";
const OPERATE: &str = "Operate";
const MORE: &str = "More";

/// Groups in the order of the navigation.
const GROUPS: [&str; 7] = [START, GUIDES_GROUP, API, REFERENCE, FEEDS, OPERATE, MORE];

const GUIDES: &[Guide] = &[
    guide!(START, "start", "Getting started", "docs/api/start.md"),
    guide!(START, "sandbox", "The sandbox", "docs/api/sandbox.md"),
    guide!(START, "migration", "Migrate from The Odds API v4", "docs/api/migration.md"),
    guide!(START, "v4", "The Odds API v4, unchanged", "docs/v4.md"),
    guide!(GUIDES_GROUP, "polling", "Polling and paging", "docs/guides/polling.md"),
    guide!(GUIDES_GROUP, "streaming", "Streaming", "docs/guides/streaming.md"),
    guide!(GUIDES_GROUP, "replay", "Replay a past day", "docs/guides/replay.md"),
    guide!(GUIDES_GROUP, "python", "Python client", "docs/clients/python.md"),
    guide!(GUIDES_GROUP, "typescript", "TypeScript client", "docs/clients/typescript.md"),
    guide!(GUIDES_GROUP, "rust", "Rust client", "docs/clients/rust.md"),
    guide!(GUIDES_GROUP, "command-line", "Command line", "docs/clients/command-line.md"),
    guide!(GUIDES_GROUP, "agents", "Agents", "docs/clients/agents.md"),
    guide!(GUIDES_GROUP, "spreadsheets", "Spreadsheets", "docs/guides/spreadsheets.md"),
    guide!(GUIDES_GROUP, "push-python", "Push a feed from Python", "docs/guides/push-python.md"),
    guide!(GUIDES_GROUP, "catalogue", "Add a bookmaker or a sport", "docs/guides/catalogue.md"),
    guide!(GUIDES_GROUP, "proxy", "Behind Caddy or nginx", "docs/guides/proxy.md"),
    guide!(GUIDES_GROUP, "docker", "Run it with Docker", "docs/guides/docker.md"),
    guide!(GUIDES_GROUP, "analytics", "Best, fair, arbitrage, value", "docs/analytics.md"),
    guide!(GUIDES_GROUP, "first-alert", "Your first alert", "docs/guides/first-alert.md"),
    guide!(GUIDES_GROUP, "upgrade", "Upgrade", "docs/guides/upgrade.md"),
    guide!(GUIDES_GROUP, "history", "Looking back", "docs/history.md"),
    guide!(GUIDES_GROUP, "coverage", "Why is a price missing?", "docs/coverage.md"),
    guide!(FEEDS, "ingest", "The push protocol", "docs/ingest.md"),
    guide!(FEEDS, "adapters", "Upstream adapters", "docs/adapters/index.md"),
    guide!(FEEDS, "adapter-the-odds-api", "Adapter: The Odds API", "docs/adapters/the_odds_api.md"),
    guide!(FEEDS, "adapter-betfair", "Adapter: Betfair", "docs/adapters/betfair.md"),
    guide!(FEEDS, "adapter-mapped", "Adapter: mapped feeds", "docs/adapters/mapped.md"),
    guide!(FEEDS, "adapter-exec", "Adapter: your program", "docs/adapters/exec.md"),
    guide!(FEEDS, "map-a-feed", "Map a JSON feed", "docs/guides/map-a-feed.md"),
    guide!(FEEDS, "write-an-adapter", "Write your own adapter", "docs/guides/write-an-adapter.md"),
    guide!(FEEDS, "matching", "Matching events", "docs/matching.md"),
    guide!(OPERATE, "running", "Running Linesman", "docs/operations/running.md"),
    guide!(OPERATE, "configuration", "Configuration reference", "docs/operations/configuration.md"),
    guide!(OPERATE, "backup", "Backup and restore", "docs/operations/backup.md"),
    guide!(OPERATE, "failures", "Failures and alerts", "docs/operations/failures.md"),
    guide!(OPERATE, "sizing", "Sizing", "docs/operations/sizing.md"),
    guide!(OPERATE, "many-nodes", "Clusters", "docs/operations/many-nodes.md"),
    guide!(OPERATE, "keys", "Revocation in a cluster", "docs/operations/keys.md"),
    guide!(MORE, "glossary", "Glossary", "docs/concepts.md"),
    guide!(MORE, "changelog", "Changelog", "CHANGELOG.md"),
];

/// The Markdown of a guide, or of the page on errors.
pub fn guide_text(slug: &str) -> Option<&'static str> {
    if slug == "errors" {
        return Some(refusal::ADVICE);
    }
    GUIDES.iter().find(|guide| guide.slug == slug).map(|guide| guide.text)
}

/// Guides for client authors in `/llms-full.txt`, most important first.
const FOR_CLIENTS: [&str; 11] = [
    "start",
    "sandbox",
    "polling",
    "analytics",
    "coverage",
    "history",
    "spreadsheets",
    "python",
    "typescript",
    "rust",
    "command-line",
];

/// Files that are part of a page of the reference.
const ELSEWHERE: [(&str, &str); 3] = [
    ("docs/api/errors.md", "errors"),
    ("docs/sandbox.md", "sandbox"),
    ("docs/operations/README.md", "running"),
];

/// A heading that can be linked to.
#[derive(Debug)]
pub(crate) struct Heading {
    pub(crate) id: String,
    pub(crate) title: String,
}

/// One page. Its body still has placeholders for the address, events and days.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) group: &'static str,
    /// Address below `/docs/`.
    pub(crate) slug: String,
    pub(crate) title: String,
    pub(crate) body: String,
    /// Second-level headings.
    pub(crate) headings: Vec<Heading>,
}

impl Page {
    fn new(group: &'static str, slug: &str, title: &str, body: &str) -> Self {
        let body = code::number(body);
        let headings = sections(&body)
            .into_iter()
            .filter(|section| section.level == 2)
            .map(|section| Heading { id: section.id, title: section.title })
            .collect();
        Self { group, slug: slug.to_owned(), title: title.to_owned(), body, headings }
    }

    /// True if the page has requests that need a key.
    pub(crate) fn needs_key(&self) -> bool {
        self.body.contains("$LINESMAN_KEY")
    }
}

/// All pages in the order of the navigation, and the search index.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) lead: String,
    pub(crate) pages: Vec<Page>,
    pub(crate) index: Asset,
    /// `/llms.txt` and `/llms-full.txt`.
    pub(crate) llms: Asset,
    pub(crate) llms_full: Asset,
}

impl Site {
    /// # Errors
    /// A template cannot be rendered.
    pub(crate) fn new(document: &Value) -> askama::Result<Self> {
        let description = text(at(document, "/info"), "description");
        let mut parts = description.split("\n## ");
        let Safe(lead) = markdown::block(parts.next().unwrap_or_default());
        let mut pages: Vec<Page> = GUIDES.iter().map(Guide::page).collect();
        for part in parts {
            let (title, body) = part.split_once('\n').unwrap_or((part, ""));
            match title {
                // The guide replaces this section of the document.
                "Quick start" => {}
                "Errors" => pages.push(errors(document, body)?),
                _ => {
                    let Safe(body) = markdown::block(body);
                    pages.push(Page::new(API, &markdown::slug(title), title, &body));
                }
            }
        }
        for (slug, title, reference) in reference::entries(document) {
            let group = if slug.ends_with("/ingest") { FEEDS } else { REFERENCE };
            pages.push(Page::new(group, &slug, &title, &reference.render()?));
        }
        let place = |page: &Page| GROUPS.iter().position(|group| *group == page.group);
        pages.sort_by_key(place);
        let index = Asset::new("application/json", index(&pages).to_string());
        let texts: Vec<llms::Text> =
            FOR_CLIENTS.iter().filter_map(|slug| Guide::text(slug)).collect();
        let groups: Vec<llms::Group<'_>> = groups(&pages)
            .into_iter()
            .map(|(group, pages)| {
                (group, pages.iter().map(|page| (&*page.title, &*page.slug)).collect())
            })
            .collect();
        let list = llms::index(document, &groups);
        let full = llms::full(document, refusal::ADVICE, &texts);
        let [llms, llms_full] = [list, full].map(|text| Asset::new(PLAIN_TEXT, text));
        Ok(Self { lead, pages, index, llms, llms_full })
    }

    /// The page at an address below `/docs/`.
    pub(crate) fn find(&self, slug: &str) -> Option<&Page> {
        // Operations are also found by their `operationId`.
        let slug = slug.replace('_', "-");
        self.pages.iter().find(|page| page.slug == slug)
    }

    /// The navigation: each group with its pages.
    pub(crate) fn groups(&self) -> Vec<(&'static str, Vec<&Page>)> {
        groups(&self.pages)
    }
}

/// The pages by group.
fn groups(pages: &[Page]) -> Vec<(&'static str, Vec<&Page>)> {
    let of = |group: &'static str| pages.iter().filter(move |page| page.group == group);
    GROUPS.into_iter().map(|group| (group, of(group).collect())).collect()
}

impl Guide {
    /// The Markdown of a guide.
    fn text(slug: &str) -> Option<llms::Text> {
        let guide = GUIDES.iter().find(|guide| guide.slug == slug)?;
        let markdown = llms::relinked(guide.body(), |to| resolve(guide.file, to));
        Some(llms::Text { title: guide.title, markdown })
    }

    /// The text below the first heading.
    fn body(&self) -> &'static str {
        let text = self.text.strip_prefix("# ").and_then(|text| text.split_once('\n'));
        text.map_or(self.text, |(_, rest)| rest)
    }

    fn page(&self) -> Page {
        let Safe(body) = markdown::page(self.body(), &|to| resolve(self.file, to));
        Page::new(self.group, self.slug, self.title, &body)
    }
}

/// The page of the codes, with an introduction.
fn errors(document: &Value, about: &str) -> askama::Result<Page> {
    let codes: Reference<'_> = reference::error_codes(document);
    let body = format!("{}{}", markdown::block(about).0, codes.render()?);
    Ok(Page::new(REFERENCE, "errors", "Error codes", &body))
}

/// Resolves a link in a file to a page of the site; `None` if there is none.
fn resolve(from: &str, to: &str) -> Option<String> {
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    let file = parts.join("/");
    let guides = GUIDES.iter().map(|guide| (guide.file, guide.slug));
    let (_, slug) = guides.chain(ELSEWHERE).find(|(known, _)| *known == file)?;
    let anchor = match (slug, anchor) {
        (_, "") => String::new(),
        ("errors", code) => format!("#error-{code}"),
        (_, anchor) => format!("#{anchor}"),
    };
    Some(format!("/docs/{slug}{anchor}"))
}

/// A heading with the text below it.
struct Section {
    level: u8,
    id: String,
    title: String,
    text: String,
}

/// Splits a page's body at its headings; the part before the first has no id.
fn sections(body: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    let mut rest = body;
    let mut open =
        Section { level: 1, id: String::new(), title: String::new(), text: String::new() };
    loop {
        let next = [("<h2 id=\"", 2), ("<h3 id=\"", 3)];
        let next = next.iter().filter_map(|(tag, level)| Some((rest.find(tag)?, *tag, *level)));
        let found = next.min();
        let Some((at, tag, level)) = found else {
            open.text = plain(rest);
            sections.push(open);
            return sections;
        };
        let (before, after) = rest.split_at(at);
        open.text = plain(before);
        sections.push(open);
        let after = after.strip_prefix(tag).unwrap_or_default();
        let (id, after) = after.split_once('"').unwrap_or_default();
        let (title, after) = after.split_once("</h").unwrap_or_default();
        let title = plain(title.split_once('>').map_or("", |(_, title)| title));
        open = Section { level, id: id.to_owned(), title, text: String::new() };
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
}

/// HTML without tags, in one line.
fn plain(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text.push(' ');
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    let text = text.replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The search index: each section of each page as address, page, heading and text.
fn index(pages: &[Page]) -> Value {
    let entries = pages.iter().flat_map(|page| {
        sections(&page.body).into_iter().map(move |section| {
            let anchor = if section.id.is_empty() { "" } else { "#" };
            json!([
                format!("/docs/{}{anchor}{}", page.slug, section.id),
                page.title,
                section.title,
                section.text
            ])
        })
    });
    entries.collect()
}
