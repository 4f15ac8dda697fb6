//! The endless schedule: assigns events to the slots of each sport.
//!
//! Every stream of events is unlimited in both directions, one slot after the other with fixed spacing, chosen so
//! that at any instant each sport has a live event, one about to start and one just finished. An event's reference
//! names its slot.

use std::cell::OnceCell;

use super::contest::Form;
use super::discipline::Discipline;
use super::event::{Contest, Duel, Event, Names, News, Revision, Rules};
use super::fight::Fight;
use super::football::Gridiron;
use super::golf::Tournament;
use super::noise::{Draws, below, gauss, mix, mix_signed, real, to_tick, uniform, whole};
use super::people::{Circuit, at_turn, name};
use super::places;
use super::scheduled_faults::HOUR_S;
use super::tennis::Match;

/// Bouts of a mixed martial arts card, 24 minutes apart; there are two tracks of cards, offset by half a spacing.
const MMA_BOUTS: i64 = 10;
const MMA_SPACING_S: i64 = 24 * 60;
/// Longer than half the spacing, so that one of the two tracks always has a live bout.
const MMA_OFFICIAL_S: i64 = 13 * 60;
const MMA_LEAD_S: i64 = 8 * HOUR_S;
/// Every sixth card of the first track is a major one, listed early.
const MMA_BIG_LEAD_S: i64 = 72 * HOUR_S;
/// Boxing: four tracks of shows with one bout per hour, offset by a quarter of an hour.
const BOXING_BOUTS: i64 = 6;
const BOXING_OFFICIAL_S: i64 = 16 * 60;
const BOXING_LEAD_S: i64 = 6 * HOUR_S;
/// Tennis: nine courts, three per tournament, with a match every three hours on each.
const TENNIS_COURTS: i64 = 9;
const TENNIS_SPACING_S: i64 = 3 * HOUR_S;
const TENNIS_LEAD_S: i64 = 12 * HOUR_S;
const WEEK_S: i64 = 7 * 24 * HOUR_S;
/// American football: a game every forty minutes, alternating between the leagues.
pub(crate) const FOOTBALL_SPACING_S: i64 = 40 * 60;
const FOOTBALL_LEAD_S: i64 = 16 * HOUR_S;
/// Golf: four tours with a tournament every five days each, offset by thirty hours.
const TOUR_SPACING_S: i64 = 120 * HOUR_S;
const TOUR_OFFSET_S: i64 = 30 * HOUR_S;
const TOUR_LEAD_S: i64 = 72 * HOUR_S;
/// One-day qualifiers, so that some tournament starts within any hour.
const QUALIFIER_SPACING_S: i64 = 50 * 60;
const QUALIFIER_LEAD_S: i64 = 3 * HOUR_S;

/// Builds the events of one seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
}

/// A head-to-head slot before its contest is computed.
pub(crate) struct Slot {
    pub(crate) discipline: Discipline,
    pub(crate) reference: String,
    pub(crate) competition: Box<str>,
    pub(crate) listed: i64,
    pub(crate) commence: i64,
    /// Delay of the start after the announced time.
    pub(crate) delay: i64,
    pub(crate) home: Box<str>,
    pub(crate) away: Box<str>,
    pub(crate) rules: Rules,
    /// Deviation of strength among the slot's pairings, and the home advantage.
    pub(crate) spread: (f64, f64),
}

impl Schedule {
    /// Every event that is listed by `to` and that can still matter at `from`.
    ///
    /// The slots searched begin early enough before `from` to include the longest contest.
    pub(crate) fn events(&self, from: i64, to: i64) -> Vec<Event> {
        let mut events = Vec::new();
        self.mma(from, to, &mut events);
        self.boxing(from, to, &mut events);
        self.disruptions(from, to, &mut events);
        self.tennis(from, to, &mut events);
        self.football(from, to, &mut events);
        self.golf(from, to, &mut events);
        events.retain(|event| event.listed() <= to);
        events
    }

