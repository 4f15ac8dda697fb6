//! The number of events and records in each sport.

use std::collections::BTreeSet;

use crate::page::Page;
use crate::tape::Tape;

pub(crate) fn draw(tape: &Tape, page: &mut Page) {
    page.section(
        "counts",
        "Events and records",
        "The count at the end of the day, and in brackets the lowest and the highest hourly count. Competitions, \
         bookmakers and odds records are those of scheduled and live events; finals are kept for 72 hours.",
    );
    let head = [
        "Sport",
        "Competitions",
        "Scheduled",
        "Live",
        "Final",
        "Bookmakers",
        "Odds records",
        "Markets",
    ];
    let mut rows = Vec::new();
    for (id, sport) in tape.catalogue.sports() {
        let cell = |what: &'static str| {
            let (now, least, most) = tape.counts.get(&(id, what)).copied().unwrap_or_default();
            format!("{now} ({least}–{most})")
        };
        let markets: BTreeSet<&str> = sport.markets.iter().map(|market| market.key()).collect();
        rows.push(vec![
            sport.title.to_string(),
            cell("competitions"),
            cell("scheduled"),
            cell("live"),
            cell("final"),
            cell("bookmakers"),
            cell("records"),
            markets.into_iter().collect::<Vec<_>>().join(", "),
        ]);
    }
    page.table("counts", &head, &rows);
}
