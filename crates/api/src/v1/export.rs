//! Files of the archive, unchanged (H14).

use std::task::{Context, Poll};

use bytes::Bytes;
use domain::{Catalogue, Timestamp};
use engine::{ExportError, ExportPieces, ExportRequest, Table};
use http::{Head, LongBody, Ranged, Reply, StreamBody};

use super::{Admitted, Answered, no_such_sport};
use crate::admission::refusal::{charged, check_export, refused_by_history};
use crate::error::{ApiError, ErrorCode};
use crate::operation::Operation;
use crate::v1::param::{LINEAGE_MAX, Param};
use crate::v1::query::unknown_value;
use crate::v1::target_path::TargetPath;

/// The media type of Parquet files.
pub(crate) const PARQUET_TYPE: &str = "application/vnd.apache.parquet";

/// The tables whose files can be downloaded: all except the internal one.
pub(crate) fn tables() -> impl Iterator<Item = Table> + Clone {
    Table::ALL.into_iter().filter(|table| *table != Table::Internal)
}

/// Parses the path segments after the sport.
pub(crate) fn parse(target: TargetPath<'_>) -> Result<(Table, &str), ApiError> {
    let key = target.table.unwrap_or_default();
    let table = tables().find(|table| table.key() == key).ok_or_else(|| {
        let text = unknown_value("table", key, tables().map(Table::key));
        ApiError::param("table", text)
    })?;
    let date = target.date.unwrap_or_default();
    let digits = date.len() == "2026-11-14".len();
    if !digits || Timestamp::parse(&format!("{date}T00:00:00Z")).is_err() {
        return Err(ApiError::param("date", "`date` must be a day in UTC such as 2026-11-14"));
    }
    Ok((table, date))
}

impl Admitted<'_> {
    /// A file, or a part of it.
    pub(super) async fn export(&self) -> Answered {
        let target = self.target_path()?;
        let key = target.sport.unwrap_or_default();
        let open = |known: &Catalogue| {
            let sport = known.sport_id(key).ok_or_else(|| no_such_sport(known, key))?;
            check_export(&self.entry.grant, known, sport)
        };
        self.read_known(open).await?;
        let values =
            self.query.values(Operation::GetExport, self.api.settings.query_key_enabled)?;
        let (table, date) = parse(target)?;
        let lineage = values.get(Param::Lineage).map(lineage).transpose()?;
        let request =
            ExportRequest { table, sport: key.to_owned(), date: date.to_owned(), lineage };
        let history = &self.api.world(self.world()).history;
        let file = history.export(request, self.key()).await.map_err(|error| no_file(&error))?;
        let (etag, length) = (format!("\"{}\"", file.sha256()), file.length());
        let mut head = Head::with_default_room();
        head.put("etag", &etag);
        // A day can get further rows, such as those of a corrected closing line.
        head.put("cache-control", "private, no-cache");
        head.put("vary", "X-API-Key");
        head.put("accept-ranges", "bytes");
        if let Some(next) = file.next {
            let path = self.request.path;
            head.put("link", format!("<{path}?lineage={next}>; rel=\"next\""));
        }
        if self.request.holds(&etag) {
            return Ok((Reply::empty(304, head), None));
        }
        let (status, range) = match self.request.range_of(&etag, length) {
            Ranged::Whole => (200, 0..length),
            Ranged::Part(range) => {
                let last = range.end.saturating_sub(1);
                head.put("content-range", format!("bytes {}-{last}/{length}", range.start));
                (206, range)
            }
            Ranged::Unsatisfiable => {
                let text = format!("the file has {length} bytes; `Range` begins beyond its end");
                let mut error = ApiError::new(ErrorCode::RangeNotSatisfiable, text);
                error.content_length = Some(length);
                return Err(error);
            }
        };
        let standing = charged(self.api.accounts.charge_credits(self.entry, 1, self.now).await)?;
        head.put("content-type", PARQUET_TYPE);
        let name = format!("{}-{key}-{date}.parquet", table.key());
        head.put("content-disposition", format!("attachment; filename=\"{name}\""));
        let length = range.end - range.start;
        let pieces = Box::new(FileBody(file.pieces(range)));
        let long = Some(LongBody { length, pieces });
        Ok((Reply { long, ..Reply::empty(status, head) }, Some(standing)))
    }
}

fn lineage(text: &str) -> Result<usize, ApiError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number <= LINEAGE_MAX);
    number.ok_or_else(|| {
        let text = format!("`lineage` must be a whole number from 0 to {LINEAGE_MAX}");
        ApiError::param(Param::Lineage.name(), text)
    })
}

/// The body of a file being sent.
#[derive(Debug)]
struct FileBody(ExportPieces);

impl StreamBody for FileBody {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_next(context)
    }
}

fn no_file(error: &ExportError) -> ApiError {
    let text = match error {
        ExportError::NotFinal(Some(last)) => {
            format!("the files of that day are not final; {last} is the last day whose files are")
        }
        ExportError::NotFinal(None) => {
            "no day has final files yet; `exported_to` of /v1/history says when one has".to_owned()
        }
        ExportError::NoRows => "that day has no such rows, or they are past retention".to_owned(),
        ExportError::History(error) => return refused_by_history(error),
    };
    ApiError::new(ErrorCode::NotInHistory, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_table_and_a_day() {
        let of = |table, date| {
            let path = format!("/v1/sports/mma/export/{table}/{date}");
            let target = TargetPath::parse(&path).unwrap();
            assert_eq!((target.operation, target.sport), (Operation::GetExport, Some("mma")));
            parse(target).map(|(table, date)| (table, date.to_owned()))
        };
        assert_eq!(of("odds", "2026-11-14"), Ok((Table::Odds, "2026-11-14".to_owned())));
        assert_eq!(of("epochs", "2028-02-29"), Ok((Table::Epochs, "2028-02-29".to_owned())));
        for table in ["internal", "Odds", "prices", "odds.parquet", "%6fdds"] {
            assert_eq!(of(table, "2026-11-14").unwrap_err().param.as_deref(), Some("table"));
        }
        let dates = ["2026-11-31", "2027-02-29", "2026-1-1", "20261114", "today", "2026-11-14Z"];
        for date in dates {
            assert_eq!(of("odds", date).unwrap_err().param.as_deref(), Some("date"), "{date}");
        }
    }
}