    /// The same for one discipline, at a fraction of the cost.
    pub(crate) fn events_of(&self, discipline: Discipline, from: i64, to: i64) -> Vec<Event> {
        let mut events = Vec::new();
        match discipline {
            Discipline::Mma => self.mma(from, to, &mut events),
            Discipline::Boxing => self.boxing(from, to, &mut events),
            Discipline::Tennis => self.tennis(from, to, &mut events),
            Discipline::Football => self.football(from, to, &mut events),
            Discipline::Golf => self.golf(from, to, &mut events),
        }
        self.disruptions(from, to, &mut events);
        events.retain(|event| event.discipline == discipline && event.listed() <= to);
        events
    }

    /// The part of references that identifies the seed, so that two seeds never share an id.
    pub(crate) fn tag(&self) -> u64 {
        mix(self.seed, 0x7a6) >> 44
    }

    fn mma(&self, from: i64, to: i64, events: &mut Vec<Event>) {
        let card_s = MMA_BOUTS * MMA_SPACING_S;
        for track in 0..2 {
            let offset = i64::from(track) * (card_s / 2 + MMA_SPACING_S / 2);
            for card in slots(from - card_s - HOUR_S, to + MMA_BIG_LEAD_S, card_s, offset) {
                let start = card * card_s + offset;
                let big = track == 0 && card.rem_euclid(6) == 0;
                let lead = if big { MMA_BIG_LEAD_S } else { MMA_LEAD_S };
                if start - lead > to {
                    continue;
                }
                for bout in 0..MMA_BOUTS {
                    let turn = (card * MMA_BOUTS + bout) * 2 + i64::from(track);
                    events.push(self.mma_bout(
                        u64::from(track == 1),
                        card,
                        bout,
                        turn,
                        start,
                        lead,
                    ));
                }
            }
        }
    }

    fn mma_bout(
        &self,
        track: u64,
        card: i64,
        bout: i64,
        turn: i64,
        start: i64,
        lead: i64,
    ) -> Event {
        let key = mix_signed(mix(self.seed, 0x3a), turn);
        let fighter = |side: i64| {
            let place = at_turn(mix(self.seed, 0x31), 2 * turn + side, 400);
            name(self.seed, Circuit::Mma, place)
        };
        let slot = Slot {
            discipline: Discipline::Mma,
            reference: format!("sb{:05x}-mma-{track}-{card}-{bout}", self.tag()),
            competition: places::mma_card(track, card),
            listed: start - lead + bout * 60,
            commence: start + bout * MMA_SPACING_S,
            delay: 0,
            home: fighter(0),
            away: fighter(1),
            rules: mma_rules(key, bout + 1 == MMA_BOUTS),
            spread: (0.55, 0.0),
        };
        Self::event(key, slot)
    }

    fn boxing(&self, from: i64, to: i64, events: &mut Vec<Event>) {
        let show_s = BOXING_BOUTS * HOUR_S;
        for track in 0..4_u64 {
            let offset = i64::try_from(track).unwrap_or(0) * (HOUR_S + HOUR_S / 4);
            for show in slots(from - show_s - HOUR_S, to + BOXING_LEAD_S, show_s, offset) {
                for bout in 0..BOXING_BOUTS {
                    let turn = (show * BOXING_BOUTS + bout) * 4 + track.cast_signed();
                    let key = mix_signed(mix(self.seed, 0xb0), turn);
                    let fighter = |side: i64| {
                        let place = at_turn(mix(self.seed, 0x32), 2 * turn + side, 400);
                        name(self.seed, Circuit::Boxing, place)
                    };
                    let start = show * show_s + offset;
                    let slot = Slot {
                        discipline: Discipline::Boxing,
                        reference: format!("sb{:05x}-box-{track}-{show}-{bout}", self.tag()),
                        competition: places::boxing_show(track, show),
                        listed: start - BOXING_LEAD_S + bout * 60,
                        commence: start + bout * HOUR_S,
                        delay: 0,
                        home: fighter(0),
                        away: fighter(1),
                        rules: boxing_rules(key, bout),
                        spread: (0.5, 0.05),
                    };
                    events.push(Self::event(key, slot));
                }
            }
        }
    }

