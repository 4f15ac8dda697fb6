//! The parameters of a stream (S2): those of the lists that its channels follow, and its own.

use domain::{Market, MarketAlias, SportId, Timestamp};

use super::{Lookup, Values, unknown_value};
use crate::answers::List;
use crate::error::ApiError;
use crate::position::LogPosition;
use crate::v1::param::{HEARTBEAT_S_DEFAULT, HEARTBEAT_S_MAX, HEARTBEAT_S_MIN, Param};
use crate::v1::wire::stream::{Channel, Freshness, Mode};

/// Values of `replay`: how the changes since a position are sent. The first is the default.
pub(crate) const REPLAYS: [&str; 2] = ["net", "all"];

/// Channels and start of a stream.
#[derive(Debug)]
pub(crate) struct StreamParams {
    /// In the order in which they are sent.
    pub(crate) channels: Vec<Channel>,
    /// The lists of the channels, by sport and then by channel.
    pub(crate) lists: Vec<List>,
    pub(crate) mode: Mode,
    pub(crate) freshness: Freshness,
    pub(crate) heartbeat_s: u32,
    pub(crate) since: Option<Since>,
    /// True if every publication since the start is sent, and not only the net difference.
    pub(crate) replays_all: bool,
    /// End of the stream.
    pub(crate) until: Option<Timestamp>,
}

/// Start of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Since {
    Cursor(LogPosition),
    Time(Timestamp),
}

