//! HTML from Markdown. HTML in the text is escaped; a curl command becomes a request in four languages.

use std::collections::HashMap;

use askama::filters::Safe;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html};

use crate::docs::code;
use crate::sample::Sample;

/// HTML that templates do not escape.
pub(crate) type Html = Safe<String>;

/// Paragraphs, lists, tables, headings and fenced code, without links to other files.
pub(crate) fn block(markdown: &str) -> Html {
    page(markdown, &|_| None)
}

/// A whole document. `resolve` maps links to other files; a link without a target becomes plain text.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other events stay as they are")]
pub(crate) fn page(markdown: &str, resolve: &dyn Fn(&str) -> Option<String>) -> Html {
    let mut events = Vec::new();
    let mut ids: HashMap<String, usize> = HashMap::new();
    let mut links = Vec::new();
    let markdown = with_names(markdown);
    let options = Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut parser = Parser::new_ext(&markdown, options);
    while let Some(event) = parser.next() {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => events.push(Event::Text(text)),
            Event::Start(Tag::CodeBlock(kind)) => {
                let inner = parser.by_ref().take_while(|event| !matches!(event, Event::End(_)));
                let text = inner.filter_map(|event| text_of(&event)).collect::<String>();
                // A request to this service, not a command that an operator runs elsewhere.
                let is_request = kind == CodeBlockKind::Fenced("sh".into());
                let block = if is_request { code_block(&text) } else { code::block(&text) };
                events.push(Event::Html(block.into()));
            }
            Event::Start(Tag::Heading { level, id, classes, attrs }) => {
                let is_end = |event: &Event<'_>| matches!(event, Event::End(TagEnd::Heading(_)));
                let inner: Vec<Event<'_>> =
                    parser.by_ref().take_while(|event| !is_end(event)).collect();
                let text: String = inner.iter().filter_map(text_of).collect();
                let id = id.unwrap_or_else(|| unique(slug(&text), &mut ids).into());
                let id = Some(id);
                events.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
                events.extend(inner);
                events.push(Event::End(TagEnd::Heading(level)));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let is_here = dest_url.starts_with(['#', '/']);
                let to = if is_here { Some(dest_url.to_string()) } else { resolve(&dest_url) };
                links.push(to.is_some());
                events.extend(to.map(|to| {
                    Event::Start(Tag::Link { link_type, dest_url: to.into(), title, id })
                }));
            }
            Event::End(TagEnd::Link) if links.pop() == Some(false) => {}
            Event::Start(Tag::Image { dest_url, .. }) => {
                let is_end = |event: &Event<'_>| matches!(event, Event::End(TagEnd::Image));
                let inner = parser.by_ref().take_while(|event| !is_end(event));
                let text = inner.filter_map(|event| text_of(&event)).collect::<String>();
                events.push(picture(&dest_url).unwrap_or_else(|| Event::Text(text.into())));
            }
            event => events.push(event),
        }
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    // Text is escaped, so these tags come from the writer. Scrollable tables take the focus, for keyboards.
    let out = out
        .replace("<th>", "<th scope=\"col\">")
        .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>");
    Safe(out)
}

/// Drawings by their path in documents.
const PICTURES: [(&str, &str); 1] =
    [("analytics/methods.svg", include_str!("../../../../docs/analytics/methods.svg"))];

/// Embeds a drawing without its own styles, which are for the standalone file; here the page's styles apply.
fn picture(file: &str) -> Option<Event<'static>> {
    let (_, svg) = PICTURES.iter().find(|(name, _)| *name == file)?;
    let (before, rest) = svg.split_once("<style>")?;
    let (_, after) = rest.split_once("</style>")?;
    let html = format!("<span class=\"picture\">{}{}</span>", before.trim_end(), after.trim_end());
    Some(Event::InlineHtml(html.into()))
}

/// One line of text without a paragraph.
pub(crate) fn inline(markdown: &str) -> Html {
    let Safe(html) = block(markdown);
    let html = html.trim_end();
    let line = html.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    Safe(line.unwrap_or(html).to_owned())
}