    fn tennis(&self, from: i64, to: i64, events: &mut Vec<Event>) {
        for court in 0..TENNIS_COURTS {
            let offset = court * (TENNIS_SPACING_S / TENNIS_COURTS);
            let last = to + TENNIS_LEAD_S + HOUR_S;
            for slot in slots(from - 6 * HOUR_S, last, TENNIS_SPACING_S, offset) {
                let turn = slot * TENNIS_COURTS + court;
                events.push(self.tennis_match(court, turn, slot * TENNIS_SPACING_S + offset));
            }
        }
    }

    fn tennis_match(&self, court: i64, turn: i64, start: i64) -> Event {
        let key = mix_signed(mix(self.seed, 0x7e), turn);
        let tour = u64::try_from(court % 3).unwrap_or(0);
        // The weeks of the three tours begin on different days.
        let week = (start + (court % 3) * 2 * 24 * HOUR_S).div_euclid(WEEK_S);
        let (circuit, hold) = match tour {
            1 => (Circuit::TennisWomen, 0.62),
            2 => (Circuit::TennisMen, 1.1),
            _ => (Circuit::TennisMen, 1.3),
        };
        let player = |side: i64| {
            let place = at_turn(mix(self.seed, 0x33), 2 * turn + side, 600);
            name(self.seed, circuit, place)
        };
        let mut draws = Draws::new(mix(key, 0xd1));
        let slot = Slot {
            discipline: Discipline::Tennis,
            reference: format!("sb{:05x}-ten-{court}-{turn}", self.tag()),
            competition: places::tennis_tournament(self.seed, tour, week),
            listed: start - TENNIS_LEAD_S - draws.seconds(0, 1800),
            commence: start,
            delay: draws.seconds(0, 240),
            home: player(0),
            away: player(1),
            rules: Rules::Tennis(Match { hold, home_first: draws.chance(0.5) }),
            spread: (0.5, 0.0),
        };
        Self::event(key, slot)
    }

    fn football(&self, from: i64, to: i64, events: &mut Vec<Event>) {
        let last = to + FOOTBALL_LEAD_S + HOUR_S;
        for turn in slots(from - 6 * HOUR_S, last, FOOTBALL_SPACING_S, 0) {
            let key = mix_signed(mix(self.seed, 0xaf), turn);
            let league = turn.rem_euclid(4);
            let game = turn.div_euclid(4);
            let league_number = u64::try_from(league).unwrap_or(0);
            let team = |side: i64| {
                let league_key = mix(mix(self.seed, 0x34), league_number);
                places::team(league_number, at_turn(league_key, 2 * game + side, 10))
            };
            let commence = turn * FOOTBALL_SPACING_S;
            let mut draws = Draws::new(mix(key, 0xd2));
            let slot = Slot {
                discipline: Discipline::Football,
                reference: format!("sb{:05x}-foo-{turn}", self.tag()),
                competition: usize::try_from(league)
                    .ok()
                    .and_then(|i| places::LEAGUES.get(i))
                    .copied()
                    .unwrap_or_default()
                    .into(),
                listed: commence - FOOTBALL_LEAD_S - draws.seconds(0, 3000),
                commence,
                delay: draws.seconds(60, 240),
                home: team(0),
                away: team(1),
                rules: Rules::Football(Gridiron {
                    points: 42.0 + 2.0 * real(league) + 3.0 * gauss(mix(key, 6)),
                }),
                spread: (5.5, 1.8),
            };
            events.push(Self::event(key, slot));
        }
    }

    fn golf(&self, from: i64, to: i64, events: &mut Vec<Event>) {
        for tour in 0..4_u64 {
            let offset = i64::try_from(tour).unwrap_or(0) * TOUR_OFFSET_S;
            let first = from - 96 * HOUR_S;
            for number in slots(first, to + TOUR_LEAD_S, TOUR_SPACING_S, offset) {
                let start = number * TOUR_SPACING_S + offset;
                events.push(self.tournament(tour, number, start));
            }
        }
        let last = to + QUALIFIER_LEAD_S;
        for number in slots(from - 6 * HOUR_S, last, QUALIFIER_SPACING_S, 0) {
            events.push(self.tournament(4, number, number * QUALIFIER_SPACING_S));
        }
    }

