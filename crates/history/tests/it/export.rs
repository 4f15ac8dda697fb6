//! Export of rows for other programs.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use archive::{Archive, Commit, Compact, Export, ExportFormat, Outcome, Table, TableFile};
use domain::Timestamp;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use crate::commits::copy;
use crate::compaction::{compact, small_log};
use crate::log::{DAYS, FROM, GOLF, archive_log};
use crate::rows::{cell, rows};

const TABLES: [Table; 7] = Table::ALL;
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn every_row_of_a_time_is_exported_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1);
    let commit = archive.newest().unwrap();
    // From the second publication, which is of the second day, up to the fifth, which is excluded.
    let eight_hours = Duration::from_secs(8 * 3600);
    let (from, to) = (FROM.plus(eight_hours), FROM.plus(eight_hours * 4));
    for table in TABLES {
        let all = rows(&archive, dir.path(), table);
        let published = |row: &Vec<(String, String)>| {
            let text = cell(row, "published_at").replace(' ', "T").replace("T+00:00", "Z");
            Timestamp::parse(&text).unwrap()
        };
        let wanted = all.iter().filter(|row| (from..to).contains(&published(row))).count();
        let export = |sport, format| {
            let mut out = Vec::new();
            let export = Export { table, from, to, sport, format };
            let rows = archive.export(&commit, &export, &mut out).unwrap();
            (usize::try_from(rows).unwrap(), out)
        };
        let (count, text) = export(None, ExportFormat::Ndjson);
        assert_eq!(count, wanted, "{table:?}");
        let lines: Vec<Value> = std::str::from_utf8(&text)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), wanted);
        assert!(lines.iter().all(|line| line["published_at"].as_str().unwrap().ends_with('Z')));

        let (count, text) = export(None, ExportFormat::Csv);
        assert_eq!(count, wanted);
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("seq,at,"), "{text}");
        assert_eq!(
            text.matches("\r\n").count(),
            wanted + 1,
            "a header, and no text with a line end"
        );

        let (count, bytes) = export(None, ExportFormat::Parquet);
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!((count, reader.get_row_iter(None).unwrap().count()), (wanted, wanted));

        if table == Table::Scores {
            let golf = lines.iter().find(|line| line["event_id"] == GOLF.to_string()).unwrap();
            assert_eq!(golf["leaders"][0]["rounds"][1], 71, "{golf}");
            assert_eq!(golf["home_score"], -3);
            let (_, text) = export(Some("golf"), ExportFormat::Ndjson);
            let text = String::from_utf8(text).unwrap();
            assert!(text.lines().count() > 0 && text.lines().all(|line| line.contains("\"golf\"")));
        }
    }
}

/// All rows of odds.
const ALL_ODDS: Export<'static> = Export {
    table: Table::Odds,
    from: FROM,
    to: Timestamp::from_secs(1_900_000_000),
    sport: None,
    format: ExportFormat::Ndjson,
};

/// Collects what is written, and calls a function once some writes have been made.
struct Interrupted<F> {
    out: Vec<u8>,
    writes_before: usize,
    interrupt: Option<F>,
}

impl<F: FnOnce()> Write for Interrupted<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.writes_before.checked_sub(1) {
            Some(left) => self.writes_before = left,
            None => self.interrupt.take().into_iter().for_each(|interrupt| interrupt()),
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Deletes the files of a commit that the newest one does not name, without waiting for an hour.
fn delete_replaced(archive: &Archive, root: &Path, before: &Commit) {
    let cleaning = archive.clone().with_unused_kept(Duration::ZERO);
    let begun = Instant::now();
    loop {
        // Each commit provides the current time of the file system, which may be coarse.
        let newest = archive.newest().unwrap();
        let next = Commit { commit: newest.commit + 1, ..newest };
        assert_eq!(archive.commit(&next).unwrap(), Outcome::Committed);
        cleaning.clean(&next).unwrap();
        let is_replaced = |path: &&str| !next.paths().any(|kept| kept == *path);
        if !before.paths().filter(is_replaced).any(|path| root.join(path).exists()) {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "replaced files are not deleted");
    }
}

/// Merges the first and the last file of odds of the second day, as happens if the one between them has many rows.
fn merge_around(archive: &Archive) {
    let mut commit = archive.newest().unwrap();
    let days: BTreeSet<&str> = commit.files.iter().map(TableFile::date).collect();
    let second = days.into_iter().nth(1).unwrap().to_owned();
    let files = commit.day_files(Table::Odds, "mma", &second);
    assert_eq!(files.len(), 3);
    let middle = files[1].clone();
    commit.files.retain(|file| *file != middle);
    let mut next = archive.compact(&commit, &Compact::All, FROM).unwrap().unwrap().commit;
    next.commit += 1;
    next.files.push(middle);
    assert_eq!(archive.commit(&next).unwrap(), Outcome::Committed);
}

#[test]
fn rows_whose_files_are_merged_and_deleted_meanwhile_are_exported_once() {
    let dir = tempfile::tempdir().unwrap();
    for overlapping in [false, true] {
        let base = dir.path().join(overlapping.to_string());
        let archive = archive_log(&base, &small_log(), 1);
        if overlapping {
            merge_around(&archive);
        }
        let commit = archive.newest().unwrap();
        let sorted = |out: &[u8]| {
            let text = std::str::from_utf8(out).unwrap();
            text.lines().map(str::to_owned).collect::<BTreeSet<String>>()
        };
        let mut whole = Vec::new();
        let rows = archive.export(&commit, &ALL_ODDS, &mut whole).unwrap();
        // A file has four rows at least.
        for writes_before in (0..usize::try_from(rows).unwrap()).step_by(3) {
            let root = dir.path().join(format!("{overlapping}-{writes_before}"));
            copy(&base, &root);
            let archive = Archive::at(&root);
            let interrupt = || {
                compact(&archive, &Compact::All, FROM);
                delete_replaced(&archive, &root, &commit);
            };
            let mut out =
                Interrupted { out: Vec::new(), writes_before, interrupt: Some(interrupt) };
            let exported = archive.export(&commit, &ALL_ODDS, &mut out).unwrap();
            assert!(out.interrupt.is_none());
            assert_eq!(exported, rows, "{writes_before}");
            assert_eq!(sorted(&out.out), sorted(&whole), "{writes_before}");
        }
    }
}

#[test]
fn an_export_whose_rows_are_deleted_meanwhile_fails() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &small_log(), 1);
    let commit = archive.newest().unwrap();
    let odds = commit.files.iter().filter(|file| file.table == Table::Odds);
    let last = odds.max_by_key(|file| file.first_seq).unwrap();
    let interrupt = || {
        let mut next = commit.clone();
        next.commit += 1;
        next.files.retain(|file| file != last);
        assert_eq!(archive.commit(&next).unwrap(), Outcome::Committed);
        delete_replaced(&archive, dir.path(), &commit);
    };
    let mut out = Interrupted { out: Vec::new(), writes_before: 0, interrupt: Some(interrupt) };
    let error = archive.export(&commit, &ALL_ODDS, &mut out).unwrap_err();
    assert!(error.is_damage(), "{error}");
}
