//! One tree for JSON, XML and CSV, which paths walk.
//!
//! Nodes are in the order of the text, children directly after their parent, so that a subtree is a range. A node
//! takes 20 bytes and refers to the text; only text with escapes is copied. Keys that a mapping uses are numbers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::key::{read_key, read_name};
use crate::adapter::Drift;

/// Maximum number of values in one input. A body of 32 MiB has about a million; the tree then takes as much memory as
/// the body.
pub(super) const NODES_MAX: usize = 1_500_000;
/// Maximum nesting. Real feeds have ten levels.
pub(super) const DEPTH_MAX: usize = 64;

/// The position of a node in its document.
pub(super) type NodeId = u32;

pub(super) const ROOT: NodeId = 0;

/// Marks a key that no path uses; the other bits are the position of its text.
const OTHER: u32 = 1 << 31;
/// Marks a text that is in `extra`, not in the input.
const COPIED: u32 = 1 << 28;
const LEN: u32 = COPIED - 1;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A JSON object or a CSV row.
    Object,
    /// An XML element with its own text.
    Element,
    List,
    /// A text, number, true, false, attribute or field.
    Text,
    Null,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u32,
    parent: u32,
    /// The first node after its subtree.
    end: u32,
    start: u32,
    /// Length of the text, [`COPIED`], and the kind in the top three bits.
    len: u32,
}

/// The names that paths use, numbered.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    numbers: HashMap<Box<str>, u32, BuildHasherDefault<KeyHasher>>,
    names: Vec<Box<str>>,
}

/// Hashes keys. Every key of an input is looked up in a table that only the mapping fills, so no input can slow it
/// down, and a hash that is fast for short texts is enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let (words, rest) = bytes.as_chunks::<8>();
        let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        for word in words.iter().map(|word| u64::from_le_bytes(*word)).chain([rest]) {
            self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(FACTOR);
        }
    }

    // Called at the end of every text; ignored, as few names differ only in length.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

impl Symbols {
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(OTHER - 1);
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    fn name(&self, number: u32) -> &str {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.names.get(index).map_or("", |name| name)
    }
}

