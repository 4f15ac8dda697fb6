//! Names of events, competitions and runners from `listMarketCatalogue`. The stream itself has only numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use domain::time::Timestamp;
use serde::Deserialize;

use crate::adapter::Drift;

/// The catalogue's entry of one market.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) competition: Option<Box<str>>,
    pub(super) event_name: Option<Box<str>>,
    pub(super) start: Option<Timestamp>,
    pub(super) runners: HashMap<u64, Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    #[serde(borrow)]
    market_id: Cow<'a, str>,
    #[serde(borrow, default)]
    market_start_time: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    competition: Option<Named<'a>>,
    #[serde(borrow, default)]
    event: Option<Named<'a>>,
    #[serde(borrow, default)]
    runners: Vec<RunnerOf<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    open_date: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunnerOf<'a> {
    selection_id: u64,
    #[serde(borrow, default)]
    runner_name: Option<Cow<'a, str>>,
}

/// Reads an answer of `listMarketCatalogue`, with or without its JSON-RPC frame.
///
/// # Errors
/// It is not a list of markets.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<(Box<str>, Entry)>, Drift> {
    #[derive(Deserialize)]
    struct Framed<'a> {
        #[serde(borrow)]
        result: Vec<Listed<'a>>,
    }
    let list = match serde_json::from_slice::<Vec<Listed<'_>>>(bytes) {
        Ok(list) => list,
        Err(error) => match serde_json::from_slice::<Framed<'_>>(bytes) {
            Ok(framed) => framed.result,
            Err(_) => {
                return Err(Drift::new(
                    "listMarketCatalogue",
                    format!("not a list of markets: {error}"),
                ));
            }
        },
    };
    Ok(list.into_iter().map(|listed| ((&*listed.market_id).into(), entry(&listed))).collect())
}

fn entry(listed: &Listed<'_>) -> Entry {
    let text = |name: &Option<Cow<'_, str>>| {
        name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(Box::from)
    };
    let instant = |time: Option<&str>| time.and_then(|time| Timestamp::parse(time).ok());
    let event = listed.event.as_ref();
    let start = instant(listed.market_start_time.as_deref());
    Entry {
        competition: listed.competition.as_ref().and_then(|named| text(&named.name)),
        event_name: event.and_then(|named| text(&named.name)),
        start: start.or_else(|| instant(event.and_then(|named| named.open_date.as_deref()))),
        runners: listed
            .runners
            .iter()
            .filter_map(|runner| Some((runner.selection_id, text(&runner.runner_name)?)))
            .collect(),
    }
}
