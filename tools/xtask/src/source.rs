//! The parts of a Rust file.

/// The code of a file before its module of tests, which is the last item.
pub(crate) fn without_tests(text: &str) -> &str {
    let mut tests = text.match_indices("#[cfg(test)]").map(|(at, attribute)| {
        let item = text.get(at + attribute.len()..).unwrap_or_default().trim_start();
        (at, item.lines().find(|line| !line.starts_with("#[")).unwrap_or_default())
    });
    let tests = tests.find(|(_, item)| {
        let name = item.split_once("mod ").filter(|(before, _)| is_visibility(before));
        name.is_some_and(|(_, name)| name.contains('{'))
    });
    tests.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

fn is_visibility(text: &str) -> bool {
    text.is_empty() || (text.starts_with("pub") && text.ends_with(' '))
}

/// The string literals of some code, each with the line where it begins; escapes of white space become a space.
pub(crate) fn literals(code: &str) -> Vec<(usize, String)> {
    let mut literals = Vec::new();
    let mut at = 0;
    while let Some(found) = code.get(at..).and_then(|rest| rest.find(['"', '\'', '/'])) {
        at += found;
        let (before, rest) = code.split_at(at);
        at += if rest.starts_with('"') {
            let (text, len) = literal(before, rest);
            let line = before.matches('\n').count() + 1;
            literals.push((line, without_escapes(text)));
            len
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            character_len(rest)
        };
    }
    literals
}

/// The length of the character literal that a text begins with, or of the one sign that begins no literal.
fn character_len(text: &str) -> usize {
    let after = |at: usize| text.get(at..).and_then(|rest| rest.find('\'')).map(|end| at + end + 1);
    let mut signs = text.char_indices();
    match (signs.next(), signs.next(), signs.next()) {
        // The escaped sign may be a quote.
        (Some((_, '\'')), Some((_, '\\')), Some((at, _))) => after(at + 1).unwrap_or(text.len()),
        (Some((_, '\'')), Some(_), Some((end, '\''))) => end + 1,
        _ => 1,
    }
}

/// The text of the literal that begins after `before`, and its length with the quotes.
fn literal<'a>(before: &str, rest: &'a str) -> (&'a str, usize) {
    let hashes = before.len() - before.trim_end_matches('#').len();
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let prefix = before.trim_end_matches('#').strip_suffix('r');
    let prefix = prefix.map(|prefix| prefix.strip_suffix('b').unwrap_or(prefix));
    let is_raw = prefix.is_some_and(|prefix| !prefix.ends_with(is_word));
    let inner = rest.get(1..).unwrap_or_default();
    let (end, closing) = if is_raw {
        let closing = format!("\"{}", "#".repeat(hashes));
        (inner.find(&closing), closing.len())
    } else {
        let mut is_escaped = false;
        let end = inner.find(|sign| {
            let is_end = sign == '"' && !is_escaped;
            is_escaped = sign == '\\' && !is_escaped;
            is_end
        });
        (end, 1)
    };
    let end = end.unwrap_or(inner.len());
    (inner.get(..end).unwrap_or_default(), (1 + end + closing).min(rest.len()))
}

/// A text whose escapes of white space are spaces.
pub(crate) fn without_escapes(text: &str) -> String {
    text.replace("\\n", " ").replace("\\t", " ").replace("\\\n", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_at_its_module_of_tests_and_at_no_other_item_for_tests() {
        let code = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nfn mod_a() {}\nfn b() {}\n";
        assert_eq!(without_tests(code), code);
        for module in ["mod tests {", "#[allow(dead_code)]\npub(crate) mod a {", "mod t { c(); }"] {
            let text = format!("{code}#[cfg(test)]\n{module}\n}}");
            assert_eq!(without_tests(&text), code, "{module}");
        }
    }

    #[test]
    fn literals_are_found_with_their_lines() {
        let code = "// \"a\"\nlet b: &'static str = \"c \\\"d\\\" \\\n    e\\nf\";\n/* \"g\" */\n\
                    h('\"', '\\'', b\"i\", \"\");\nlet j = r#\"k\"l\"# / bar\"m\\\\\";";
        let found = literals(code);
        let expected = [(2, "c \\\"d\\\"      e f"), (5, "i"), (5, ""), (6, "k\"l"), (6, "m\\\\")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }
}
