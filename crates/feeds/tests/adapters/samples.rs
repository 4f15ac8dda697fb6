//! Hand-made samples of every kind, and their expected messages (`*.out.ndjson`).
//!
//! A new sample is a file in the kind's folder; `LINESMAN_WRITE_SAMPLES=1 cargo test -p linesman-feeds --test
//! adapters` writes the messages, which must be reviewed before the commit.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::price::Format;
use domain::time::Timestamp;
use linesman_feeds::adapter::betfair::{Betfair, Options};
use linesman_feeds::adapter::mapped::{Mapped, Mapping, Recipe};
use linesman_feeds::adapter::the_odds_api::TheOddsApi;
use linesman_feeds::adapter::{Translator, translate_bodies};

use super::{settings, tests_folder};

fn translator(kind: &str, sample: &Path) -> Box<dyn Translator> {
    let beside =
        |extension: &str| std::fs::read_to_string(sample.with_extension(extension)).unwrap();
    match kind {
        "the_odds_api" => Box::new(TheOddsApi::new(settings("none"), Format::Decimal)),
        "betfair" => {
            let options = Options { emit_every: Duration::ZERO, ..Options::default() };
            Box::new(Betfair::new(settings("betfair"), options))
        }
        "mapped" => {
            let mapping = Mapping::compile(&beside("toml")).unwrap();
            Box::new(Mapped::new(Arc::new(mapping), settings("bet365")))
        }
        recipe => {
            let vars: BTreeMap<String, String> = toml::from_str(&beside("vars")).unwrap();
            let mapping = Recipe::find(recipe).unwrap().compile(&vars).unwrap();
            Box::new(Mapped::new(Arc::new(mapping), settings("unibet")))
        }
    }
}

#[test]
fn every_sample_becomes_its_messages() {
    let mut seen = 0;
    for kind in std::fs::read_dir(tests_folder().join("samples")).unwrap() {
        let folder = kind.unwrap().path();
        let kind = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for sample in std::fs::read_dir(&folder).unwrap() {
            let sample = sample.unwrap().path();
            let name = sample.file_name().unwrap().to_str().unwrap().to_owned();
            let extension = sample.extension().unwrap().to_str().unwrap();
            if name.ends_with(".out.ndjson") || ["toml", "vars"].contains(&extension) {
                continue;
            }
            let body = std::fs::read(&sample).unwrap();
            let unit = format!("{}/x", sample.file_stem().unwrap().to_str().unwrap());
            let bodies: Vec<&[u8]> = match kind.as_str() {
                "betfair" => body.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect(),
                _ => vec![&body],
            };
            let mut out = String::new();
            let at = Timestamp::from_secs(1_794_700_010);
            let bodies = bodies.into_iter().map(|body| (&*unit, body));
            let catalogue = settings("none").catalogue;
            let mut translator = translator(&kind, &sample);
            translate_bodies(&mut *translator, bodies, at, &catalogue, &mut out).unwrap();
            let golden = sample.with_extension("out.ndjson");
            if std::env::var_os("LINESMAN_WRITE_SAMPLES").is_some() {
                std::fs::write(&golden, &out).unwrap();
            }
            assert_eq!(out, std::fs::read_to_string(&golden).unwrap(), "{}", golden.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 8);
}
