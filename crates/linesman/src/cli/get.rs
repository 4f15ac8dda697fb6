//! Arguments of `linesman get` and `linesman why`.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};

use crate::cli::replay::parse_service_url;
use crate::config::Secret;

/// The parameters of the API, except those that select the format of the response.
const PARAMETERS: [Parameter; 25] = [
    ("market", "market", "A market, such as moneyline"),
    ("bookmaker", "bookmaker", "A bookmaker"),
    ("bookmakers", "bookmakers", "Bookmakers, separated by commas"),
    ("regions", "regions", "Regions, separated by commas"),
    ("odds_format", "odds-format", "american, decimal or fractional"),
    ("event_ids", "event-ids", "Events, separated by commas"),
    ("status", "status", "scheduled, live or final"),
    ("commence_from", "commence-from", "Events that start at this time or later"),
    ("commence_to", "commence-to", "Events that start before this time"),
    ("name", "name", "The beginning of a word of a participant or competition"),
    ("max_age", "max-age", "Maximum age of the offers used, in seconds"),
    (
        "method",
        "method",
        "How margins are removed: power, multiplicative, additive, shin or odds_ratio",
    ),
    ("reference", "reference", "The bookmakers from which fair prices are computed, or consensus"),
    ("min_books", "min-books", "Minimum number of bookmakers for a fair price"),
    ("min_ev", "min-ev", "Minimum value, such as 0.02"),
    ("min_profit", "min-profit", "Minimum profit, such as 0.01"),
    ("max_cost", "max-cost", "Maximum cost of a middle, such as 0.05"),
    ("stake", "stake", "The stake to divide"),
    ("as_of", "as-of", "The answer as it was at this time"),
    ("from", "from", "Changes that were published at this time or later"),
    ("to", "to", "Changes that were published before this time"),
    (
        "changes",
        "changes",
        "published, or all: also those that were replaced before the next publication",
    ),
    ("limit", "limit", "The number of records of one page, in place of all pages"),
    ("cursor", "cursor", "The page after this position"),
    ("group_by", "group-by", "bout: a fight sport's moneyline, bout by bout; only with --json"),
];

/// The name in the API, the name of the flag, and the help.
type Parameter = (&'static str, &'static str, &'static str);

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The resource to read
    pub(crate) what: What,
    /// The sport, for resources of one sport
    #[arg(value_name = "SPORT")]
    pub(crate) sport: Option<String>,
    /// The event, for event and explain
    #[arg(value_name = "EVENT_ID")]
    pub(crate) event: Option<String>,
    #[command(flatten)]
    pub(crate) server: Server,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// Print the response as it is received, a line for each page
    #[arg(long)]
    pub(crate) json: bool,
    /// Print each new answer with changes marked, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The event
    #[arg(value_name = "EVENT_ID")]
    pub(crate) event: String,
    #[command(flatten)]
    pub(crate) server: Server,
    /// Only this market
    #[arg(long, value_name = "MARKET")]
    pub(crate) market: Option<String>,
    /// Only this bookmaker
    #[arg(long, value_name = "BOOKMAKER")]
    pub(crate) bookmaker: Option<String>,
    /// Only these regions, separated by commas
    #[arg(long, value_name = "REGIONS")]
    pub(crate) regions: Option<String>,
    /// As it was at this time
    #[arg(long, value_name = "TIME")]
    pub(crate) as_of: Option<String>,
    /// Print the response as it is received
    #[arg(long)]
    pub(crate) json: bool,
}

/// The server to query.
#[derive(Debug, Args)]
pub(crate) struct Server {
    /// The server's address [default: `LINESMAN_URL`, or `http://127.0.0.1:8080`]
    #[arg(long, value_name = "URL", value_parser = parse_service_url)]
    pub(crate) url: Option<String>,
    /// A file that holds the API key; /dev/stdin reads it from a pipe [default: the key in `LINESMAN_KEY`]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Server {
    /// The key in the file, if one is given.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn key(&self) -> anyhow::Result<Option<Secret>> {
        let Some(file) = &self.key_file else { return Ok(None) };
        let text = fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Some(Secret::from(text.trim().to_owned())))
    }
}

/// The resources that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    Sports,
    Books,
    Status,
    History,
    Odds,
    Closing,
    PricePath,
    Scores,
    Events,
    Event,
    Best,
    Fair,
    Arbitrage,
    Ev,
    Middles,
    Coverage,
    Explain,
}

impl GetArgs {
    /// The path under `/v1`.
    ///
    /// # Errors
    /// A sport or an event is missing or not allowed.
    pub(crate) fn path(&self) -> Result<Vec<&str>, String> {
        let name = match self.what {
            What::Sports => "sports",
            What::Books => "books",
            What::Status => "status",
            What::History => "history",
            What::Odds | What::Closing => "odds",
            What::Scores => "scores",
            What::Events | What::Event | What::Explain | What::PricePath => "events",
            What::Best => "best",
            What::Fair => "fair",
            What::Arbitrage => "arbitrage",
            What::Ev => "ev",
            What::Middles => "middles",
            What::Coverage => "coverage",
        };
        match (self.what, self.sport.as_deref(), self.event.as_deref()) {
            (What::Sports | What::Books | What::Status | What::History, None, _) => Ok(vec![name]),
            (What::Sports | What::Books | What::Status | What::History, Some(_), _) => {
                Err(format!("`{name}` is of no sport"))
            }
            (What::Event, Some(sport), Some(event)) => Ok(vec!["sports", sport, name, event]),
            (What::Explain, Some(sport), Some(event)) => {
                Ok(vec!["sports", sport, name, event, "explain"])
            }
            (What::PricePath, Some(sport), Some(event)) => {
                Ok(vec!["sports", sport, name, event, "odds", "history"])
            }
            (What::Closing, Some(sport), None) => Ok(vec!["sports", sport, name, "closing"]),
            (What::Event | What::Explain | What::PricePath, _, _) => {
                Err("a sport and an event are needed".to_owned())
            }
            (_, None, _) => Err("a sport is needed; `linesman get sports` lists them".to_owned()),
            (_, Some(_), Some(_)) => Err(format!("`{name}` takes no event; see --event-ids")),
            (_, Some(sport), None) => Ok(vec!["sports", sport, name]),
        }
    }
}

/// The given parameters of a request, by their names in the API.
#[derive(Debug, Default)]
pub(crate) struct Parameters(pub(crate) Vec<(&'static str, String)>);

impl Args for Parameters {
    fn augment_args(command: Command) -> Command {
        PARAMETERS.into_iter().fold(command, |command, (name, long, help)| {
            let argument = Arg::new(name).long(long).value_name("VALUE").help(help);
            let argument = if long == name { argument } else { argument.alias(name) };
            command.arg(argument.help_heading("Parameters of the API"))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Parameters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = PARAMETERS
            .into_iter()
            .filter_map(|(name, ..)| Some((name, matches.get_one::<String>(name)?.clone())));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