/// The anchor of a heading.
pub(crate) fn slug(heading: &str) -> String {
    let mut slug = String::new();
    for letter in heading.trim().chars() {
        match letter {
            ' ' | '-' => slug.push('-'),
            '_' => slug.push('_'),
            letter if letter.is_alphanumeric() => slug.extend(letter.to_lowercase()),
            _ => {}
        }
    }
    slug
}

/// A line `<a id="name"></a>` above a heading gives the heading that anchor: external links keep working when the
/// heading's text changes.
fn with_names(markdown: &str) -> String {
    let mut out = String::new();
    let mut name = None;
    for line in markdown.lines() {
        let named = line.strip_prefix("<a id=\"").and_then(|rest| rest.strip_suffix("\"></a>"));
        match (named, name) {
            (Some(_), _) => name = named,
            (None, Some(own)) if line.starts_with('#') => {
                out.push_str(&format!("{line} {{#{own}}}\n"));
                name = None;
            }
            (None, _) => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

fn text_of(event: &Event<'_>) -> Option<String> {
    let (Event::Text(text) | Event::Code(text)) = event else { return None };
    Some(text.to_string())
}

fn unique(slug: String, ids: &mut HashMap<String, usize>) -> String {
    let count = ids.entry(slug.clone()).or_default();
    *count += 1;
    if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
}

fn code_block(text: &str) -> String {
    Sample::parse(text).map_or_else(|| code::block(text), |sample| code::sample(&sample))
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
        assert!(block("```\n<script>\n```").0.contains("<code>&lt;script&gt;</code>"));
    }

    #[test]
    fn markdown_becomes_paragraphs_lists_and_code() {
        let Safe(html) = block("One\ntwo.\n\n- a\n  goes on\n- `b`\n\n```\nx < y\n\nz\n```\nend");
        assert!(html.starts_with(
            "<p>One\ntwo.</p>\n<ul>\n<li>a\ngoes on</li>\n<li><code>b</code></li>\n</ul>\n"
        ));
        assert!(html.contains("<pre tabindex=\"0\"><code>x &lt; y\n\nz</code></pre>"), "{html}");
        assert!(html.ends_with("<p>end</p>\n"));
    }

    #[test]
    fn tables_and_headings_are_what_they_look_like() {
        let Safe(html) =
            block("### A `b_c`\n\n### A `b_c`\n\n| x | `y` |\n|---|---|\n| <1> | 2 |\n");
        assert!(html.starts_with("<h3 id=\"a-b_c\">A <code>b_c</code></h3>\n"), "{html}");
        assert!(html.contains("<h3 id=\"a-b_c-1\">"), "{html}");
        assert!(
            html.contains("<tr><th scope=\"col\">x</th><th scope=\"col\"><code>y</code></th></tr>")
        );
        assert!(html.contains("<tr><td>&lt;1&gt;</td><td>2</td></tr>"), "{html}");
    }

    #[test]
    fn a_heading_may_have_a_name_of_its_own() {
        let Safe(html) = block("x\n\n<a id=\"down\"></a>\n### Not up\n\ny");
        assert_eq!(html, "<p>x</p>\n<h3 id=\"down\">Not up</h3>\n<p>y</p>\n");
    }

    #[test]
    fn a_link_to_a_file_leads_to_its_page_or_is_only_text() {
        let resolve = |to: &str| (to == "b.md").then(|| "/docs/b".to_owned());
        let Safe(html) = page("[x](b.md) [y](c.md) [z](#z) ![i](i.png)", &resolve);
        assert_eq!(html, "<p><a href=\"/docs/b\">x</a> y <a href=\"#z\">z</a> i</p>\n");
    }

    #[test]
    fn a_curl_command_is_shown_in_four_languages() {
        let Safe(html) =
            block("```sh\ncurl -H \"X-API-Key: $LINESMAN_KEY\" 'http://h/v1/books'\n```");
        assert_eq!(html.matches("type=\"radio\"").count(), 4);
        for language in
            ["from linesman import", "from &quot;linesman-client&quot;", "use linesman_client::"]
        {
            assert!(html.contains(language), "{language}");
        }
    }
}
