//! Writes the files of a part, and commits them.

use std::collections::BTreeMap;

use domain::Timestamp;
use market::Book;
use market::book::IMAGE_VERSION;

use super::{BaseImage, Part};
use crate::archive::{Archive, Outcome};
use crate::commit::{Commit, Image, TableFile};
use crate::date::date_of;
use crate::durable::count;
use crate::error::ArchiveError;
use crate::frame::Frame;
use crate::parquet_file::TableWriter;

/// A book is stored after this number of entries, or this much time.
const IMAGE_ENTRIES: u64 = 250_000;
const IMAGE_MS: i64 = 3_600_000;
/// The name for "none" that readers of partitioned folders expect.
const NO_SPORT: &str = "__HIVE_DEFAULT_PARTITION__";

impl Part {
    /// Writes the files of everything published, and commits them after `commit`. Returns the new content of the
    /// archive, and the book that the next part starts with, if available.
    ///
    /// # Errors
    /// The archive cannot be written. Its content is either unchanged or already the new one.
    pub fn commit(
        mut self,
        archive: &Archive,
        commit: &Commit,
    ) -> Result<(Commit, Outcome, Option<Book>), ArchiveError> {
        let mut next = commit.clone();
        next.commit += 1;
        archive.add_catalogue(self.book.catalogue(), &mut next)?;
        let whole = self.is_closed();
        let rows = self.closed;
        for (frame, rows) in self.tables.all_mut().into_iter().zip(rows) {
            frame.truncate(rows);
        }
        for frame in self.tables.all() {
            self.write_table(archive, frame, &mut next.files)?;
        }
        self.write_closings(archive, commit, &mut next)?;
        if let Some(base) = &self.base_image {
            next.images.push(self.write_image(archive, base)?);
        }
        if whole && self.wants_image(commit) {
            let (seq, bytes) = (self.after.last_seq, self.book.to_image());
            let image = BaseImage { seq, carried: false, bytes };
            next.images.push(self.write_image(archive, &image)?);
        }
        if self.founds {
            next.lineages.push(self.after);
        } else if let Some(held) = next.lineages.get_mut(self.lineage) {
            *held = self.after;
        }
        let outcome = archive.commit(&next)?;
        let book = (whole && outcome == Outcome::Committed).then_some(self.book);
        Ok((next, outcome, book))
    }

    fn wants_image(&self, commit: &Commit) -> bool {
        let last = commit.image_up_to(self.lineage, u64::MAX);
        let (seq, at) = last.map_or((0, 0), |image| (image.seq, image.at_ms));
        self.after.last_seq.saturating_sub(seq) >= IMAGE_ENTRIES
            || self.after.last_ms.saturating_sub(at) >= IMAGE_MS
    }

    fn write_image(&self, archive: &Archive, image: &BaseImage) -> Result<Image, ArchiveError> {
        let BaseImage { seq, carried, bytes } = image;
        let (lineage, seq) = (self.lineage, *seq);
        let file = archive.put_image(&format!("images/{lineage:02}-{seq:012}"), bytes)?;
        let at_ms = self.after.last_ms;
        let epochs = &self.tables.epochs;
        let first = epochs.number(epochs.column("seq"), 0).map(i64::cast_unsigned);
        let first = first.filter(|_| *carried);
        Ok(Image { file, seq, at_ms, lineage, version: IMAGE_VERSION, first })
    }

    /// Writes a file for each sport and day.
    fn write_table(
        &self,
        archive: &Archive,
        frame: &Frame,
        files: &mut Vec<TableFile>,
    ) -> Result<(), ArchiveError> {
        let table = frame.table;
        let [sport, published] = ["sport", "published_at"].map(|name| frame.column(name));
        let mut folders: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for row in 0..frame.rows() {
            let at = frame.number(published, row).unwrap_or_default();
            let date = date_of(Timestamp::from_millis(at));
            let folder = match table.by_sport() {
                true => {
                    let sport = frame.text(sport, row).unwrap_or(NO_SPORT);
                    format!("{}/sport={sport}/date={date}", table.key())
                }
                false => format!("{}/date={date}", table.key()),
            };
            folders.entry(folder).or_default().push(row);
        }
        for (folder, rows) in folders {
            files.push(self.write_file(archive, frame, &folder, rows)?);
        }
        Ok(())
    }

    pub(super) fn write_file(
        &self,
        archive: &Archive,
        frame: &Frame,
        folder: &str,
        mut rows: Vec<usize>,
    ) -> Result<TableFile, ArchiveError> {
        let (table, seq) = (frame.table, frame.column("seq"));
        frame.sort(&mut rows);
        let unwritable = |source| ArchiveError::Unwritable { table: table.key(), source };
        let seqs = || rows.iter().filter_map(|row| frame.number(seq, *row));
        let (first, last) = (seqs().min().unwrap_or_default(), seqs().max().unwrap_or_default());
        let name = format!("{folder}/{:02}-{first:012}", self.lineage);
        let file = archive.new_file(&name, ".parquet")?;
        let mut writer = TableWriter::new(table, file).map_err(unwritable)?;
        writer.write(frame, &rows).map_err(unwritable)?;
        let file = writer.finish().map_err(unwritable)?.finish()?;
        Ok(TableFile {
            table,
            path: file.path,
            rows: count(rows.len()),
            bytes: file.bytes,
            sha256: file.sha256,
            first_seq: first.cast_unsigned(),
            last_seq: last.cast_unsigned(),
            lineage: self.lineage,
        })
    }
}
