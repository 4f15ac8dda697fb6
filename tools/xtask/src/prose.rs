//! Rules for prose: lines of Markdown and of comments end before 120 columns. Both use plain words, and so do
//! settings, templates, everything in `deploy/`, the texts in sources and the OpenAPI documents.
//!
//! Tables, code, headings with links and lines without a break are not measured. Words in code are not checked, except
//! in string literals outside of tests.

use shell::repository::TextFile;

use crate::source::{literals, without_escapes, without_tests};

/// Generated files, which tests read back.
pub(crate) const FIXTURES: &str = "/tests/fixtures/";

/// Maximum length of a line, so that two files fit side by side and diffs stay readable.
const COLUMNS_MAX: usize = 120;

/// Part of openapi.json, where a line is a paragraph.
const NOT_MEASURED: [&str; 1] = ["crates/api/src/openapi/guide.md"];

/// Catalogues: comments are part of the text that distinguishes versions, and names are fixed.
const NOT_READ: &str = "crates/domain/";

/// This file, whose list would match itself.
const LIST: &str = "tools/xtask/src/prose.rs";

/// Words that we do not use, with their replacement, because readers would not search for them. Letters of the
/// alphabet are fine.
const WORDS: [(&str, &str); 23] = [
    ("by letter", "by email"),
    ("door", "the ingest endpoint, or a push"),
    ("doors", "endpoints"),
    ("herald", "the revocation register"),
    ("in force", "active, current or effective"),
    ("letter is sent", "email is sent"),
    ("letter to", "email to"),
    ("letter was", "email was"),
    ("letter with", "email with"),
    ("letters are sent", "emails are sent"),
    ("letters to", "emails to"),
    ("letters wait", "emails wait"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("next letter", "next email"),
    ("operator's word", "an operator's decision"),
    ("rooms", "crates, or space"),
    ("so many", "the number"),
    ("the house", "the code"),
    ("told", "reported, shown or configured"),
    ("vouch", "confirm"),
    ("vouches", "confirms"),
    ("your word", "your decision"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Markdown,
    Rust,
    /// Settings, templates and scripts; every line is checked.
    Plain,
}

impl Kind {
    fn of(path: &str) -> Option<Self> {
        let ending = path.rsplit_once('.').map(|(_, ending)| ending);
        match ending {
            Some("md") => Some(Self::Markdown),
            Some("rs") => Some(Self::Rust),
            Some("json") => None,
            Some("yaml" | "toml" | "html") => Some(Self::Plain),
            _ => path.starts_with("deploy/").then_some(Self::Plain),
        }
    }
}

pub(crate) fn complaints(files: &[TextFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for TextFile { path, text } in files {
        let Some(kind) = Kind::of(path) else { continue };
        if NOT_MEASURED.iter().any(|prefix| path.starts_with(prefix)) {
            continue;
        }
        let lines = match kind {
            Kind::Markdown => markdown(text),
            Kind::Rust => comments(text),
            Kind::Plain => text.lines().zip(1..).map(|(line, number)| (number, line)).collect(),
        };
        for (number, line) in &lines {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && can_break(line) && kind != Kind::Plain {
                complaints.push(format!("{path}:{number} has {columns} columns; break it"));
            }
        }
        let is_read = !path.starts_with(NOT_READ) && !path.contains(FIXTURES);
        if is_read || kind != Kind::Plain {
            complaints.extend(words(path, &lines));
        }
        if kind == Kind::Rust && is_read && path.contains("/src/") && path != LIST {
            for (number, literal) in own_literals(path, text) {
                complaints.extend(words(path, &[(number, &literal)]));
            }
        }
    }
    for TextFile { path, text } in files.iter().filter(|file| is_openapi(&file.path)) {
        for (line, number) in text.lines().zip(1..) {
            complaints.extend(words(path, &[(number, &without_escapes(line))]));
        }
    }
    complaints
}

/// The string literals of a file outside of its tests.
fn own_literals(path: &str, text: &str) -> Vec<(usize, String)> {
    if path.ends_with("tests.rs") { Vec::new() } else { literals(without_tests(text)) }
}

fn is_openapi(path: &str) -> bool {
    path.starts_with("openapi") && path.ends_with(".json")
}

/// The lines that are not code, with their numbers.
pub(crate) fn markdown(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let (mut is_fenced, mut is_list, mut may_be_code) = (false, false, true);
    for (line, number) in text.lines().zip(1..) {
        let inner = line.trim();
        if inner.starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let is_item = inner.starts_with("- ") || inner.starts_with(|c: char| c.is_ascii_digit());
        is_list = is_item || is_list && (inner.is_empty() || line.starts_with(' '));
        // Indented code begins after an empty line.
        may_be_code = inner.is_empty() || may_be_code && line.starts_with("    ");
        let is_code = is_fenced || may_be_code && !is_list;
        if !is_code {
            lines.push((number, line));
        }
    }
    lines
}

/// Lines that consist of a comment.
fn comments(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line));
    lines.filter(|(_, line)| line.trim_start().starts_with("//")).collect()
}

/// True if a line can be broken: rows of tables, images, headings with a link and URLs cannot.
fn can_break(line: &str) -> bool {
    let line = line.trim_start();
    let is_whole = line.starts_with('|') || line.starts_with("![");
    let is_linked_heading = line.starts_with('#') && line.contains("](");
    let inner = line.trim_start_matches(['/', '!', '-', ' ']);
    inner.contains(' ') && !is_whole && !is_linked_heading
}

/// Listed words in prose, also across a line break.
fn words(path: &str, lines: &[(usize, &str)]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut before = String::new();
    let mut expected = 0;
    for (number, line) in lines {
        // Lines separated by code are not one sentence.
        if *number != expected {
            before.clear();
        }
        expected = number + 1;
        let plain = plain(line);
        let both = format!("{before} {plain} ");
        for (word, instead) in WORDS {
            let whole = format!(" {word} ");
            // Matches within the previous line were found there.
            let mut ends = both.match_indices(&whole).map(|(at, _)| at + 1 + word.len());
            if ends.any(|end| end > before.len()) {
                complaints.push(format!("{path}:{number} has \"{word}\"; write {instead}"));
            }
        }
        before = if plain.is_empty() { String::new() } else { format!(" {plain}") };
    }
    complaints
}

/// A line in lower case with single spaces, without code and punctuation.
fn plain(line: &str) -> String {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" x ");
    let small = prose.to_lowercase().replace('’', "'");
    let words = small.split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '-'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        complaints(&[TextFile { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn long_lines_of_prose_and_comments_are_reported() {
        let long = "word ".repeat(25);
        assert_eq!(found("a.md", &format!("# A\n\n{long}")), ["a.md:3 has 125 columns; break it"]);
        assert_eq!(found("a.md", &format!("- {long}")).len(), 1);
        let source = format!("fn a() {{\n    // {long}\n    let b = \"{long}\";\n}}");
        assert_eq!(
            found("xtask/src/a.rs", &source),
            ["xtask/src/a.rs:2 has 132 columns; break it"]
        );
        assert!(found("crates/api/src/openapi/guide.md", &long).is_empty());
    }

    #[test]
    fn tables_code_addresses_and_short_lines_are_not() {
        let long = "word ".repeat(25);
        let url = format!("https://example.com/{}", "a".repeat(120));
        for text in [
            format!("| {long} |"),
            format!("```\n{long}\n```"),
            format!("text\n\n    {long}\n    {long}\n\ntext"),
            format!("- {url}"),
            format!("## {long} [a](b.md)"),
            format!("![{long}](a.png)"),
            "é ".repeat(60),
        ] {
            assert_eq!(found("a.md", &text), [""; 0], "{text}");
        }
    }

    #[test]
    fn an_item_of_a_list_is_not_code_however_far_it_is_indented() {
        let long = "word ".repeat(25);
        assert_eq!(found("a.md", &format!("1. a\n\n    {long}")).len(), 1);
    }

    #[test]
    fn words_that_we_do_not_use_are_reported_and_quoted_ones_are_not() {
        let text =
            "The push\ndoor is open.\n| `was told` | here |\nIndoors. Mend: a.\nit was in\nforce";
        assert_eq!(
            found("a.md", text),
            [
                "a.md:2 has \"door\"; write the ingest endpoint, or a push",
                "a.md:4 has \"mend\"; write fix",
                "a.md:6 has \"in force\"; write active, current or effective",
            ]
        );
    }

    #[test]
    fn words_are_looked_for_in_comments_settings_templates_and_deployment() {
        let expected = |path: &str, line: usize| {
            vec![format!("{path}:{line} has \"told\"; write reported, shown or configured")]
        };
        let text = "fn told() {\n    // It was told,\n    a(\"told\");\n    // in\n    b();\n    // force\n}";
        assert_eq!(found("a.rs", text), expected("a.rs", 2));
        for path in ["a.yaml", "a.toml", "crates/web/templates/a.html", "deploy/nginx/a"] {
            assert_eq!(found(path, "<b>as you were told</b>"), expected(path, 1));
        }
        assert!(found("crates/domain/a.toml", "# told").is_empty());
        assert!(found("other/a", "told").is_empty());
    }

    #[test]
    fn words_are_looked_for_in_texts_of_sources_and_of_the_openapi_documents() {
        let text = "fn a() {\n    b(\"in\", \"force\");\n    c(\"The\\ndoor is \\\n       open\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    d(\"told\");\n}";
        let expected = ["crates/x/src/a.rs:3 has \"door\"; write the ingest endpoint, or a push"];
        assert_eq!(found("crates/x/src/a.rs", text), expected);
        for other in ["crates/x/tests/it/a.rs", "crates/x/src/tests.rs", "crates/domain/src/a.rs"] {
            assert_eq!(found(other, text), [""; 0], "{other}");
        }
        let json = "{\n  \"told\": \"At the\\ndoor.\"\n}";
        assert_eq!(
            found("openapi-v9.json", json),
            [
                "openapi-v9.json:2 has \"door\"; write the ingest endpoint, or a push",
                "openapi-v9.json:2 has \"told\"; write reported, shown or configured",
            ]
        );
        assert_eq!(found("examples/a.json", json), [""; 0]);
    }

    #[test]
    fn letters_of_the_alphabet_are_fine() {
        assert!(found("a.rs", "// A letter or digit; two letters may differ.").is_empty());
        assert_eq!(found("a.rs", "// The letters wait, each a letter\n// to a person.").len(), 2);
    }
}
