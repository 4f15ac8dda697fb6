//! Real feeds, one mapping each: compares with the events of the flat list, and with the prices in the file itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::market::Market;
use domain::message::{Fixture, OfferedOutcome};
use domain::price::{Format, Quote};
use domain::time::Timestamp;
use linesman_feeds::adapter::mapped::{Mapped, Mapping, Recipe};
use linesman_feeds::adapter::the_odds_api::TheOddsApi;
use linesman_feeds::adapter::{Read, Translator, dropped};

use super::{read, recordings, settings, tests_folder};

fn now() -> Timestamp {
    Timestamp::from_secs(1_800_000_000)
}

fn mapping(name: &str) -> Mapping {
    let path = tests_folder().join(format!("mappings/{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap();
    Mapping::compile(&text).unwrap_or_else(|faults| panic!("{name}: {faults}"))
}

fn translate(mapping: Mapping, body: &[u8]) -> Read {
    let mut translator = Mapped::new(Arc::new(mapping), settings("betway"));
    translator.translate("u", body, now()).unwrap_or_else(|drift| panic!("{drift}"))
}

/// One row of the flat list.
struct Row {
    file: String,
    sport: String,
    id: String,
    names: BTreeSet<String>,
    prices: Vec<String>,
}

/// The flat list, a CSV file that is read with a mapping of its own.
fn flat_list() -> Vec<Row> {
    let path = recordings().unwrap().join("combat/book_feeds_2021/bouts_flat.csv.gz");
    let text = String::from_utf8(read(&path).unwrap()).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let mut fields: Vec<String> = Vec::new();
        let (mut field, mut quoted) = (String::new(), false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(std::mem::take(&mut field)),
                _ => field.push(c),
            }
        }
        fields.push(field);
        rows.push(Row {
            file: fields[0].clone(),
            sport: fields[1].clone(),
            id: fields[4].clone(),
            names: [plain(&fields[6]), plain(&fields[7])].into(),
            prices: fields[9..].to_vec(),
        });
    }
    rows
}

fn plain(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The decimal price, rounded as in the flat list.
fn decimal(outcome: &OfferedOutcome) -> f64 {
    outcome.quote.to_json(Format::Decimal).parse().unwrap()
}

#[test]
fn the_feeds_of_eight_bookmakers_give_the_bouts_of_the_flat_list() {
    let Some(data) = recordings() else { return };
    let rows = flat_list();
    let raw = data.join("combat/book_feeds_2021/raw");
    let mut checked = 0;
    for entry in std::fs::read_dir(&raw).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".gz").to_owned();
        let book = file.split('_').nth(1).unwrap().to_owned();
        let Some(body) = read(&path) else { continue };
        let result = translate(mapping(&book), &body);
        assert_eq!(result.failed, 0, "{file}: {:?}", result.failures);
        // Golf matchups are not head-to-head events here.
        let expected: BTreeMap<&str, &Row> = rows
            .iter()
            .filter(|row| row.file == file && row.sport != "golf")
            .map(|row| (&*row.id, row))
            .collect();
        let listed: BTreeMap<&str, BTreeSet<String>> = result
            .listings
            .iter()
            .map(|listed| match &listed.listing.fixture {
                Fixture::HeadToHead { home, away } => {
                    (&*listed.reference, [plain(home), plain(away)].into())
                }
                Fixture::Field { .. } => panic!("{file}"),
            })
            .collect();
        for (id, row) in &expected {
            assert_eq!(listed.get(id), Some(&row.names), "{file} {id}");
        }
        // The flat list leaves out bouts in which one side has no price.
        let whole = |id: &str| {
            result
                .markets
                .iter()
                .any(|market| *market.odds.reference == *id && market.odds.outcomes.len() >= 2)
        };
        let more: Vec<_> =
            listed.iter().filter(|(id, _)| !expected.contains_key(**id) && whole(id)).collect();
        assert!(more.is_empty(), "{file}: not in the flat list: {more:?}");
        check_prices(&file, &result, &expected);
        checked += expected.len();
    }
    assert!(checked > 900, "{checked}");
}

