//! Decides whether two listings are the same event: from both participants, the time and the competition.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use domain::{EventId, Sport, Timestamp};

use super::contest::{Agreement, Contest, week_of};
use super::effort;
use super::index::QuickCheck;
use super::likeness::Likeness;
use super::name_signature::NameSignature;

/// Maximum distance of starts if names are only nearly the same: one session.
pub(crate) const SESSION: Duration = Duration::from_secs(36 * 3600);

/// Starts this close leave no doubt.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(6 * 3600);

/// Folding this number of bytes costs as much as one typing-error check.
const BYTES_OF_A_UNIT: usize = 32;

/// The result of comparing two listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    Unsure(Doubt),
    Different,
}

/// The reason why it is unsure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Doubt {
    /// The names agree, the starts are far apart.
    Time,
    /// One participant agrees; the other may be the same under another name, or a different one.
    Name,
    /// Two events fit equally well.
    Rival,
}

/// The complete evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Likeness of the first listing's home and away to the sides of the second.
    pub sides: [Likeness; 2],
    pub swapped: bool,
    pub gap_minutes: u32,
    pub competition: Tie,
}

/// Whether two competitions are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tie {
    Unknown,
    Same,
    Other,
}

/// The compared data of a listing.
#[derive(Clone, Debug)]
pub(crate) struct ListingView<'a> {
    pub(crate) contest: Cow<'a, Contest>,
    pub(crate) commence_time: Timestamp,
    pub(crate) competition: &'a str,
    /// For quickly ruling out different events.
    pub(crate) signature: NameSignature,
    /// Number of its feed, and its event, if known.
    pub(crate) feed: Option<u32>,
    pub(crate) event: Option<EventId>,
}

impl ListingView<'_> {
    /// True if both start in the same week, from Monday to Sunday: tours have one tournament per week, which some
    /// sources date by its first day and some by its last.
    pub(crate) fn is_week_of(&self, other: &Self) -> bool {
        week_of(self.commence_time) == week_of(other.commence_time)
    }

    pub(crate) fn check(&self) -> QuickCheck {
        QuickCheck { at: self.commence_time, signature: self.signature }
    }
}

impl Evidence {
    pub(crate) fn gather(one: &ListingView<'_>, other: &ListingView<'_>) -> Self {
        Self::with(one.contest.compare(&other.contest), one, other)
    }

    /// As [`Evidence::gather`], unless the names show that they are two.
    pub(crate) fn gather_alike(one: &ListingView<'_>, other: &ListingView<'_>) -> Option<Self> {
        Some(Self::with(one.contest.agree(&other.contest)?, one, other))
    }

    fn with(
        Agreement { sides, swapped }: Agreement,
        one: &ListingView<'_>,
        other: &ListingView<'_>,
    ) -> Self {
        let gap_minutes = minutes_between(one, other);
        let sides = match (one.contest.title(), other.contest.title()) {
            (Some(title), Some(their_title)) => {
                let [likeness, _] = sides;
                let competitions = (one.competition, other.competition);
                let seen = (likeness, one.is_week_of(other));
                [title.like_listed(their_title, seen, competitions); 2]
            }
            _ => sides,
        };
        Self { sides, swapped, gap_minutes, competition: tie(one.competition, other.competition) }
    }

    /// Includes the players of two fields that start in one week: how many of the smaller field are in the other, and
    /// the size of the smaller one.
    pub(crate) fn mind_fields(
        &mut self,
        one: &ListingView<'_>,
        other: &ListingView<'_>,
        in_common: impl FnOnce() -> (usize, usize),
    ) {
        let (Some(title), Some(their_title)) = (one.contest.title(), other.contest.title()) else {
            return;
        };
        let [likeness, _] = self.sides;
        if one.is_week_of(other) {
            self.sides = [title.like_with_fields(their_title, likeness, in_common()); 2];
        }
    }

    /// Only the distance of the starts, without comparing names.
    pub(crate) fn gap_between(one: &ListingView<'_>, other: &ListingView<'_>) -> Duration {
        Duration::from_secs(60 * u64::from(minutes_between(one, other)))
    }

    pub(crate) fn gap(&self) -> Duration {
        Duration::from_secs(60 * u64::from(self.gap_minutes))
    }

    pub(crate) fn weaker(&self) -> Likeness {
        let [home, away] = self.sides;
        home.min(away)
    }

    fn stronger(&self) -> Likeness {
        let [home, away] = self.sides;
        home.max(away)
    }

    /// True if the names alone allow that the two are one.
    pub(crate) fn is_compatible(&self) -> bool {
        self.weaker() >= Likeness::Kin
    }

