//! Log lines have a stable name: every call of a tracing macro in the sources of crates has a field `event`,
//! `noun.verb` in lower case, which operators search for and alert on.

use shell::repository::TextFile;

use crate::source::without_tests;

const LEVELS: [&str; 5] = ["error!(", "warn!(", "info!(", "debug!(", "trace!("];

/// Calls without the field, or with an invalid value.
pub(crate) fn complaints(files: &[TextFile]) -> Vec<String> {
    let is_source = |path: &str| {
        path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("tests.rs")
    };
    let mut complaints = Vec::new();
    for TextFile { path, text } in files.iter().filter(|file| is_source(&file.path)) {
        let code = without_tests(text);
        for (at, arguments) in calls(code) {
            let line = code.get(..at).unwrap_or_default().lines().count();
            let fields = arguments.split(',').map(str::trim);
            let event = fields.filter_map(|field| field.strip_prefix("event")).find_map(value);
            if !event.is_some_and(is_name) {
                complaints.push(format!("{path}:{line} logs without `event = \"noun.verb\"`"));
            }
        }
    }
    complaints
}

/// Calls of tracing macros: their position and the text after the opening parenthesis, up to the end of the statement.
fn calls(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let found = LEVELS.iter().flat_map(|level| {
        code.match_indices(level).map(|(at, _)| (at + level.len(), code.get(at + level.len()..)))
    });
    let is_call = |at: usize| {
        let line = code.get(..at).unwrap_or_default();
        let line = line.rsplit('\n').next().unwrap_or_default();
        let before = LEVELS.iter().find_map(|level| line.strip_suffix(level)).unwrap_or_default();
        !line.trim_start().starts_with("//")
            && !before.ends_with(|sign: char| sign.is_alphanumeric() || sign == '_')
    };
    found.filter(move |(at, _)| is_call(*at)).filter_map(|(at, rest)| {
        let rest = rest?;
        // A call ends at the end of its statement or match arm.
        let end = rest.find([';', '}']).into_iter().chain(rest.find("),\n")).min();
        Some((at, rest.get(..end.unwrap_or(rest.len()))?))
    })
}

/// The value of the field, given the text after its name; `None` for another field with the same prefix. A variable
/// called `event` is accepted, too.
fn value(after: &str) -> Option<&str> {
    if after.is_empty() {
        return Some("a.variable");
    }
    after.trim_start().strip_prefix('=')?.trim().strip_prefix('"')?.strip_suffix('"')
}

fn is_name(event: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|sign| sign.is_ascii_lowercase() || sign == b'_')
    };
    event.contains('.') && event.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let path = "crates/x/src/a.rs".to_owned();
        complaints(&[TextFile { path, text: text.to_owned() }])
    }

    #[test]
    fn a_line_of_the_log_without_an_event_is_reported() {
        let text = "fn a() {\n    warn!(%error, \"event = \\\"a.b\\\" is missing\");\n    match b {\n        \
                    C => tracing::info!(event_id = 1, \"d\"),\n        D => info!(event = \"d\", \"e\"),\n    }\n}";
        assert_eq!(
            found(text),
            [
                "crates/x/src/a.rs:2 logs without `event = \"noun.verb\"`",
                "crates/x/src/a.rs:4 logs without `event = \"noun.verb\"`",
                "crates/x/src/a.rs:5 logs without `event = \"noun.verb\"`",
            ]
        );
    }

    #[test]
    fn lines_after_an_item_for_tests_are_reported_too() {
        let text = "#[cfg(test)]\nuse a::b;\nfn c() {\n    warn!(\"d\");\n}\n#[cfg(test)]\nmod t {\n    info!(\"e\");\n}";
        assert_eq!(found(text), ["crates/x/src/a.rs:4 logs without `event = \"noun.verb\"`"]);
    }

    #[test]
    fn events_variables_other_macros_comments_and_tests_are_not() {
        let text = "info!(event = \"a.b_c\", \"d\");\nwarn!(\n    event = \"a.b\",\n    %error,\n    \"c\"\n);\n\
                    debug!(event, \"a\");\ncompile_error!(\"a\");\n// warn!(\"a\");\n#[cfg(test)]\nmod t { warn!(\"a\"); }";
        assert_eq!(found(text), [""; 0]);
    }
}
