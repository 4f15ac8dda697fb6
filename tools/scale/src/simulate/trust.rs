//! Revocation as in `accounts`.
//!
//! A node may accept keys for the time of a lease after the database, or the revocation register if the database does
//! not answer, confirmed that it missed no change; this rule is the program's own code
//! ([`accounts::KeyLeaseSimulation`]). A revocation announces its change if a node is late, and waits until every
//! listed node has it, or until the lease and a margin have expired. The times of the queries and their answers are
//! simulated here.

use anyhow::{Context as _, Result};

use super::{
    clock::SECOND_US,
    queue::Event,
    record::Revocation,
    run::{Run, clocks},
};

const LOOK_EVERY_US: (i64, i64) = (10_000, 200_000);
const HEAD_START_US: i64 = 300_000;
const REVOKE_EVERY_US: i64 = SECOND_US / 2;
/// Number of requests with a revoked key, and the period in which they are sent.
const PROBES: u32 = 300;
const PROBED_US: i64 = 9 * SECOND_US;

impl Run {
    /// A node asks the database, and the register if the database has not confirmed recently.
    pub(super) fn due(&mut self, at_us: i64, number: usize, life: u32) -> Result<()> {
        let trust_us = self.plan.trust_us;
        let announced = self.announced;
        let node = self.node(number)?;
        if node.life != life || !node.is_up {
            return Ok(());
        }
        if node.paused_until_us > at_us {
            let at_us = node.paused_until_us;
            self.queue.plan(at_us, Event::Due { node: number, life });
            return Ok(());
        }
        let asked_us = node.clocks.steady(at_us);
        let is_sure = node.trusted_until_us - asked_us > trust_us * 3 / 5;
        let asks_register = !is_sure && !node.is_alone && node.seen > 0;
        self.queue.plan(at_us + self.plan.ask_every_us, Event::Due { node: number, life });
        if asks_register {
            let back_us = at_us + self.way_us() + self.way_us();
            let event = Event::RegisterBack { node: number, life, newest: announced, asked_us };
            self.queue.plan(back_us, event);
        }
        self.ask(at_us, number, life)
    }

    pub(super) fn ask(&mut self, at_us: i64, number: usize, life: u32) -> Result<()> {
        let node = self.node(number)?;
        if node.life != life || !node.is_up || node.paused_until_us > at_us {
            return Ok(());
        }
        let asked_us = node.clocks.steady(at_us);
        let at_us = at_us + self.way_us();
        self.queue.plan(at_us, Event::AskAt { node: number, life, asked_us });
        Ok(())
    }

    pub(super) fn ask_at(&mut self, at_us: i64, who: (usize, u32), asked_us: i64) -> Result<()> {
        let (node, life) = who;
        if self.node(node)?.is_cut {
            return Ok(());
        }
        if !self.database.lists(who) {
            // A node is listed before it reads: a call that waits for all nodes then waits for this one.
            self.database.confirm(at_us, who, 0);
        }
        let (newest, done_us) = self.database.newest(at_us);
        let back_us = done_us + self.way_us();
        self.queue.plan(back_us, Event::AskBack { node, life, newest, asked_us });
        Ok(())
    }

    pub(super) fn ask_back(
        &mut self,
        at_us: i64,
        (number, life): (usize, u32),
        newest: u64,
        asked_us: i64,
    ) -> Result<()> {
        let trust_us = self.plan.trust_us;
        let Self { nodes, database, queue, .. } = self;
        let node = nodes.get_mut(number).context("there is no such node")?;
        if node.life != life || !node.is_up || node.is_cut {
            return Ok(());
        }
        if node.paused_until_us > at_us {
            let event = Event::AskBack { node: number, life, newest, asked_us };
            queue.plan(node.paused_until_us, event);
            return Ok(());
        }
        let is_news = newest > node.seen;
        if is_news {
            node.read_changes(database.changes(node.seen, newest), newest);
        }
        node.extend(true, asked_us, newest, trust_us);
        if is_news {
            let at_us = at_us + self.way_us();
            self.queue.plan(at_us, Event::ConfirmAt { node: number, life, number: newest });
        }
        Ok(())
    }