    /// The verdict in a sport. Only evidence that later listings cannot overturn results in `Same`.
    pub(crate) fn verdict(&self, sport: &Sport) -> Verdict {
        let gap = self.gap();
        let session = gap <= SESSION.min(sport.same_event_within);
        if gap > sport.other_event_after {
            return Verdict::Different;
        }
        if self.stronger() < Likeness::Near {
            // Only two surnames, at the same time: many people have them.
            let telling = session && self.weaker() >= Likeness::OneWord;
            return if telling { Verdict::Unsure(Doubt::Name) } else { Verdict::Different };
        }
        match self.weaker() {
            likeness if likeness.is_firm() => {
                if gap <= sport.same_event_within && self.competition != Tie::Other {
                    Verdict::Same
                } else {
                    Verdict::Unsure(Doubt::Time)
                }
            }
            Likeness::Near | Likeness::Overlap | Likeness::OneWord | Likeness::Kin if session => {
                if self.stronger().is_firm() {
                    Verdict::Same
                } else {
                    Verdict::Unsure(Doubt::Name)
                }
            }
            Likeness::Near if gap <= sport.same_event_within => Verdict::Unsure(Doubt::Name),
            Likeness::Shared if session && self.stronger().is_firm() => {
                Verdict::Unsure(Doubt::Name)
            }
            Likeness::Nothing
            | Likeness::Conflict
            | Likeness::Shared
            | Likeness::Kin
            | Likeness::OneWord
            | Likeness::Overlap
            | Likeness::Near
            | Likeness::Within
            | Likeness::Initials
            | Likeness::Sound
            | Likeness::Same => Verdict::Different,
        }
    }

    /// The confidence, in thousandths.
    pub(crate) fn confidence(&self, sport: &Sport) -> u16 {
        let [home, away] = self.sides.map(|likeness| u32::from(likeness.weight()));
        let names = (home + away) / 2 * 9 / 10 + home.min(away) / 10;
        let hours = self.gap_minutes / 60;
        let after =
            u32::try_from(sport.other_event_after.as_secs() / 3600).unwrap_or(u32::MAX).max(1);
        // The maximum distance of starts costs a twentieth.
        let late = 50 * hours.min(after) / after;
        let other = if self.competition == Tie::Other { 100 } else { 0 };
        u16::try_from(names.saturating_sub(late + other)).unwrap_or(0)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [home, away] = self.sides;
        if home == away {
            write!(f, "both sides: {home}")?;
        } else {
            write!(f, "one side: {home}, the other: {away}")?;
        }
        if self.swapped {
            f.write_str("; home and away the other way round")?;
        }
        match self.gap_minutes {
            0 => f.write_str("; the same start")?,
            minutes @ 1..120 => write!(f, "; starts {minutes} minutes apart")?,
            minutes @ 120..4320 => write!(f, "; starts {} hours apart", minutes / 60)?,
            minutes => write!(f, "; starts {} days apart", minutes / 1440)?,
        }
        f.write_str(match self.competition {
            Tie::Unknown => "",
            Tie::Same => "; the same competition",
            Tie::Other => "; another competition",
        })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "the participants agree, but the starts are too far apart to be sure",
            Self::Name => "one participant agrees, the other may be somebody else",
            Self::Rival => "two events fit equally well",
        })
    }
}

fn minutes_between(one: &ListingView<'_>, other: &ListingView<'_>) -> u32 {
    let gap = one.commence_time.as_millis().abs_diff(other.commence_time.as_millis()) / 60_000;
    u32::try_from(gap).unwrap_or(u32::MAX)
}

/// Compares the names of two competitions. Most show little: "UFC" and "UFC 260", "Boxing" and "Title fight".
fn tie(one: &str, other: &str) -> Tie {
    if one == other {
        return Tie::Same;
    }
    effort::spend((one.len() + other.len()) / BYTES_OF_A_UNIT);
    let (one, other) = (super::fold(one), super::fold(other));
    if one == other {
        return Tie::Same;
    }
    match (numbered(&one), numbered(&other)) {
        // "UFC 259" and "UFC 260" are two cards; "UFC 260" and "UFC on ESPN 21" are separate series.
        (Some((series, number)), Some((other_series, other_number))) if series == other_series => {
            if number == other_number {
                Tie::Same
            } else {
                Tie::Other
            }
        }
        _ => Tie::Unknown,
    }
}

/// The series and the number of a numbered competition.
fn numbered(folded: &str) -> Option<(&str, u32)> {
    let at = folded.find(|c: char| c.is_ascii_digit())?;
    let (series, rest) = folded.split_at(at);
    let number = rest.split(' ').next()?.parse().ok()?;
    // A year is not a number of a series.
    (!series.is_empty() && number < 1900).then_some((series, number))
}

#[cfg(test)]
mod tests;
