//! Properties: no input makes the parser panic, and written messages read back the same.

use domain::catalogue::{Catalogue, Shape};
use domain::line::Line;
use domain::market::{Market, PointRule};
use domain::message::{
    Body, Correction, FRESH_FOR_S_MAX, FeedMessage, Fixture, Listing, OddsBody, OfferedOutcome,
    ScoreBody,
};
use domain::price::{Format, Price, Quote};
use domain::score::{Period, Status};
use domain::time::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{catalogue, parse, written};
use crate::push::{looks_like_text, parse_line, split_lines};

/// Texts with characters that JSON must escape, and others.
fn name() -> impl Strategy<Value = Box<str>> {
    r#"[A-Za-z"\\/'é漢🥊]([ -~é漢🥊]{0,30}[A-Za-z"\\])?"#.prop_map(String::into_boxed_str)
}

fn reference() -> impl Strategy<Value = Box<str>> {
    r#"[ -~é漢]{1,40}"#.prop_map(String::into_boxed_str)
}

fn instant() -> impl Strategy<Value = Timestamp> {
    // The calendar library's range ends a day before the year 9999 does.
    let whole_range = -2_208_988_800_000..253_402_207_200_000_i64;
    prop_oneof![
        whole_range.prop_map(Timestamp::from_millis),
        (0_i64..4_000_000_000).prop_map(Timestamp::from_secs),
        (0_i64..4_000_000_000_000).prop_map(Timestamp::from_millis),
    ]
}

fn quote(format: Format) -> BoxedStrategy<Quote> {
    let text = match format {
        Format::American => r"-?[1-9][0-9]{2,6}",
        Format::Decimal => r"[1-9][0-9]{0,3}\.[0-9]{0,12}[1-9]",
        Format::Fractional => r"[1-9][0-9]{0,8}/[1-9][0-9]{0,8}",
    };
    text.prop_map(move |text| Quote::parse(&text, format).unwrap()).boxed()
}

fn line(market: Market) -> BoxedStrategy<Option<Line>> {
    match market.point_rule() {
        PointRule::None => Just(None).boxed(),
        PointRule::Signed => {
            (-40_000..=40_000).prop_map(|quarters| Some(Line::from_quarters(quarters))).boxed()
        }
        PointRule::Total => {
            (1..=40_000).prop_map(|quarters| Some(Line::from_quarters(quarters))).boxed()
        }
    }
}

/// Outcomes of one format, no name twice.
fn outcomes(market: Market, format: Format) -> impl Strategy<Value = Vec<OfferedOutcome>> {
    btree_map(name(), (quote(format), line(market)), 0..20).prop_map(|outcomes| {
        let outcome = |(name, (quote, point))| OfferedOutcome { name, quote, point };
        outcomes.into_iter().map(outcome).collect()
    })
}

fn odds() -> impl Strategy<Value = Body> {
    (select(Market::ALL.to_vec()), select(Format::ALL.to_vec()))
        .prop_flat_map(|(market, format)| {
            let rest = (reference(), any::<Index>(), option::of(reference()));
            (Just(market), rest, outcomes(market, format))
        })
        .prop_map(|(market, (reference, bookmaker, group), outcomes)| {
            let ids: Vec<_> = catalogue().bookmakers().map(|(id, _)| id).collect();
            Body::Odds(OddsBody {
                reference,
                bookmaker: *bookmaker.get(&ids),
                market,
                group,
                outcomes,
            })
        })
}

fn event() -> impl Strategy<Value = Body> {
    let names = (name(), name(), name());
    (reference(), any::<Index>(), instant(), names).prop_map(
        |(reference, sport, commence_time, (competition, home, away))| {
            let sports: Vec<_> = catalogue().sports().collect();
            let (id, sport) = sport.get(&sports);
            let fixture = match sport.shape {
                Shape::Field => Fixture::Field { title: home },
                Shape::HeadToHead => {
                    Fixture::HeadToHead { away: format!("{home}+{away}").into(), home }
                }
            };
            let listing = Listing { sport: *id, competition, commence_time, fixture };
            Body::Event { reference, listing }
        },
    )
}

fn score() -> impl Strategy<Value = Body> {
    let part = -1_000..=9_999;
    let sides = (option::of(0_i32..=9_999), option::of(0_i32..=9_999));
    let periods = btree_map(1..=9_999_u32, (part.clone(), part.clone()), 0..8);
    let leaders = vec((name(), vec(part, 0..5)), 0..8);
    let status = select(Status::ALL.to_vec());
    let correction = select(vec![Correction::Yes, Correction::No]);
    let rest = (option::of(name()), leaders, correction);
    (reference(), status, sides, periods, rest).prop_map(
        |(reference, status, (home, away), periods, (winner, leaders, correction))| {
            let period = |(number, (home, away))| Period { number, home, away };
            Body::Score(ScoreBody {
                reference,
                status,
                home,
                away,
                periods: periods.into_iter().map(period).collect(),
                winner,
                leaders,
                correction,
            })
        },
    )
}

