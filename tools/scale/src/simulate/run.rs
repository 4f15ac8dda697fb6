//! The simulation loop: the effect of each event on nodes, database and records.

use std::sync::Arc;

use accounts::{Meters, Spend};
use anyhow::{Context as _, Result};
use domain::Timestamp;
use shell::random::Random;
use store::{Lease, Window};

use super::{
    Plan,
    clock::{Clocks, SECOND_US},
    database::{Database, key_of},
    load::{Client, Keys, clients},
    node::{Batch, Node, Waiting},
    queue::{Event, Queue},
    record::Record,
};

/// Start of the run, so that a minute, a day and a month end within it.
const BEGAN: Timestamp = Timestamp::from_secs(1_796_083_110);
/// Timeout of a node's database request, as in `store`.
const ANSWER_TIME_MAX_US: i64 = 8 * SECOND_US;
/// Maximum wait of a request for a lease, as in `accounts`.
const LEASE_WAIT_US: i64 = 5 * SECOND_US;
/// One-way delay between a node and the database.
const WAY_US: (i64, i64) = (150, 1500);
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) keys: Keys,
    clients: Vec<Client>,
    pub(super) nodes: Vec<Node>,
    pub(super) database: Database,
    pub(super) queue: Queue,
    pub(super) random: Random,
    pub(super) record: Record,
    /// The newest change in the register.
    pub(super) announced: u64,
}

impl Run {
    pub(super) fn new(plan: Plan) -> Self {
        let mut random = Random::new(plan.seed);
        let keys = Keys::of(plan.keys);
        let clients = clients(keys, plan.nodes, &mut random);
        let nodes = (0..plan.nodes).map(|_| Node::new(clocks(&mut random), 0)).collect();
        let database = Database::new(plan.costs);
        let queue = Queue::default();
        let record = Record::default();
        let mut run =
            Self { plan, keys, clients, nodes, database, queue, random, record, announced: 0 };
        run.plan_start();
        run
    }

    fn plan_start(&mut self) {
        for node in 0..self.nodes.len() {
            let at_us = self.random.between(0, self.plan.ask_every_us);
            self.queue.plan(at_us, Event::Due { node, life: 0 });
        }
        for (client, habits) in self.clients.iter().enumerate() {
            // By then the nodes have read the keys.
            let at_us = 2 * SECOND_US + self.random.between(0, habits.every_us);
            self.queue.plan(at_us, Event::Request { client });
        }
        self.queue.plan(4 * SECOND_US, Event::Revoke);
        self.queue.plan(5 * SECOND_US, Event::Fault);
    }

    /// Runs to the end of the plan.
    pub(super) fn finish(mut self) -> Result<Record> {
        let end_us = i64::from(self.plan.seconds) * SECOND_US;
        while let Some((at_us, event)) = self.queue.next()
            && at_us < end_us
        {
            self.happen(at_us, event)?;
        }
        self.record.load = std::mem::take(&mut self.database.load);
        self.record.check_windows(self.database.granted(), self.keys);
        Ok(self.record)
    }

    fn happen(&mut self, at_us: i64, event: Event) -> Result<()> {
        match event {
            Event::Request { client } => self.request(at_us, client),
            Event::Probe { key, node } => self.arrive(at_us, key, node),
            Event::LeaseAt { node, life, batch } => self.lease_at(at_us, node, life, batch),
            Event::LeaseBack { node, life, batch, leases } => {
                self.lease_back(at_us, (node, life), batch, leases)
            }
            Event::LeaseLost { node, life, batch } => self.lease_lost(at_us, node, life, &batch),
            Event::Due { node, life } => self.due(at_us, node, life),
            Event::Ask { node, life } => self.ask(at_us, node, life),
            Event::AskAt { node, life, asked_us } => self.ask_at(at_us, (node, life), asked_us),
            Event::AskBack { node, life, newest, asked_us } => {
                self.ask_back(at_us, (node, life), newest, asked_us)
            }
            Event::ConfirmAt { node, life, number } => self.confirm_at(at_us, (node, life), number),
            Event::RegisterBack { node, life, newest, asked_us } => {
                self.register_back(at_us, (node, life), newest, asked_us)
            }
            Event::Hint { revocation } => self.hint(at_us, revocation),
            Event::Announce { revocation } => self.announce(at_us, revocation),
            Event::Revoke => {
                self.revoke(at_us);
                Ok(())
            }
            Event::Look { revocation, pause_us } => self.look(at_us, revocation, pause_us),
            Event::Fault => self.fault(at_us),
            Event::Restart { node } => self.restart(at_us, node),
            Event::Reconnect { node } => {
                let node = self.node(node)?;
                (node.is_cut, node.is_alone) = (false, false);
                Ok(())
            }
        }
    }

