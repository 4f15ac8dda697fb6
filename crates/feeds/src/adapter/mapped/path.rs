//! Paths into a document (A28): parsed once, walked with a recursion no deeper than the path and the lists on its
//! way.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;

use super::document::{Document, Kind, NodeId, ROOT, Symbols};

/// Maximum number of nodes that paths may visit in one input. A body of 32 MiB takes some millions; a mapping that
/// compares every event with every market of a large file should use `join`.
const VISITS_MAX: u64 = 50_000_000;

/// Bytes of text that count as one node.
const BYTES_PER_VISIT: usize = 16;

/// A path: its start, its steps, and whether it selects the key of a node instead of its text.
#[derive(Clone, Debug)]
pub(super) struct Path {
    from_root: bool,
    steps: Vec<Step>,
    key: bool,
}

#[derive(Clone, Debug)]
struct Step {
    axis: Axis,
    selectors: Vec<Selector>,
}

#[derive(Clone, Copy, Debug)]
enum Axis {
    /// The item itself: a selector without a name before it.
    This,
    Name(u32),
    Any,
    Parent,
}

#[derive(Clone, Debug)]
enum Selector {
    Index(i64),
    Compare { path: Path, with: Operand, equal: bool },
}

#[derive(Clone, Debug)]
enum Operand {
    Text(Box<str>),
    /// A path from the current item.
    Item(Path),
}

/// The start of a path: one node, or several that form one list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'n> {
    pub(super) nodes: &'n [NodeId],
    pub(super) list: bool,
}

/// A document, with a count of the work done on it.
#[derive(Debug)]
pub(super) struct Reading<'d> {
    pub(super) document: &'d Document<'d>,
    visits: Cell<u64>,
}

type Visit<'v> = &'v mut dyn FnMut(NodeId) -> ControlFlow<()>;

impl<'d> Reading<'d> {
    pub(super) fn new(document: &'d Document<'d>) -> Self {
        Self { document, visits: Cell::new(0) }
    }

    /// True if the paths visited too many nodes; their results are then incomplete.
    pub(super) fn is_exhausted(&self) -> bool {
        self.visits.get() > VISITS_MAX
    }

    /// Counts work on a text, to bound repeated reads of long texts.
    pub(super) fn spend(&self, bytes: usize) {
        let visits = u64::try_from(bytes / BYTES_PER_VISIT).unwrap_or(u64::MAX);
        self.visits.set(self.visits.get().saturating_add(visits));
    }

    /// Counts nodes that were visited together.
    fn count(&self, nodes: usize) {
        let visits = u64::try_from(nodes).unwrap_or(u64::MAX);
        self.visits.set(self.visits.get().saturating_add(visits));
    }

    fn visit(&self) -> ControlFlow<()> {
        self.visits.set(self.visits.get() + 1);
        if self.is_exhausted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The text of the first node that the path finds, with whitespace collapsed; empty if there is none.
    pub(super) fn text(&self, path: &Path, item: Item<'_>) -> Cow<'d, str> {
        let mut text = Cow::Borrowed("");
        let _found = self.walk(path, item, item, &mut |id| {
            text = if path.key {
                self.document.key_of(id).unwrap_or_default()
            } else {
                match self.first_text(id) {
                    Some(found) => found,
                    None => return ControlFlow::Continue(()),
                }
            };
            ControlFlow::Break(())
        });
        text
    }

    /// True if the path finds something: a text other than an empty one, `false` or 0, or a node with children.
    pub(super) fn holds(&self, path: &Path, item: Item<'_>) -> bool {
        if path.key {
            return !self.text(path, item).is_empty();
        }
        let mut holds = false;
        let _first = self.walk(path, item, item, &mut |id| {
            let parts = self.document.children(id).next().is_some();
            holds = match self.document.kind(id) {
                Kind::Object | Kind::List => parts,
                Kind::Element | Kind::Text => {
                    let text = collapse(self.document.text(id));
                    if text.is_empty() { parts } else { is_true(&text) }
                }
                Kind::Null => false,
            };
            ControlFlow::Break(())
        });
        holds
    }

    /// Every node that the path finds; lists at its end are expanded once.
    pub(super) fn nodes(&self, path: &Path, item: Item<'_>) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let _all = self.walk(path, item, item, &mut |id| {
            if self.document.kind(id) == Kind::List {
                nodes.extend(self.document.children(id));
            } else {
                nodes.push(id);
            }
            ControlFlow::Continue(())
        });
        self.count(nodes.len());
        nodes
    }

