//! The Odds API as an upstream: the sports to read, the cost of each call, and the remaining credits.

use std::collections::HashMap;
use std::time::Duration;

use domain::Timestamp;
use feeds::adapter::the_odds_api::{
    Refusal as ApiRefusal, TheOddsApi, UpstreamSport, call_cost, refusal, sports,
};
use feeds::adapter::{Drift, Translator as _};
use reqwest::Url;

use crate::budget::{Budget, planned};
use crate::fetch::{Fetched, Request};
use crate::poll::{Received, Refusal, UnitSpec, Upstream, Wants};
use crate::runner::Runner;
use crate::settings::TheOddsApiSettings;

const BASE_URL: &str = "https://api.the-odds-api.com";
/// Intervals of free calls.
const SPORTS_EVERY: Duration = Duration::from_secs(3600);
const EVENTS_EVERY: Duration = Duration::from_secs(600);
/// Cost of a call for the scores of the last day.
const SCORES_COST: u64 = 2;
/// Assumed interval of a sport before its events are known.
const RARELY: Duration = Duration::from_secs(1800);
/// The unit that lists the sports.
const SPORTS: &str = "sports";

#[derive(Debug)]
pub(crate) struct TheOddsApiUpstream {
    translator: TheOddsApi,
    settings: TheOddsApiSettings,
    base_url: String,
    /// The sports that are offered now and mapped to one of ours.
    sports: Vec<UpstreamSport>,
    /// The wanted odds interval of each sport, for the plan of the month.
    intervals: HashMap<String, Duration>,
    budget: Budget,
    format: &'static str,
}

impl TheOddsApiUpstream {
    pub(crate) fn new(
        translator: TheOddsApi,
        settings: &TheOddsApiSettings,
        base_url: Option<&str>,
        format: &'static str,
    ) -> Self {
        Self {
            translator,
            budget: Budget::new(settings.reserve),
            settings: settings.clone(),
            base_url: base_url.unwrap_or(BASE_URL).trim_end_matches('/').to_owned(),
            sports: Vec::new(),
            intervals: HashMap::new(),
            format,
        }
    }

    /// The markets to request for a sport: tournaments have only outrights, matches have none.
    fn markets(&self, key: &str) -> Vec<&str> {
        let sport = self.sports.iter().find(|sport| sport.key == key);
        let outrights = sport.is_some_and(|sport| sport.has_outrights);
        let markets = self.settings.markets.iter().map(String::as_str);
        markets.filter(|market| (*market == "outrights") == outrights).collect()
    }

    fn cost(&self, unit: &str) -> u64 {
        let (regions, bookmakers) = (self.settings.regions.len(), self.settings.bookmakers.len());
        match unit.split_once('/') {
            Some(("odds", key)) => call_cost(self.markets(key).len(), regions, bookmakers),
            Some(("scores", _)) => SCORES_COST,
            _ => 0,
        }
    }

    fn has_scores(key: &str) -> bool {
        key.starts_with("americanfootball")
    }
}

impl Upstream for TheOddsApiUpstream {
    fn units(&self) -> Vec<UnitSpec> {
        let unit = |name: String, every| UnitSpec { name: name.into(), every };
        let mut units = vec![unit(SPORTS.to_owned(), Some(SPORTS_EVERY))];
        for sport in &self.sports {
            let key = &sport.key;
            units.push(unit(format!("events/{key}"), Some(EVENTS_EVERY)));
            if !self.markets(key).is_empty() {
                units.push(unit(format!("odds/{key}"), None));
            }
            if self.settings.scores && Self::has_scores(key) {
                units.push(unit(format!("scores/{key}"), Some(self.settings.scores_every)));
            }
        }
        units
    }

    fn wants(&mut self, runner: &mut Runner, unit: &str) -> Wants {
        let now = runner.now();
        if unit.starts_with("scores/") && !runner.has_begun(unit, now) {
            return Wants::NotNow;
        }
        let cost = self.cost(unit);
        if self.budget.may_spend(cost) {
            return Wants::Yes;
        }
        let left = self.budget.report().map_or(0, |report| report.remaining);
        Wants::Spent(format!(
            "{left} credits are left, {} of them in reserve",
            self.settings.reserve
        ))
    }

    fn request(&self, unit: &str, _page: Option<&str>) -> Result<Request, String> {
        let (what, key) = unit.split_once('/').unwrap_or((SPORTS, ""));
        let path =
            if what == SPORTS { "sports".to_owned() } else { format!("sports/{key}/{what}") };
        let mut url = Url::parse(&format!("{}/v4/{path}", self.base_url))
            .map_err(|_| "`base_url` cannot be read".to_owned())?;
        let secret = self.settings.api_key.as_ref().ok_or("there is no `api_key`")?.read()?;
        let mut pairs = vec![("apiKey", secret.reveal().to_owned())];
        match what {
            "odds" => {
                if self.settings.bookmakers.is_empty() {
                    pairs.push(("regions", self.settings.regions.join(",")));
                } else {
                    pairs.push(("bookmakers", self.settings.bookmakers.join(",")));
                }
                pairs.push(("markets", self.markets(key).join(",")));
                pairs.push(("oddsFormat", self.format.to_owned()));
                pairs.push(("dateFormat", "iso".to_owned()));
            }
            "scores" => pairs.push(("daysFrom", "1".to_owned())),
            _ => {}
        }
        url.query_pairs_mut().extend_pairs(pairs);
        Ok(Request { url: url.into(), ..Request::default() })
    }

    fn receive(&mut self, unit: &str, fetched: &Fetched, at: Timestamp) -> Result<Received, Drift> {
        if unit == SPORTS {
            let offered = sports(&fetched.body)?;
            let wanted =
                |sport: &UpstreamSport| sport.active && self.translator.wants(&sport.key).is_some();
            self.sports = offered.into_iter().filter(wanted).collect();
            return Ok(Received::default());
        }
        let read = self.translator.translate(unit, &fetched.body, at)?;
        Ok(Received { read: Some(read), next: None })
    }

    fn note_headers(&mut self, runner: &Runner, fetched: &Fetched) {
        let remaining = fetched.number("x-requests-remaining");
        self.budget.note(remaining, fetched.number("x-requests-used"));
        if let Some(report) = self.budget.report() {
            runner.reporter().note_budget(report);
        }
    }

    fn stretched(&mut self, unit: &str, every: Duration, now: Timestamp) -> Duration {
        if !unit.starts_with("odds/") {
            return every;
        }
        self.intervals.insert(unit.to_owned(), every);
        let units = self.sports.iter().map(|sport| {
            let name = format!("odds/{}", sport.key);
            (self.cost(&name), self.intervals.get(&name).copied().unwrap_or(RARELY))
        });
        self.budget.stretch(every, planned(units, now))
    }

    fn refusal(&self, fetched: &Fetched) -> Refusal {
        match refusal(fetched.status, &fetched.body) {
            Some(ApiRefusal::Spent) => {
                Refusal::Spent("upstream reports that the credits are used up".to_owned())
            }
            Some(ApiRefusal::Refused(why)) => Refusal::Refused(why),
            None if fetched.status == 404 => Refusal::Missing,
            None => Refusal::Failed(format!("upstream answered {}", fetched.status)),
        }
    }
}
