//! Disrupted bouts: each hour one is cancelled, one is postponed and in one a fighter is replaced. They are extra
//! bouts on small cards, so that the regular schedule keeps its promises without them.

use super::contest::Form;
use super::discipline::Discipline;
use super::event::{Contest, Event, Names, Revision};
use super::noise::{gauss, mix, mix_signed};
use super::people::{Circuit, name};
use super::places;
use super::schedule::{Schedule, Slot, boxing_rules, mma_rules, slots};
use super::scheduled_faults::{
    CANCELLED_AT_S, HOUR_S, POSTPONED_AT_S, POSTPONED_BY_S, REPLACED_AT_S,
};

/// Time before their hour at which disrupted bouts are listed.
const DISRUPTION_LEAD_S: i64 = 5 * HOUR_S;

impl Schedule {
    /// The disrupted bouts of each hour.
    pub(crate) fn disruptions(&self, from: i64, to: i64, events: &mut Vec<Event>) {
        for hour in slots(from - 8 * HOUR_S, to + DISRUPTION_LEAD_S, HOUR_S, 0) {
            let start = hour * HOUR_S;
            let mut cancelled = self.disrupted_bout(Discipline::Mma, "cancelled", hour, 150 * 60);
            cancelled.removed = Some(start + CANCELLED_AT_S);
            events.push(cancelled);
            events.push(self.postponed(hour));
            events.push(self.replaced(hour));
        }
    }

    /// A bout that starts `after` seconds after the hour in which it is disrupted.
    fn disrupted_bout(&self, discipline: Discipline, fate: &str, hour: i64, after: i64) -> Event {
        let salt = u64::try_from(after).unwrap_or(0);
        let key = mix_signed(mix(self.seed, salt ^ 0xea7), hour);
        let (competition, rules, circuit) = if discipline == Discipline::Boxing {
            let show = places::boxing_show(4, hour);
            (show, boxing_rules(key, 1), Circuit::Boxing)
        } else {
            let card = places::prospects_card(hour);
            (card, mma_rules(key, false), Circuit::Mma)
        };
        let slot = Slot {
            discipline,
            reference: format!("sb{:05x}-{fate}-{hour}", self.tag()),
            competition,
            listed: hour * HOUR_S - DISRUPTION_LEAD_S,
            commence: hour * HOUR_S + after,
            delay: 0,
            home: self.disrupted_fighter(circuit, fate, hour, 0),
            away: self.disrupted_fighter(circuit, fate, hour, 1),
            rules,
            spread: (0.5, 0.0),
        };
        Self::event(key, slot)
    }

    /// A fighter from the part of the roster beyond the regular cards; six per hour, so each is back after five days.
    fn disrupted_fighter(&self, circuit: Circuit, fate: &str, hour: i64, place: i64) -> Box<str> {
        let first = if fate == "cancelled" { 0 } else { 2 };
        let turn = (hour * 6 + first + place).rem_euclid(720);
        name(self.seed, circuit, 1600 + u64::try_from(turn).unwrap_or(0))
    }

    fn postponed(&self, hour: i64) -> Event {
        let mut event = self.disrupted_bout(Discipline::Boxing, "postponed", hour, 90 * 60);
        if let Some(first) = event.revisions.first().cloned() {
            event.revisions.push(Revision {
                at: hour * HOUR_S + POSTPONED_AT_S,
                commence: first.commence + POSTPONED_BY_S,
                ..first
            });
        }
        if let Contest::Duel(duel) = &mut event.contest {
            duel.start += POSTPONED_BY_S;
        }
        event
    }

    fn replaced(&self, hour: i64) -> Event {
        let mut event = self.disrupted_bout(Discipline::Mma, "replaced", hour, 130 * 60);
        let substitute = self.disrupted_fighter(Circuit::Mma, "replaced", hour, 2);
        if let Some(first) = event.revisions.first().cloned()
            && let Names::Sides { home, .. } = &first.names
        {
            event.revisions.push(Revision {
                at: hour * HOUR_S + REPLACED_AT_S,
                names: Names::Sides { home: home.clone(), away: substitute },
                renames: true,
                ..first
            });
        }
        if let Contest::Duel(duel) = &mut event.contest {
            let mut form =
                duel.forms.first().copied().unwrap_or(Form { strength: 0.0, tempo: 0.0 });
            // A late substitute is usually the weaker fighter.
            form.strength += 0.35 + 0.3 * gauss(mix(duel.key, 0x5b));
            duel.forms.push(form);
            duel.news = None;
        }
        event
    }
}