    pub(super) fn node(&mut self, node: usize) -> Result<&mut Node> {
        self.nodes.get_mut(node).context("there is no such node")
    }

    pub(super) fn way_us(&mut self) -> i64 {
        self.random.between(WAY_US.0, WAY_US.1)
    }

    fn request(&mut self, at_us: i64, client: usize) -> Result<()> {
        let habits = *self.clients.get(client).context("there is no such client")?;
        let jitter_us = self.random.between(-habits.every_us / 10, habits.every_us / 10);
        self.queue.plan(at_us + habits.every_us + jitter_us, Event::Request { client });
        let node = habits.node.unwrap_or_else(|| self.random.below(self.plan.nodes));
        self.arrive(at_us, habits.key, node)
    }

    /// A request reaches a node or, if it is down, the next one that is up, as through a load balancer.
    fn arrive(&mut self, at_us: i64, key: u32, mut node: u32) -> Result<()> {
        let mut tried = 0;
        while !self.node(usize::try_from(node)?)?.is_up {
            node = (node + 1) % self.plan.nodes;
            tried += 1;
            if tried == self.plan.nodes {
                self.record.unavailable += 1;
                return Ok(());
            }
        }
        let number = usize::try_from(node)?;
        let limits = self.keys.limits(key);
        let Self { nodes, database, queue, record, .. } = self;
        let node_here = nodes.get_mut(number).context("there is no such node")?;
        if node_here.paused_until_us > at_us {
            queue.plan(node_here.paused_until_us, Event::Probe { key, node });
            return Ok(());
        }
        record.requests += 1;
        if !node_here.is_trusted(at_us) {
            record.untrusted += 1;
            return Ok(());
        }
        if node_here.has_ended(key) {
            record.revoked += 1;
            return Ok(());
        }
        record.note_let_in(key, at_us);
        let now = node_here.clocks.wall(BEGAN, at_us);
        let meters = node_here.meters(key, limits, now, || database.usage(key, starts(now)));
        let waiting = Waiting { since_us: at_us, now, burst_paid: false };
        if let Some(waiting) = spend(record, &meters, key, waiting) {
            node_here.waiting.entry(key).or_default().push(waiting);
        }
        self.send_leases(at_us, number)
    }

    fn send_leases(&mut self, at_us: i64, number: usize) -> Result<()> {
        let node = self.node(number)?;
        let life = node.life;
        if let Some(batch) = node.next_batch() {
            let at_us = at_us + self.way_us();
            self.queue.plan(at_us, Event::LeaseAt { node: number, life, batch });
        }
        Ok(())
    }

    fn lease_at(&mut self, at_us: i64, number: usize, life: u32, batch: Batch) -> Result<()> {
        let node = self.node(number)?;
        if node.is_cut && node.life == life {
            self.queue
                .plan(at_us + ANSWER_TIME_MAX_US, Event::LeaseLost { node: number, life, batch });
            return Ok(());
        }
        let (done_us, leases) = self.database.lease(at_us, &batch.asks)?;
        let back_us = done_us + self.way_us();
        self.queue.plan(back_us, Event::LeaseBack { node: number, life, batch, leases });
        Ok(())
    }

