//! Renders the results of the analysis.

use std::fmt::{Display, Write as _};

use domain::{BookmakerSet, Catalogue, Format, Line, Quote, Timestamp};
use market::Snapshot;
use market::analysis::exact::{Billionths, ONE};
use market::analysis::{
    self, Analysis, AnalysisSelection, Fair, Filter, Leg, MarketLine, Reference, Refused,
};
use market::snapshot::EventRow;

use super::{
    Arbitrage, ArbitrageLeg, Arbitrages, BestLine, BestLines, BestOutcome, FairLine, FairLines,
    FairOutcome, FairSource, Middle, MiddleLeg, Middles, RefusedLines, RefusedOffers, Value,
    Values,
};
use crate::answers::Answer;
use crate::v1::param::CONSENSUS;
use crate::v1::wire::cursor;
use crate::v1::wire::object::{Key, push_plain, push_text, push_time};

/// Computes and renders an analysis.
pub(crate) fn analyse(
    selection: &AnalysisSelection,
    format: Format,
    snapshot: &Snapshot,
    lines: &Analysis,
) -> Answer {
    let mut writer = Writer { snapshot, format, out: String::new(), open: false };
    // A ranking without results is not a missing price: only lines link to their coverage (C6).
    let (next, empty) = match selection {
        AnalysisSelection::Best(best) => {
            let page = best.select(snapshot, lines);
            writer.best(&best.filter, &page);
            (page.next, page.lines.is_empty())
        }
        AnalysisSelection::Fair(fair) => {
            let page = fair.select(snapshot, lines);
            writer.fair(&fair.filter, &fair.reference, &page);
            (page.next, page.lines.is_empty())
        }
        AnalysisSelection::Arbitrage(arbitrage) => {
            let ranking = arbitrage.select(snapshot, lines);
            writer.arbitrages(&arbitrage.filter, arbitrage.stake, &ranking);
            (None, false)
        }
        AnalysisSelection::Value(value) => {
            let ranking = value.select(snapshot, lines);
            writer.values(&value.filter, &value.reference, &ranking);
            (None, false)
        }
        AnalysisSelection::Middle(middle) => {
            let ranking = middle.select(snapshot, lines);
            writer.middles(&middle.filter, &ranking);
            (None, false)
        }
    };
    let next = next.as_ref().map(cursor::encode_line);
    Answer::new(writer.out.into_bytes(), next).noting_empty(empty)
}

/// Writes nested objects.
struct Writer<'a> {
    snapshot: &'a Snapshot,
    format: Format,
    out: String,
    /// True if the object already has a field.
    open: bool,
}

/// Field names of a leg, which several objects share.
struct LegKeys {
    name: Key,
    point: Key,
    price: Key,
    bookmaker: Key,
    record_id: Key,
    last_update: Key,
    age_s: Key,
}

/// Field names of the line at the beginning of every result.
#[derive(Clone, Copy)]
struct LineKeys {
    event_id: Key,
    commence_time: Key,
    market: Key,
}

macro_rules! leg_keys {
    ($Object:ident) => {
        LegKeys {
            name: $Object::NAME,
            point: $Object::POINT,
            price: $Object::PRICE,
            bookmaker: $Object::BOOKMAKER,
            record_id: $Object::RECORD_ID,
            last_update: $Object::LAST_UPDATE,
            age_s: $Object::AGE_S,
        }
    };
}

macro_rules! line_keys {
    ($Object:ident) => {
        LineKeys {
            event_id: $Object::EVENT_ID,
            commence_time: $Object::COMMENCE_TIME,
            market: $Object::MARKET,
        }
    };
}