fn check_prices(file: &str, result: &Read, expected: &BTreeMap<&str, &Row>) {
    let moneylines: Vec<_> =
        result.markets.iter().filter(|offered| offered.odds.market == Market::Moneyline).collect();
    let mut priced = 0;
    for offered in &moneylines {
        let Some(row) = expected.get(&*offered.odds.reference) else { continue };
        let ours: Vec<f64> = offered
            .odds
            .outcomes
            .iter()
            .filter(|outcome| !outcome.name.eq_ignore_ascii_case("draw"))
            .map(decimal)
            .collect();
        let theirs: Vec<f64> = row.prices.iter().filter_map(|price| price.parse().ok()).collect();
        // The list misreads decimals of Sports Interaction, which are checked against the file below, and contains
        // prices of suspended outcomes.
        if file.contains("sportsint") || theirs.len() < 2 || ours.len() < 2 {
            continue;
        }
        for price in &theirs {
            let near = ours.iter().any(|ours| (ours - price).abs() <= 0.01 + 0.006 * price);
            assert!(near, "{file} {}: {price} of {ours:?}", offered.odds.reference);
        }
        priced += ours.len();
    }
    assert!(file.contains("sportsint") || priced > 0, "{file}");
}

#[test]
fn decimal_and_american_prices_of_one_file_are_told_apart() {
    let Some(data) = recordings() else { return };
    let path = data.join("combat/book_feeds_2021/raw/mma_sportsint_2021-03-04.xml.gz");
    let Some(body) = read(&path) else { return };
    let text = String::from_utf8(body.clone()).unwrap();
    let result = translate(mapping("sportsint"), &body);
    let mut seen = 0;
    for offered in &result.markets {
        for outcome in &offered.odds.outcomes {
            let at = text.find(&format!("<Event ID=\"{}\"", offered.odds.reference)).unwrap();
            let runner = format!("<![CDATA[{}]]></Runner>", outcome.name);
            let from = at + text[at..].find(&runner).unwrap();
            let price = text[from..].split("<Price>").nth(1).unwrap().split('<').next().unwrap();
            let format = if price.contains('.') { Format::Decimal } else { Format::American };
            assert_eq!(Quote::parse(price, format).unwrap(), outcome.quote);
            seen += 1;
        }
    }
    assert!(seen >= 90, "{seen}");
}

