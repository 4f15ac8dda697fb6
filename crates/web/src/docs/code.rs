//! Code on a page: a block with a copy button, and a request in four languages.

use crate::sample::Sample;

/// Escapes text for HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A code block with a copy button. The script that handles the button also shows it.
pub(crate) fn block(text: &str) -> String {
    format!(
        "<div class=\"code\"><button class=\"button quiet small\" type=\"button\" data-copy hidden>Copy</button>\
         <pre tabindex=\"0\"><code>{}</code></pre></div>\n",
        escape(text.trim_end())
    )
}

/// A request in every language, one of them visible. Browsers without `:has` show all of them. [`number`] gives each
/// selection its name.
pub(crate) fn sample(sample: &Sample) -> String {
    let lines = sample.lines();
    let choices: String = lines
        .iter()
        .map(|line| {
            let checked = if line.id == "curl" { " checked" } else { "" };
            format!(
                "<label><input type=\"radio\" name=\"sample-?\" value=\"{}\"{checked}>{}</label>",
                line.id, line.language
            )
        })
        .collect();
    let panes: String = lines
        .iter()
        .map(|line| {
            format!("<div class=\"pane\" data-language=\"{}\">{}</div>", line.id, block(&line.text))
        })
        .collect();
    format!(
        "{SAMPLE}<fieldset><legend class=\"sr\">Language of this example</legend>{choices}</fieldset>\n{panes}</div>\n"
    )
}

const SAMPLE: &str = "<div class=\"sample\">";

/// Gives the language selection of each sample on a page a unique name.
pub(crate) fn number(body: &str) -> String {
    let parts = body.split(SAMPLE).enumerate();
    parts
        .map(|(n, part)| match n {
            0 => part.to_owned(),
            n => format!("{SAMPLE}{}", part.replace("\"sample-?\"", &format!("\"sample-{n}\""))),
        })
        .collect()
}
