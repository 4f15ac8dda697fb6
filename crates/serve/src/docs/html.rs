//! HTML from text: escaping, a little Markdown, and coloured JSON. Nothing gets onto the page another way.

use serde_json::Value;

/// A JSON value this short stays on one line.
const ONE_LINE_MAX: usize = 62;

/// Text as HTML shows it.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A line of Markdown: `code` in backticks, strong words between double asterisks.
pub(crate) fn inline(text: &str) -> String {
    marked(text, "`", "code", |plain| marked(plain, "**", "strong", escape))
}

/// Every second part between marks gets a tag; the others are for `rest` to write.
fn marked(text: &str, mark: &str, tag: &str, rest: impl Fn(&str) -> String) -> String {
    let parts = text.split(mark).enumerate();
    parts
        .map(|(i, part)| match i % 2 {
            0 => rest(part),
            _ => format!("<{tag}>{}</{tag}>", escape(part)),
        })
        .collect()
}

/// Paragraphs, lists, tables, small headings and fenced code.
pub(crate) fn block(markdown: &str) -> String {
    let mut out = String::new();
    let mut paragraph: Vec<&str> = Vec::new();
    let mut items: Vec<String> = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    let mut code: Option<Vec<&str>> = None;
    for line in markdown.lines().chain([""]) {
        if line.starts_with("```") {
            code = match code.take() {
                Some(lines) => {
                    out.push_str(&code_block(&escape(&lines.join("\n"))));
                    None
                }
                None => Some(Vec::new()),
            };
        } else if let Some(lines) = &mut code {
            lines.push(line);
        } else if let Some(title) = line.strip_prefix("### ") {
            flush(&mut out, &mut paragraph, &mut items);
            out.push_str(&format!("<h3>{}</h3>\n", inline(title)));
        } else if line.starts_with('|') {
            rows.push(line);
        } else if let Some(item) = line.strip_prefix("- ") {
            items.push(item.to_owned());
        } else if let Some((item, rest)) = items.last_mut().zip(line.strip_prefix("  ")) {
            item.push(' ');
            item.push_str(rest.trim_start());
        } else if line.trim().is_empty() {
            out.push_str(&table(&std::mem::take(&mut rows)));
            flush(&mut out, &mut paragraph, &mut items);
        } else {
            paragraph.push(line);
        }
    }
    out
}

/// A table: a row of heads, a row of dashes, rows.
fn table(rows: &[&str]) -> String {
    let cells = |row: &str, tag: &str| -> String {
        let cells = row.trim().trim_matches('|').split('|');
        let end = tag.split(' ').next().unwrap_or(tag);
        cells.map(|cell| format!("<{tag}>{}</{end}>", inline(cell.trim()))).collect()
    };
    let Some((heads, rest)) = rows.split_first() else {
        return String::new();
    };
    let heads = cells(heads, "th scope=\"col\"");
    let rows: String =
        rest.iter().skip(1).map(|row| format!("<tr>{}</tr>\n", cells(row, "td"))).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn flush(out: &mut String, paragraph: &mut Vec<&str>, items: &mut Vec<String>) {
    if !paragraph.is_empty() {
        out.push_str(&format!("<p>{}</p>\n", inline(&paragraph.join(" "))));
        paragraph.clear();
    }
    if !items.is_empty() {
        let items: String =
            items.drain(..).map(|item| format!("<li>{}</li>\n", inline(&item))).collect();
        out.push_str(&format!("<ul>\n{items}</ul>\n"));
    }
}

/// Code that is HTML already. It takes the focus, so that the keyboard can scroll it.
pub(crate) fn code_block(html: &str) -> String {
    format!("<pre tabindex=\"0\"><code>{html}</code></pre>\n")
}

/// A JSON value in lines, with its parts marked for colour.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    push_json(value, 0, &mut out);
    out
}

