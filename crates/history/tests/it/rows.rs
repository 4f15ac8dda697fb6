//! The tables as other programs read them.

use std::path::Path;

use archive::{Archive, Compact, Table};
use parquet::basic::{Compression, Encoding};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};

use crate::compaction::compact;
use crate::log::{DAYS, FIGHT, FROM, GOLF, LOG, archive_log};

/// All rows of a table, as any reader of Parquet sees them.
pub(crate) fn rows(archive: &Archive, root: &Path, table: Table) -> Vec<Vec<(String, String)>> {
    let commit = archive.newest().unwrap();
    let mut rows = Vec::new();
    for file in commit.files.iter().filter(|file| file.table == table) {
        let reader =
            SerializedFileReader::new(std::fs::File::open(root.join(&file.path)).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata();
        let schema = metadata.key_value_metadata().unwrap();
        assert!(
            schema
                .iter()
                .any(|pair| pair.key == "linesman.schema" && pair.value.as_deref() == Some("1"))
        );
        let before = rows.len();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            rows.push(
                row.get_column_iter()
                    .map(|(name, field)| (name.clone(), field.to_string()))
                    .collect(),
            );
        }
        assert_eq!(u64::try_from(rows.len() - before).unwrap(), file.rows);
    }
    rows
}

pub(crate) fn cell<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    row.iter().find(|(held, _)| held == name).map(|(_, value)| value.trim_matches('"')).unwrap()
}

#[test]
fn tables_say_what_was_published_and_when() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &LOG, 1);

    let scores = rows(&archive, dir.path(), Table::Scores);
    let of = |id: domain::EventId| {
        let id = id.to_string();
        scores.iter().find(|row| cell(row, "event_id") == id).unwrap()
    };
    let golf = of(GOLF);
    assert_eq!(
        cell(golf, "leaders").replace(' ', ""),
        "[{name:\"Ann\",rounds:[70,71]},{name:\"Ben\",rounds:[]}]"
    );
    assert_eq!(cell(golf, "shown"), "false", "its event expired before the publication");
    let fight = of(FIGHT);
    assert_eq!(
        cell(fight, "periods").replace(' ', ""),
        "[{number:1,home:2,away:3},{number:2,home:4,away:-5}]"
    );
    assert_eq!(cell(fight, "leaders"), "[]");
    assert_eq!(
        ["home_score", "away_score", "winner", "status", "shown", "sport"]
            .map(|name| cell(fight, name)),
        ["-3", "null", "away", "live", "true", "mma"],
    );

    let events = rows(&archive, dir.path(), Table::Events);
    let fight = FIGHT.to_string();
    let fight = events.iter().find(|row| cell(row, "event_id") == fight).unwrap();
    assert_eq!(
        ["what", "home", "away", "title", "competition", "status"].map(|name| cell(fight, name)),
        ["listed", "Ann", "Zoë", "null", "Cup", "live"],
    );
    assert!(events.iter().all(|row| cell(row, "event_id") != GOLF.to_string()), "never shown");

    let odds = rows(&archive, dir.path(), Table::Odds);
    assert!(odds.len() > 100, "{}", odds.len());
    let priced =
        odds.iter().find(|row| cell(row, "quoted") == "american" && cell(row, "den") == "1");
    let priced = priced.or(odds.iter().find(|row| cell(row, "quoted") == "american")).unwrap();
    let number = |name: &str| cell(priced, name).parse::<f64>().unwrap();
    let profit = number("num") / number("den");
    assert!((number("decimal") - 1.0 - profit).abs() < 0.001);
    assert!(odds.iter().any(|row| cell(row, "shown") == "true"));

    let epochs = rows(&archive, dir.path(), Table::Epochs);
    let intervals: Vec<&str> = epochs.iter().map(|row| cell(row, "interval_ms")).collect();
    assert_eq!(intervals, ["30000"; 6]);

    let files: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("files.json")).unwrap()).unwrap();
    assert_eq!(files["commit"], json!(6));
    let date: String = FROM.millis_text().iter().take(10).map(|byte| char::from(*byte)).collect();
    let files = files["files"].as_array().unwrap();
    let path = files.iter().find(|file| file["table"] == "odds").unwrap();
    let path = path["path"].as_str().unwrap();
    assert!(path.starts_with("odds/sport=") && path.contains(&format!("/date={date}/")), "{path}");
}

