//! Builds the messages of the contract from their raw objects. There is one function per type with the fields in the
//! order of the contract, so that the first fault of a line is the one that a reader sees first.

use std::ops::RangeInclusive;

use domain::catalogue::{BookmakerId, Catalogue, Shape, SportId};
use domain::line::Line;
use domain::market::{Market, MarketAlias, PointRule};
use domain::message::{
    Body, Correction, FRESH_FOR_S_MAX, FeedMessage, Fixture, Listing, OUTCOMES_MAX, OddsBody,
    OfferedOutcome, PERIODS_MAX, Reject, RejectCode, ScoreBody,
};
use domain::price::{Format, PriceError, Quote};
use domain::score::{Period, Status};

use crate::push::field::{Field, shorten};
use crate::push::object::{self, Message};
use domain::suggest::did_you_mean;

/// A side's score: no score is below zero, and none comes near the upper limit.
const SCORE: RangeInclusive<i32> = 0..=9_999;
/// A period's score or a golf round. Wide enough for any sport and for rounds counted relative to par.
const PERIOD_SCORE: RangeInclusive<i32> = -1_000..=9_999;
/// A period's number.
const PERIOD_NUMBER: RangeInclusive<i32> = 1..=9_999;
/// A source's `fresh_for`, in seconds.
const FRESH_FOR: RangeInclusive<i32> = 1..=FRESH_FOR_S_MAX.cast_signed();
/// Up to this number of outcomes every pair is compared, which is cheaper than sorting; nearly every market has two
/// or three.
const PAIRWISE_MAX: usize = 16;

/// A golfer and the rounds played.
type Leader = (Box<str>, Vec<i32>);

const TYPES: [&str; 5] = ["event", "odds", "score", "remove", "heartbeat"];

/// The context for reading a line.
#[derive(Clone, Copy)]
pub(super) struct Reader<'c> {
    pub(super) catalogue: &'c Catalogue,
    /// The bookmaker that the token is bound to, if any.
    pub(super) bound: Option<BookmakerId>,
}

impl Reader<'_> {
    pub(super) fn message(self, raw: &Message<'_>) -> Result<FeedMessage, Reject> {
        let kind = Field::top("type", raw.kind).text()?;
        let body = match &*kind {
            "event" => self.event(raw)?,
            "odds" => Body::Odds(self.odds(raw)?),
            "score" => Body::Score(score(raw)?),
            "remove" => Body::Remove { reference: reference(raw)? },
            "heartbeat" => self.heartbeat(raw)?,
            unknown => return Err(unknown_type(unknown)),
        };
        let ts = Field::top("ts", raw.ts).given().map(Field::instant).transpose()?;
        let fresh_for = match &body {
            Body::Odds(_) | Body::Heartbeat { .. } => {
                Field::top("fresh_for", raw.fresh_for).given()
            }
            Body::Event { .. } | Body::Score(_) | Body::Remove { .. } => None,
        };
        let fresh_for_s = fresh_for.map(|field| field.integer(&FRESH_FOR)).transpose()?;
        let fresh_for_s = fresh_for_s.and_then(|seconds| u32::try_from(seconds).ok());
        Ok(FeedMessage { ts, fresh_for_s, body })
    }

    fn event(self, raw: &Message<'_>) -> Result<Body, Reject> {
        let reference = reference(raw)?;
        let sport = self.sport(Field::top("sport", raw.sport))?;
        let listing = Listing {
            sport,
            competition: Field::top("competition", raw.competition).name()?,
            commence_time: Field::top("commence_time", raw.commence_time).instant()?,
            fixture: fixture(raw, self.catalogue.sport(sport).shape)?,
        };
        Ok(Body::Event { reference, listing })
    }

    fn odds(self, raw: &Message<'_>) -> Result<OddsBody, Reject> {
        let reference = reference(raw)?;
        let bookmaker = self.bookmaker(raw)?;
        let market = market(Field::top("market", raw.market))?;
        let group = Field::top("group", raw.group).given();
        let group = group.map(Field::reference).transpose()?;
        // A suspended market has no prices, so any outcomes are ignored.
        let outcomes = if Field::top("suspended", raw.suspended).flag()? {
            Vec::new()
        } else {
            outcomes(raw, market)?
        };
        Ok(OddsBody { reference, bookmaker, market, group, outcomes })
    }

    fn heartbeat(self, raw: &Message<'_>) -> Result<Body, Reject> {
        let bookmaker = self.bookmaker(raw)?;
        let sport = Field::top("sport", raw.sport).given();
        let sport = sport.map(|field| self.sport(field)).transpose()?;
        Ok(Body::Heartbeat { bookmaker, sport })
    }

    fn sport(self, field: Field<'_>) -> Result<SportId, Reject> {
        let key = field.text()?;
        self.catalogue.sport_id(&key).ok_or_else(|| {
            let hint = self.catalogue.sports_hint(&key);
            let problem = format!("unknown sport `{}`; {hint}", shorten(&key));
            Reject::new(RejectCode::UnknownSport, problem)
        })
    }

    fn bookmaker(self, raw: &Message<'_>) -> Result<BookmakerId, Reject> {
        let field = Field::top("bookmaker", raw.bookmaker);
        let Some(field) = field.given() else {
            let problem = "is missing, and the feed token is not bound to a bookmaker";
            return self.bound.ok_or_else(|| field.refuse(RejectCode::InvalidMessage, problem));
        };
        let key = field.text()?;
        let named = self.catalogue.bookmaker_id(&key).ok_or_else(|| {
            let keys = self.catalogue.bookmakers().map(|(_, book)| &*book.key);
            unknown(RejectCode::UnknownBookmaker, "bookmaker", &key, keys)
        })?;
        match self.bound {
            Some(bound) if bound != named => {
                let bound = &self.catalogue.bookmaker(bound).key;
                let problem = format!("the feed token is for `{bound}`, not for `{key}`");
                Err(Reject::new(RejectCode::WrongBookmaker, problem))
            }
            _ => Ok(named),
        }
    }
}

