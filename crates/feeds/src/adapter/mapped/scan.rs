//! Splits the texts of a mapping into parts; quoted or bracketed text is never split.

/// The parts of a text between separators that are outside of quotes and brackets.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for at in outside(text) {
        if text.get(at..).is_some_and(|rest| rest.starts_with(separator)) {
            parts.push(text.get(from..at).unwrap_or_default());
            from = at + separator.len_utf8();
        }
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts
}

/// The first of the words that is outside of quotes and brackets, with the text before and after it.
pub(super) fn split_at_word<'t>(
    text: &'t str,
    words: &[&'static str],
) -> Option<(&'t str, &'static str, &'t str)> {
    outside(text).find_map(|at| {
        let rest = text.get(at..)?;
        let word = words.iter().find(|word| rest.starts_with(**word))?;
        Some((text.get(..at)?, *word, rest.get(word.len()..)?))
    })
}

/// Position of the bracket that closes the one at the start of the text.
pub(super) fn closing(text: &str) -> Option<usize> {
    // The first offset outside of the brackets is just past the closing one.
    outside(text).find(|at| *at > 0).map(|at| at - 1).or_else(|| {
        let last = text.len().checked_sub(1)?;
        let balanced = Depth::default().run(text).is_outside();
        (balanced && last > 0).then_some(last)
    })
}

#[derive(Default)]
struct Depth {
    brackets: u32,
    quoted: bool,
    before: Option<char>,
}

impl Depth {
    /// Processes the next character. A quote opens only at the start of a text, so that names may have an apostrophe.
    fn take(&mut self, c: char) {
        match c {
            '\'' if self.quoted => self.quoted = false,
            '\'' if self.before.is_none_or(|c| " (,=|{[".contains(c)) => self.quoted = true,
            // A doubled quote inside a quoted text.
            '\'' if self.before == Some('\'') => self.quoted = true,
            '(' | '[' | '{' if !self.quoted => self.brackets += 1,
            ')' | ']' | '}' if !self.quoted => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.before = Some(c);
    }

    fn is_outside(&self) -> bool {
        self.brackets == 0 && !self.quoted
    }

    fn run(mut self, text: &str) -> Self {
        text.chars().for_each(|c| self.take(c));
        self
    }
}

/// Offsets of the characters that are outside of quotes and brackets.
fn outside(text: &str) -> impl Iterator<Item = usize> {
    let mut depth = Depth::default();
    text.char_indices().filter_map(move |(at, c)| {
        let outside = depth.is_outside();
        depth.take(c);
        outside.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_brackets_hold_together() {
        assert_eq!(split("a | regex('x|y') | trim", '|'), ["a ", " regex('x|y') ", " trim"]);
        assert_eq!(split("a[b='|'] | c", '|'), ["a[b='|'] ", " c"]);
        assert_eq!(split("O'Neill | x", '|'), ["O'Neill ", " x"]);
        assert_eq!(split("'it''s | so',2", ','), ["'it''s | so'", "2"]);
        let words = [" = ", " != "];
        assert_eq!(split_at_word("a[b = c] != x = y", &words), Some(("a[b = c]", " != ", "x = y")));
        assert_eq!(split_at_word("a=b", &words), None);
        assert_eq!(closing("{a[b=c]}/x"), Some(7));
        assert_eq!(closing("{a}"), Some(2));
        assert_eq!(closing("{a"), None);
    }
}
