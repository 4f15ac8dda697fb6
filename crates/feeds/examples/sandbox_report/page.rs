//! The page around the charts: one file, one style, light and dark, nothing from outside.

use domain::Timestamp;

use crate::svg::{escape, put};
use crate::tape::Family;

#[derive(Debug)]
pub(crate) struct Page {
    contents: String,
    body: String,
    intro: String,
}

const STYLE: &str = include_str!("style.css");

impl Page {
    pub(crate) fn new(seed: u64, day: Timestamp) -> Self {
        let date = day.to_string();
        let date = date.split('T').next().unwrap_or_default();
        let intro = format!(
            "<h1>The sandbox in charts</h1>\n<p class=\"lead\">Seed {seed}, {date} (UTC). Everything here is drawn from \
             the messages that the simulator sends, as by a feed: nothing is read from its internals. All people, \
             teams, competitions and prices are invented. Hover over a line or a bar for its name.</p>\n"
        );
        Self { contents: String::new(), body: String::new(), intro }
    }

    /// A section: its content, and a note on how to read it.
    pub(crate) fn section(&mut self, id: &str, title: &str, note: &str) {
        let (title, note) = (escape(title), escape(note));
        put(&mut self.contents, format_args!("<a href=\"#{id}\">{title}</a>\n"));
        put(
            &mut self.body,
            format_args!("<h2 id=\"{id}\">{title}</h2>\n<p class=\"note\">{note}</p>\n"),
        );
    }

    /// A chart, a table or a legend.
    pub(crate) fn add(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// A smaller heading over one chart.
    pub(crate) fn caption(&mut self, text: &str) {
        put(&mut self.body, format_args!("<h3>{}</h3>\n", escape(text)));
    }

    /// A legend of the bookmakers' colours.
    pub(crate) fn families(&mut self) {
        let keys = Family::ALL.map(|family| (family.class(), family.title()));
        self.legend(&keys);
    }

    pub(crate) fn legend(&mut self, keys: &[(&str, &str)]) {
        self.body.push_str("<p class=\"legend\">");
        for (class, title) in keys {
            let title = escape(title);
            put(&mut self.body, format_args!("<span><i class=\"{class}\"></i>{title}</span>"));
        }
        self.body.push_str("</p>\n");
    }

    /// A table; its class sets the alignment of cells.
    pub(crate) fn table(&mut self, class: &str, head: &[&str], rows: &[Vec<String>]) {
        put(&mut self.body, format_args!("<table class=\"{class}\"><thead><tr>"));
        for cell in head {
            put(&mut self.body, format_args!("<th>{}</th>", escape(cell)));
        }
        self.body.push_str("</tr></thead><tbody>\n");
        for row in rows {
            self.body.push_str("<tr>");
            for cell in row {
                put(&mut self.body, format_args!("<td>{}</td>", escape(cell)));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table>\n");
    }

    pub(crate) fn finish(self) -> String {
        let Self { contents, body, intro } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>Linesman: the sandbox in charts</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{intro}<nav>\n{contents}</nav>\n{body}</main>\n</body>\n</html>\n"
        )
    }
}
