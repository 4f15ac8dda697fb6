//! The content of the archive: the newest commit names every file that is part of it.

use std::collections::{BTreeMap, HashSet};

use domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::date::date_of;
use crate::error::ArchiveError;
use crate::starts::Started;
use crate::table::Table;

/// The version of tables and commits. Adding columns does not change it.
pub const SCHEMA: u32 = 1;

/// All files of the archive, as of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The number of the commit; the first is 1.
    pub commit: u64,
    pub schema: u32,
    pub files: Vec<TableFile>,
    pub images: Vec<Image>,
    pub catalogues: Vec<Catalogue>,
    /// The logs that were copied, oldest first.
    pub lineages: Vec<Lineage>,
    /// Starts whose closing lines are still to be made, oldest first: a file that they need is damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclosed: Vec<Unclosed>,
}

/// A start whose closing lines are still to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unclosed {
    pub lineage: usize,
    #[serde(flatten)]
    pub started: Started,
}

/// A file of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFile {
    pub table: Table,
    pub path: String,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
    /// Range of the entries of its rows.
    pub first_seq: u64,
    pub last_seq: u64,
    /// Index of their lineage in the commit.
    #[serde(default)]
    pub lineage: usize,
}

/// A file that is not a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A whole book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    #[serde(flatten)]
    pub file: Blob,
    /// The last entry that is in it.
    pub seq: u64,
    pub at_ms: i64,
    pub lineage: usize,
    /// The version of its bytes.
    pub version: u8,
    /// The first publication that it is valid for, if earlier ones were shown with another catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
}

/// A catalogue that entries were written under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    #[serde(flatten)]
    pub file: Blob,
    pub version: String,
}

/// Entries of one log. A log that was rolled back or lost starts a new lineage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    pub first_seq: u64,
    /// The last archived entry, which is a publication; less than `first_seq` if there is none.
    pub last_seq: u64,
    /// Distinguishes that entry from another one with the same number.
    pub last_checksum: u32,
    /// The time of that publication.
    pub last_ms: i64,
    pub publications: u64,
    /// Ranges of numbers that the log had lost before they were copied, inclusive.
    pub missing: Vec<(u64, u64)>,
    /// Times in milliseconds whose publications are lost because the log could not be written; the end is exclusive.
    #[serde(default)]
    pub gaps: Vec<(i64, i64)>,
}

impl TableFile {
    /// The day of its publications, such as `2026-11-14`.
    pub fn date(&self) -> &str {
        self.path.split('/').find_map(|part| part.strip_prefix("date=")).unwrap_or_default()
    }

    /// Its folder: one for each table, sport and day.
    pub(crate) fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Files with the same folder and lineage can be merged.
    pub(crate) fn group(&self) -> (&str, usize) {
        (self.folder(), self.lineage)
    }
}

impl Commit {
    /// The empty content of an archive before its first commit.
    pub fn none() -> Self {
        Self {
            commit: 0,
            schema: SCHEMA,
            files: Vec::new(),
            images: Vec::new(),
            catalogues: Vec::new(),
            lineages: Vec::new(),
            unclosed: Vec::new(),
        }
    }

    pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Self, ArchiveError> {
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let damaged =
            |_| ArchiveError::Damaged { path: path.to_owned(), reason: "it is not a commit" };
        let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
        if head.schema > SCHEMA {
            return Err(ArchiveError::Newer(head.schema));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// The last archived entry of the last lineage.
    pub fn last_seq(&self) -> Option<u64> {
        self.lineages.last().map(|lineage| lineage.last_seq)
    }

    /// The last day whose files are final: it is over, and has one file of each table and sport. Days before it may
    /// have files that cannot be merged.
    pub fn final_day(&self) -> Option<&str> {
        let last = self.lineages.last()?;
        let today = date_of(Timestamp::from_millis(last.last_ms));
        let mut days: BTreeMap<&str, bool> = BTreeMap::new();
        let mut folders: HashSet<(&str, usize)> = HashSet::new();
        for file in self.files.iter().filter(|file| file.date() < &*today) {
            let single = folders.insert(file.group());
            *days.entry(file.date()).or_insert(true) &= single;
        }
        days.into_iter().rfind(|(_, single)| *single).map(|(day, _)| day)
    }

    /// The files of a table and a day, by lineage; those of the sport if the table has files for each sport.
    pub fn day_files(&self, table: Table, sport: &str, date: &str) -> Vec<&TableFile> {
        let folder = match table.by_sport() {
            true => format!("{}/sport={sport}/date={date}", table.key()),
            false => format!("{}/date={date}", table.key()),
        };
        let mut files: Vec<&TableFile> =
            self.files.iter().filter(|file| file.folder() == folder).collect();
        files.sort_unstable_by_key(|file| (file.lineage, file.first_seq));
        files
    }

    /// Total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        let images = self.images.iter().map(|image| image.file.bytes);
        self.files.iter().map(|file| file.bytes).chain(images).sum()
    }

    /// The newest image of a lineage from which the publication of entry `seq` can be rebuilt.
    pub fn image_up_to(&self, lineage: usize, seq: u64) -> Option<&Image> {
        self.newest_image(lineage, |image| image.first.unwrap_or(image.seq) <= seq)
    }

    /// The newest image of a lineage from which the publication after that of entry `seq` can be rebuilt.
    pub fn image_before_next(&self, lineage: usize, seq: u64) -> Option<&Image> {
        self.newest_image(lineage, |image| image.seq <= seq)
    }

    fn newest_image(&self, lineage: usize, fits: impl Fn(&Image) -> bool) -> Option<&Image> {
        let images = self.images.iter().filter(|image| image.lineage == lineage && fits(image));
        images.max_by_key(|image| (image.seq, image.first))
    }

    /// Every path that is part of the archive.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.checksums().map(|(path, _, _)| path)
    }

    /// The same with the checksum and length of each file.
    pub(crate) fn checksums(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let tables = self.files.iter().map(|file| (&*file.path, &*file.sha256, file.bytes));
        let blobs = self.images.iter().map(|image| &image.file);
        let blobs = blobs.chain(self.catalogues.iter().map(|catalogue| &catalogue.file));
        tables.chain(blobs.map(|blob| (&*blob.path, &*blob.sha256, blob.bytes)))
    }
}