    fn lease_back(
        &mut self,
        at_us: i64,
        (number, life): (usize, u32),
        batch: Batch,
        leases: Vec<Lease>,
    ) -> Result<()> {
        let node = self.node(number)?;
        let (is_here, is_cut, paused_until_us) =
            (node.is_up && node.life == life, node.is_cut, node.paused_until_us);
        if !is_here || is_cut {
            for (ask, lease) in batch.asks.iter().zip(&leases) {
                let key = key_of(&ask.meter_id)?;
                let place = (key, ask.window, ask.start_ms);
                if is_here {
                    self.record.lose_answer(place, lease.given);
                } else {
                    self.record.lose((number, life), place, lease.given);
                }
            }
            if is_here {
                let at_us = at_us + ANSWER_TIME_MAX_US;
                self.queue.plan(at_us, Event::LeaseLost { node: number, life, batch });
            }
            return Ok(());
        }
        if paused_until_us > at_us {
            let event = Event::LeaseBack { node: number, life, batch, leases };
            self.queue.plan(paused_until_us, event);
            return Ok(());
        }
        let now = node.clocks.wall(BEGAN, at_us);
        node.is_leasing = false;
        let mut from = 0;
        for (meters, count) in batch.askers {
            let range = from..from + count;
            from += count;
            let asks = batch.asks.get(range.clone()).context("a batch lost its asks")?;
            let leases = leases.get(range).context("a batch lost its leases")?;
            if meters.refill(asks, leases, now) {
                self.node(number)?.want_more(Arc::clone(&meters));
            }
            let key = key_of(&asks.first().context("an asker asked for nothing")?.meter_id)?;
            self.serve_waiting(at_us, number, key, &meters)?;
        }
        self.send_leases(at_us, number)
    }

    fn lease_lost(&mut self, at_us: i64, number: usize, life: u32, batch: &Batch) -> Result<()> {
        let node = self.node(number)?;
        if node.life != life || !node.is_up {
            return Ok(());
        }
        node.is_leasing = false;
        for (meters, _) in &batch.askers {
            meters.fail();
        }
        let mut given_up = 0;
        for ask in &batch.asks {
            let waiting = node.waiting.remove(&key_of(&ask.meter_id)?).unwrap_or_default();
            given_up += u64::try_from(waiting.len())?;
        }
        self.record.unavailable += given_up;
        self.send_leases(at_us, number)
    }

    fn serve_waiting(
        &mut self,
        at_us: i64,
        number: usize,
        key: u32,
        meters: &Arc<Meters>,
    ) -> Result<()> {
        let Some(waiting) = self.node(number)?.waiting.remove(&key) else {
            return Ok(());
        };
        let mut still = Vec::new();
        for waiting in waiting {
            if at_us - waiting.since_us > LEASE_WAIT_US {
                self.record.unavailable += 1;
                continue;
            }
            self.record.waited_us_max = self.record.waited_us_max.max(at_us - waiting.since_us);
            still.extend(spend(&mut self.record, meters, key, waiting));
        }
        if !still.is_empty() {
            self.node(number)?.waiting.insert(key, still);
        }
        Ok(())
    }

    fn fault(&mut self, at_us: i64) -> Result<()> {
        self.queue.plan(at_us + self.plan.fault_every_us, Event::Fault);
        let number = usize::try_from(self.random.below(self.plan.nodes))?;
        let for_us = self.random.between(SECOND_US, 20 * SECOND_US);
        let kind = self.random.below(5);
        let step_us = self.random.between(-90 * SECOND_US, 90 * SECOND_US);
        let node = self.node(number)?;
        if !node.is_up || node.is_cut || node.paused_until_us > at_us {
            return Ok(());
        }
        match kind {
            0 | 1 => {
                node.is_up = false;
                self.record.faults.crashes += 1;
                self.stop(at_us, number, kind == 1)?;
                self.queue.plan(at_us + for_us, Event::Restart { node: number });
            }
            2 => {
                // From the database alone, or from everything.
                (node.is_cut, node.is_alone) = (true, step_us > 0);
                self.record.faults.cuts += 1;
                self.queue.plan(at_us + for_us, Event::Reconnect { node: number });
            }
            3 => {
                node.paused_until_us = at_us + for_us;
                self.record.faults.pauses += 1;
            }
            _ => {
                node.clocks.wall_off_us += step_us;
                self.record.faults.steps += 1;
            }
        }
        Ok(())
    }

