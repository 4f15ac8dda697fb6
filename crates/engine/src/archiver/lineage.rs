//! The last entry that a log and the archive share, and the book of an archived entry.

use std::collections::HashSet;
use std::sync::Arc;

use archive::{Archive, ArchiveError, Commit, Image, Lineage};
use change_log::{Checkpoint, ReadLog};
use domain::{Catalogue, Timestamp};
use market::book::ImagePart;
use market::{Book, Change, Limits};

use crate::error::WorldError;
use crate::options::WorldOptions;
use crate::replay::{self, Replay};

/// True if a log has the last entry of a lineage.
pub(crate) fn continues(log: &dyn ReadLog, lineage: &Lineage) -> Result<bool, WorldError> {
    if log.first_seq() > lineage.last_seq {
        return Ok(false);
    }
    let last = log.read_from(lineage.last_seq)?.next().transpose()?;
    Ok(last.is_some_and(|entry| {
        entry.seq == lineage.last_seq && entry.checksum() == lineage.last_checksum
    }))
}

/// The last publication after entry `base` that is archived as well; `base` if there is none.
pub(super) fn common_publication(
    log: &dyn ReadLog,
    archive: &Archive,
    commit: &Commit,
    base: u64,
) -> Result<u64, WorldError> {
    if commit.lineages.is_empty() {
        return Ok(base);
    }
    let held: HashSet<(u64, Timestamp, Timestamp)> = archive
        .publications(commit)?
        .into_iter()
        .map(|publication| (publication.seq, publication.at, publication.published_at))
        .collect();
    let mut common = base;
    for logged in Replay::from(log, base + 1)? {
        let logged = logged?;
        if let Change::Cut { at } = logged.change
            && held.contains(&(logged.seq, logged.at, at))
        {
            common = logged.seq;
        }
    }
    Ok(common)
}

/// The book of a lineage after entry `seq`, or after the last archived one, with a given catalogue.
pub(crate) fn book_at(
    archive: &Archive,
    commit: &Commit,
    (lineage, seq): (usize, u64),
    (options, catalogue): (&WorldOptions, Arc<Catalogue>),
) -> Result<Book, WorldError> {
    let image = commit.image_up_to(lineage, seq);
    book_from(archive, commit, image, (lineage, seq), (options, catalogue))
}

/// The book of an image or, without one, the book that an archive begins with; and the last entry that is in it.
pub(crate) fn begin_archived(
    archive: &Archive,
    image: Option<&Image>,
    part: ImagePart<'_>,
    limited: (Limits, Arc<Catalogue>),
) -> Result<(Book, u64), WorldError> {
    let read = |image: &Image| {
        let payload = archive.image(image)?;
        Ok::<_, WorldError>(Checkpoint { seq: image.seq, version: image.version, payload })
    };
    replay::begin(image.map(read).transpose()?.as_ref(), part, limited)
}

/// The same from an image.
pub(crate) fn book_from(
    archive: &Archive,
    commit: &Commit,
    image: Option<&Image>,
    (lineage, seq): (usize, u64),
    (options, catalogue): (&WorldOptions, Arc<Catalogue>),
) -> Result<Book, WorldError> {
    let (mut book, base) =
        begin_archived(archive, image, ImagePart::All, (options.limits, catalogue))?;
    let first = commit.lineages.get(lineage).map_or(1, |lineage| lineage.first_seq);
    if base + 1 < first {
        return Err(ArchiveError::Entry { seq: base + 1 }.into());
    }
    for entry in archive.entries(commit, lineage, base + 1..=seq) {
        let entry = entry?;
        book.absorb(&entry.change, entry.at);
    }
    Ok(book)
}
