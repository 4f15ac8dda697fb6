//! Texts generated from the definition of the command line: completions for shells, and the manual page.

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::cli::{Given, Shell};

/// A script that completes commands and flags.
pub(crate) fn completions(shell: Shell) -> String {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Given::command(), "linesman", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// One page for all commands, in roff.
///
/// # Errors
/// None: it is written to memory.
pub(crate) fn man_page() -> anyhow::Result<String> {
    let mut program = Given::command();
    program.build();
    let page = Man::new(program.clone());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    let mut text = String::from_utf8(text)?;
    for subcommand in program.get_subcommands().filter(|subcommand| subcommand.get_name() != "help")
    {
        add(&mut text, subcommand)?;
    }
    Ok(text)
}

/// The section of a command, or of each command under it.
fn add(page: &mut String, command: &Command) -> anyhow::Result<()> {
    let mut subcommands =
        command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help").peekable();
    if subcommands.peek().is_some() {
        return subcommands.try_for_each(|subcommand| add(page, subcommand));
    }
    let name = command.get_bin_name().unwrap_or_default().to_uppercase();
    let own = Man::new(command.clone());
    let mut text = Vec::new();
    own.render_synopsis_section(&mut text)?;
    own.render_description_section(&mut text)?;
    own.render_options_section(&mut text)?;
    own.render_extra_section(&mut text)?;
    // The sections of the generated page become subsections.
    let text =
        String::from_utf8(text)?.replace(".SH ", ".SS ").replace(".SS EXTRA", ".SS EXAMPLES");
    page.push_str(&format!(".SH \"{name}\"\n{text}"));
    Ok(())
}
