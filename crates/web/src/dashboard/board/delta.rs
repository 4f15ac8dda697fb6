//! The difference between two publications of a screen: changed cells, and events that appeared or disappeared. If the
//! columns differ there is no delta and the client reloads the page.

use askama::Template;
use serde_json::{Value, json};

use crate::dashboard::board::screen::{Cell, Fixture, Row, Screen};

/// One event's part of the table, rendered as in the page.
#[derive(Template)]
#[template(path = "board_event.html")]
struct EventPart<'a> {
    own: &'a Fixture,
    columns: usize,
    query: &'a str,
    linked: bool,
}

/// The difference as one line of JSON; `None` if the client must reload the page.
pub(crate) fn between(old: &Screen, new: &Screen, query: &str, linked: bool) -> Option<String> {
    let same_columns = old.columns.len() == new.columns.len()
        && old.columns.iter().zip(&new.columns).all(|(one, other)| one.id == other.id);
    if !same_columns || old.fixtures.is_empty() != new.fixtures.is_empty() {
        return None;
    }
    let mut delta = Delta::default();
    for (at, (was, is)) in old.columns.iter().zip(&new.columns).enumerate() {
        if was.late != is.late {
            delta.heads.push(json!([at, is.late]));
        }
    }
    for is in &new.fixtures {
        match old.fixtures.iter().find(|was| was.id == is.id) {
            Some(was) if has_same_rows(was, is) => delta.compare(was, is),
            Some(_) | None => {
                let part = EventPart { own: is, columns: new.columns.len(), query, linked };
                delta.events.push(json!([is.id, part.render().ok()?]));
            }
        }
    }
    let ids = |screen: &Screen| -> Vec<String> {
        screen.fixtures.iter().map(|own| own.id.clone()).collect()
    };
    let (was, is) = (ids(old), ids(new));
    let order = if was == is { Value::Null } else { json!(is) };
    let whole = json!({
        "cut": new.cut.to_string(),
        "heads": delta.heads,
        "cells": delta.cells,
        "best": delta.best,
        "sparks": delta.sparks,
        "scores": delta.scores,
        "events": delta.events,
        "order": order,
    });
    Some(whole.to_string())
}

#[derive(Default)]
struct Delta {
    heads: Vec<Value>,
    cells: Vec<Value>,
    best: Vec<Value>,
    sparks: Vec<Value>,
    scores: Vec<Value>,
    events: Vec<Value>,
}

impl Delta {
    fn compare(&mut self, was: &Fixture, is: &Fixture) {
        if was.sparkline != is.sparkline {
            self.sparks.push(json!([is.id, 0, is.sparkline]));
        }
        if was.score != is.score {
            self.scores.push(json!([is.id, is.score]));
        }
        for (at, (old, new)) in was.rows.iter().zip(&is.rows).enumerate() {
            self.compare_rows(&is.id, at, old, new);
        }
    }

    fn compare_rows(&mut self, event: &str, at: usize, was: &Row, is: &Row) {
        if was.best != is.best {
            let best: Vec<_> = is.best.iter().map(|own| [&own.price, &own.who]).collect();
            self.best.push(json!([event, at, best]));
        }
        if was.sparkline != is.sparkline {
            self.sparks.push(json!([event, at, is.sparkline]));
        }
        for (column, (old, new)) in was.cells.iter().zip(&is.cells).enumerate() {
            if old != new {
                let (class, left, text) = (new.class(), new.left(), new.text());
                self.cells.push(json!([event, at, column, class, left, text, move_of(old, new)]));
            }
        }
    }
}

/// True if the outcomes, their order and the heading above them are the same.
fn has_same_rows(was: &Fixture, is: &Fixture) -> bool {
    let head = |own: &Fixture| {
        (own.title.clone(), own.competition.clone(), own.live, own.starts.clone(), own.more)
    };
    let rows = |own: &Fixture| -> Vec<(String, String, bool)> {
        own.rows.iter().map(|row| (row.name.clone(), row.line.clone(), row.leads)).collect()
    };
    head(was) == head(is)
        && rows(was) == rows(is)
        && was.rows.iter().zip(&is.rows).all(|(one, other)| one.outcome == other.outcome)
}

/// Whether a price went up or down.
fn move_of(was: &Cell, is: &Cell) -> &'static str {
    match (was, is) {
        (Cell::Priced(was), Cell::Priced(is)) if is.price > was.price => "up",
        (Cell::Priced(was), Cell::Priced(is)) if is.price < was.price => "down",
        (Cell::Priced(_) | Cell::Missing(_), _) => "",
    }
}

impl Cell {
    /// CSS classes of the cell.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::Missing(missing) if missing.suspended => "p w x",
            Self::Missing(_) => "p w",
            Self::Priced(priced) if !priced.age.is_empty() => "p s",
            Self::Priced(priced) if priced.best => "p b",
            Self::Priced(_) => "p",
        }
    }

    /// Text before the price: its age if the price is stale.
    pub(crate) fn left(&self) -> &str {
        match self {
            Self::Missing(_) => "",
            Self::Priced(priced) => &priced.age,
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Missing(missing) => &missing.why,
            Self::Priced(priced) => &priced.text,
        }
    }
}