impl Writer<'_> {
    fn best(&mut self, filter: &Filter, page: &analysis::LinePage<analysis::BestLine<'_>>) {
        self.head([BestLines::SPORT, BestLines::GENERATED_AT, BestLines::FORMAT], filter);
        self.shown(BestLines::MAX_AGE_S, page.max_age_s);
        self.refused_offers(BestLines::REFUSED, &page.refused);
        self.list(BestLines::LINES, &page.lines, |writer, own| {
            writer.line(line_keys!(BestLine), own.event, own.line);
            writer.point(BestLine::POINT, own.line.point);
            writer.shown(BestLine::WAYS, own.line.names.len());
            writer.places(BestLine::BOOKSUM, own.booksum);
            writer.places(BestLine::HOLD, own.hold);
            writer.shown(BestLine::OLDEST_AGE_S, own.oldest_age_s);
            writer.list(BestLine::OUTCOMES, &own.outcomes, |writer, best| {
                writer.leg(&leg_keys!(BestOutcome), own.event, &best.leg);
                if best.leg.underround {
                    writer.flag(BestOutcome::UNDERROUND, true);
                }
                writer.key(BestOutcome::ALSO);
                writer.out.push('[');
                for (at, other) in best.also.iter().enumerate() {
                    writer.out.push_str(if at > 0 { "," } else { "" });
                    push_plain(&writer.catalogue().bookmaker(*other).key, &mut writer.out);
                }
                writer.out.push(']');
            });
        });
        self.end();
    }

    fn fair(
        &mut self,
        filter: &Filter,
        reference: &Reference,
        page: &analysis::LinePage<analysis::FairLine<'_>>,
    ) {
        self.head([FairLines::SPORT, FairLines::GENERATED_AT, FairLines::FORMAT], filter);
        self.reference([FairLines::METHOD, FairLines::REFERENCE], reference);
        self.shown(FairLines::MAX_AGE_S, page.max_age_s);
        self.refused_lines(FairLines::REFUSED, &page.refused);
        self.list(FairLines::LINES, &page.lines, |writer, own| {
            writer.line(line_keys!(FairLine), own.event, own.line);
            writer.point(FairLine::POINT, own.line.point);
            writer.shown(FairLine::WAYS, own.line.names.len());
            writer.shown(FairLine::WINNERS, own.line.winners());
            writer.shown(FairLine::FIELD, own.field);
            writer.shown(FairLine::OLDEST_AGE_S, own.oldest_age_s);
            writer.list(FairLine::OUTCOMES, &own.outcomes, |writer, outcome| {
                writer.text(FairOutcome::NAME, own.event.outcome_text(outcome.name));
                writer.point(FairOutcome::POINT, own.line.point_of(outcome.name));
                writer.places(FairOutcome::PROBABILITY, outcome.fair.probability.into());
                writer.fair_price(FairOutcome::PRICE, outcome.fair);
                writer.shown(FairOutcome::BOOKS, outcome.fair.books);
            });
            writer.list(FairLine::SOURCES, &own.sources, |writer, source| {
                let key = &writer.catalogue().bookmaker(source.bookmaker).key;
                writer.text(FairSource::BOOKMAKER, key);
                writer.text(FairSource::RECORD_ID, &source.record.to_string());
                writer.places(FairSource::BOOKSUM, source.booksum);
                writer.places(FairSource::HOLD, source.hold);
                match source.parameter {
                    Some(parameter) => writer.places(FairSource::PARAMETER, parameter),
                    None => writer.shown(FairSource::PARAMETER, "null"),
                }
                writer.shown(FairSource::PRICED, source.priced);
                writer.time(FairSource::LAST_UPDATE, source.last_update);
                writer.shown(FairSource::AGE_S, source.age_s);
            });
        });
        self.end();
    }

    fn arbitrages(
        &mut self,
        filter: &Filter,
        stake: u32,
        ranking: &analysis::Ranking<analysis::Arbitrage<'_>>,
    ) {
        self.head([Arbitrages::SPORT, Arbitrages::GENERATED_AT, Arbitrages::FORMAT], filter);
        self.shown(Arbitrages::MAX_AGE_S, ranking.max_age_s);
        self.refused_offers(Arbitrages::REFUSED, &ranking.refused);
        self.shown(Arbitrages::TRUNCATED, ranking.truncated);
        self.list(Arbitrages::ARBITRAGES, &ranking.results, |writer, own| {
            writer.line(line_keys!(Arbitrage), own.event, own.line);
            writer.point(Arbitrage::POINT, own.line.point);
            writer.shown(Arbitrage::WAYS, own.line.names.len());
            writer.places(Arbitrage::BOOKSUM, own.booksum);
            writer.places(Arbitrage::PROFIT, own.profit);
            writer.flag(Arbitrage::PUSH, own.push);
            writer.flag(Arbitrage::SUSPECT, own.suspect);
            writer.shown(Arbitrage::OLDEST_AGE_S, own.ages.oldest_s);
            writer.shown(Arbitrage::SKEW_S, own.ages.skew_s);
            writer.shown(Arbitrage::STAKE, stake);
            writer.cents(Arbitrage::RETURNS_MIN, own.returns_min);
            writer.list(Arbitrage::LEGS, &own.legs, |writer, staked| {
                let leg = &staked.leg;
                writer.text(ArbitrageLeg::NAME, own.event.outcome_text(leg.name));
                writer.price(ArbitrageLeg::PRICE, leg.quote);
                let key = &writer.catalogue().bookmaker(leg.bookmaker).key;
                writer.text(ArbitrageLeg::BOOKMAKER, key);
                writer.cents(ArbitrageLeg::STAKE, staked.stake.into());
                writer.cents(ArbitrageLeg::RETURNS, staked.returns);
                writer.point(ArbitrageLeg::POINT, leg.point);
                writer.text(ArbitrageLeg::RECORD_ID, &leg.record.to_string());
                writer.time(ArbitrageLeg::LAST_UPDATE, leg.last_update);
                writer.shown(ArbitrageLeg::AGE_S, leg.age_s);
            });
        });
        self.end();
    }

    fn values(
        &mut self,
        filter: &Filter,
        reference: &Reference,
        ranking: &analysis::Ranking<analysis::Value<'_>>,
    ) {
        self.head([Values::SPORT, Values::GENERATED_AT, Values::FORMAT], filter);
        self.reference([Values::METHOD, Values::REFERENCE], reference);
        self.shown(Values::MAX_AGE_S, ranking.max_age_s);
        self.refused_lines(Values::REFUSED, &ranking.refused);
        self.shown(Values::TRUNCATED, ranking.truncated);
        self.list(Values::VALUES, &ranking.results, |writer, own| {
            writer.line(line_keys!(Value), own.event, own.line);
            writer.shown(Value::WAYS, own.line.names.len());
            writer.leg(&leg_keys!(Value), own.event, &own.leg);
            writer.places(Value::PROBABILITY, own.fair.probability.into());
            writer.fair_price(Value::FAIR_PRICE, own.fair);
            writer.places(Value::EV, own.ev);
            writer.shown(Value::BOOKS, own.fair.books);
            writer.shown(Value::OLDEST_AGE_S, own.oldest_age_s);
            writer.flag(Value::SUSPECT, own.suspect);
        });
        self.end();
    }

    fn middles(&mut self, filter: &Filter, ranking: &analysis::Ranking<analysis::Middle<'_>>) {
        self.head([Middles::SPORT, Middles::GENERATED_AT, Middles::FORMAT], filter);
        self.shown(Middles::MAX_AGE_S, ranking.max_age_s);
        self.refused_offers(Middles::REFUSED, &ranking.refused);
        self.shown(Middles::TRUNCATED, ranking.truncated);
        self.list(Middles::MIDDLES, &ranking.results, |writer, own| {
            writer.event(line_keys!(Middle), own.event, own.market);
            writer.point(Middle::FROM, Some(own.from));
            writer.point(Middle::TO, Some(own.to));
            let gap = own.to.quarters() - own.from.quarters();
            writer.point(Middle::GAP, Some(Line::from_quarters(gap)));
            let landing = own.landing.as_ref();
            writer.numbers(Middle::LANDING, landing.map(|landing| &*landing.within));
            writer.numbers(Middle::PUSHES, landing.map(|landing| &*landing.pushes));
            writer.places(Middle::BOOKSUM, own.booksum);
            writer.places(Middle::BREAK_EVEN, own.break_even);
            writer.shown(Middle::OLDEST_AGE_S, own.ages.oldest_s);
            writer.shown(Middle::SKEW_S, own.ages.skew_s);
            writer.list(Middle::LEGS, &own.legs, |writer, leg| {
                writer.leg(&leg_keys!(MiddleLeg), own.event, leg);
            });
        });
        self.end();
    }

    fn head(&mut self, [sport, generated_at, format]: [Key; 3], filter: &Filter) {
        let key = &self.catalogue().sport(filter.sport).key;
        self.text(sport, key);
        self.key(generated_at);
        self.out.push('"');
        self.out.extend(self.snapshot.cut_at.millis_text().map(char::from));
        self.out.push('"');
        self.text(format, self.format.key());
    }

    fn reference(&mut self, [method, named]: [Key; 2], reference: &Reference) {
        self.text(method, reference.method.key());
        let text = reference.named.map_or_else(
            || CONSENSUS.to_owned(),
            |set: BookmakerSet| {
                let all = self.catalogue().bookmakers().filter(|(id, _)| set.contains(*id));
                all.map(|(_, own)| &*own.key).collect::<Vec<_>>().join(",")
            },
        );
        self.text(named, &text);
    }

    fn refused_offers(&mut self, key: Key, refused: &Refused) {
        self.object(key, |writer| {
            writer.shown(RefusedOffers::STALE, refused.stale);
            writer.shown(RefusedOffers::INCOMPLETE, refused.incomplete);
            writer.shown(RefusedOffers::UNDERROUND, refused.underround);
        });
    }

    fn refused_lines(&mut self, key: Key, refused: &Refused) {
        self.object(key, |writer| {
            writer.shown(RefusedLines::STALE, refused.stale);
            writer.shown(RefusedLines::INCOMPLETE, refused.incomplete);
            writer.shown(RefusedLines::UNDERROUND, refused.underround);
            writer.shown(RefusedLines::THIN, refused.thin);
            writer.shown(RefusedLines::UNDEFINED, refused.undefined);
        });
    }

    fn line(&mut self, keys: LineKeys, event: &EventRow, line: &MarketLine) {
        self.event(keys, event, line.market);
    }

    fn event(&mut self, keys: LineKeys, event: &EventRow, market: domain::Market) {
        self.text(keys.event_id, &event.id.to_string());
        self.time(keys.commence_time, event.commence_time);
        self.text(keys.market, market.key());
    }

    fn leg(&mut self, keys: &LegKeys, event: &EventRow, leg: &Leg) {
        self.text(keys.name, event.outcome_text(leg.name));
        self.point(keys.point, leg.point);
        self.price(keys.price, leg.quote);
        let key = &self.catalogue().bookmaker(leg.bookmaker).key;
        self.text(keys.bookmaker, key);
        self.text(keys.record_id, &leg.record.to_string());
        self.time(keys.last_update, leg.last_update);
        self.shown(keys.age_s, leg.age_s);
    }
}

