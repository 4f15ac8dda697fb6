//! One line of the stream: `mcm`, `connection` or `status`. Buffers are reused from line to line.

use std::borrow::Cow;

use domain::time::Timestamp;

use super::Control;
use super::cache::{Definition, Update, read_definition, read_handicap};
use crate::adapter::pull::{Pull, UNIT};

/// Maximum number of level changes in one line.
const UPDATES_MAX: usize = 1_000_000;

/// The markets that a line changes, and the changes of their ladders.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) changes: Vec<Change>,
    updates: Vec<Update>,
}

/// One entry of `mc`.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Start and end of its id in the line.
    id: (usize, usize),
    /// True if it replaces the known ladders.
    pub(super) image: bool,
    pub(super) definition: Option<Definition>,
    updates: (usize, usize),
}

impl Change {
    /// The market's id in the line that this was read from.
    pub(super) fn id<'l>(&self, line: &'l str) -> Option<&'l str> {
        line.get(self.id.0..self.id.1)
    }
}

/// The fields of a line other than markets.
#[derive(Debug, Default)]
pub(super) struct Head<'l> {
    pub(super) control: Option<Control>,
    pub(super) initial_clk: Option<Cow<'l, str>>,
    pub(super) clk: Option<Cow<'l, str>>,
    pub(super) published: Option<Timestamp>,
    /// True if it is part of the image of the whole subscription.
    pub(super) image: bool,
    /// True if more segments of that image follow.
    pub(super) more: bool,
    /// True if the exchange reports that its data is late (status 503).
    pub(super) late: bool,
}

#[derive(Default)]
struct Status {
    id: Option<u64>,
    success: bool,
    error: String,
    closed: bool,
}

impl Line {
    /// Reads a line into this.
    ///
    /// # Errors
    /// It is not a line of the stream; the value is the offset of the fault.
    pub(super) fn read<'l>(&mut self, line: &'l str) -> Result<Head<'l>, usize> {
        self.changes.clear();
        self.updates.clear();
        let mut pull = Pull::new(line);
        let head = self.fields(&mut pull).filter(|_| pull.is_done());
        head.ok_or(pull.offset())
    }

    pub(super) fn updates_of(&self, change: &Change) -> &[Update] {
        self.updates.get(change.updates.0..change.updates.1).unwrap_or_default()
    }

    fn fields<'l>(&mut self, pull: &mut Pull<'l>) -> Option<Head<'l>> {
        let mut head = Head::default();
        let mut status = Status::default();
        let mut op: &[u8] = b"";
        let mut segment_ends = true;
        pull.object(|pull, key| {
            match key {
                b"op" => {
                    op = match &*pull.text()? {
                        "mcm" => b"mcm",
                        "status" => b"status",
                        "connection" => b"connection",
                        _ => b"other",
                    }
                }
                b"id" => status.id = pull.text_or_integer()?,
                b"clk" => head.clk = pull.text_or_null()?,
                b"initialClk" => head.initial_clk = pull.text_or_null()?,
                b"pt" => {
                    let ms = i64::try_from(pull.integer()?).ok()?;
                    head.published = Some(Timestamp::from_millis(ms));
                }
                b"ct" => head.image = pull.text_or_null()?.as_deref() == Some("SUB_IMAGE"),
                b"segmentType" => {
                    let kind = pull.text_or_null()?;
                    segment_ends = !matches!(kind.as_deref(), Some("SEG_START" | "SEG"));
                }
                b"status" => head.late = pull.text_or_integer()? == Some(503),
                b"mc" => self.markets(pull)?,
                b"statusCode" => status.success = &*pull.text()? == "SUCCESS",
                b"errorCode" => {
                    let code = pull.text_or_null()?.unwrap_or_default();
                    status.error = code.chars().take(80).collect();
                }
                b"connectionClosed" => status.closed = pull.flag()?,
                _ => pull.skip()?,
            }
            Some(())
        })?;
        head.more = head.image && !segment_ends;
        head.control = match op {
            b"mcm" => None,
            b"connection" => Some(Control::Connected),
            b"status" => Some(Control::Status {
                id: status.id,
                success: status.success,
                error: status.error,
                closed: status.closed,
            }),
            _ => return None,
        };
        Some(head)
    }

    fn markets(&mut self, pull: &mut Pull<'_>) -> Option<()> {
        if pull.is_null() {
            return pull.skip();
        }
        pull.list(|pull| {
            let mut change = Change::default();
            let from = self.updates.len();
            pull.object(|pull, key| {
                match key {
                    b"id" => change.id = pull.plain_text()?,
                    b"img" => change.image = pull.flag()?,
                    b"marketDefinition" => change.definition = Some(read_definition(pull)?),
                    b"rc" if pull.is_null() => pull.skip()?,
                    b"rc" => pull.list(|pull| self.runner(pull))?,
                    _ => pull.skip()?,
                }
                Some(())
            })?;
            change.updates = (from, self.updates.len());
            (change.id.0 < change.id.1 && self.updates.len() <= UPDATES_MAX).then_some(())?;
            self.changes.push(change);
            Some(())
        })
    }

    fn runner(&mut self, pull: &mut Pull<'_>) -> Option<()> {
        let from = self.updates.len();
        let mut runner = (0, 0);
        pull.object(|pull, key| {
            match key {
                b"id" => runner.0 = pull.integer()?,
                b"hc" => runner.1 = read_handicap(pull)?,
                b"batb" if !pull.is_null() => pull.list(|pull| self.level(pull, true))?,
                b"atb" if !pull.is_null() => pull.list(|pull| self.level(pull, false))?,
                _ => pull.skip()?,
            }
            Some(())
        })?;
        // The id comes last in most lines.
        let new = self.updates.get_mut(from..).unwrap_or_default();
        new.iter_mut().for_each(|update| update.runner = runner);
        Some(())
    }

    /// `[position, price, size]` or `[price, size]`.
    fn level(&mut self, pull: &mut Pull<'_>, placed: bool) -> Option<()> {
        let mut numbers = [0_u64; 3];
        let mut count = 0;
        pull.list(|pull| {
            *numbers.get_mut(count)? = pull.scaled()?;
            count += 1;
            Some(())
        })?;
        let update = match (placed, count, numbers) {
            (true, 3, [place, price, size]) => {
                Update { runner: (0, 0), place: Some(place / UNIT), price, size }
            }
            (false, 2, [price, size, _]) => Update { runner: (0, 0), place: None, price, size },
            _ => return None,
        };
        self.updates.push(update);
        Some(())
    }
}
