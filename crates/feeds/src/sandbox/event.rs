//! An event of the sandbox: its slot's listing, the later corrections, and the contest behind it.

use std::cell::OnceCell;

use super::contest::{Fair, Form, Seen, Timeline};
use super::discipline::Discipline;
use super::fight::Fight;
use super::football::Gridiron;
use super::golf::Tournament;
use super::noise::{mix, real, wave};
use super::tennis::Match;

/// One event. All of it is derived from the seed and the slot.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) discipline: Discipline,
    /// The feed's own id, from the slot; never reused for another event.
    pub(crate) reference: Box<str>,
    pub(crate) key: u64,
    /// The listing and its corrections, oldest first; never empty.
    pub(crate) revisions: Vec<Revision>,
    /// Time at which it is cancelled, if it is.
    pub(crate) removed: Option<i64>,
    pub(crate) contest: Contest,
}

/// The listing of the event from an instant on.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) at: i64,
    pub(crate) competition: Box<str>,
    pub(crate) commence: i64,
    pub(crate) names: Names,
    /// True if a participant changes: bookmakers withdraw and reprice.
    pub(crate) renames: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Names {
    Sides { home: Box<str>, away: Box<str> },
    Title(Box<str>),
}

#[derive(Debug)]
pub(crate) enum Contest {
    Duel(Duel),
    Field(Tournament),
}

impl Event {
    pub(crate) fn listed(&self) -> i64 {
        self.revisions.first().map_or(i64::MAX, |first| first.at)
    }

    /// The instant it goes live.
    pub(crate) fn start(&self) -> i64 {
        match &self.contest {
            Contest::Duel(duel) => duel.start,
            Contest::Field(tournament) => tournament.start,
        }
    }

    /// The instant of the final score; `i64::MAX` for a cancelled event.
    pub(crate) fn over(&self) -> i64 {
        match &self.contest {
            _ if self.removed.is_some() => i64::MAX,
            Contest::Duel(duel) => duel.timeline().over,
            Contest::Field(tournament) => tournament.over(),
        }
    }

    /// True if bookmakers may offer it: listed, not cancelled, not final.
    pub(crate) fn is_open(&self, at: i64) -> bool {
        self.listed() <= at
            && self.removed.is_none_or(|removed| at < removed)
            && (at < self.start() || at < self.over())
    }

    /// True if a participant changed after `from` and not after `to`.
    pub(crate) fn renamed_within(&self, from: i64, to: i64) -> bool {
        self.revisions
            .iter()
            .any(|revision| revision.renames && from < revision.at && revision.at <= to)
    }

    /// The revision that is current at an instant.
    pub(crate) fn revision_at(&self, at: i64) -> usize {
        self.revisions.partition_point(|revision| revision.at <= at).saturating_sub(1)
    }
}

/// A head-to-head contest: opinion of its form drifts, jumps on news and reaches the true form at the start.
#[derive(Debug)]
pub(crate) struct Duel {
    pub(crate) rules: Rules,
    pub(crate) key: u64,
    pub(crate) listed: i64,
    pub(crate) start: i64,
    /// The true form for each revision: another fighter has another form. The last one is played.
    pub(crate) forms: Vec<Form>,
    pub(crate) news: Option<News>,
    pub(crate) timeline: OnceCell<Timeline>,
}

/// News: an injury, a weigh-in, a line-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    pub(crate) at: i64,
    /// Error of the opinion before the news, in units of strength.
    pub(crate) jump: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Rules {
    Fight(Fight),
    Tennis(Match),
    Football(Gridiron),
}

impl Rules {
    /// Deviation of opinion from the true form, in units of strength and of tempo.
    pub(crate) const fn doubt(&self) -> (f64, f64) {
        match self {
            Self::Fight(_) => (0.2, 0.12),
            Self::Tennis(_) => (0.07, 0.05),
            Self::Football(_) => (1.3, 1.2),
        }
    }
}

/// The knowledge of a bookmaker, without its own characteristics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Knowledge {
    /// The instant of the opinion.
    pub(crate) at: i64,
    pub(crate) news: bool,
    /// The last step of the score that is known; `None` before the start.
    pub(crate) step: Option<usize>,
    pub(crate) revision: usize,
}

impl Duel {
    pub(crate) fn timeline(&self) -> &Timeline {
        self.timeline.get_or_init(|| {
            let form = self.form(self.forms.len());
            let key = mix(self.key, 0x91a7);
            match &self.rules {
                Rules::Fight(fight) => fight.play(self.start, form, key),
                Rules::Tennis(tennis) => tennis.play(self.start, form, key),
                Rules::Football(football) => football.play(self.start, form, key),
            }
        })
    }

    /// The true form of a revision, or of the last one before it.
    fn form(&self, revision: usize) -> Form {
        let known = self.forms.get(revision).or(self.forms.last());
        known.copied().unwrap_or(Form { strength: 0.0, tempo: 0.0 })
    }

    /// The public opinion of the form.
    fn opinion(&self, known: Knowledge) -> Form {
        let mut form = self.form(known.revision);
        let (doubt, tempo_doubt) = self.rules.doubt();
        if known.step.is_some() {
            // In play, opinion follows the score and only fluctuates slightly.
            form.strength += 0.2 * doubt * wave(mix(self.key, 11), known.at, 420);
            return form;
        }
        let to_go = real(self.start - known.at) / real((self.start - self.listed).max(1));
        let calm = to_go.clamp(0.0, 1.0).sqrt();
        let drift = |salt: u64| {
            let key = mix(self.key, salt);
            0.8 * wave(mix(key, 1), known.at, 21_600)
                + 0.45 * wave(mix(key, 2), known.at, 5_400)
                + 0.1 * wave(mix(key, 3), known.at, 1_200)
        };
        form.strength += doubt * calm * drift(21);
        form.tempo += tempo_doubt * calm * drift(22);
        if let Some(news) = self.news
            && !known.news
        {
            form.strength -= news.jump;
        }
        form
    }

    /// Fair chances, given this knowledge.
    pub(crate) fn fair(&self, known: Knowledge) -> Fair {
        let form = self.opinion(known);
        let seen = known.step.and_then(|at| {
            let timeline = self.timeline();
            Some(Seen {
                step: timeline.steps.get(at)?,
                next: timeline.steps.get(at + 1),
                at: known.at,
                start: self.start,
                luck: mix(self.key, 31),
            })
        });
        match &self.rules {
            Rules::Fight(fight) => fight.fair(form, seen),
            Rules::Tennis(tennis) => tennis.fair(form, seen),
            Rules::Football(football) => football.fair(form, seen),
        }
    }
}

#[cfg(test)]
mod tests;
