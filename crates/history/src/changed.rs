//! Changes made by entries, without the prices themselves and without confirmations: enough to find temporary content.

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use domain::{EventId, Market};
use market::Change;

use crate::archive::Archive;
use crate::commit::{Commit, TableFile};
use crate::entries::unreadable;
use crate::error::ArchiveError;
use crate::frame::Frame;
use crate::parquet_read::TableReader;
use crate::rows::QUOTED;
use crate::table::Table;

/// A change made by some entries.
#[derive(Debug)]
pub enum Changed<'a> {
    /// One or more changes of a record's prices.
    Prices(ChangedPrices<'a>),
    /// Any other change, except confirmations.
    Other(Change),
}

/// Changes of the prices of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedPrices<'a> {
    pub event: EventId,
    pub sport: Option<&'a str>,
    pub bookmaker: &'a str,
    pub market: Market,
    pub pairing: Option<&'a str>,
    /// True if there were prices; below, if a publication showed them.
    pub was_priced: bool,
    pub was_shown: bool,
    /// True if they were withdrawn.
    pub was_emptied: bool,
}

const PRICES: [&str; 9] =
    ["seq", "shown", "sport", "event_id", "bookmaker", "market", "pairing", "outcomes", "n"];
const OTHERS: [&str; 3] = ["seq", "kind", "entry"];

impl Archive {
    /// Passes the changes of a lineage's entries to `take`: first prices, in no particular order, then all others in
    /// entry order.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn changed(
        &self,
        commit: &Commit,
        lineage: usize,
        seqs: &RangeInclusive<u64>,
        take: &mut (dyn FnMut(Changed<'_>) + Send),
    ) -> Result<(), ArchiveError> {
        let files_of = |table| {
            let is_in = |file: &&TableFile| {
                let reaches = file.first_seq <= *seqs.end() && *seqs.start() <= file.last_seq;
                file.table == table && file.lineage == lineage && reaches
            };
            let mut files: Vec<&TableFile> = commit.files.iter().filter(is_in).collect();
            files.sort_by_key(|file| file.first_seq);
            files
        };
        let each = |file: &TableFile, names: &[&str], mut take: Box<dyn FnMut(&Frame) + '_>| {
            let reader = self.read_table(file)?;
            for group in 0..reader.groups() {
                let read = reader.read_some(group, seqs, names).map_err(unreadable(file))?;
                read.iter().for_each(&mut take);
            }
            Ok::<_, ArchiveError>(())
        };
        let taken = Mutex::new(take);
        let read_prices = |file: &TableFile| {
            let take = |frame: &Frame| {
                let mut take = taken.lock().unwrap_or_else(PoisonError::into_inner);
                take_prices(frame, seqs, &mut **take);
            };
            each(file, &PRICES, Box::new(take))
        };
        self.read_each(&files_of(Table::Odds), read_prices, |_, ()| Ok(true))?;
        let take = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        for file in files_of(Table::Internal) {
            let mut faulty = None;
            let taking = |frame: &Frame| faulty = faulty.or(take_others(frame, seqs, take).err());
            each(file, &OTHERS, Box::new(taking))?;
            if let Some(seq) = faulty {
                return Err(ArchiveError::Entry { seq });
            }
        }
        Ok(())
    }
}

impl TableReader {
    /// Some columns of all rows of a group; `None`: it has no rows of these entries.
    fn read_some(
        &self,
        group: usize,
        seqs: &RangeInclusive<u64>,
        names: &[&str],
    ) -> parquet::errors::Result<Option<Frame>> {
        if !self.may_have_entries(group, seqs) {
            return Ok(None);
        }
        self.prefetch(group)?;
        let mut frame = Frame::new(self.table);
        self.read_columns(group, &mut frame, names)?;
        Ok(Some(frame))
    }
}

/// Passes on the rows of each record together. They are consecutive in a group.
fn take_prices(frame: &Frame, seqs: &RangeInclusive<u64>, take: &mut dyn FnMut(Changed<'_>)) {
    let [seq, shown, sport, event, bookmaker, market, pairing, outcomes, n] =
        PRICES.map(|name| frame.column(name));
    let is_in = |row: usize| {
        let is_first = frame.number(n, row).is_none_or(|n| n == 1);
        let seq = frame.number(seq, row).map(i64::cast_unsigned);
        is_first && seq.is_some_and(|seq| seqs.contains(&seq))
    };
    let of = |row: usize| [event, bookmaker, market, pairing].map(|column| frame.text(column, row));
    let rows: Vec<usize> = (0..frame.rows()).filter(|row| is_in(*row)).collect();
    for same in rows.chunk_by(|one, other| of(*one) == of(*other)) {
        let Some(&first) = same.first() else { continue };
        let [event, Some(bookmaker), market, pairing] = of(first) else { continue };
        let known = event.and_then(EventId::parse).zip(market.and_then(Market::parse));
        let Some((event, market)) = known else { continue };
        let is_priced = |row: &usize| frame.number(outcomes, *row).is_some_and(|count| count > 0);
        let is_shown = |row: &usize| frame.number(shown, *row).is_some_and(|shown| shown != 0);
        take(Changed::Prices(ChangedPrices {
            event,
            sport: frame.text(sport, first),
            bookmaker,
            market,
            pairing,
            was_priced: same.iter().any(is_priced),
            was_shown: same.iter().any(|row| is_priced(row) && is_shown(row)),
            was_emptied: !same.iter().all(is_priced),
        }));
    }
}

/// On failure, returns the number of the incomplete entry.
fn take_others(
    frame: &Frame,
    seqs: &RangeInclusive<u64>,
    take: &mut (dyn FnMut(Changed<'_>) + Send),
) -> Result<(), u64> {
    let [seq, kind, entry] = OTHERS.map(|name| frame.column(name));
    for row in 0..frame.rows() {
        let seq = frame.number(seq, row).map(i64::cast_unsigned);
        let Some(seq) = seq.filter(|seq| seqs.contains(seq)) else { continue };
        if frame.text(kind, row) == Some(QUOTED) {
            continue;
        }
        let (version, payload) =
            frame.bytes(entry, row).and_then(|bytes| bytes.split_first()).ok_or(seq)?;
        take(Changed::Other(Change::decode(*version, payload).map_err(|_| seq)?));
    }
    Ok(())
}