fn reference(raw: &Message<'_>) -> Result<Box<str>, Reject> {
    Field::top("ref", raw.reference).reference()
}

fn fixture(raw: &Message<'_>, shape: Shape) -> Result<Fixture, Reject> {
    match shape {
        Shape::Field => Ok(Fixture::Field { title: Field::top("title", raw.title).name()? }),
        Shape::HeadToHead => {
            let home = Field::top("home", raw.home).name()?;
            let away_field = Field::top("away", raw.away);
            let away = away_field.name()?;
            let folded = |name: &str| name.to_lowercase();
            if home == away || folded(&home) == folded(&away) {
                return Err(away_field.refuse(RejectCode::InvalidMessage, "is the same as `home`"));
            }
            Ok(Fixture::HeadToHead { home, away })
        }
    }
}

fn market(field: Field<'_>) -> Result<Market, Reject> {
    let key = field.text()?;
    Market::parse(&key).ok_or_else(|| {
        let instead = match MarketAlias::parse(&key) {
            Some(MarketAlias::Is(market)) => market.key(),
            Some(MarketAlias::TheSportsTotals) => "total_points` or `total_rounds",
            None => return unknown(RejectCode::UnknownMarket, "market", &key, market_keys()),
        };
        let problem = format!("`{key}` is not a market; did you mean `{instead}`?");
        Reject::new(RejectCode::UnknownMarket, problem)
    })
}

fn market_keys() -> impl Iterator<Item = &'static str> {
    Market::ALL.into_iter().map(Market::key)
}

fn outcomes(raw: &Message<'_>, market: Market) -> Result<Vec<OfferedOutcome>, Reject> {
    let field = Field::top("outcomes", raw.outcomes);
    let listed =
        field.list::<object::Outcome<'_>, OUTCOMES_MAX>("a list of objects with name and price")?;
    // Without prices the format has no meaning.
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let format_field = Field::top("format", raw.format);
    let format = Format::parse(&format_field.text()?)
        .ok_or_else(|| format_field.must_be("american, decimal or fractional"))?;
    let mut outcomes = Vec::with_capacity(listed.len());
    for (index, item) in listed.iter().enumerate() {
        let at = |key, raw| Field::of_item("outcomes", index, key, raw);
        outcomes.push(OfferedOutcome {
            name: at("name", item.name).name()?,
            quote: quote(at("price", item.price), format)?,
            point: point(at("point", item.point), market)?,
        });
    }
    match duplicate(&outcomes) {
        Some(twice) => {
            let problem = format!("has `{}` twice at the same point", shorten(twice));
            Err(field.refuse(RejectCode::InvalidMessage, &problem))
        }
        None => Ok(outcomes),
    }
}

fn quote(field: Field<'_>, format: Format) -> Result<Quote, Reject> {
    let json = field.json()?;
    let parsed = match format {
        // The price parser does not accept a quoted number, so a string is rejected there.
        Format::American | Format::Decimal => Quote::parse(json, format),
        Format::Fractional => match field.text() {
            Ok(text) => Quote::parse(&text, format),
            Err(_) => Err(PriceError::NotAFraction(shorten(json))),
        },
    };
    parsed.map_err(|error| field.refuse(RejectCode::InvalidPrice, &format!("is wrong: {error}")))
}

