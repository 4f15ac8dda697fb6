use domain::Catalogue;

use crate::docs::{refusal, render};
use api::{ErrorCode, openapi};

fn page() -> String {
    let others = [("/board", "Board"), ("/status", "Status")];
    render::page(&openapi::value(&Catalogue::load(None).unwrap()), &others).unwrap()
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
}

#[test]
fn every_link_on_the_page_leads_to_one_place() {
    let page = page();
    for link in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let places = page.matches(&format!(" id=\"{link}\"")).count();
        assert_eq!(places, 1, "#{link}");
    }
    for code in ErrorCode::ALL {
        assert!(page.contains(&format!(" id=\"error-{}\"", code.slug())), "{code:?}");
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_runs_nothing() {
    let page = page();
    assert!(!page.contains("<script") && !page.contains(" style=\"") && !page.contains(" onclick"));
    assert!(!page.contains("{{"), "a place in the page is not filled in");
    for address in page.split("src=\"").skip(1).chain(page.split("href=\"").skip(1)) {
        assert!(["#", "/", "data:"].iter().any(|own| address.starts_with(own)), "{address:.40}");
    }
}

#[test]
fn the_page_has_every_part_that_a_newcomer_looks_for() {
    let page = page();
    for part in [
        "getting-started",
        "endpoints",
        "error-codes",
        "limits",
        "freshness-and-caching",
        "sandbox",
        "migration",
        "changelog",
    ] {
        assert!(page.contains(&format!("<section id=\"{part}\"")), "{part}");
    }
    for name in [
        "<code>h2h</code>",
        "<code>oddsFormat</code>",
        "<code>eventIds</code>",
        "<h3>Unreleased</h3>",
    ] {
        assert!(page.contains(name), "{name}");
    }
    assert!(page.contains("<a href=\"/board\">Board</a>"));
}