#[test]
fn kambi_gives_every_bout_with_its_prices_in_thousandths() {
    let Some(data) = recordings() else { return };
    for (file, events, moneylines, totals) in
        [("unibet_mma", 49, 49, 6), ("unibet_boxing", 6, 6, 1)]
    {
        let Some(body) = read(&data.join(format!("feeds/kambi/{file}.json.gz"))) else { return };
        let vars = [("operator", "ub"), ("group", "1")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let result = translate(Recipe::find("kambi").unwrap().compile(&vars).unwrap(), &body);
        assert_eq!(result.failed, 0, "{:?}", result.failures);
        assert_eq!(result.listings.len(), events);
        let count = |market| result.markets.iter().filter(|m| m.odds.market == market).count();
        assert_eq!((count(Market::Moneyline), count(Market::TotalRounds)), (moneylines, totals));
        assert!(result.unmapped.keys().all(|name| name.what.key() == "market"));
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        for offer in json["betOffers"].as_array().unwrap() {
            if offer["criterion"]["englishLabel"] != "Bout Odds" {
                continue;
            }
            let reference = offer["eventId"].to_string();
            let market = result.markets.iter().find(|m| *m.odds.reference == *reference).unwrap();
            let mut theirs: Vec<u64> = offer["outcomes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|outcome| outcome["odds"].as_u64().unwrap())
                .collect();
            let mut ours: Vec<u64> = market
                .odds
                .outcomes
                .iter()
                .map(|o| {
                    (o.quote.price.profit() + o.quote.price.stake()) * 1000 / o.quote.price.stake()
                })
                .collect();
            theirs.sort_unstable();
            ours.sort_unstable();
            assert_eq!(ours, theirs, "{reference}");
        }
    }
}

#[test]
fn betrivers_matchbook_bovada_and_pinnacle_are_read() {
    let Some(data) = recordings() else { return };
    for (name, file, events_min, priced_min) in [
        ("betrivers", "kambi/betrivers_rsi_wrapper_mma.json.gz", 20, 20),
        ("betrivers", "kambi/betrivers_rsi_wrapper_boxing.json", 3, 3),
        ("matchbook", "matchbook/marketdata_events.json", 1, 1),
        ("bovada", "bovada/bovada_boxing_2021-05.json", 11, 11),
        ("pinnacle", "pinnacle/legacy_xml_feed_mma.xml", 5, 5),
        ("pinnacle", "pinnacle/legacy_xml_feed_boxing.xml", 5, 5),
    ] {
        let Some(body) = read(&data.join("feeds").join(file)) else { return };
        let result = translate(mapping(name), &body);
        assert_eq!(result.failed, 0, "{file}: {:?}", result.failures);
        assert!(result.listings.len() >= events_min, "{file}: {} events", result.listings.len());
        let priced = result.markets.iter().filter(|market| market.odds.outcomes.len() >= 2).count();
        assert!(priced >= priced_min, "{file}: {priced} markets");
    }
}

#[test]
fn polymarket_gives_the_asks_of_both_sides() {
    let Some(data) = recordings() else { return };
    let folder = data.join("feeds/polymarket");
    let file = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
    };
    // The recorded markets are closed; the event is assembled from them with the markets open, as `/events` answers.
    let mut moneyline = file("gamma_market_sports_market_money_line.json");
    let mut spread = file("gamma_market_sports_market_map_handicap.json");
    let mut event = moneyline["events"][0].clone();
    spread["sportsMarketType"] = "spreads".into();
    for market in [&mut moneyline, &mut spread] {
        market["closed"] = false.into();
        market["acceptingOrders"] = true.into();
        market["bestAsk"] = serde_json::from_str("0.61").unwrap();
        market["bestBid"] = serde_json::from_str("0.6").unwrap();
    }
    event["closed"] = false.into();
    event["markets"] = serde_json::Value::Array(vec![moneyline, spread]);
    let body = serde_json::to_vec(&serde_json::Value::Array(vec![event])).unwrap();
    let vars = [("tag", "ufc"), ("sport", "mma")];
    let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let result = translate(Recipe::find("polymarket").unwrap().compile(&vars).unwrap(), &body);
    assert_eq!(result.failed, 0, "{:?}", result.failures);
    let [listed] = &*result.listings else { panic!("{result:?}") };
    assert_eq!(
        listed.listing.fixture.to_string(),
        "FaZe v illwill (BO3)".trim_end_matches(" (BO3)")
    );
    assert_eq!(listed.listing.commence_time.to_string(), "2026-04-05T15:10:00Z");
    let [moneyline, spread] = &*result.markets else { panic!("{result:?}") };
    let fractions = |market: &linesman_feeds::adapter::Offered| -> Vec<String> {
        market.odds.outcomes.iter().map(|o| o.quote.to_json(Format::Fractional)).collect()
    };
    assert_eq!(fractions(moneyline), ["\"39/61\"", "\"3/2\""]);
    assert_eq!(fractions(spread), ["\"39/61\"", "\"3/2\""]);
    let points: Vec<_> = spread.odds.outcomes.iter().map(|o| o.point.unwrap().quarters()).collect();
    assert_eq!(points, [-6, 6]);
}

#[test]
fn the_odds_api_gives_every_back_price_by_name_and_no_lay() {
    let Some(data) = recordings() else { return };
    let folder = data.join("odds_api/v4_json");
    let mut bookmakers = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(body) = read(&path).filter(|_| !name.starts_with("scores")) else { continue };
        let american = String::from_utf8_lossy(&body).replace(' ', "").contains("\"price\":-");
        let format = if american { Format::American } else { Format::Decimal };
        let mut api = TheOddsApi::new(settings("none"), format);
        let result =
            api.translate("odds/x", &body, now()).unwrap_or_else(|d| panic!("{name}: {d}"));
        assert_eq!(result.failed, 0, "{name}: {:?}", result.failures);
        assert!(result.unmapped.is_empty(), "{name}: {:?}", result.unmapped);
        assert!(result.markets.iter().all(|market| market.ts.is_some()), "{name}");
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(result.listings.len(), json.as_array().unwrap().len(), "{name}");
        bookmakers += result.markets.len();
        if name.starts_with("mma_odds_2021") {
            assert_eq!(result.markets.len(), 153);
            assert_eq!(result.dropped.get(dropped::LAY), Some(&17));
            assert_eq!(result.listings.len(), 23);
        }
        check_by_name(&name, &json, &result, format);
    }
    assert!(bookmakers > 2_000, "{bookmakers}");
}

