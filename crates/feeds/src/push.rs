//! The parser of pushes: converts a body of NDJSON lines to [`FeedMessage`]s, and back.
//!
//! It knows only the catalogue and the current line: whether a `ref` is known, a market belongs to the event's sport
//! or a `ts` is ahead of the clock is checked by the code that has the book and the clock. Prices and points are
//! taken from the text of the JSON number, never through floating point (D6). No input may cause a panic or an
//! allocation of more than a small multiple of the line.

use domain::catalogue::{BookmakerId, Catalogue};
use domain::message::{Body, FeedMessage, Reject, RejectCode};

mod field;
mod invisible;
mod object;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use invisible::find_invisible;
pub use write::write_line;

/// Maximum length of a line, in bytes. A market of 512 outcomes with the longest names takes about a tenth of it.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Parses one line of the body as a message of a feed. `bound` is the bookmaker of the feed's token, if it has one.
///
/// # Errors
/// The line is too long, not a JSON object, not a message of the contract, or names a sport, bookmaker or market that
/// the catalogue does not have.
pub fn parse_line(
    line: &[u8],
    catalogue: &Catalogue,
    bound: Option<BookmakerId>,
) -> Result<FeedMessage, Reject> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Reject::new(
            RejectCode::TooLarge,
            format!("the line has {} bytes; at most {LINE_BYTES_MAX} are taken", line.len()),
        ));
    }
    let text = std::str::from_utf8(line).map_err(|error| {
        Reject::new(
            RejectCode::InvalidJson,
            format!("not UTF-8 after byte {}", error.valid_up_to()),
        )
    })?;
    let message = object::parse_message(text)?;
    read::Reader { catalogue, bound }.message(&message)
}

/// The rights of a feed's token.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// The only bookmaker whose prices it may send; `None`: any.
    pub bookmaker: Option<BookmakerId>,
    /// True if it may report scores.
    pub scores: bool,
}

impl Rights {
    /// Reads one line of a body as a message that the feed may send.
    ///
    /// # Errors
    /// As [`parse_line`], or it is a score and the feed may report none.
    pub fn parse(self, line: &[u8], catalogue: &Catalogue) -> Result<FeedMessage, Reject> {
        let message = parse_line(line, catalogue, self.bookmaker)?;
        if !self.scores && matches!(message.body, Body::Score(_)) {
            return Err(Reject::new(
                RejectCode::WrongBookmaker,
                "this token is bound to a bookmaker and may not report scores (`feeds create --scores`)",
            ));
        }
        Ok(message)
    }
}

/// The lines of a body with their numbers, counted from 1.
///
/// Blank lines are counted but not returned; a `\r` before the line's end and a byte order mark before the first line
/// are dropped; the last line needs no line end.
pub fn split_lines(body: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    number_lines(body.get(mark_bytes(body)..).unwrap_or_default(), 1)
}

/// Length of the byte order mark at the start of a body.
pub fn mark_bytes(body: &[u8]) -> usize {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if body.starts_with(MARK) { MARK.len() } else { 0 }
}

/// The lines of a part of a body, as [`split_lines`] returns them; `first` is the number of its first line.
pub fn number_lines(part: &[u8], first: usize) -> impl Iterator<Item = (usize, &[u8])> {
    part.split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .zip(first..)
        .filter(|(line, _)| !line.trim_ascii().is_empty())
        .map(|(line, number)| (number, line))
}

/// True if a body consists of text lines, valid or not: no NUL anywhere, and at least one line is UTF-8.
///
/// Lines in another encoding are single bad lines, which do not affect the others. An empty body is text with no
/// lines.
pub fn looks_like_text(body: &[u8]) -> bool {
    if body.contains(&0) {
        return false;
    }
    let mut lines = split_lines(body).peekable();
    lines.peek().is_none() || lines.any(|(_, line)| std::str::from_utf8(line).is_ok())
}
