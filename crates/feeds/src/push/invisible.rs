//! Characters that are invisible, or that change how other characters appear. A name with one of them looks like
//! another name, or reorders the text around it: an operator would read something other than what a program compares.
//!
//! The rejected characters are control characters, line and paragraph separators, the characters that Unicode marks
//! as default ignorable (zero-width and bidirectional signs, joiners, variation selectors, tags, fillers),
//! noncharacters, private-use characters, and a combining mark at the start of a text. Joiners (U+200C, U+200D) have
//! a meaning in some scripts, but in names of participants they make no difference that a reader would miss, so there
//! is no exception.

/// The first rejected character of a text.
pub(crate) fn find_invisible(text: &str) -> Option<char> {
    if text.is_ascii() {
        return text.bytes().find(u8::is_ascii_control).map(char::from);
    }
    let first = text.chars().next().filter(|first| is_combining(*first));
    first.or_else(|| text.chars().find(|c| is_invisible(*c)))
}

pub(super) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Default ignorable and format characters (Cf), and line separators.
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffc}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            // Private use: displayed differently everywhere, or not at all.
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
        || is_noncharacter(c)
}

fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Marks that combine with the character before them.
fn is_combining(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}' | '\u{6e7}'..='\u{6e8}' | '\u{6ea}'..='\u{6ed}'
        | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{93c}' | '\u{93e}'..='\u{94f}' | '\u{e31}' | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20f0}'
        | '\u{302a}'..='\u{302f}' | '\u{3099}'..='\u{309a}' | '\u{fe20}'..='\u{fe2f}')
}
