//! The capacity of many nodes and their load on the log and the database, computed from the measured cost of one node.
//! Plain arithmetic.

use std::fmt::Write as _;

/// Measured: `cargo xtask bench` (docs/performance.md).
mod measured {
    /// Processor time of a request, with 10,000 connections that all have a request in progress.
    pub(super) const REQUEST_US: f64 = 28.4;
    /// Processor time to absorb a change: 290,000 a second.
    pub(super) const CHANGE_US: f64 = 3.4;
    /// Processor time to cut a snapshot of 200,000 records.
    pub(super) const CUT_MS: f64 = 48.0;
    pub(super) const RECORD_BYTES: f64 = 1202.0;
    pub(super) const CONNECTION_BYTES: f64 = 5492.0;
    pub(super) const CHECKPOINT_MB: f64 = 9.6;
    /// Measured by `cargo xtask scale measure`, as are the following.
    pub(super) const KEY_BYTES: f64 = 3383.0;
    /// A change in the log, with its frame.
    pub(super) const CHANGE_BYTES: f64 = 85.0;
    /// Changes a second that a log on three servers accepts, in batches of a hundred.
    pub(super) const LOG_CHANGES: f64 = 203_000.0;
    /// Leases a second of PostgreSQL in transactions of 16: leases that wait on a node are sent together.
    pub(super) const LEASES: f64 = 30_352.0;
}

/// Assumptions; change them to yours.
mod assumed {
    pub(super) const CORES: f64 = 4.0;
    /// Share of its processors that a node should use on a usual day.
    pub(super) const USE: f64 = 0.5;
    pub(super) const RECORDS: f64 = 200_000.0;
    pub(super) const CONNECTIONS: f64 = 10_000.0;
    /// Changes a second: a usual day, and the busiest hour.
    pub(super) const CHANGES: [f64; 2] = [1000.0, 10_000.0];
    pub(super) const KEYS: f64 = 1_000_000.0;
    /// Keys that are used at least once a minute, each through one node.
    pub(super) const KEYS_BUSY: f64 = 100_000.0;
    pub(super) const REFRESH_S: f64 = 30.0;
    /// Interval at which a node confirms that it knows every change of keys.
    pub(super) const RENEW_S: f64 = 1.0;
    /// Maximum number of database connections of one node.
    pub(super) const DATABASE_CONNECTIONS: f64 = 4.0;
    /// Bandwidth of one log server: four fifths of ten gigabits.
    pub(super) const WIRE_BYTES: f64 = 1e9;
    /// Maximum time for nodes that start at the same time to read a checkpoint each.
    pub(super) const START_S: f64 = 10.0;
    /// Connections that one PostgreSQL server can hold without a pooler.
    pub(super) const DATABASE_CONNECTIONS_MAX: f64 = 1000.0;
}

/// Number of api nodes.
#[derive(Clone, Copy, Debug)]
struct Estate {
    nodes: f64,
}

/// A line of the table: name, figure, and share of the available capacity.
struct Row {
    what: &'static str,
    figure: String,
    /// The used share, and the name of the capacity.
    share: Option<(f64, &'static str)>,
}

impl Row {
    fn new(what: &'static str, figure: String) -> Self {
        Self { what, figure, share: None }
    }

    fn of(what: &'static str, figure: String, used: f64, of: &'static str) -> Self {
        Self { what, figure, share: Some((used, of)) }
    }
}

impl Estate {
    /// Processors left for requests after the work for the market.
    fn cores_for_requests(changes: f64) -> f64 {
        let absorbing = changes * measured::CHANGE_US / 1e6;
        let cutting = measured::CUT_MS / 1e3 / assumed::REFRESH_S;
        (assumed::CORES * assumed::USE - absorbing - cutting).max(0.0)
    }

    fn requests(self, changes: f64) -> f64 {
        self.nodes * Self::cores_for_requests(changes) * 1e6 / measured::REQUEST_US
    }

    fn memory_bytes() -> f64 {
        assumed::RECORDS * measured::RECORD_BYTES
            + assumed::CONNECTIONS * measured::CONNECTION_BYTES
            + assumed::KEYS * measured::KEY_BYTES
    }

    /// Bytes that the log sends to all nodes together.
    fn fan_out_bytes(self, changes: f64) -> f64 {
        self.nodes * changes * measured::CHANGE_BYTES
    }

    /// Each key that is used within a minute needs one lease of that minute on each node it reaches.
    fn leases() -> f64 {
        assumed::KEYS_BUSY / 60.0
    }

    fn renewals(self) -> f64 {
        self.nodes / assumed::RENEW_S
    }