    /// Ends a node: in an orderly stop its unused leases are returned, otherwise they are lost.
    fn stop(&mut self, at_us: i64, number: usize, in_order: bool) -> Result<()> {
        let node = self.node(number)?;
        let life = node.life;
        let meters = node.take_meters();
        let waiting: usize = node.waiting.drain().map(|(_, waiting)| waiting.len()).sum();
        self.record.unavailable += u64::try_from(waiting)?;
        let mut unspent: Vec<_> = meters.values().flat_map(|meters| meters.close()).collect();
        // Maps have no order, and the run must be reproducible.
        unspent.sort_by(|a, b| (&a.meter_id, a.start_ms).cmp(&(&b.meter_id, b.start_ms)));
        if in_order {
            self.record.faults.orderly += 1;
            self.database.forget((number, life));
            return self.database.release(at_us, &unspent);
        }
        for lease in unspent {
            let place = (key_of(&lease.meter_id)?, lease.window, lease.start_ms);
            self.record.lose((number, life), place, lease.left);
        }
        Ok(())
    }

    fn restart(&mut self, at_us: i64, number: usize) -> Result<()> {
        let node = self.node(number)?;
        let life = node.life + 1;
        *node = Node::new(node.clocks, life);
        self.queue.plan(at_us, Event::Due { node: number, life });
        Ok(())
    }
}

/// Charges one request; returns the charge if it has to wait.
fn spend(
    record: &mut Record,
    meters: &Arc<Meters>,
    key: u32,
    mut waiting: Waiting,
) -> Option<Waiting> {
    let now = waiting.now;
    if !waiting.burst_paid {
        match meters.spend_burst(now) {
            Spend::Granted(standing) => {
                let end_ms = standing.burst.resets_at.as_millis();
                record.take((key, Window::Minute, end_ms - MINUTE_MS));
                waiting.burst_paid = true;
            }
            Spend::Refused(_) => {
                record.refused += 1;
                return None;
            }
            Spend::NeedsLease => return Some(waiting),
        }
    }
    match meters.spend_quota(1, now) {
        Spend::Granted(_) => {
            // Days and months are entered together, so the day determines the month.
            let day_ms = meters.day(now).resets_at.as_millis() - DAY_MS;
            record.take((key, Window::Day, day_ms));
            record.take((key, Window::Month, month_ms(day_ms)));
            record.granted += 1;
            None
        }
        Spend::Refused(_) => {
            record.refused += 1;
            None
        }
        Spend::NeedsLease => Some(waiting),
    }
}

/// Clocks of a machine within normal bounds: half a second of offset, and 100 parts in a million.
pub(super) fn clocks(random: &mut Random) -> Clocks {
    Clocks { wall_off_us: random.between(-500_000, 500_000), ppm: random.between(-100, 100) }
}

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
/// Starts of the run's two months: November and December 2026.
const MONTHS_MS: [i64; 2] = [1_793_491_200_000, 1_796_083_200_000];

fn starts(now: Timestamp) -> [(Window, i64); 3] {
    let floor = |length_ms| now.as_millis().div_euclid(length_ms) * length_ms;
    [
        (Window::Minute, floor(MINUTE_MS)),
        (Window::Day, floor(DAY_MS)),
        (Window::Month, month_ms(now.as_millis())),
    ]
}

/// Start of the month that contains an instant.
fn month_ms(at_ms: i64) -> i64 {
    let [november, december] = MONTHS_MS;
    if at_ms < december { november } else { december }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_months_are_the_calendars() {
        let at = |text| Timestamp::parse(text).unwrap();
        assert_eq!(BEGAN, at("2026-11-30T23:58:30Z"));
        let starts_ms =
            ["2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"].map(|text| at(text).as_millis());
        assert_eq!(MONTHS_MS, starts_ms);
        let now = at("2026-12-01T00:00:59Z");
        let day_ms = at("2026-12-01T00:00:00Z").as_millis();
        assert_eq!(starts(now).map(|(_, start_ms)| start_ms), [day_ms; 3]);
        assert_eq!(month_ms(day_ms - 1), MONTHS_MS[0]);
    }
}
