//! The operations of the API, one row each. Routing, checks, metrics, usage, the OpenAPI document and the pages are
//! derived from the rows; only the paths of `/v4` are matched separately, and a test compares them with the rows.

mod table;

use crate::v1::param::Param;
use crate::v4::param::Param as V4Param;
use table::ROWS;

/// An operation, or `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    ListSports,
    GetOdds,
    GetScores,
    ListEvents,
    GetEvent,
    GetBest,
    GetFair,
    ListArbitrages,
    ListEv,
    ListMiddles,
    ListBooks,
    GetStatus,
    GetHistory,
    GetStream,
    GetCoverage,
    ExplainEvent,
    GetPricePath,
    GetClosing,
    GetExport,
    V4Sports,
    V4Events,
    V4Odds,
    V4Scores,
    V4EventOdds,
    V4EventMarkets,
    V4Participants,
    V4Historical,
    /// Requests without an operation, or refused before it was known.
    Unknown,
}

/// Path of the only operation whose response is a stream.
pub const STREAM_PATH: &str = match Operation::GetStream.row().path {
    Some(path) => path,
    None => "",
};

/// Properties of an operation.
#[derive(Debug)]
pub struct Row {
    operation: Operation,
    /// Name in the reference, metrics and usage.
    pub name: &'static str,
    /// Path template (the first, if there are several); `None` for `Unknown`.
    pub path: Option<&'static str>,
    pub title: &'static str,
    /// Description for the reference.
    pub meaning: &'static str,
    /// Section of the reference.
    pub tag: &'static str,
    /// Description of a successful response; its schemas follow.
    pub answer: &'static str,
    pub schemas: &'static [Schema],
    pub params: Params,
    pub cost: Cost,
}

/// The query parameters of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Params {
    /// Of `/v1`; `api_key` is accepted by every operation.
    V1(&'static [Param]),
    /// Of `/v4`, without the key; for a historical operation, those in addition to the ones for current data.
    V4(&'static [V4Param]),
}

impl Row {
    /// The query parameters of an operation of `/v1`.
    pub const fn params(&self) -> &'static [Param] {
        match self.params {
            Params::V1(params) => params,
            Params::V4(_) => &[],
        }
    }

    /// The query parameters of an operation of `/v4`.
    pub const fn v4_params(&self) -> &'static [V4Param] {
        match self.params {
            Params::V1(_) => &[],
            Params::V4(params) => params,
        }
    }
}

/// Schema of a response.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    One(&'static str),
    ListOf(&'static str),
}

/// Cost of a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One request. Closed during maintenance.
    Request,
    /// No quota. Closed during maintenance.
    Unmetered,
    /// One request at the start and one for each publication with changes that is sent; never cached. Closed during
    /// maintenance.
    Stream,
    /// Free, also when the quota is used up and during maintenance; never cached.
    Free,
    /// One request. A file of the archive, which has its own ETag. Closed during maintenance.
    File,
    /// No quota, never cached. Closed during maintenance.
    Present,
}

impl Operation {
    pub const COUNT: usize = ROWS.len();

    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.operation)
    }

    /// The names in the order of [`Operation::index`].
    pub fn names() -> [&'static str; Self::COUNT] {
        ROWS.each_ref().map(|row| row.name)
    }

    /// The operations of `/v1`.
    pub fn v1() -> impl Iterator<Item = Self> {
        Self::all().filter(|operation| operation.is_of("/v1/"))
    }

    /// The operations of `/v4`.
    pub fn v4() -> impl Iterator<Item = Self> {
        Self::all().filter(|operation| operation.is_of("/v4/"))
    }

    fn is_of(self, version: &str) -> bool {
        self.row().path.is_some_and(|path| path.starts_with(version))
    }

    pub fn by_name(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.operation)
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    #[expect(clippy::indexing_slicing, reason = "every operation has its row; a test looks")]
    pub const fn row(self) -> &'static Row {
        &ROWS[self.index()]
    }

    pub const fn name(self) -> &'static str {
        self.row().name
    }

    pub const fn is_free(self) -> bool {
        matches!(self.row().cost, Cost::Free)
    }

    /// True if a successful response counts against the quota.
    pub const fn is_metered(self) -> bool {
        matches!(self.row().cost, Cost::Request | Cost::Stream | Cost::File)
    }

    /// True if the response continues until the client disconnects.
    pub const fn is_stream(self) -> bool {
        matches!(self.row().cost, Cost::Stream)
    }

    /// True if it returns the history of prices, for names of any catalogue.
    pub const fn is_of_past_prices(self) -> bool {
        matches!(self, Self::GetPricePath | Self::GetClosing)
    }

    /// True if the response is a file.
    pub const fn is_file(self) -> bool {
        matches!(self.row().cost, Cost::File)
    }

    /// True if responses come from a publication and may be cached.
    pub const fn is_kept(self) -> bool {
        matches!(self.row().cost, Cost::Request | Cost::Unmetered)
    }

    /// True if responses carry a cursor.
    pub const fn has_position(self) -> bool {
        matches!(self, Self::GetOdds | Self::GetScores | Self::ListEvents)
    }

    /// The query parameters of a path of `/v4`: those of the operation on current data, and `date` for historical
    /// data.
    pub(crate) fn v4_params(self, current: Self) -> impl Iterator<Item = V4Param> {
        let own = if self == current { &[] } else { self.row().v4_params() };
        current.row().v4_params().iter().chain(own).copied()
    }

    /// True if the path names a sport.
    pub fn is_in_sport(self) -> bool {
        self.row().path.is_some_and(|path| path.contains("{sport"))
    }

    /// True if responses can be tables.
    pub fn has_table(self) -> bool {
        self.row().params().contains(&Param::Format)
    }

    pub fn is_paged(self) -> bool {
        self.row().params().contains(&Param::Cursor)
    }
}

// Every operation has a counter in a key's usage.
const _: () = assert!(Operation::COUNT <= accounts::OPERATIONS_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_finds_its_own_row() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!((row.operation.index(), row.operation.name()), (at, row.name));
            assert_eq!(Operation::by_name(row.name), Some(row.operation));
        }
    }

    #[test]
    fn there_is_one_stream() {
        let streams = Operation::all().filter(|operation| operation.is_stream());
        let paths: Vec<Option<&str>> = streams.map(|operation| operation.row().path).collect();
        assert_eq!(paths, [Some(STREAM_PATH)]);
    }
}
