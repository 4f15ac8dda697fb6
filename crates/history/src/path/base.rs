//! Prices that were shown already when the remaining archive begins: the changes that set them are past retention.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use domain::{Catalogue, EventId, Timestamp};
use market::Book;
use market::book::ImagePart;

use super::{EventPast, Hold, PathHead, Point, RecordPath, Wanted};
use crate::archive::Archive;
use crate::commit::Commit;
use crate::error::ArchiveError;
use crate::frame::Frame;
use crate::rows::{self, OddsHead};
use crate::table::Table;

/// The prices of some events in the book that the archive's oldest publications are rebuilt from.
#[derive(Debug)]
pub struct BasePrices {
    frame: Frame,
    lineage: usize,
}

/// Prices that are kept for the next page of an event, and rows that they may have.
const KEPT_MAX: usize = 16;
const KEPT_ROWS_MAX: usize = 5000;

/// Those that were asked for last.
pub(crate) type KeptPrices = VecDeque<(PricesKey, Option<Arc<BasePrices>>)>;

/// The book, the catalogue that it is read with, and the events.
type PricesKey = (String, Arc<Catalogue>, Vec<EventId>);

/// The prices of a record in that book.
#[derive(Debug)]
pub(super) struct Base {
    point: Point,
    /// True if it is before the selected points; below, if it is after them.
    is_before: bool,
    is_after: bool,
}

impl Archive {
    /// The prices of events in the book that the archive's oldest publications are rebuilt from; `None` if there is no
    /// such book, because nothing is past retention.
    ///
    /// # Errors
    /// The book cannot be read.
    pub fn base_prices(
        &self,
        commit: &Commit,
        catalogue: &Arc<Catalogue>,
        events: &[EventId],
    ) -> Result<Option<Arc<BasePrices>>, ArchiveError> {
        let epochs = commit.files.iter().filter(|file| file.table == Table::Epochs);
        let Some(lineage) = epochs.map(|file| file.lineage).min() else { return Ok(None) };
        let last = commit.lineages.get(lineage).and_then(|held| held.first_seq.checked_sub(1));
        // An image that was made for another catalogue does not tell what was shown at its time.
        let image = last.and_then(|last| commit.image_up_to(lineage, last));
        let Some(image) = image.filter(|image| image.first.is_none()) else { return Ok(None) };
        let path = &image.file.path;
        let is_same = |(held_path, held, held_events): &PricesKey| {
            held_path == path && Arc::ptr_eq(held, catalogue) && held_events == events
        };
        let kept = || self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, prices)) = kept().iter().find(|(key, _)| is_same(key)) {
            return Ok(prices.clone());
        }
        let damaged = |_| {
            let path = image.file.path.clone();
            ArchiveError::Damaged { path, reason: "it is not a book" }
        };
        let (bytes, part) = (self.image(image)?, ImagePart::Events(events));
        let book = Book::from_image_of(image.version, &bytes, Arc::clone(catalogue), part);
        let book = book.map_err(damaged)?;
        let mut frame = Frame::new(Table::Odds);
        let at = Timestamp::from_millis(image.at_ms);
        let shown = events.iter().filter_map(|id| book.event(*id));
        for event in shown.filter(|event| event.is_listed()) {
            for open in event.open_records() {
                let head = OddsHead {
                    seq: image.seq,
                    at,
                    ts: open.ts,
                    published_at: Some(at),
                    sport: None,
                    event: event.id,
                    record: open.id,
                    bookmaker: &catalogue.bookmaker(open.bookmaker).key,
                    market: open.market,
                    group: open.group,
                    last_update: None,
                };
                rows::push_shown(&mut frame, &head, (event, open.record), None);
            }
        }
        let is_small = frame.rows() <= KEPT_ROWS_MAX;
        let prices = Some(Arc::new(BasePrices { frame, lineage }));
        if is_small {
            let mut kept = kept();
            kept.truncate(KEPT_MAX - 1);
            let key = (path.clone(), Arc::clone(catalogue), events.to_vec());
            kept.push_front((key, prices.clone()));
        }
        Ok(prices)
    }
}

impl EventPast {
    /// Adds the prices of the event that existed before all its rows.
    pub fn take_base(&mut self, base: &BasePrices, wanted: &Wanted<'_>) {
        let (id, column) = (wanted.event.to_string(), base.frame.column("event_id"));
        let rows = (0..base.frame.rows()).filter(|row| base.frame.text(column, *row) == Some(&*id));
        // The book has one state of each record, so the first is all there is.
        let to = Some(Timestamp::from_millis(i64::MIN));
        let mut shown = Self::default();
        let first = Wanted { from: None, to, hold: Hold::MOST, ..*wanted };
        shown.take(&base.frame, rows, base.lineage, &first);
        for path in shown.records.into_values() {
            if let Some(point) = path.open {
                self.note_base(path.head, point, wanted);
            }
        }
    }

    fn note_base(&mut self, head: PathHead, point: Point, wanted: &Wanted<'_>) {
        if !self.takes(&head, wanted) {
            return;
        }
        let is_early = wanted.from.is_some_and(|from| point.published_at < from);
        let after = wanted.after().filter(|after| after.cmp_path(&head).is_eq());
        let is_before = is_early || after.is_some_and(|after| !after.is_before(&point));
        let is_after = wanted.to.is_some_and(|to| point.published_at >= to);
        let path = self.records.entry(head.record).or_insert_with(|| RecordPath::new(head));
        path.base = Some(Base { point, is_before, is_after });
    }
}

impl RecordPath {
    /// Starts with the state before the rows, unless rows have the change that set it. The points are in order.
    pub(super) fn begin_with_base(&mut self) {
        let Some(Base { point, is_before, is_after }) = self.base.take() else { return };
        if self.first_shown.is_some_and(|first| first <= point.published_at) {
            return;
        }
        self.open = Some(point.clone());
        if is_before {
            self.before.get_or_insert(point);
        } else if !is_after {
            self.points.insert(0, point);
        }
    }
}