/// A parsed input.
#[derive(Debug)]
pub(super) struct Document<'a> {
    text: Cow<'a, str>,
    extra: String,
    nodes: Vec<Node>,
    symbols: &'a Symbols,
    /// Column names of CSV.
    columns: Vec<Box<str>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(text: Cow<'a, str>, symbols: &'a Symbols) -> Self {
        Self { text, extra: String::new(), nodes: Vec::new(), symbols, columns: Vec::new() }
    }

    /// Takes the input out for a parser, which adds nodes while reading it.
    pub(super) fn take_source(&mut self) -> Cow<'a, str> {
        std::mem::take(&mut self.text)
    }

    pub(super) fn put_source(&mut self, text: Cow<'a, str>) {
        self.text = text;
    }

    pub(super) fn set_columns(&mut self, columns: Vec<Box<str>>) {
        self.columns = columns;
    }

    /// The number of a key: that of its name if a path uses it, otherwise the position of its text.
    pub(super) fn key(&self, name: &str, offset: usize) -> u32 {
        self.symbols.find(name).unwrap_or_else(|| OTHER | to_u32(offset))
    }

    /// The key of an XML attribute.
    pub(super) fn attribute_key(&self, name: &str, offset: usize) -> u32 {
        let mut buffer = [b'@'; 64];
        let short =
            buffer.get_mut(1..=name.len()).map(|rest| rest.copy_from_slice(name.as_bytes()));
        let written = short.and_then(|()| buffer.get(..=name.len()));
        let symbol = match written.and_then(|bytes| std::str::from_utf8(bytes).ok()) {
            Some(name) => self.symbols.find(name),
            None => self.symbols.find(&format!("@{name}")),
        };
        symbol.unwrap_or_else(|| OTHER | to_u32(offset))
    }

    /// Adds a node without text.
    ///
    /// # Errors
    /// The input has too many values.
    pub(super) fn push(&mut self, key: u32, parent: NodeId, kind: Kind) -> Result<NodeId, Drift> {
        if self.nodes.len() >= NODES_MAX {
            return Err(Drift::new("/", format!("more than {NODES_MAX} values")));
        }
        let id = to_u32(self.nodes.len());
        let len = kind_bits(kind);
        self.nodes.push(Node { key, parent, end: id + 1, start: 0, len });
        Ok(id)
    }

    /// Sets a part of the input as the node's text.
    pub(super) fn set_text(&mut self, id: NodeId, start: usize, len: usize) {
        if let Some(node) = self.nodes.get_mut(index(id)) {
            node.start = to_u32(start);
            node.len = node.len & !(LEN | COPIED) | to_u32(len) & LEN;
        }
    }

    /// Sets a copied text as the node's text.
    pub(super) fn set_copied(&mut self, id: NodeId, text: &str) {
        let start = to_u32(self.extra.len());
        self.extra.push_str(text);
        if let Some(node) = self.nodes.get_mut(index(id)) {
            node.start = start;
            node.len = node.len & !LEN | COPIED | to_u32(text.len()) & LEN;
        }
    }

    /// Ends the node's subtree at the newest node.
    pub(super) fn close(&mut self, id: NodeId) {
        let end = to_u32(self.nodes.len());
        if let Some(node) = self.nodes.get_mut(index(id)) {
            node.end = end;
        }
    }

    pub(super) fn kind(&self, id: NodeId) -> Kind {
        match self.nodes.get(index(id)).map(|node| node.len >> 29) {
            Some(0) => Kind::Object,
            Some(1) => Kind::Element,
            Some(2) => Kind::List,
            Some(3) => Kind::Text,
            _ => Kind::Null,
        }
    }

    /// The node's own text: of a value, or of an element without its children.
    pub(super) fn text(&self, id: NodeId) -> &str {
        let Some(node) = self.nodes.get(index(id)) else {
            return "";
        };
        let (start, len) = (index(node.start), index(node.len & LEN));
        let from = if node.len & COPIED == 0 { &*self.text } else { &*self.extra };
        from.get(start..start + len).unwrap_or_default()
    }

    pub(super) fn children(&self, id: NodeId) -> Children<'_> {
        let end = self.nodes.get(index(id)).map_or(0, |node| node.end);
        Children { nodes: &self.nodes, next: id + 1, end }
    }

    pub(super) fn has_key(&self, id: NodeId, symbol: u32) -> bool {
        self.nodes.get(index(id)).is_some_and(|node| node.key == symbol)
    }

    /// True if the node is an XML attribute; `*` skips those.
    pub(super) fn is_attribute(&self, id: NodeId) -> bool {
        self.nodes.get(index(id)).is_some_and(|node| {
            let parent = self.kind(node.parent) == Kind::Element;
            parent && id != ROOT && self.kind(id) == Kind::Text
        })
    }

    /// The nearest enclosing object or element; lists are skipped.
    pub(super) fn parent(&self, id: NodeId) -> Option<NodeId> {
        let mut id = id;
        loop {
            let parent = self.nodes.get(index(id)).filter(|_| id != ROOT)?.parent;
            if self.kind(parent) != Kind::List || parent == ROOT {
                return Some(parent);
            }
            id = parent;
        }
    }

    /// The key of the node, or of the list that contains it.
    pub(super) fn key_of(&self, id: NodeId) -> Option<Cow<'_, str>> {
        let mut node = self.nodes.get(index(id))?;
        while self.kind(node.parent) == Kind::List && node.parent != ROOT {
            node = self.nodes.get(index(node.parent))?;
        }
        if node.key & OTHER == 0 {
            return Some(Cow::Borrowed(self.symbols.name(node.key).trim_start_matches('@')));
        }
        let at = index(node.key & !OTHER);
        if let Some(column) = self.columns.get(at).filter(|_| !self.columns.is_empty()) {
            return Some(Cow::Borrowed(column));
        }
        let rest = self.text.get(at..)?;
        if let Some(quoted) = rest.strip_prefix('"') {
            return read_key(quoted);
        }
        Some(Cow::Borrowed(read_name(rest)))
    }
}

/// Children of a node, in order.
#[derive(Debug)]
pub(super) struct Children<'d> {
    nodes: &'d [Node],
    next: NodeId,
    end: NodeId,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let id = self.next;
        self.next = self.nodes.get(index(id))?.end;
        Some(id)
    }
}

/// The key of list items and of the root.
pub(super) const NO_KEY: u32 = OTHER | (OTHER - 1);

fn kind_bits(kind: Kind) -> u32 {
    let number = match kind {
        Kind::Object => 0,
        Kind::Element => 1,
        Kind::List => 2,
        Kind::Text => 3,
        Kind::Null => 4,
    };
    number << 29
}

fn index(id: u32) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

/// Converts a position; bodies are far below 4 GiB.
fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// An offset as line and column, for messages.
pub(super) fn position(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}")
}