    pub(super) fn confirm_at(&mut self, at_us: i64, who: (usize, u32), number: u64) -> Result<()> {
        let node = self.node(who.0)?;
        // A late confirmation of a stopped node would list it again.
        if !node.is_cut && node.life == who.1 && node.is_up {
            self.database.confirm(at_us, who, number);
        }
        Ok(())
    }

    pub(super) fn register_back(
        &mut self,
        at_us: i64,
        (number, life): (usize, u32),
        newest: u64,
        asked_us: i64,
    ) -> Result<()> {
        let trust_us = self.plan.trust_us;
        let node = self.node(number)?;
        if node.life != life || !node.is_up || node.is_alone {
            return Ok(());
        }
        if node.paused_until_us > at_us {
            let at_us = node.paused_until_us;
            self.queue.plan(at_us, Event::RegisterBack { node: number, life, newest, asked_us });
            return Ok(());
        }
        node.extend(false, asked_us, newest, trust_us);
        Ok(())
    }

    pub(super) fn revoke(&mut self, at_us: i64) {
        self.queue.plan(at_us + REVOKE_EVERY_US, Event::Revoke);
        // Busy keys: many nodes know them.
        let busy = self.keys.busy.saturating_sub(self.keys.greedy);
        let key = self.keys.greedy + self.random.below(busy);
        if self.record.is_revoked(key) {
            return;
        }
        let (number, done_us) = self.database.end_key(at_us, key);
        let revocation = Revocation::new(key, number, at_us, clocks(&mut self.random));
        let revocation = self.record.revoke(revocation);
        let told_us = done_us + self.way_us();
        self.queue.plan(told_us, Event::Hint { revocation });
        let cut: Vec<u32> = (0..self.plan.nodes)
            .zip(&self.nodes)
            .filter_map(|(number, node)| node.is_cut.then_some(number))
            .collect();
        for probe in 0..PROBES {
            // Every other request goes to a node that is cut off, if there is one.
            let any = self.random.below(self.plan.nodes);
            let pick = usize::try_from(self.random.below(u32::try_from(cut.len()).unwrap_or(0)));
            let cut = pick.ok().and_then(|pick| cut.get(pick)).copied();
            let node = if probe % 2 == 0 { any } else { cut.unwrap_or(any) };
            let at_us = at_us + self.random.between(0, PROBED_US);
            self.queue.plan(at_us, Event::Probe { key, node });
        }
    }

    /// Nodes that receive the hint follow the change; for the others it is announced.
    pub(super) fn hint(&mut self, at_us: i64, revocation: usize) -> Result<()> {
        for number in 0..self.nodes.len() {
            let node = self.node(number)?;
            let (life, hears) = (node.life, node.is_up && !node.is_alone);
            if hears {
                let at_us = at_us + self.way_us();
                self.queue.plan(at_us, Event::Ask { node: number, life });
            }
        }
        self.queue.plan(at_us + HEAD_START_US, Event::Announce { revocation });
        Ok(())
    }

    /// Announces the change to the register, unless every node has it, and begins the wait.
    pub(super) fn announce(&mut self, at_us: i64, revocation: usize) -> Result<()> {
        let number = self.record.revocation(revocation)?.begin(at_us);
        if !self.database.is_known_everywhere(at_us, number) {
            self.announced = self.announced.max(number);
        }
        self.look(at_us, revocation, LOOK_EVERY_US.0)
    }

    pub(super) fn look(&mut self, at_us: i64, revocation: usize, pause_us: i64) -> Result<()> {
        let over_us = self.plan.trust_us + self.plan.margin_us;
        let this = *self.record.revocation(revocation)?;
        if self.database.is_known_everywhere(at_us, this.number) || this.waited_us(at_us) >= over_us
        {
            let returned_us = at_us + self.way_us();
            self.record.revocation(revocation)?.returned_us = Some(returned_us);
            return Ok(());
        }
        let pause_us = (pause_us * 2).min(LOOK_EVERY_US.1);
        self.queue.plan(at_us + pause_us, Event::Look { revocation, pause_us });
        Ok(())
    }
}
