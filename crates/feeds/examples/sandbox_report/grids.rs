//! The prices that each bookmaker quotes.

use domain::{Format, Quote};

use crate::page::Page;
use crate::tape::{Tape, decimal};

pub(crate) fn draw(tape: &Tape, page: &mut Page) {
    page.section(
        "grids",
        "Price grids",
        "Prices seen over the day, as quoted. Near even money the grids differ most: fives and tens, single points, \
         hundredths, thousandths, and the fractions of a betting shop.",
    );
    let head = [
        "Bookmaker",
        "Quotes in",
        "Different prices",
        "From 1.90 to 2.10",
        "From 4 to 5",
        "Shortest and longest",
    ];
    let mut bookmakers: Vec<_> = tape.boards.iter().collect();
    bookmakers.sort_by_key(|(id, _)| (tape.family(**id), **id));
    let rows: Vec<Vec<String>> = bookmakers
        .into_iter()
        .map(|(id, board)| {
            let quotes: Vec<Quote> = board.values().copied().collect();
            let format = quotes.first().map_or(Format::Decimal, |quote| quote.format);
            let ends = [quotes.first(), quotes.last()];
            let ends: Vec<String> = ends.into_iter().flatten().map(|quote| text(*quote)).collect();
            vec![
                tape.catalogue.bookmaker(*id).title.to_string(),
                format.key().to_owned(),
                quotes.len().to_string(),
                some(&quotes, (1.9, 2.1), 7),
                some(&quotes, (4.0, 5.0), 6),
                ends.join(" … "),
            ]
        })
        .collect();
    page.table("grids", &head, &rows);
}

/// The prices within bounds, as many as fit.
fn some(quotes: &[Quote], (from, to): (f64, f64), most: usize) -> String {
    let within = quotes.iter().filter(|quote| (from..=to).contains(&decimal(quote.price)));
    let texts: Vec<String> = within.map(|quote| text(*quote)).collect();
    match texts.as_slice() {
        [first @ .., last] if first.len() >= most => {
            format!("{} … {last}", first[..most - 1].join("  "))
        }
        all => all.join("  "),
    }
}

fn text(quote: Quote) -> String {
    let json = quote.to_json(quote.format);
    let plain = json.trim_matches('"');
    match quote.format {
        Format::American if !plain.starts_with('-') => format!("+{plain}"),
        Format::American => plain.replace('-', "−"),
        Format::Decimal | Format::Fractional => plain.to_owned(),
    }
}
