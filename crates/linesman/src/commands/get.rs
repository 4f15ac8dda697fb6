//! `linesman get` and `linesman why`: read any server through the Rust client, for people and programs.

mod lines;
mod table;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anyhow::bail;
use linesman_client::{Client, Error, ErrorCode, Raw, Request};
use serde_json::Value;

use self::table::{Style, Table};
use crate::cli::{GetArgs, Server, What, WhyArgs, output};

/// Maximum page size: fewer requests for a whole list.
const PAGE: usize = 500;
/// Maximum page size for changes.
const POINTS: usize = 10_000;
/// How often a watched answer is requested. The client asks the server only if its answer may have changed.
const WATCH: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &GetArgs) -> anyhow::Result<()> {
    let client = client(&args.server)?;
    let path = args.path().map_err(anyhow::Error::msg)?;
    let mut request = client.path(&path);
    for (name, value) in &args.parameters.0 {
        request = request.param(name, value);
    }
    let given = |name: &str| args.parameters.0.iter().any(|(given, _)| *given == name);
    let page = match args.what {
        What::Odds | What::Closing | What::Scores | What::Events | What::Best | What::Fair => {
            Some(PAGE)
        }
        What::PricePath => Some(POINTS),
        What::Sports | What::Books | What::Status | What::History | What::Event => None,
        What::Arbitrage | What::Ev | What::Middles | What::Coverage | What::Explain => None,
    };
    let is_one_page = given("limit") || given("cursor");
    if let Some(page) = page.filter(|_| !is_one_page) {
        request = request.param("limit", page);
    }
    if !args.json && rows_of(args.what).is_none() {
        request = request.param("format", "csv");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if args.watch {
            return watch(args, &request, is_one_page).await;
        }
        let read = read(&request, is_one_page).await?;
        if args.json {
            print_json(&read)
        } else {
            table_of(&read, args.what)?.print(Style::of_stdout())
        }
    })
}

/// Converts answers for which the API has no table to rows.
fn rows_of(what: What) -> Option<fn(&Value) -> Vec<Value>> {
    match what {
        What::Closing => Some(lines::closing),
        What::PricePath => Some(lines::path),
        What::Sports | What::Books | What::Status | What::History | What::Event => {
            Some(lines::whole)
        }
        What::Odds | What::Scores | What::Events | What::Best | What::Fair => None,
        What::Arbitrage | What::Ev | What::Middles | What::Coverage | What::Explain => None,
    }
}

pub(crate) fn why(args: &WhyArgs) -> anyhow::Result<()> {
    let client = client(&args.server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let sports = client.sports().all().await.map_err(|error| explained(&error))?;
        for sport in &sports {
            let path = ["sports", &sport.key, "events", &args.event, "explain"];
            let mut request = client.path(&path);
            let given = [
                ("market", &args.market),
                ("bookmaker", &args.bookmaker),
                ("regions", &args.regions),
                ("as_of", &args.as_of),
            ];
            for (name, value) in given {
                request = value.iter().fold(request, |request, value| request.param(name, value));
            }
            let format = if args.json { "json" } else { "csv" };
            let bodies = match bodies(&request.param("format", format), true).await {
                Ok((bodies, _)) => bodies,
                // The event is of another sport, or the key does not cover this one.
                Err(error) if is_elsewhere(&error) => continue,
                Err(error) => return Err(explained(&error)),
            };
            if args.json {
                return print_json(&bodies);
            }
            if io::stdout().is_terminal() {
                introduce(&client, &sport.key, &args.event).await?;
            }
            return table_of(&bodies, What::Explain)?.print(Style::of_stdout());
        }
        bail!(
            "there is no event {} in the sports that the key covers; `linesman get events SPORT` lists events",
            args.event
        )
    })
}

/// An error about a market that the sport does not have says nothing about the event.
fn is_elsewhere(error: &Error) -> bool {
    let is_of_market = error.param() == Some("market");
    matches!(error.code(), ErrorCode::EventNotFound | ErrorCode::Forbidden)
        || (*error.code() == ErrorCode::InvalidParameter && is_of_market)
}