fn push_json(value: &Value, depth: usize, out: &mut String) {
    let class = match value {
        Value::Array(items) if !items.is_empty() && !is_short(value) => {
            let items = items.iter().map(|item| (None, item));
            return push_many(items, ["[", "]"], depth, out);
        }
        Value::Object(fields) if !fields.is_empty() && !is_short(value) => {
            let fields = fields.iter().map(|(name, item)| (Some(name), item));
            return push_many(fields, ["{", "}"], depth, out);
        }
        Value::Array(_) | Value::Object(_) => return push_short(value, out),
        Value::String(_) => "s",
        Value::Number(_) => "n",
        Value::Bool(_) | Value::Null => "b",
    };
    out.push_str(&format!("<span class=\"{class}\">{}</span>", escape(&value.to_string())));
}

fn push_many<'a>(
    items: impl Iterator<Item = (Option<&'a String>, &'a Value)>,
    [open, close]: [&str; 2],
    depth: usize,
    out: &mut String,
) {
    out.push_str(open);
    for (i, (name, item)) in items.enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        push_name(name, out);
        push_json(item, depth + 1, out);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push_str(close);
}

/// On one line, with the spaces that make it readable.
fn push_short(value: &Value, out: &mut String) {
    let (open, close, items): (_, _, Vec<(Option<&String>, &Value)>) = match value {
        Value::Array(items) => ("[", "]", items.iter().map(|item| (None, item)).collect()),
        Value::Object(fields) => {
            ("{ ", " }", fields.iter().map(|(name, item)| (Some(name), item)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return push_json(value, 0, out);
        }
    };
    out.push_str(open);
    for (i, (name, item)) in items.into_iter().enumerate() {
        out.push_str(if i == 0 { "" } else { ", " });
        push_name(name, out);
        push_short(item, out);
    }
    out.push_str(close);
}

fn push_name(name: Option<&String>, out: &mut String) {
    if let Some(name) = name {
        let name = escape(&Value::from(name.as_str()).to_string());
        out.push_str(&format!("<span class=\"k\">{name}</span>: "));
    }
}

fn is_short(value: &Value) -> bool {
    let is_flat = |value: &Value| !value.is_array() && !value.is_object();
    let flat = match value {
        Value::Array(items) => items.iter().all(is_flat),
        Value::Object(fields) => fields.values().all(is_flat),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    flat && value.to_string().len() <= ONE_LINE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_on_the_page_is_markup_unless_we_made_it() {
        assert_eq!(escape("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
        assert_eq!(
            inline("a `<b>` <c> **<d>**"),
            "a <code>&lt;b&gt;</code> &lt;c&gt; <strong>&lt;d&gt;</strong>"
        );
        let value = serde_json::json!({ "<k>": "</pre><script>" });
        assert!(!json(&value).contains("<script") && !json(&value).contains("<k>"));
    }

    #[test]
    fn markdown_becomes_paragraphs_lists_and_code() {
        let html = block("One\ntwo.\n\n- a\n  of two lines\n- `b`\n\n```\nx < y\n\nz\n```\nend");
        assert_eq!(
            html,
            "<p>One two.</p>\n<ul>\n<li>a of two lines</li>\n<li><code>b</code></li>\n</ul>\n\
             <pre tabindex=\"0\"><code>x &lt; y\n\nz</code></pre>\n<p>end</p>\n"
        );
    }

    #[test]
    fn tables_and_small_headings_are_what_they_look_like() {
        let html = block("### A `b`\n\n| x | `y` |\n|---|---|\n| <1> | 2 |\n");
        assert!(html.starts_with("<h3>A <code>b</code></h3>\n"), "{html}");
        assert!(
            html.contains("<tr><th scope=\"col\">x</th><th scope=\"col\"><code>y</code></th></tr>")
        );
        assert!(html.contains("<tr><td>&lt;1&gt;</td><td>2</td></tr>"), "{html}");
    }

    #[test]
    fn json_without_its_colours_is_json_again() {
        let value =
            serde_json::json!([{ "a": [1, 2], "b": { "c": null } }, "x".repeat(80), {}, []]);
        let mut plain = String::new();
        let mut inside = false;
        for c in json(&value).replace("&quot;", "\"").chars() {
            match c {
                '<' => inside = true,
                '>' => inside = false,
                c if !inside => plain.push(c),
                _ => {}
            }
        }
        assert_eq!(serde_json::from_str::<Value>(&plain).unwrap(), value);
    }
}