/// H16: readers skip what they do not need.
#[test]
fn every_file_is_compressed_indexed_and_sorted_before_and_after_files_are_merged() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &DAYS, 1).with_group_rows(7);
    let (parts, _) = check_files(&archive, dir.path());
    compact(&archive, &Compact::All, FROM);
    let (merged, groups) = check_files(&archive, dir.path());
    assert!(merged < parts && groups > merged, "{groups} groups in {merged} files of {parts}");
}

/// Checks every file of an archive, and returns the numbers of files and of their groups of rows.
fn check_files(archive: &Archive, root: &Path) -> (usize, usize) {
    let commit = archive.newest().unwrap();
    let (mut ids, mut groups) = (0, 0);
    for file in &commit.files {
        let path = &file.path;
        let reader = SerializedFileReader::new(std::fs::File::open(root.join(path)).unwrap());
        let reader = reader.unwrap();
        let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let schema = pairs.iter().find(|pair| pair.key == "linesman.schema").unwrap();
        assert_eq!(schema.value.as_deref(), Some("1"), "{path}");
        groups += reader.num_row_groups();
        for group in 0..reader.num_row_groups() {
            for column in reader.metadata().row_group(group).columns() {
                let name = column.column_path().string();
                assert!(matches!(column.compression(), Compression::ZSTD(_)), "{path} {name}");
                assert!(column.column_index_offset().is_some(), "{path} {name}");
                assert!(column.offset_index_offset().is_some(), "{path} {name}");
                assert!(column.statistics().is_some(), "{path} {name}");
            }
            let rows = reader.get_row_group(group).unwrap();
            let rows = rows.get_row_iter(None).unwrap().map(Result::unwrap);
            let places: Vec<_> = rows.map(|row| place(&row, file.table)).collect();
            assert!(places.is_sorted(), "{path}");
            ids += places.windows(2).filter(|pair| pair[0][0] != pair[1][0]).count();
        }
    }
    assert!(ids > 20, "{ids}");
    (commit.files.len(), groups)
}

/// The values that rows of a table are sorted by.
fn place(row: &Row, table: Table) -> Vec<(Option<String>, u64)> {
    let names: &[&str] = match table {
        Table::Odds | Table::Closing => &["event_id", "record_id", "seq", "n"],
        Table::Scores | Table::Events => &["event_id", "seq"],
        Table::Reads => &["bookmaker", "event_id", "record_id", "seq"],
        Table::Epochs | Table::Internal => &["seq"],
    };
    let value = |name: &&str| {
        let (_, field) = row.get_column_iter().find(|(held, _)| held == name).unwrap();
        if let Field::Str(text) = field {
            return (Some(text.clone()), 0);
        }
        if let Field::ULong(number) = field {
            return (None, *number);
        }
        if let Field::Long(number) = field {
            return (None, u64::try_from(*number).unwrap());
        }
        assert_eq!(*field, Field::Null, "{name}");
        (None, 0)
    };
    names.iter().map(value).collect()
}

/// These are needed to stay within the size that H23 allows for a change. All readers know them.
#[test]
fn times_and_numbers_of_entries_have_no_dictionary() {
    let dir = tempfile::tempdir().unwrap();
    let archive = archive_log(dir.path(), &LOG, 1);
    for table in [Table::Odds, Table::Reads] {
        let commit = archive.newest().unwrap();
        let file = commit.files.iter().find(|file| file.table == table).unwrap();
        let file = std::fs::File::open(dir.path().join(&file.path)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let group = reader.metadata().row_group(0);
        for name in ["seq", "at", "ts"] {
            let mut columns = group.columns().iter();
            let column = columns.find(|column| column.column_path().string() == name).unwrap();
            assert_eq!(column.dictionary_page_offset(), None, "{table:?} {name}");
            let plain = match (table, name) {
                (Table::Reads, "seq") => Encoding::DELTA_BINARY_PACKED,
                _ => Encoding::PLAIN,
            };
            assert!(column.encodings().any(|held| held == plain), "{table:?} {name}");
        }
    }
}