    fn tournament(&self, tour: u64, number: i64, start: i64) -> Event {
        let key = mix_signed(mix(self.seed, 0x601 + tour), number);
        let (circuit, players) = match tour {
            0 => (Circuit::GolfMen, 144),
            1 => (Circuit::GolfMen, 150),
            2 => (Circuit::GolfWomen, 135),
            3 => (Circuit::GolfMen, 144),
            _ => (Circuit::GolfMen, 60),
        };
        // Qualifiers alternate between ten rosters, so that nobody plays in two at once.
        let (roster, rounds, lead) = if tour == 4 {
            let turn = u64::try_from(number.rem_euclid(10)).unwrap_or(0);
            ((720 + turn * 60, 60), 1, QUALIFIER_LEAD_S)
        } else {
            ((tour * 180, 180), 4, TOUR_LEAD_S)
        };
        let title = places::golf_title(self.seed, tour, number);
        let tour_name = usize::try_from(tour)
            .ok()
            .and_then(|i| places::GOLF_TOURS.get(i))
            .copied()
            .unwrap_or_default();
        Event {
            discipline: Discipline::Golf,
            reference: format!("sb{:05x}-golf-{tour}-{number}", self.tag()).into(),
            key,
            revisions: vec![Revision {
                at: start - lead,
                competition: tour_name.into(),
                commence: start,
                names: Names::Title(title),
                renames: false,
            }],
            removed: None,
            contest: Contest::Field(Tournament {
                seed: self.seed,
                key,
                circuit,
                roster,
                players,
                rounds,
                start,
                gap_s: 600,
                hole_s: if rounds == 1 { 720 } else { 840 },
                course: OnceCell::new(),
            }),
        }
    }

    pub(crate) fn event(key: u64, slot: Slot) -> Event {
        let (doubt, tempo_doubt) = slot.rules.doubt();
        let start = slot.commence + slot.delay;
        let (spread, home) = slot.spread;
        let form = Form {
            strength: home + spread * gauss(mix(key, 1)),
            tempo: tempo_doubt * gauss(mix(key, 2)),
        };
        // Slightly less than half of all contests have news, between the listing and ten minutes before the start.
        let window = real(start - slot.listed - 1200);
        let news = (uniform(mix(key, 3)) < 0.45).then(|| News {
            at: to_tick(slot.listed + 600 + whole(window * uniform(mix(key, 4)))),
            jump: doubt * (0.9 + 0.6 * uniform(mix(key, 5))) * side(mix(key, 6)),
        });
        Event {
            discipline: slot.discipline,
            reference: slot.reference.into(),
            key,
            revisions: vec![Revision {
                at: slot.listed,
                competition: slot.competition,
                commence: slot.commence,
                names: Names::Sides { home: slot.home, away: slot.away },
                renames: false,
            }],
            removed: None,
            contest: Contest::Duel(Duel {
                rules: slot.rules,
                key,
                listed: slot.listed,
                start,
                forms: vec![form],
                news,
                timeline: OnceCell::new(),
            }),
        }
    }
}

/// The slots of a stream that begin between two instants.
pub(crate) fn slots(
    from: i64,
    to: i64,
    spacing: i64,
    offset: i64,
) -> std::ops::RangeInclusive<i64> {
    (from - offset).div_euclid(spacing)..=(to - offset).div_euclid(spacing)
}

fn side(hash: u64) -> f64 {
    if hash.is_multiple_of(2) { 1.0 } else { -1.0 }
}

pub(crate) fn mma_rules(key: u64, main_event: bool) -> Rules {
    Rules::Fight(Fight {
        rounds: if main_event { 5 } else { 3 },
        round_s: 300,
        finish: -1.35 + 0.35 * gauss(mix(key, 7)),
        official_after_s: MMA_OFFICIAL_S,
    })
}

/// Later bouts of a show are longer; all fit into an hour.
pub(crate) fn boxing_rules(key: u64, bout: i64) -> Rules {
    let rounds = match bout {
        0 => 4,
        1 => 6,
        2 | 3 => 8,
        4 => 10,
        _ => 12,
    };
    Rules::Fight(Fight {
        rounds,
        round_s: 180,
        finish: -2.5 + 0.3 * gauss(mix(key, 7)) - 0.02 * real(below(key, 10).cast_signed()),
        official_after_s: BOXING_OFFICIAL_S,
    })
}
