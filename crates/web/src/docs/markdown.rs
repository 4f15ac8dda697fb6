//! HTML from Markdown. Markup in the text is shown, not passed on.

use askama::filters::Safe;
use pulldown_cmark::{Event, Options, Parser, html};

/// HTML that a template writes as it is.
pub(crate) type Html = Safe<String>;

/// Paragraphs, lists, tables, headings and fenced code.
pub(crate) fn block(markdown: &str) -> Html {
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| {
        if let Event::Html(text) | Event::InlineHtml(text) = event {
            return Event::Text(text);
        }
        event
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    // Text is escaped, so these tags are the writer's own. What scrolls takes the focus, for the keyboard.
    let out = out
        .replace("<pre>", "<pre tabindex=\"0\">")
        .replace("<th>", "<th scope=\"col\">")
        .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>");
    Safe(out)
}

/// A line of text, without the paragraph around it.
pub(crate) fn inline(markdown: &str) -> Html {
    let Safe(html) = block(markdown);
    let html = html.trim_end();
    let line = html.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    Safe(line.unwrap_or(html).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_on_the_page_is_markup_unless_we_made_it() {
        assert_eq!(
            inline("a `<b>` <c> **<d>** <script>").0,
            "a <code>&lt;b&gt;</code> &lt;c&gt; <strong>&lt;d&gt;</strong> &lt;script&gt;"
        );
        assert_eq!(block("<table>\n<th>\n").0, "&lt;table&gt;\n&lt;th&gt;\n");
    }

    #[test]
    fn markdown_becomes_paragraphs_lists_and_code() {
        let html = block("One\ntwo.\n\n- a\n- `b`\n\n```\nx < y\n\nz\n```\nend");
        assert_eq!(
            html.0,
            "<p>One\ntwo.</p>\n<ul>\n<li>a</li>\n<li><code>b</code></li>\n</ul>\n\
             <pre tabindex=\"0\"><code>x &lt; y\n\nz\n</code></pre>\n<p>end</p>\n"
        );
    }

    #[test]
    fn tables_and_small_headings_are_what_they_look_like() {
        let Safe(html) = block("### A `b`\n\n| x | `y` |\n|---|---|\n| <1> | 2 |\n");
        assert!(html.starts_with("<h3>A <code>b</code></h3>\n"), "{html}");
        assert!(
            html.contains("<tr><th scope=\"col\">x</th><th scope=\"col\"><code>y</code></th></tr>")
        );
        assert!(html.contains("<tr><td>&lt;1&gt;</td><td>2</td></tr>"), "{html}");
    }
}
