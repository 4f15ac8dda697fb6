//! Conclusions from the events around two listings: whether the competitions of two sources are one, and by how much
//! their start times differ there. A source may date every match of a tournament by its first day, or every game of a
//! week by the first day of the week; its other events reveal that.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use domain::Sport;

use super::judge::SESSION;

/// An event that two sources list, seen from one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vote {
    /// Start according to this source, in minutes.
    pub(crate) at: i64,
    /// The other source's competition of the event.
    pub(crate) competition: u64,
    /// Difference of the other source's start, in minutes.
    pub(crate) later_minutes: i64,
}

/// The conclusion from the events around two listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    Unknown,
    /// The competitions are one tournament; or one tour or league, and the starts differ as usual there.
    Same,
    /// The competitions are one tour or league, but the starts differ as they never do there.
    OffTime,
    /// All known events of one of the competitions are in a different competition of the other source.
    Elsewhere,
    /// The same holds for both competitions.
    Other,
}

/// Minimum number of common events for a conclusion.
const VOTES_MIN: usize = 3;

/// A hash of a source's competition.
pub(crate) fn competition_key(competition: &str) -> u64 {
    xxh3_64(competition.as_bytes())
}

/// The distribution of one competition's events over those of the other source.
struct Spread {
    seen: usize,
    most: usize,
    all: usize,
}

impl Spread {
    fn of(votes: &[Vote], wanted: u64) -> Self {
        let mut keys: Vec<u64> = votes.iter().map(|vote| vote.competition).collect();
        keys.sort_unstable();
        let most = keys.chunk_by(|one, other| one == other).map(<[u64]>::len).max();
        let seen = keys.iter().filter(|key| **key == wanted).count();
        Self { seen, most: most.unwrap_or(0), all: keys.len() }
    }

    fn is_known(&self) -> bool {
        self.most >= VOTES_MIN
    }

    /// True if the wanted competition is not among the matching ones.
    fn excludes(&self) -> bool {
        self.is_known() && self.seen * 4 < self.most
    }

    /// True if it matches mainly one competition.
    fn is_narrow(&self) -> bool {
        4 * self.most >= 3 * self.all
    }
}

/// The conclusion from the events around two listings.
///
/// `ours` are the events of our competition that the other source also lists, `theirs` those of the other's
/// competition that our source lists; neither contains the two in question. They are taken from both sides of the
/// two, within the maximum distance of one event's starts. A tournament is over within that time; a tour or league
/// continues, and the same two may meet again in it.
pub(crate) fn habit(
    (ours, our_competition): (&[Vote], u64),
    (theirs, their_competition): (&[Vote], u64),
    later_minutes: i64,
    sport: &Sport,
) -> Habit {
    let spreads = [Spread::of(ours, their_competition), Spread::of(theirs, our_competition)];
    if spreads.iter().all(Spread::excludes) {
        return Habit::Other;
    }
    if spreads.iter().any(|spread| spread.excludes() && spread.is_narrow()) {
        return Habit::Elsewhere;
    }
    if spreads.iter().any(|spread| spread.seen < VOTES_MIN || spread.excludes()) {
        return Habit::Unknown;
    }
    let within = minutes(sport.other_event_after);
    let league = !sport.clubs.is_empty();
    if !league && [ours, theirs].iter().all(|votes| span(votes) <= within) {
        return Habit::Same;
    }
    let common = ours.iter().filter(|vote| vote.competition == their_competition);
    let turned = theirs.iter().filter(|vote| vote.competition == our_competition);
    let gaps = common.map(|vote| vote.later_minutes);
    let gaps = gaps.chain(turned.map(|vote| -vote.later_minutes));
    let (least, most) =
        gaps.fold((i64::MAX, i64::MIN), |(least, most), gap| (least.min(gap), most.max(gap)));
    let slack = minutes(if league { sport.same_event_within } else { SESSION });
    if (least - slack..=most + slack).contains(&later_minutes) {
        Habit::Same
    } else {
        Habit::OffTime
    }
}