fn point(field: Field<'_>, market: Market) -> Result<Option<Line>, Reject> {
    let refuse = |problem: &str| Err(field.refuse(RejectCode::InvalidPoint, problem));
    let Some(given) = field.given() else {
        return match market.point_rule() {
            PointRule::None => Ok(None),
            PointRule::Signed | PointRule::Total => {
                refuse(&format!("is missing; `{}` has one", market.key()))
            }
        };
    };
    let line = match Line::parse(given.json()?) {
        Ok(line) => line,
        Err(error) => return refuse(&format!("is wrong: {error}")),
    };
    match market.point_rule() {
        PointRule::None => refuse(&format!("is given, but `{}` has none", market.key())),
        PointRule::Total if line.quarters() <= 0 => refuse("must be above zero: it is a total"),
        PointRule::Signed | PointRule::Total => Ok(Some(line)),
    }
}

/// The name of an outcome that is listed twice with the same point.
fn duplicate(outcomes: &[OfferedOutcome]) -> Option<&str> {
    if outcomes.len() > PAIRWISE_MAX {
        let mut sorted: Vec<_> = outcomes.iter().map(|o| (&*o.name, o.point)).collect();
        sorted.sort_unstable();
        let twice = sorted.array_windows().find(|[one, next]| one == next);
        return twice.map(|[(name, _), _]| *name);
    }
    let same = |a: &OfferedOutcome, b: &OfferedOutcome| a.point == b.point && a.name == b.name;
    let mut rest = outcomes;
    while let Some((first, others)) = rest.split_first() {
        if others.iter().any(|other| same(first, other)) {
            return Some(&first.name);
        }
        rest = others;
    }
    None
}

fn score(raw: &Message<'_>) -> Result<ScoreBody, Reject> {
    let reference = reference(raw)?;
    let status = Field::top("status", raw.status);
    let status =
        Status::parse(&status.text()?).ok_or_else(|| status.must_be("scheduled, live or final"))?;
    let side = |key, raw| {
        let given = Field::top(key, raw).given();
        given.map(|field| field.integer(&SCORE)).transpose()
    };
    Ok(ScoreBody {
        reference,
        status,
        home: side("home_score", raw.home_score)?,
        away: side("away_score", raw.away_score)?,
        periods: periods(raw)?,
        winner: Field::top("winner", raw.winner).given().map(Field::name).transpose()?,
        leaders: leaders(raw)?,
        correction: match Field::top("correction", raw.correction).flag()? {
            true => Correction::Yes,
            false => Correction::No,
        },
    })
}

fn periods(raw: &Message<'_>) -> Result<Vec<Period>, Reject> {
    let Some(field) = Field::top("periods", raw.periods).given() else {
        return Ok(Vec::new());
    };
    let listed = field.list::<object::Period<'_>, PERIODS_MAX>("a list of objects")?;
    let mut periods = Vec::with_capacity(listed.len());
    let mut last = 0;
    for (index, item) in listed.iter().enumerate() {
        let at = |key, raw| Field::of_item("periods", index, key, raw);
        let number_field = at("number", item.number);
        let number = number_field.integer(&PERIOD_NUMBER)?.unsigned_abs();
        if number <= last {
            return Err(number_field.must_be("higher than the number before it"));
        }
        last = number;
        periods.push(Period {
            number,
            home: at("home_score", item.home_score).integer(&PERIOD_SCORE)?,
            away: at("away_score", item.away_score).integer(&PERIOD_SCORE)?,
        });
    }
    Ok(periods)
}

fn leaders(raw: &Message<'_>) -> Result<Vec<Leader>, Reject> {
    let Some(field) = Field::top("leaders", raw.leaders).given() else {
        return Ok(Vec::new());
    };
    let listed =
        field.list::<object::Leader<'_>, OUTCOMES_MAX>("a list of objects with name and rounds")?;
    let read = |(index, item): (usize, &object::Leader<'_>)| {
        let at = |key, raw| Field::of_item("leaders", index, key, raw);
        let name = at("name", item.name).name()?;
        let rounds = at("rounds", item.rounds).integers::<PERIODS_MAX>(&PERIOD_SCORE)?;
        Ok((name, rounds))
    };
    listed.iter().enumerate().map(read).collect()
}

fn unknown_type(kind: &str) -> Reject {
    let near = did_you_mean(kind, TYPES.into_iter());
    let problem = if near.is_empty() {
        format!("`{}` is not a message type; the types are {}", shorten(kind), TYPES.join(", "))
    } else {
        format!("`{}` is not a message type{near}", shorten(kind))
    };
    Reject::new(RejectCode::UnknownType, problem)
}

fn unknown<'k>(
    code: RejectCode,
    what: &str,
    key: &str,
    keys: impl Iterator<Item = &'k str>,
) -> Reject {
    let near = did_you_mean(key, keys);
    Reject::new(code, format!("unknown {what} `{}`{near}", shorten(key)))
}
