//! Closing lines: the prices in the last publication before an event started (H12).

use domain::EventId;

use crate::frame::Frame;
use crate::path::{ClosingLine, Columns, EventPast, PathHead, Point};
use crate::rows::{self, OddsHead, Offer};
use crate::starts::{StartBy, Started};

/// The closing lines that the start of an event produces, from its last publication before the start.
pub(crate) fn closing_lines(
    past: EventPast,
    started: &Started,
    lineage: usize,
) -> Vec<ClosingLine> {
    let Started { seq, start, commence_time, .. } = *started;
    let line = |path: crate::path::RecordPath| {
        let shown = path.points;
        let priced = shown.iter().rposition(|point| !point.outcomes.is_empty())?;
        let prices = shown.get(priced)?.clone();
        let withdrawn = shown.get(priced + 1);
        let last_update = match withdrawn {
            Some(withdrawn) => withdrawn.last_update,
            None => started.last_updates.get(&path.head.record).copied(),
        };
        Some(ClosingLine {
            head: path.head,
            lineage,
            seq,
            start,
            commence_time,
            active: withdrawn.is_none(),
            reason: withdrawn.and_then(|withdrawn| withdrawn.reason.clone()),
            last_update: last_update.unwrap_or(prices.ts),
            prices,
        })
    };
    past.into_paths().into_iter().filter_map(line).collect()
}

/// The rows of closing lines of an event.
pub(crate) fn push(frame: &mut Frame, started: &Started, lines: &[ClosingLine]) {
    let columns = Columns::of(frame);
    for line in lines {
        let from = frame.rows();
        let Point { at, ts, published_at, outcomes, .. } = &line.prices;
        let head = OddsHead {
            seq: line.seq,
            at: *at,
            ts: *ts,
            published_at: Some(*published_at),
            sport: Some(&started.sport),
            event: started.event,
            record: line.head.record,
            bookmaker: &line.head.bookmaker,
            market: line.head.market,
            group: line.head.pairing.as_deref(),
            last_update: None,
        };
        let outcomes = match line.start {
            Some(_) => &**outcomes,
            None => &[],
        };
        let offers = outcomes.iter().map(|outcome| Offer {
            side: outcome.side,
            name: Some(&outcome.name),
            quote: outcome.quote,
            point: outcome.point,
        });
        rows::push_closing(frame, &head, offers, line.reason.as_deref());
        for row in from..frame.rows() {
            frame.set_number(columns.last_update, row, line.last_update.as_millis());
            frame.set_number(columns.active, row, i64::from(line.active));
            frame.set_number(columns.commence_time, row, line.commence_time.as_millis());
            if let Some((start, by)) = line.start {
                frame.set_number(columns.start, row, start.as_millis());
                frame.set_text(columns.start_by, row, by.key());
            }
        }
    }
}

/// The closing lines of rows of the table.
pub(crate) fn lines_of(
    frame: &Frame,
    lineage: usize,
    mut wants: impl FnMut(&PathHead) -> bool,
) -> Vec<(EventId, ClosingLine)> {
    let columns = Columns::of(frame);
    let mut names = std::collections::HashSet::new();
    let mut lines: Vec<(EventId, ClosingLine)> = Vec::new();
    let mut outcomes = Vec::new();
    let mut wanted = false;
    for row in 0..frame.rows() {
        let n = frame.number(columns.n, row);
        if n.is_none_or(|n| n == 1) {
            finish(&mut lines, &mut outcomes);
            let line = columns.closing(frame, row, lineage).filter(|(_, line)| wants(&line.head));
            wanted = line.is_some();
            lines.extend(line);
        }
        if n.is_some() && wanted {
            outcomes.extend(columns.outcome(frame, row, &mut names));
        }
    }
    finish(&mut lines, &mut outcomes);
    lines
}

fn finish(lines: &mut [(EventId, ClosingLine)], outcomes: &mut Vec<crate::path::PointOutcome>) {
    if let Some((_, line)) = lines.last_mut().filter(|_| !outcomes.is_empty()) {
        line.prices.outcomes = std::mem::take(outcomes).into();
    }
}

impl Columns {
    fn closing(&self, frame: &Frame, row: usize, lineage: usize) -> Option<(EventId, ClosingLine)> {
        let (head, prices) = self.point(frame, row, lineage)?;
        let event = EventId::parse(frame.text(self.event_id, row)?)?;
        let by = frame.text(self.start_by, row).and_then(StartBy::parse);
        let line = ClosingLine {
            head,
            lineage,
            seq: prices.seq,
            start: Self::millis(frame, self.start, row).zip(by),
            commence_time: Self::millis(frame, self.commence_time, row)?,
            active: frame.number(self.active, row)? != 0,
            reason: prices.reason.clone(),
            last_update: prices.last_update?,
            prices,
        };
        Some((event, line))
    }
}