    fn rows(self) -> Vec<Row> {
        let [usual, busy] = assumed::CHANGES;
        let transactions = Self::leases() + self.renewals();
        let connections = self.nodes * assumed::DATABASE_CONNECTIONS;
        let checkpoints = self.nodes * measured::CHECKPOINT_MB * 1e6;
        vec![
            Row::new("requests/s, usual day", shell::thousands(self.requests(usual))),
            Row::new("requests/s, busiest hour", shell::thousands(self.requests(busy))),
            Row::new("connections", shell::thousands(self.nodes * assumed::CONNECTIONS)),
            Row::new("memory of one node", megabytes(Self::memory_bytes())),
            Row::of(
                "the log takes, busiest hour",
                rate(busy * measured::CHANGE_BYTES),
                busy / measured::LOG_CHANGES,
                "the writer's pace",
            ),
            Row::of(
                "the log sends, usual day",
                rate(self.fan_out_bytes(usual)),
                self.fan_out_bytes(usual) / assumed::WIRE_BYTES,
                "one log server's wire",
            ),
            Row::of(
                "the log sends, busiest hour",
                rate(self.fan_out_bytes(busy)),
                self.fan_out_bytes(busy) / assumed::WIRE_BYTES,
                "one log server's wire",
            ),
            Row::of(
                "checkpoints, all nodes start at once",
                megabytes(checkpoints),
                checkpoints / assumed::START_S / assumed::WIRE_BYTES,
                "one log server's wire for 10 s",
            ),
            Row::new("leases of limits/s", shell::thousands(Self::leases())),
            Row::new("questions for changes of keys/s", shell::thousands(self.renewals())),
            Row::of(
                "leases and questions/s",
                shell::thousands(transactions),
                transactions / measured::LEASES,
                "the database's pace",
            ),
            Row::of(
                "database connections, at most",
                shell::thousands(connections),
                connections / assumed::DATABASE_CONNECTIONS_MAX,
                "what one server holds",
            ),
        ]
    }

    /// The row that uses the largest share of its capacity.
    fn wall(self) -> Option<(f64, &'static str)> {
        let shares =
            self.rows().into_iter().filter_map(|row| row.share.map(|(used, _)| (used, row.what)));
        shares.max_by(|(a, _), (b, _)| a.total_cmp(b))
    }
}

/// The table for 10, 100 and 1,000 nodes, with the first limit that each reaches.
pub(crate) fn page() -> String {
    let estates = [10.0, 100.0, 1000.0].map(|nodes| Estate { nodes });
    let mut page = String::from("| | 10 nodes | 100 nodes | 1,000 nodes |\n|---|---|---|---|\n");
    let columns = estates.map(Estate::rows);
    let [first, ..] = &columns;
    for (at, row) in first.iter().enumerate() {
        let cells: Vec<String> = columns.iter().filter_map(|rows| rows.get(at)).map(cell).collect();
        let what =
            row.share.map_or(row.what.to_owned(), |(_, of)| format!("{} (of {of})", row.what));
        writeln!(page, "| {what} | {} |", cells.join(" | ")).unwrap_or_default();
    }
    let walls = estates.map(|estate| {
        estate.wall().map_or(String::new(), |(used, what)| format!("{what}: {:.0} %", used * 100.0))
    });
    writeln!(page, "| **nearest wall** | {} |", walls.join(" | ")).unwrap_or_default();
    let keys = (measured::LEASES - Estate { nodes: 100.0 }.renewals()) * 60.0;
    writeln!(
        page,
        "\nKeys that may ask in the same minute before the database is busy all the time, with 100 nodes: {}.",
        shell::thousands(keys)
    )
    .unwrap_or_default();
    page
}

fn cell(row: &Row) -> String {
    match row.share {
        Some((used, _)) => format!("{} ({:.1} %)", row.figure, used * 100.0),
        None => row.figure.clone(),
    }
}

fn megabytes(bytes: f64) -> String {
    format!("{} MB", shell::thousands(bytes / 1e6))
}

fn rate(bytes: f64) -> String {
    if bytes < 1e7 { format!("{:.1} MB/s", bytes / 1e6) } else { format!("{}/s", megabytes(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_figure_in_every_cell_and_names_a_wall_for_each_size() {
        let page = page();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), Estate { nodes: 1.0 }.rows().len() + 3);
        for row in &rows[2..] {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 6, "{row}");
            assert!(
                cells[2..5].iter().all(|cell| cell.contains(|c: char| c.is_ascii_digit())),
                "{row}"
            );
        }
    }

    #[test]
    fn ten_times_the_nodes_serve_ten_times_as_much_and_cost_the_log_ten_times_as_much() {
        let (ten, hundred) = (Estate { nodes: 10.0 }, Estate { nodes: 100.0 });
        assert!((hundred.requests(1000.0) / ten.requests(1000.0) - 10.0).abs() < 1e-9);
        assert!((hundred.fan_out_bytes(1000.0) / ten.fan_out_bytes(1000.0) - 10.0).abs() < 1e-9);
        assert!(ten.requests(1000.0) > ten.requests(10_000.0), "changes cost something");
    }

    #[test]
    fn the_documents_table_is_what_this_prints() {
        let document = include_str!("../../../docs/scale.md");
        assert!(
            document.contains(&page()),
            "run `cargo xtask scale` and put its table into docs/scale.md"
        );
    }
}