/// Prints which event it is.
async fn introduce(client: &Client, sport: &str, event: &str) -> anyhow::Result<()> {
    let event = client.event(sport, event).await.map_err(|error| explained(&error))?.data;
    let sides = [event.home_team, event.away_team].into_iter().flatten().collect::<Vec<_>>();
    let name = event.title.unwrap_or_else(|| sides.join(" against "));
    let line =
        format!("{name} · {} · {} · {}", event.competition, event.commence_time, event.status);
    output::print_line(&table::printable(&line))
}

pub(super) fn client(server: &Server) -> anyhow::Result<Client> {
    let mut builder = Client::builder();
    if let Some(url) = &server.url {
        builder = builder.url(url);
    }
    if let Some(key) = server.key()? {
        builder = builder.key(key.reveal());
    }
    builder.build().map_err(|error| explained(&error))
}

/// The error in one sentence, with advice.
fn explained(error: &Error) -> anyhow::Error {
    let hint = match error.code().as_str() {
        "connection_failed" => "; name a running server with --url or LINESMAN_URL",
        "authentication_failed" => {
            "; give a key in --key-file or LINESMAN_KEY (`linesman keys create` makes one)"
        }
        "sport_not_found" => "; `linesman get sports` lists the sports",
        "quota_exceeded" | "rate_limited" => "; wait, or use another key",
        _ => "",
    };
    anyhow::anyhow!("{error}{hint}")
}

/// The bodies of all pages or of the first only, and their tags.
async fn bodies(
    request: &Request<Raw>,
    is_one_page: bool,
) -> linesman_client::Result<(Vec<Vec<u8>>, Vec<Option<String>>)> {
    let (mut pages, mut bodies, mut tags) = (request.clone().bodies(), Vec::new(), Vec::new());
    while let Some(page) = pages.next().await {
        let page = page?;
        bodies.push(page.data);
        tags.push(page.meta.etag);
        if is_one_page {
            break;
        }
    }
    Ok((bodies, tags))
}

async fn read(request: &Request<Raw>, is_one_page: bool) -> anyhow::Result<Vec<Vec<u8>>> {
    Ok(bodies(request, is_one_page).await.map_err(|error| explained(&error))?.0)
}

fn table_of(bodies: &[Vec<u8>], what: What) -> anyhow::Result<Table> {
    let mut table = Table::default();
    for body in bodies {
        table.add(match rows_of(what) {
            Some(rows) => Table::parse_json(body, rows)?,
            None => Table::parse_csv(body)?,
        });
    }
    Ok(table)
}

fn print_json(bodies: &[Vec<u8>]) -> anyhow::Result<()> {
    bodies.iter().try_for_each(|body| output::print_line(&String::from_utf8_lossy(body)))
}

/// Prints each new answer until the program is interrupted.
async fn watch(args: &GetArgs, request: &Request<Raw>, is_one_page: bool) -> anyhow::Result<()> {
    let style = Style::of_stdout();
    let mut last: Option<(Vec<Vec<u8>>, Table)> = None;
    loop {
        let read = read(request, is_one_page).await?;
        let is_new = last.as_ref().is_none_or(|(before, _)| *before != read);
        if is_new && args.json {
            print_json(&read)?;
            last = Some((read, Table::default()));
        } else if is_new {
            let table = table_of(&read, args.what)?;
            let before = last.as_ref().map(|(_, table)| table);
            if !table.print_changes(before, keys(args.what), style)? {
                // The output is closed.
                return Ok(());
            }
            last = Some((read, table));
        }
        tokio::time::sleep(WATCH).await;
    }
}

/// The columns that identify a row across answers.
fn keys(what: What) -> &'static [&'static str] {
    match what {
        What::Sports | What::Books => &["key"],
        What::Status | What::History | What::Event => &[],
        What::Odds | What::Closing => &["id", "name"],
        What::PricePath => &["id", "at", "name"],
        What::Scores => &["event_id"],
        What::Events => &["id"],
        What::Best | What::Fair | What::Arbitrage => &["event_id", "market", "line.point", "name"],
        What::Ev => &["record_id", "name", "point"],
        What::Middles => &["event_id", "market", "from", "to", "name"],
        What::Coverage | What::Explain => &["bookmaker", "market"],
    }
}
