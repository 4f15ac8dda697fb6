use domain::Catalogue;

use crate::docs::refusal;
use crate::docs::site::Site;
use api::{ErrorCode, openapi};

fn site() -> Site {
    Site::new(&openapi::value(&Catalogue::load(None).unwrap())).unwrap()
}

fn links(html: &str) -> impl Iterator<Item = &str> {
    html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap())
}

#[test]
fn every_code_has_its_heading_in_the_reference() {
    for code in ErrorCode::ALL {
        let advice = refusal::advice(code.slug()).unwrap_or_else(|| panic!("{}", code.slug()));
        assert!(
            advice.contains("- **Cause:** ") && advice.contains("- **Fix:** "),
            "{}",
            code.slug()
        );
    }
    let headings = refusal::ADVICE.lines().filter_map(|line| line.strip_prefix("## "));
    for heading in headings {
        let slug = heading.trim_matches('`');
        assert!(ErrorCode::ALL.iter().any(|code| code.slug() == slug), "{slug} is no code");
    }
    let site = site();
    for code in ErrorCode::ALL {
        let id = format!(" id=\"error-{}\"", code.slug());
        assert!(site.find("errors").unwrap().body.contains(&id), "{code:?}");
    }
}

#[test]
fn every_link_leads_to_one_place() {
    let site = site();
    for page in &site.pages {
        for link in links(&page.body) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path.strip_prefix("/docs/") {
                _ if path.is_empty() => page,
                Some(slug) => site.find(slug).unwrap_or_else(|| panic!("{}: {link}", page.slug)),
                None => continue,
            };
            if !anchor.is_empty() {
                let places = target.body.matches(&format!(" id=\"{anchor}\"")).count();
                assert_eq!(places, 1, "{}: {link}", page.slug);
            }
        }
    }
}

#[test]
fn no_page_runs_anything_or_needs_anything_from_elsewhere() {
    for page in site().pages {
        let body = &page.body;
        for bad in ["<script", " style=\"", " onclick", "<img", "{{"] {
            assert!(!body.contains(bad), "{}: {bad}", page.slug);
        }
        for link in links(body) {
            assert!(link.starts_with(['#', '/']), "{}: {link}", page.slug);
        }
    }
}

#[test]
fn drawings_are_part_of_their_pages_and_styled_by_them() {
    let site = site();
    let body = &site.find("analytics").unwrap().body;
    assert!(
        body.contains("<span class=\"picture\"><svg ") && body.contains("aria-label=\"How much")
    );
    assert!(!body.contains("<style"));
}

#[test]
fn there_is_a_page_for_all_that_a_newcomer_looks_for() {
    let site = site();
    for slug in [
        "start",
        "sandbox",
        "migration",
        "polling",
        "python",
        "typescript",
        "rust",
        "command-line",
        "spreadsheets",
        "push-python",
        "catalogue",
        "proxy",
        "docker",
        "upgrade",
        "first-alert",
        "authentication",
        "limits",
        "freshness-and-caching",
        "errors",
        "reference/get-odds",
        "reference/get_odds",
        "reference/objects",
        "reference/ingest",
        "configuration",
        "changelog",
    ] {
        assert!(site.find(slug).is_some(), "{slug}");
    }
    let body = |slug: &str| &site.find(slug).unwrap().body;
    for name in ["The Odds API v4", "<code>h2h</code>", "<code>oddsFormat</code>"] {
        assert!(body("migration").contains(name), "{name}");
    }
    assert!(body("polling").contains("a default key follows a whole sport"));
    assert!(body("start").contains("always <code>degraded</code>"));
    assert!(body("configuration").contains("<code>server.shed_after</code>"));
    assert!(body("changelog").contains("<h2 id=\"unreleased\">"));
}

#[test]
fn every_request_is_shown_in_four_languages() {
    for page in site().pages {
        let samples = page.body.matches("<div class=\"sample\">").count();
        assert_eq!(page.body.matches("type=\"radio\"").count(), 4 * samples, "{}", page.slug);
        if page.slug.starts_with("reference/") && page.body.contains("class=\"method get\"") {
            // A stream has no end, so it is asked for by curl alone. Files are not there in the sandbox.
            let other = page.body.contains("event: hello") || page.slug == "reference/get-export";
            assert!(samples > 0 || other, "{}", page.slug);
        }
    }
}

#[test]
fn the_search_knows_every_page_and_heading() {
    let site = site();
    let request = http::Request::new("GET", "/docs/index.json");
    let index: Vec<[String; 4]> =
        serde_json::from_slice(&site.index.reply(&request).body.whole()).unwrap();
    for page in &site.pages {
        assert!(index.iter().any(|[path, ..]| *path == format!("/docs/{}", page.slug)));
    }
    let found = |path: &str| index.iter().find(|[own, ..]| own == path).unwrap();
    assert!(found("/docs/errors#error-quota_exceeded")[3].contains("Retry-After"));
    assert_eq!(found("/docs/polling#what-it-costs")[2], "What it costs");
}