fn check_by_name(file: &str, json: &serde_json::Value, result: &Read, format: Format) {
    let catalogue = settings("none").catalogue;
    let own = linesman_feeds::adapter::the_odds_api::own_names();
    let mut checked = 0;
    for offered in &result.markets {
        let odds = &offered.odds;
        let event = json.as_array().unwrap().iter().find(|e| e["id"] == *odds.reference).unwrap();
        let key = &*catalogue.bookmaker(odds.bookmaker).key;
        let book = event["bookmakers"].as_array().unwrap().iter().find(|book| {
            let upstream = book["key"].as_str().unwrap();
            own.bookmakers.get(upstream).map_or(upstream, String::as_str) == key
        });
        let upstream = [
            (Market::Moneyline, "h2h"),
            (Market::Spread, "spreads"),
            (Market::Outright, "outrights"),
            (Market::TotalPoints, "totals"),
        ];
        let upstream = upstream.iter().find(|(ours, _)| *ours == odds.market).unwrap().1;
        let markets = book.unwrap()["markets"].as_array().unwrap();
        let market = markets.iter().find(|market| market["key"] == upstream).unwrap();
        for outcome in &odds.outcomes {
            let same =
                |o: &&serde_json::Value| o["name"].as_str().unwrap().trim() == &*outcome.name;
            let found = market["outcomes"].as_array().unwrap().iter().find(same).unwrap();
            if upstream == "h2h" {
                let quote = Quote::parse(&found["price"].to_string(), format).unwrap();
                assert_eq!(quote, outcome.quote, "{file} {}", odds.reference);
                checked += 1;
            }
        }
    }
    assert!(checked > 0 || !file.contains("mma"), "{file}");
}

#[test]
fn every_bookmaker_and_sport_of_the_snapshot_is_mapped_or_ignored_by_name() {
    let Some(data) = recordings() else { return };
    let api = TheOddsApi::new(settings("none"), Format::Decimal);
    let names = linesman_feeds::adapter::the_odds_api::own_names();
    let catalogue = settings("none").catalogue;
    let folder = data.join("odds_api/snapshot_2026-04-16");
    let mut keys = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let Some(body) = read(&path).filter(|_| path.to_string_lossy().contains("__odds")) else {
            continue;
        };
        let text = String::from_utf8(body).unwrap();
        let column =
            text.lines().next().unwrap().split(',').position(|name| name == "bookmaker_key");
        keys.extend(
            text.lines()
                .skip(1)
                .map(|line| line.split(',').nth(column.unwrap()).unwrap().to_owned()),
        );
    }
    assert!(keys.len() > 30, "{keys:?}");
    for key in &keys {
        let known = names.bookmaker(key, &catalogue);
        assert_ne!(known, linesman_feeds::adapter::Known::Unmapped, "{key}");
    }
    let sports = std::fs::read_to_string(folder.join("sports.csv")).unwrap();
    let wanted = sports.lines().skip(1).filter_map(|line| line.split(',').next());
    let wanted: Vec<_> = wanted.filter(|key| api.wants(key).is_some()).collect();
    assert!(wanted.len() > 40 && wanted.iter().all(|key| !key.starts_with("soccer")), "{wanted:?}");
}

#[test]
fn scores_are_read_with_their_numbers() {
    let Some(data) = recordings() else { return };
    let body =
        std::fs::read(data.join("odds_api/v4_json/scores_shape_mlb_2022-08-27.json")).unwrap();
    let mut settings = settings("none");
    // The recording is of another sport with the same shape.
    settings.names.sports.insert("baseball_mlb".to_owned(), "american_football".to_owned());
    let mut api = TheOddsApi::new(settings, Format::Decimal);
    let result = api.translate("scores/baseball_mlb", &body, now()).unwrap();
    let json: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
    let reported = json.iter().filter(|event| !event["scores"].is_null()).count();
    assert_eq!(result.scores.len(), reported);
    assert!(reported > 0 && result.failed == 0, "{:?}", result.failures);
}