fn heartbeat() -> impl Strategy<Value = Body> {
    (any::<Index>(), option::of(any::<Index>())).prop_map(|(bookmaker, sport)| {
        let catalogue = catalogue();
        let bookmakers: Vec<_> = catalogue.bookmakers().map(|(id, _)| id).collect();
        let sports: Vec<_> = catalogue.sports().map(|(id, _)| id).collect();
        Body::Heartbeat {
            bookmaker: *bookmaker.get(&bookmakers),
            sport: sport.map(|sport| *sport.get(&sports)),
        }
    })
}

fn message() -> impl Strategy<Value = FeedMessage> {
    let remove = reference().prop_map(|reference| Body::Remove { reference });
    let body = prop_oneof![4 => odds(), 2 => event(), 2 => score(), 1 => remove, 1 => heartbeat()];
    (option::of(instant()), option::of(1..=FRESH_FOR_S_MAX), body).prop_map(
        |(ts, fresh_for, body)| {
            let paces = matches!(body, Body::Odds(_) | Body::Heartbeat { .. });
            FeedMessage { ts, fresh_for_s: fresh_for.filter(|_| paces), body }
        },
    )
}

#[test]
fn outcomes_that_share_no_exact_format_keep_their_prices_as_fractions() {
    let outcome = |name: &str, profit, stake, format| OfferedOutcome {
        name: name.into(),
        quote: Quote { price: Price::from_ratio(profit, stake).unwrap(), format },
        point: None,
    };
    let catalogue = catalogue();
    let mixed = [outcome("A", 3, 2, Format::American), outcome("B", 91, 100, Format::Decimal)];
    // No whole American price is 3/7.
    let inexact = [outcome("A", 3, 7, Format::American)];
    for outcomes in [mixed.to_vec(), inexact.to_vec()] {
        let body = Body::Odds(OddsBody {
            reference: "a".into(),
            bookmaker: catalogue.bookmaker_id("fanduel").unwrap(),
            market: Market::Moneyline,
            group: None,
            outcomes: outcomes.clone(),
        });
        let line = written(&FeedMessage { ts: None, fresh_for_s: None, body }, catalogue);
        let Body::Odds(back) = parse(&line).unwrap().body else {
            panic!("{line}");
        };
        let prices =
            |list: &[OfferedOutcome]| list.iter().map(|o| o.quote.price).collect::<Vec<_>>();
        assert_eq!(prices(&back.outcomes), prices(&outcomes), "{line}");
    }
}

/// Removes, duplicates or replaces a part of a valid line.
fn damage(line: &str, at: Index, len: usize, with: &[u8]) -> Vec<u8> {
    let mut bytes = line.as_bytes().to_vec();
    let start = at.index(bytes.len());
    let end = bytes.len().min(start + len);
    bytes.splice(start..end, with.iter().copied());
    bytes
}

fn never_panics(bytes: &[u8], catalogue: &Catalogue) {
    looks_like_text(bytes);
    for (_, line) in split_lines(bytes) {
        for bound in [None, catalogue.bookmaker_id("fanduel")] {
            if let Ok(message) = parse_line(line, catalogue, bound) {
                let again = written(&message, catalogue);
                assert_eq!(parse_line(again.as_bytes(), catalogue, None), Ok(message));
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same(message in message()) {
        let catalogue = catalogue();
        let line = written(&message, catalogue);
        prop_assert!(line.ends_with('\n') && line.lines().count() == 1);
        prop_assert_eq!(parse_line(line.as_bytes(), catalogue, None), Ok(message), "{}", line);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        never_panics(&bytes, catalogue());
    }

    #[test]
    fn any_damage_to_a_line_is_read_or_refused(
        message in message(),
        at in any::<Index>(),
        len in 0_usize..12,
        with in prop_oneof![
            vec(any::<u8>(), 0..6),
            r#"null|\{\}|\[\]|-?[0-9.eE]{1,6}|"[a-z]*"|\\u[0-9a-f]{4}|[{}\[\],:"]"#.prop_map(String::into_bytes),
        ],
    ) {
        let catalogue = catalogue();
        never_panics(&damage(&written(&message, catalogue), at, len, &with), catalogue);
    }
}