/// True if two sources date the events of a competition by the day, and not by the first day of the tournament.
pub(crate) fn are_by_day(votes: &[Vote]) -> bool {
    votes.iter().all(|vote| vote.later_minutes.abs() <= minutes(SESSION))
}

/// Time from the first start to the last.
fn span(votes: &[Vote]) -> i64 {
    let (least, most) = votes
        .iter()
        .fold((i64::MAX, i64::MIN), |(least, most), vote| (least.min(vote.at), most.max(vote.at)));
    most.saturating_sub(least)
}

pub(crate) fn minutes(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs() / 60).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use domain::Catalogue;

    use super::*;

    const DAY: i64 = 24 * 60;
    static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::load(None).unwrap());

    fn sport(key: &str) -> &'static Sport {
        CATALOGUE.sport(CATALOGUE.sport_id(key).unwrap())
    }

    fn votes(of: &[(u64, i64)]) -> Vec<Vote> {
        let vote = |(competition, days): &(u64, i64)| Vote {
            at: 0,
            competition: *competition,
            later_minutes: days * DAY,
        };
        of.iter().map(vote).collect()
    }

    fn of(ours: &[(u64, i64)], theirs: &[(u64, i64)], days: i64) -> Habit {
        habit((&votes(ours), 1), (&votes(theirs), 2), days * DAY, sport("tennis"))
    }

    #[test]
    fn a_tournament_dated_by_its_first_day_is_known_by_three_of_its_matches() {
        let (ours, theirs) = ([(2, 0), (2, -1), (2, -3)], [(1, 0), (1, 1), (1, 3)]);
        assert_eq!(of(&ours, &theirs, -4), Habit::Same);
        assert_eq!(of(&ours[..2], &theirs[..2], -2), Habit::Unknown);
    }

    #[test]
    fn a_rematch_on_a_tour_beyond_what_is_seen_there_is_off_time() {
        let mut tour = votes(&[(2, 0), (2, -1), (2, -3), (5, 0), (6, 0)]);
        tour[3].at = -12 * DAY;
        tour[4].at = 12 * DAY;
        let theirs = votes(&[(1, 0), (1, 1), (1, 3)]);
        let of = |days: i64| habit((&tour, 1), (&theirs, 2), days * DAY, sport("tennis"));
        assert_eq!(of(-4), Habit::Same);
        assert_eq!(of(-9), Habit::OffTime);
        assert_eq!(of(5), Habit::OffTime);
    }

    #[test]
    fn a_league_dated_by_the_week_is_known_by_its_games_and_a_rematch_is_not_one_of_them() {
        let ours = votes(&[(2, -3), (2, -3), (2, -4)]);
        let theirs = votes(&[(1, 3), (1, 3), (1, 4)]);
        let of =
            |days: i64| habit((&ours, 1), (&theirs, 2), days * DAY, sport("american_football"));
        assert_eq!(of(-5), Habit::Same);
        assert_eq!(of(-1), Habit::Same);
        // The following week, listed by its first day; the previous game was two days earlier.
        assert_eq!(of(2), Habit::OffTime);
    }

    #[test]
    fn a_tournament_that_is_another_of_theirs_is_not_this_one() {
        let elsewhere = [(3, 0), (3, -1), (3, -3)];
        assert_eq!(of(&elsewhere, &[], -2), Habit::Elsewhere);
        assert_eq!(of(&elsewhere, &[(4, 0), (4, 1), (4, 2)], -2), Habit::Other);
        // A tour that contains several of their competitions may contain this one, too.
        let tour = [(3, 0), (3, -1), (3, -3), (4, 0), (4, -1), (4, -3), (5, 0), (5, 0), (5, 0)];
        assert_eq!(of(&tour, &[], -2), Habit::Unknown);
    }
}
