//! Pieces of a push, of whole lines: each is parsed, stored and acknowledged at once.

use bytes::Bytes;
use domain::catalogue::Catalogue;
use feeds::push::{self, Rights};

use crate::batch::Lines;

/// Maximum number of lines in a piece: with a message for each rejected line, its receipt also fits into a message
/// between nodes.
pub(crate) const PIECE_LINES_MAX: usize = 1000;
/// Maximum size of a piece in bytes, unless a single line has more.
pub(crate) const PIECE_BYTES_MAX: usize = 256 * 1024;

/// Some lines of a push as they were sent.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The number of its first line.
    first: usize,
    pub line_count: usize,
    pub text: Bytes,
}

impl Piece {
    /// Splits a whole body. There is always one piece, because an empty push gets a receipt too.
    pub fn all(body: &Bytes) -> Vec<Self> {
        let mut pieces = Vec::new();
        let (mut start, mut first) = (push::mark_bytes(body), 1);
        let (mut end, mut count) = (start, 0);
        let mut cut = |start: &mut usize, first: &mut usize, end: usize, count: &mut usize| {
            pieces.push(Self { first: *first, line_count: *count, text: body.slice(*start..end) });
            *first += *count;
            (*start, *count) = (end, 0);
        };
        for line in body.get(start..).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            let full = count >= PIECE_LINES_MAX || end - start + line.len() > PIECE_BYTES_MAX;
            if full && count > 0 {
                cut(&mut start, &mut first, end, &mut count);
            }
            end += line.len();
            count += 1;
        }
        cut(&mut start, &mut first, end, &mut count);
        pieces
    }

    /// The lines with their numbers in the body, without blank ones.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &[u8])> {
        push::number_lines(&self.text, self.first)
    }

    pub fn parse(&self, catalogue: &Catalogue, rights: Rights) -> Lines {
        self.lines().map(|(number, line)| (number, rights.parse(line, catalogue))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(body: &str) -> Vec<Piece> {
        Piece::all(&Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn pieces_hold_every_line_once_and_in_order_under_its_number() {
        for body in ["", "\n", "a", "a\n", "\u{feff}a\r\n\nb", "\n\n\u{feff}a\n"] {
            assert_eq!(pieces(body).len(), 1, "{body:?}");
        }
        let long = "x".repeat(PIECE_BYTES_MAX);
        let body = format!("{}{long}\n{long}y\n\nlast", "s\n".repeat(2 * PIECE_LINES_MAX + 1));
        let cut = pieces(&body);
        let counts: Vec<usize> = cut.iter().map(|piece| piece.line_count).collect();
        assert_eq!(counts, [1000, 1000, 1, 1, 1, 2]);
        let whole: Vec<(usize, &[u8])> = push::split_lines(body.as_bytes()).collect();
        let parts: Vec<(usize, &[u8])> = cut.iter().flat_map(Piece::lines).collect();
        assert_eq!(parts, whole);
    }

    #[test]
    fn only_the_first_line_of_a_body_may_begin_with_a_mark() {
        let body = format!("{}\u{feff}{{}}\n", "\u{feff}a\n".repeat(PIECE_LINES_MAX));
        let cut = pieces(&body);
        let last: Vec<(usize, &[u8])> = cut.last().unwrap().lines().collect();
        assert_eq!(last, [(1001, "\u{feff}{}".as_bytes())]);
        assert_eq!(cut[0].lines().next().unwrap().1, b"a");
    }
}