    /// The text of a node, or of the first item of a list.
    fn first_text(&self, id: NodeId) -> Option<Cow<'d, str>> {
        match self.document.kind(id) {
            Kind::List => {
                let mut items = self.document.children(id);
                items.find_map(|item| self.visit().is_continue().then(|| self.first_text(item))?)
            }
            Kind::Text | Kind::Element => {
                let text = self.document.text(id);
                self.spend(text.len());
                Some(collapse(text))
            }
            Kind::Object | Kind::Null => Some(Cow::Borrowed("")),
        }
    }

    fn walk(
        &self,
        path: &Path,
        start: Item<'_>,
        current: Item<'_>,
        visit: Visit<'_>,
    ) -> ControlFlow<()> {
        if path.from_root {
            let root = Item { nodes: &[ROOT], list: false };
            return self.steps(&path.steps, root, current, visit);
        }
        self.steps(&path.steps, start, current, visit)
    }

    fn steps(
        &self,
        steps: &[Step],
        from: Item<'_>,
        current: Item<'_>,
        visit: Visit<'_>,
    ) -> ControlFlow<()> {
        let Some((step, rest)) = steps.split_first() else {
            return from.nodes.iter().try_for_each(|id| visit(*id));
        };
        // Several nodes as one list: selectors and `*` apply to the list, names to its items.
        if from.list && matches!(step.axis, Axis::This | Axis::Any) {
            let selected = self.select(&step.selectors, from.nodes.to_vec(), true, current);
            return selected.iter().try_for_each(|id| self.step_on(rest, *id, current, visit));
        }
        from.nodes.iter().try_for_each(|id| {
            if step.selectors.is_empty() {
                return self
                    .along(step.axis, *id, &mut |next| self.step_on(rest, next, current, visit));
            }
            let mut found = Vec::new();
            self.along(step.axis, *id, &mut |next| {
                found.push(next);
                ControlFlow::Continue(())
            })?;
            let selected = self.select(&step.selectors, found, false, current);
            selected.iter().try_for_each(|next| self.step_on(rest, *next, current, visit))
        })
    }

    fn step_on(
        &self,
        rest: &[Step],
        id: NodeId,
        current: Item<'_>,
        visit: Visit<'_>,
    ) -> ControlFlow<()> {
        if rest.is_empty() {
            return visit(id);
        }
        self.steps(rest, Item { nodes: &[id], list: false }, current, visit)
    }

    /// The nodes one step away.
    fn along(&self, axis: Axis, id: NodeId, visit: Visit<'_>) -> ControlFlow<()> {
        self.visit()?;
        match axis {
            Axis::This => visit(id),
            Axis::Parent => self.document.parent(id).map_or(ControlFlow::Continue(()), visit),
            Axis::Any => {
                let mut children = self.document.children(id);
                children.try_for_each(|child| {
                    self.visit()?;
                    if self.document.is_attribute(child) {
                        return ControlFlow::Continue(());
                    }
                    visit(child)
                })
            }
            Axis::Name(symbol) => {
                let list = self.document.kind(id) == Kind::List;
                let mut children = self.document.children(id);
                children.try_for_each(|child| {
                    self.visit()?;
                    if list {
                        self.along(axis, child, visit)
                    } else if self.document.has_key(child, symbol) {
                        visit(child)
                    } else {
                        ControlFlow::Continue(())
                    }
                })
            }
        }
    }

    /// Applies selectors in order. A list that stands for its items is expanded before an index or a comparison, but
    /// the result of a comparison is not expanded again.
    fn select(
        &self,
        selectors: &[Selector],
        found: Vec<NodeId>,
        opened: bool,
        current: Item<'_>,
    ) -> Vec<NodeId> {
        let (mut nodes, mut opened) = (found, opened);
        for selector in selectors {
            if !opened {
                let open = |id: NodeId| match self.document.kind(id) {
                    Kind::List => self.document.children(id).collect(),
                    Kind::Object | Kind::Element | Kind::Text | Kind::Null => vec![id],
                };
                nodes = nodes.into_iter().flat_map(open).collect();
                self.count(nodes.len());
            }
            match selector {
                Selector::Index(index) => {
                    let at = if *index < 0 {
                        i64::try_from(nodes.len()).ok().map(|len| len + index)
                    } else {
                        Some(*index)
                    };
                    let at = at.and_then(|at| usize::try_from(at).ok());
                    nodes = at.and_then(|at| nodes.get(at).copied()).into_iter().collect();
                    opened = false;
                }
                Selector::Compare { path, with, equal } => {
                    let wanted = match with {
                        Operand::Text(text) => Cow::Borrowed(&**text),
                        Operand::Item(path) => self.text(path, current),
                    };
                    nodes.retain(|id| self.has(path, *id, current, &wanted) == *equal);
                    opened = true;
                }
            }
        }
        nodes
    }

    /// True if any node that the path finds from `id` has this text.
    fn has(&self, path: &Path, id: NodeId, current: Item<'_>, wanted: &str) -> bool {
        if self.visit().is_break() {
            return false;
        }
        let start = Item { nodes: &[id], list: false };
        let found = self.walk(path, start, current, &mut |id| {
            let equal = if path.key {
                self.document.key_of(id).is_some_and(|key| key == wanted)
            } else {
                self.is_text(id, wanted)
            };
            if equal { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found.is_break()
    }

    fn is_text(&self, id: NodeId, wanted: &str) -> bool {
        match self.document.kind(id) {
            Kind::List => self
                .document
                .children(id)
                .any(|item| self.visit().is_continue() && self.is_text(item, wanted)),
            Kind::Text | Kind::Element => {
                let text = self.document.text(id);
                self.spend(text.len());
                text == wanted || collapse(text) == wanted
            }
            Kind::Object | Kind::Null => wanted.is_empty(),
        }
    }
}

/// True for any text except an empty one, `false` and 0.
pub(super) fn is_true(text: &str) -> bool {
    !matches!(text, "" | "0") && !text.eq_ignore_ascii_case("false")
}

/// The text with every run of whitespace replaced by one space, and trimmed.
pub(super) fn collapse(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    let plain = trimmed.is_ascii()
        && !trimmed
            .bytes()
            .zip(trimmed.bytes().skip(1))
            .any(|(a, b)| a.is_ascii_whitespace() && (a != b' ' || b.is_ascii_whitespace()));
    if plain {
        return Cow::Borrowed(trimmed);
    }
    Cow::Owned(trimmed.split_whitespace().collect::<Vec<_>>().join(" "))
}

impl Path {
    /// True if it is the same for every item: it starts at the root and does not refer to the current item.
    pub(super) fn is_constant(&self) -> bool {
        self.from_root && !self.refers_to_item()
    }

    fn refers_to_item(&self) -> bool {
        let selectors = self.steps.iter().flat_map(|step| &step.selectors);
        selectors.into_iter().any(|selector| match selector {
            Selector::Index(_) => false,
            Selector::Compare { path, with, .. } => {
                matches!(with, Operand::Item(_)) || path.refers_to_item()
            }
        })
    }

    /// The item itself.
    pub(super) fn here() -> Self {
        Self { from_root: false, steps: Vec::new(), key: false }
    }

    /// Reads a path.
    ///
    /// # Errors
    /// The fault, as a sentence.
    pub(super) fn parse(text: &str, symbols: &mut Symbols) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed == "." {
            return Ok(Self::here());
        }
        let mut parser = Parser { text: trimmed, rest: trimmed, symbols };
        let from_root = parser.take('/');
        let mut path = Self { from_root, steps: Vec::new(), key: false };
        if parser.rest.is_empty() && !from_root {
            return Err("an empty path".to_owned());
        }
        while !parser.rest.is_empty() {
            if path.key {
                return Err(format!("`{trimmed}`: nothing can follow `~`"));
            }
            if parser.take('~') {
                path.key = true;
            } else if let Some(step) = parser.step()? {
                path.steps.push(step);
            }
            if !parser.rest.is_empty() && !parser.take('.') {
                return Err(format!("`{trimmed}`: expected `.` before `{}`", parser.rest));
            }
        }
        Ok(path)
    }
}

struct Parser<'t, 's> {
    text: &'t str,
    rest: &'t str,
    symbols: &'s mut Symbols,
}

impl Parser<'_, '_> {
    fn take(&mut self, character: char) -> bool {
        let rest = self.rest.strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads one step; `None` for `#`, the text of the current node.
    fn step(&mut self) -> Result<Option<Step>, String> {
        let quoted = self.rest.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let end = self.rest.find(['.', '[']).unwrap_or(self.rest.len());
        let (name, rest) = quoted.unwrap_or_else(|| self.rest.split_at(end));
        self.rest = rest;
        let axis = match name.trim() {
            _ if quoted.is_some() => Axis::Name(self.symbols.intern(name)),
            "" if rest.starts_with('[') => Axis::This,
            "" => return Err(format!("`{}`: a step is missing", self.text)),
            "#" if !rest.starts_with('[') => return Ok(None),
            "*" => Axis::Any,
            "^" => Axis::Parent,
            name => {
                if let Some(bad) = name.chars().find(|c| "{}|'\"()]=~/^".contains(*c)) {
                    return Err(format!("`{}`: `{bad}` cannot be in a name", self.text));
                }
                Axis::Name(self.symbols.intern(name))
            }
        };
        let mut selectors = Vec::new();
        while self.rest.starts_with('[') {
            selectors.push(self.selector()?);
        }
        Ok(Some(Step { axis, selectors }))
    }

    fn selector(&mut self) -> Result<Selector, String> {
        let fault = |reason: &str| format!("`{}`: {reason}", self.text);
        let end = closing_bracket(self.rest).ok_or_else(|| fault("`[` without `]`"))?;
        let inner = self.rest.get(1..end).unwrap_or_default().trim();
        let rest = self.rest.get(end + 1..).unwrap_or_default();
        if let Ok(index) = inner.parse::<i64>() {
            self.rest = rest;
            return Ok(Selector::Index(index));
        }
        let at = comparison(inner).ok_or_else(|| {
            fault(&format!(
                "`[{inner}]` is neither a number nor `[path=value]` nor `[path!=value]`"
            ))
        })?;
        let (left, right) = inner.split_at(at);
        let (equal, right) = match right.strip_prefix("!=") {
            Some(right) => (false, right),
            None => (true, right.strip_prefix('=').unwrap_or(right)),
        };
        let path = match left.trim() {
            "" => return Err(fault("a path is missing before `=`")),
            left => Path::parse(left, self.symbols)?,
        };
        let right = right.trim();
        let with = match right.strip_prefix('{').and_then(|right| right.strip_suffix('}')) {
            Some(inner) => Operand::Item(Path::parse(inner, self.symbols)?),
            None => Operand::Text(unquote(right).into()),
        };
        self.rest = rest;
        Ok(Selector::Compare { path, with, equal })
    }
}

/// The content of a quoted text, or the text itself.
pub(super) fn unquote(text: &str) -> Cow<'_, str> {
    let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    match inner {
        Some(inner) if inner.contains("''") => Cow::Owned(inner.replace("''", "'")),
        Some(inner) => Cow::Borrowed(inner),
        None => Cow::Borrowed(text),
    }
}

/// Position of the bracket that closes the one at the start.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0_u32, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    // An apostrophe in a bare value (`[name=O'Neill]`) is not a quote.
    text.find(']')
}

/// Position of `=` or `!=` outside of brackets and quotes.
fn comparison(inner: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut before = None;
    for (at, c) in inner.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => return Some(before.unwrap_or(at)),
            _ => {}
        }
        before = (c == '!').then_some(at);
    }
    None
}
