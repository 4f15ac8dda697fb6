//! The tables of the archive and their columns. Columns are only ever added.

use serde::{Deserialize, Serialize};

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    Odds,
    Scores,
    Events,
    Reads,
    Closing,
    Epochs,
    Internal,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    /// 64 bits without a sign.
    Unsigned,
    Flag,
    Millis,
    /// A number with two places.
    Hundredths,
    Double,
    Text,
    Bytes,
    /// A list of a score's periods.
    Periods,
    /// A list of players with their rounds.
    Leaders,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
}

const fn required(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: true }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, required: false }
}

const ODDS: &[Column] = &[
    required("seq", Kind::Unsigned),
    required("at", Kind::Millis),
    required("ts", Kind::Millis),
    required("published_at", Kind::Millis),
    required("shown", Kind::Flag),
    optional("sport", Kind::Text),
    required("event_id", Kind::Text),
    required("record_id", Kind::Text),
    required("bookmaker", Kind::Text),
    required("market", Kind::Text),
    optional("pairing", Kind::Text),
    required("outcomes", Kind::Number),
    optional("n", Kind::Number),
    optional("name", Kind::Text),
    optional("side", Kind::Text),
    optional("quoted", Kind::Text),
    optional("num", Kind::Unsigned),
    optional("den", Kind::Unsigned),
    optional("decimal", Kind::Double),
    optional("american", Kind::Number),
    optional("point", Kind::Hundredths),
    optional("reason", Kind::Text),
    optional("last_update", Kind::Millis),
    optional("beat_seen", Kind::Millis),
];

/// Those of `odds`, and the further ones of a closing line.
const CLOSING: &[Column] = &[
    required("seq", Kind::Unsigned),
    required("at", Kind::Millis),
    required("ts", Kind::Millis),
    required("published_at", Kind::Millis),
    required("shown", Kind::Flag),
    optional("sport", Kind::Text),
    required("event_id", Kind::Text),
    required("record_id", Kind::Text),
    required("bookmaker", Kind::Text),
    required("market", Kind::Text),
    optional("pairing", Kind::Text),
    required("outcomes", Kind::Number),
    optional("n", Kind::Number),
    optional("name", Kind::Text),
    optional("side", Kind::Text),
    optional("quoted", Kind::Text),
    optional("num", Kind::Unsigned),
    optional("den", Kind::Unsigned),
    optional("decimal", Kind::Double),
    optional("american", Kind::Number),
    optional("point", Kind::Hundredths),
    optional("reason", Kind::Text),
    optional("last_update", Kind::Millis),
    optional("start", Kind::Millis),
    optional("start_by", Kind::Text),
    optional("active", Kind::Flag),
    optional("commence_time", Kind::Millis),
];

const SCORES: &[Column] = &[
    required("seq", Kind::Unsigned),
    required("at", Kind::Millis),
    required("ts", Kind::Millis),
    required("published_at", Kind::Millis),
    required("shown", Kind::Flag),
    optional("sport", Kind::Text),
    required("event_id", Kind::Text),
    required("status", Kind::Text),
    optional("home_score", Kind::Number),
    optional("away_score", Kind::Number),
    optional("winner", Kind::Text),
    optional("updated_at", Kind::Millis),
    required("periods", Kind::Periods),
    required("leaders", Kind::Leaders),
];

const EVENTS: &[Column] = &[
    required("seq", Kind::Unsigned),
    required("at", Kind::Millis),
    required("published_at", Kind::Millis),
    required("shown", Kind::Flag),
    optional("sport", Kind::Text),
    required("event_id", Kind::Text),
    required("what", Kind::Text),
    optional("competition", Kind::Text),
    optional("title", Kind::Text),
    optional("home", Kind::Text),
    optional("away", Kind::Text),
    optional("commence_time", Kind::Millis),
    optional("status", Kind::Text),
    optional("merged_into", Kind::Text),
];

const READS: &[Column] = &[
    required("seq", Kind::Unsigned),
    required("at", Kind::Millis),
    required("ts", Kind::Millis),
    required("published_at", Kind::Millis),
    optional("sport", Kind::Text),
    required("bookmaker", Kind::Text),
    optional("record_id", Kind::Text),
    optional("event_id", Kind::Text),
    optional("market", Kind::Text),
    optional("pairing", Kind::Text),
];

const EPOCHS: &[Column] = &[
    required("seq", Kind::Unsigned),
    required("at", Kind::Millis),
    required("published_at", Kind::Millis),
    optional("interval_ms", Kind::Unsigned),
    optional("stale_after_ms", Kind::Unsigned),
    optional("catalogue", Kind::Text),
    optional("program", Kind::Text),
];

