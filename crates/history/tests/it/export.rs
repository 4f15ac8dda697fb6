//! Export of rows for other programs.

use std::time::Duration;

use archive::{Export, ExportFormat, Table};
use domain::Timestamp;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use crate::log::{DAYS, FROM, GOLF, archive_log};
use crate::rows::{cell, rows};

const TABLES: [Table; 7] = Table::ALL;

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
