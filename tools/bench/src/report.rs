//! The results as a table, as JSON, and in the documents.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::bar::{Bar, Verdict};
use super::plot::Plot;
use shell::repository::Repository;

const PAGE: &str = "docs/performance.md";
pub(super) const FOLDER: &str = "docs/performance";
/// Start of the part that `record` writes.
const BEGIN: &str = "<!-- bench: begin -->\n";
const END: &str = "<!-- bench: end -->";

pub(super) fn to_table(bars: &[Bar]) -> String {
    let mut table = String::from(
        "| bar | must | goal | measured | of must | met |\n|---|---|---|---|---|---|\n",
    );
    for bar in bars {
        let note = if bar.note.is_empty() { String::new() } else { format!(" ({})", bar.note) };
        let row = format!(
            "| {} | {} | {} | {}{note} | {} | {} |\n",
            bar.name,
            bar.show_line(bar.must),
            bar.show_line(bar.goal),
            bar.show(bar.measured),
            bar.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}")),
            bar.verdict(),
        );
        table.push_str(&row);
    }
    table
}

pub(super) fn to_json(bars: &[Bar], plots: &[Plot]) -> String {
    let bars: Vec<_> = bars
        .iter()
        .map(|bar| {
            json!({
                "name": bar.name, "must": bar.must, "goal": bar.goal, "measured": bar.measured,
                "ratio": bar.ratio(), "met": matches!(bar.verdict(), Verdict::Goal | Verdict::Must),
                "goal_met": bar.verdict() == Verdict::Goal, "note": bar.note,
            })
        })
        .collect();
    let growth: Vec<_> = plots
        .iter()
        .map(|plot| json!({ "name": plot.file, "across": plot.across, "up": plot.up, "points": plot.points }))
        .collect();
    format!("{:#}\n", json!({ "bars": bars, "growth": growth }))
}

/// Writes the plots, and the table and growth into the page.
pub(super) fn record(repository: &Repository, bars: &[Bar], plots: &[Plot]) -> Result<()> {
    let folder = repository.root.join(FOLDER);
    fs::create_dir_all(&folder)?;
    let mut text = to_table(bars);
    text.push_str("\n### How cost grows\n\n");
    for plot in plots {
        fs::write(folder.join(format!("{}.svg", plot.file)), plot.to_svg())?;
        let points: Vec<String> = plot
            .points
            .iter()
            .map(|(across, up)| format!("{} → {up:.1}", shell::thousands(*across)))
            .collect();
        let link = format!("![{}](performance/{}.svg)", plot.title, plot.file);
        writeln!(
            text,
            "{link}\n\n{}, {} by {}:\n{}.\n",
            plot.title,
            plot.up,
            plot.across,
            points.join("; ")
        )?;
    }
    let page = repository.read(PAGE)?;
    let page =
        replaced(&page, &text).with_context(|| format!("{PAGE} has no place for the table"))?;
    fs::write(repository.root.join(PAGE), page)?;
    shell::say(&format!("{PAGE} and {FOLDER} hold these figures now"));
    Ok(())
}

fn replaced(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_the_marks_is_replaced_and_nothing_else() {
        let page = format!("a\n{BEGIN}old\n{END}\nz\n");
        let once = replaced(&page, "new\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}\nnew\n{END}\nz\n"));
        assert_eq!(replaced(&once, "new\n").unwrap(), once);
        assert_eq!(replaced("no marks", "new"), None);
    }
}