impl<'a> Writer<'a> {
    fn catalogue(&self) -> &'a Catalogue {
        self.snapshot.catalogue()
    }

    fn key(&mut self, key: Key) {
        self.out.push_str(if self.open { key.next } else { key.first });
        self.open = true;
    }

    fn end(&mut self) {
        self.out.push_str(if self.open { "}" } else { "{}" });
        self.open = true;
    }

    fn object(&mut self, key: Key, write: impl FnOnce(&mut Self)) {
        self.key(key);
        self.open = false;
        write(self);
        self.end();
    }

    fn list<T>(&mut self, key: Key, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.key(key);
        self.out.push('[');
        for (at, item) in items.iter().enumerate() {
            self.out.push_str(if at > 0 { "," } else { "" });
            self.open = false;
            write(self, item);
            self.end();
        }
        self.out.push(']');
        self.open = true;
    }

    fn text(&mut self, key: Key, text: &str) {
        self.key(key);
        push_text(text, &mut self.out);
    }

    fn shown(&mut self, key: Key, value: impl Display) {
        self.key(key);
        let written = write!(self.out, "{value}");
        debug_assert!(written.is_ok());
    }

    fn flag(&mut self, key: Key, flag: bool) {
        self.shown(key, flag);
    }

    fn time(&mut self, key: Key, time: Timestamp) {
        self.key(key);
        push_time(time, &mut self.out);
    }

    fn price(&mut self, key: Key, quote: Quote) {
        self.key(key);
        quote.write_json(self.format, &mut self.out);
    }

    fn fair_price(&mut self, key: Key, fair: Fair) {
        match fair.quote() {
            Some(quote) => self.price(key, quote),
            None => self.shown(key, "null"),
        }
    }

    fn point(&mut self, key: Key, point: Option<Line>) {
        self.key(key);
        match point {
            Some(point) => point.write_json(&mut self.out),
            None => self.out.push_str("null"),
        }
    }

    fn numbers(&mut self, key: Key, numbers: Option<&[i32]>) {
        let Some(numbers) = numbers else { return self.shown(key, "null") };
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        self.shown(key, format_args!("[{}]", texts.join(",")));
    }

    fn places(&mut self, key: Key, value: Billionths) {
        self.key(key);
        push_decimal(value, ONE, &mut self.out);
    }

    fn cents(&mut self, key: Key, cents: u128) {
        self.key(key);
        push_decimal(i128::try_from(cents).unwrap_or(i128::MAX), 100, &mut self.out);
    }
}

/// Writes `parts / whole` as a decimal without trailing zeros; `whole` is a power of ten.
fn push_decimal(parts: i128, whole: i128, out: &mut String) {
    let (size, unit) = (parts.unsigned_abs(), whole.unsigned_abs());
    let sign = if parts < 0 { "-" } else { "" };
    let width = usize::try_from(unit.ilog10()).unwrap_or(0);
    let number = format!("{sign}{}.{:0width$}", size / unit, size % unit);
    out.push_str(number.trim_end_matches('0').trim_end_matches('.'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_trailing_zeros() {
        for (parts, whole, written) in [
            (972_222_222, ONE, "0.972222222"),
            (-28_571_429, ONE, "-0.028571429"),
            (25_000_000, ONE, "0.025"),
            (ONE, ONE, "1"),
            (0, ONE, "0"),
            (20 * ONE, ONE, "20"),
            (-1, ONE, "-0.000000001"),
            (4286, 100, "42.86"),
            (4290, 100, "42.9"),
            (10_000, 100, "100"),
        ] {
            let mut out = String::new();
            push_decimal(parts, whole, &mut out);
            assert_eq!(out, written);
        }
    }
}
