//! Turns clap's error into one sentence. Clap prints several paragraphs and repeats the arguments, keys and tokens
//! among them; scripts and logs want one line without secrets.

use std::ffi::OsString;

use clap::{Arg, Command, Error, error::ErrorKind};

use crate::cli::Stop;

/// The prefixes of keys and tokens.
const SECRET_PREFIXES: [&str; 3] = ["sk_test_", "sk_live_", "fk_"];

/// The command whose help explains the arguments: the deepest one that they name.
pub(super) fn help_of(program: &Command, arguments: &[OsString]) -> String {
    let (mut command, mut path) = (program, program.get_name().to_owned());
    let mut arguments = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    while let Some(argument) = arguments.next() {
        // `--data DIR`: the value is no command.
        let named = |option: &&Arg| argument.strip_prefix("--") == option.get_long();
        if program
            .get_arguments()
            .any(|option| named(&option) && option.get_action().takes_values())
        {
            arguments.next();
        } else if let Some(subcommand) = command.find_subcommand(argument) {
            command = subcommand;
            path.push_str(&format!(" {argument}"));
        } else if !argument.starts_with('-') {
            break;
        }
    }
    path
}

pub(super) fn explain(error: &Error, help: &str) -> Stop {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Stop::Shown(text);
    }
    // Everything before the usage: the error, the possible values, a tip.
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let said: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .collect();
    let said = said.join(" ").replace(" tip: ", "; ");
    sentence(said.strip_prefix("error: ").unwrap_or(&said), help)
}

/// An error of our own, with the command whose help explains it.
pub(super) fn sentence(said: &str, help: &str) -> Stop {
    let said = redact(said);
    Stop::Misuse(format!("{}; see `{help} --help`", said.trim_end_matches('.')))
}

/// Replaces everything that begins like a key or a token, up to the end of the word.
fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, prefix)) = SECRET_PREFIXES
        .iter()
        .filter_map(|prefix| rest.find(prefix).map(|at| (at, *prefix)))
        .min_by_key(|(at, _)| *at)
    {
        let (before, secret) = rest.split_at(at);
        let end =
            secret.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(secret.len());
        let (word, after) = secret.split_at(end);
        clean.push_str(before);
        clean.push_str(prefix);
        // The help uses `fk_` alone for the format of a token.
        if word != prefix {
            clean.push('…');
        }
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_tokens_are_cut_to_their_prefix() {
        assert_eq!(
            redact("found 'sk_live_abc123' and 'fk_x9', begins with fk_; asks"),
            "found 'sk_live_…' and 'fk_…', begins with fk_; asks"
        );
        assert_eq!(redact("nothing to hide"), "nothing to hide");
    }
}