const INTERNAL: &[Column] = &[
    required("seq", Kind::Unsigned),
    required("at", Kind::Millis),
    required("published_at", Kind::Millis),
    required("kind", Kind::Text),
    required("entry", Kind::Bytes),
];

impl Table {
    pub const ALL: [Self; 7] = [
        Self::Odds,
        Self::Scores,
        Self::Events,
        Self::Reads,
        Self::Closing,
        Self::Epochs,
        Self::Internal,
    ];

    pub const fn key(self) -> &'static str {
        match self {
            Self::Odds => "odds",
            Self::Scores => "scores",
            Self::Events => "events",
            Self::Reads => "reads",
            Self::Closing => "closing",
            Self::Epochs => "epochs",
            Self::Internal => "internal",
        }
    }

    pub(crate) const fn columns(self) -> &'static [Column] {
        match self {
            Self::Odds => ODDS,
            Self::Scores => SCORES,
            Self::Events => EVENTS,
            Self::Reads => READS,
            Self::Closing => CLOSING,
            Self::Epochs => EPOCHS,
            Self::Internal => INTERNAL,
        }
    }

    /// The columns by which its rows are sorted, so that an event or a record can be read without the rest.
    pub(crate) const fn order(self) -> &'static [&'static str] {
        match self {
            Self::Odds | Self::Closing => &["event_id", "record_id", "seq", "n"],
            Self::Scores | Self::Events => &["event_id", "seq"],
            Self::Reads => &["bookmaker", "event_id", "record_id", "seq"],
            Self::Epochs | Self::Internal => &["seq"],
        }
    }

    /// True if it has separate files for each sport.
    pub(crate) const fn by_sport(self) -> bool {
        !matches!(self, Self::Epochs | Self::Internal)
    }

    /// True if entries are read back from it. The other tables repeat them for queries.
    pub(crate) const fn holds_entries(self) -> bool {
        matches!(self, Self::Odds | Self::Reads | Self::Epochs | Self::Internal)
    }

    /// The columns that distinguish its rows. For tables that entries are read back from, only the entry.
    pub(crate) const fn key_columns(self) -> &'static [&'static str] {
        match self {
            Self::Odds | Self::Reads | Self::Epochs | Self::Internal => &["seq"],
            Self::Scores => &["seq", "event_id", "published_at"],
            Self::Events => &["seq", "event_id", "what"],
            Self::Closing => &["seq", "event_id", "record_id", "n"],
        }
    }

    /// The columns that entries are read back from.
    pub(crate) const fn entry_columns(self) -> &'static [&'static str] {
        match self {
            Self::Odds => &[
                "seq",
                "at",
                "ts",
                "event_id",
                "bookmaker",
                "market",
                "pairing",
                "outcomes",
                "n",
                "name",
                "side",
                "quoted",
                "num",
                "den",
                "point",
            ],
            Self::Reads => {
                &["seq", "at", "ts", "sport", "bookmaker", "event_id", "market", "pairing"]
            }
            Self::Epochs => &["seq", "at", "published_at", "catalogue"],
            Self::Internal => &["seq", "at", "kind", "entry"],
            Self::Scores | Self::Events | Self::Closing => &[],
        }
    }

    /// The schema in Parquet's notation.
    pub(crate) fn message_type(self) -> String {
        let mut text = format!("message {} {{\n", self.key());
        for column in self.columns() {
            let rule = if column.required { "required" } else { "optional" };
            let name = column.name;
            let of_type = match column.kind {
                Kind::Number => format!("int64 {name}"),
                Kind::Unsigned => format!("int64 {name} (INTEGER(64,false))"),
                Kind::Flag => format!("boolean {name}"),
                Kind::Millis => format!("int64 {name} (TIMESTAMP(MILLIS,true))"),
                Kind::Hundredths => format!("int64 {name} (DECIMAL(18,2))"),
                Kind::Double => format!("double {name}"),
                Kind::Text => format!("binary {name} (STRING)"),
                Kind::Bytes => format!("binary {name}"),
                Kind::Periods => format!(
                    "group {name} (LIST) {{ repeated group list {{ required group element {{ \
                     required int32 number; required int32 home; required int32 away; }} }} }}"
                ),
                Kind::Leaders => format!(
                    "group {name} (LIST) {{ repeated group list {{ required group element {{ \
                     required binary name (STRING); required group rounds (LIST) {{ repeated group list {{ \
                     required int32 element; }} }} }} }} }}"
                ),
            };
            let end = if of_type.ends_with('}') { "" } else { ";" };
            text.push_str(&format!("  {rule} {of_type}{end}\n"));
        }
        text.push('}');
        text
    }
}