impl Values<'_> {
    pub(crate) fn stream(
        &self,
        sports: &[SportId],
        lookup: Lookup<'_>,
    ) -> Result<StreamParams, ApiError> {
        let mode = self.check_choice(Param::Mode, "mode", &Mode::KEYS)?;
        let freshness = self.check_choice(Param::Freshness, "freshness", &Freshness::KEYS)?;
        let replay = self.check_choice(Param::Replay, "replay", &REPLAYS)?;
        let [_, all] = REPLAYS;
        let channels = self.channels()?;
        self.check_filters(&channels)?;
        Ok(StreamParams {
            lists: self.lists(sports, &channels, lookup)?,
            mode: mode.and_then(Mode::parse).unwrap_or(Mode::Publication),
            freshness: freshness.and_then(Freshness::parse).unwrap_or(Freshness::Sources),
            heartbeat_s: self.heartbeat_s()?,
            since: self.stream_since()?,
            replays_all: replay == Some(all),
            until: self.instant(Param::Until)?,
            channels,
        })
    }

    /// Reads a parameter with a fixed set of values.
    fn check_choice(
        &self,
        param: Param,
        what: &str,
        values: &[&'static str],
    ) -> Result<Option<&str>, ApiError> {
        let Some(given) = self.get(param) else { return Ok(None) };
        if !values.contains(&given) {
            let text = unknown_value(what, given, values.iter().copied());
            return Err(ApiError::param(param.name(), text));
        }
        Ok(Some(given))
    }

    fn channels(&self) -> Result<Vec<Channel>, ApiError> {
        let Some(keys) = self.get(Param::Channels) else { return Ok(vec![Channel::Odds]) };
        let mut channels = Vec::new();
        for key in keys.split(',') {
            channels.push(Channel::parse(key).ok_or_else(|| {
                let text = unknown_value("channel", key, Channel::KEYS.into_iter());
                ApiError::param(Param::Channels.name(), text)
            })?);
        }
        channels.sort_unstable();
        channels.dedup();
        Ok(channels)
    }

    /// Refuses a filter that none of the channels has.
    fn check_filters(&self, channels: &[Channel]) -> Result<(), ApiError> {
        let of_odds =
            [Param::Market, Param::Bookmaker, Param::Regions, Param::Region, Param::OddsFormat];
        let filters = of_odds.map(|param| (param, "odds", channels.contains(&Channel::Odds)));
        let has_status = channels.iter().any(|channel| *channel != Channel::Odds);
        for (param, of, has) in
            filters.into_iter().chain([(Param::Status, "scores and events", has_status)])
        {
            if !has && self.get(param).is_some() {
                let name = param.name();
                let text = format!("`{name}` is a filter of {of}, which `channels` does not have");
                return Err(ApiError::param(name, text));
            }
        }
        Ok(())
    }

    fn lists(
        &self,
        sports: &[SportId],
        channels: &[Channel],
        lookup: Lookup<'_>,
    ) -> Result<Vec<List>, ApiError> {
        self.check_market(sports, lookup)?;
        let mut lists = Vec::new();
        let mut lacking = None;
        let is_alias =
            self.get(Param::Market).is_some_and(|name| MarketAlias::parse(name).is_some());
        for sport in sports.iter().copied() {
            for channel in channels.iter().copied() {
                match self.followed(channel, sport, lookup) {
                    Ok(list) => lists.push(list),
                    // A sport without the aliased market is left out.
                    Err(error)
                        if is_alias && error.param.as_deref() == Some(Param::Market.name()) =>
                    {
                        lacking = Some(error);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let has_odds = lists.iter().any(|list| matches!(list, List::Odds(..)));
        match lacking {
            Some(error) if !has_odds && sports.len() == 1 => Err(error),
            Some(_) if !has_odds => {
                let name = self.get(Param::Market).unwrap_or_default();
                let text = format!("none of these sports has a market `{name}`");
                Err(ApiError::param(Param::Market.name(), text))
            }
            Some(_) | None => Ok(lists),
        }
    }

    /// Refuses a market that no sport has, and lists the markets of the sports.
    fn check_market(&self, sports: &[SportId], lookup: Lookup<'_>) -> Result<(), ApiError> {
        let Some(name) = self.get(Param::Market) else { return Ok(()) };
        let is_known = Market::parse(name).is_some() || MarketAlias::parse(name).is_some();
        if is_known || name.contains(',') {
            return Ok(());
        }
        let offered = sports.iter().flat_map(|sport| &lookup.catalogue.sport(*sport).markets);
        let mut keys: Vec<&str> = Vec::new();
        for key in offered.map(|market| market.key()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let text = unknown_value("market", name, keys.into_iter());
        Err(ApiError::param(Param::Market.name(), text))
    }

    /// The list of a channel, from its beginning: streams have no pages.
    fn followed(
        &self,
        channel: Channel,
        sport: SportId,
        lookup: Lookup<'_>,
    ) -> Result<List, ApiError> {
        match channel {
            Channel::Odds => {
                let (odds, format, terms) = self.flat_odds(sport, lookup)?;
                Ok(List::Odds(odds, format, terms))
            }
            Channel::Scores => self.scores(sport),
            Channel::Events => self.events(sport),
        }
    }

    fn heartbeat_s(&self) -> Result<u32, ApiError> {
        let Some(text) = self.get(Param::Heartbeat) else { return Ok(HEARTBEAT_S_DEFAULT) };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let bounds = HEARTBEAT_S_MIN..=HEARTBEAT_S_MAX;
        let seconds = text.parse().ok().filter(|seconds| digits && bounds.contains(seconds));
        seconds.ok_or_else(|| {
            let text = format!(
                "`heartbeat` must be a whole number of seconds from {HEARTBEAT_S_MIN} to \
                 {HEARTBEAT_S_MAX}"
            );
            ApiError::param(Param::Heartbeat.name(), text)
        })
    }

    fn stream_since(&self) -> Result<Option<Since>, ApiError> {
        let Some(text) = self.get(Param::Since) else { return Ok(None) };
        if let Some(position) = LogPosition::decode(text) {
            return Ok(Some(Since::Cursor(position)));
        }
        Timestamp::parse(text).map(|at| Some(Since::Time(at))).map_err(|_| {
            let text = "`since` is neither a cursor, as `cut` events and `x-cursor` have it, nor an RFC 3339 \
                        timestamp such as 2026-11-14T23:38:00Z";
            ApiError::param(Param::Since.name(), text)
        })
    }
}
