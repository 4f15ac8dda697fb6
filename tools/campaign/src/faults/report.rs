//! The table for people, and the evidence for it.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::Result;

use super::{
    check::{Finding, Score},
    record::Records,
};

/// Prints the table with the data of the run, and writes it with all evidence to `report.txt`.
pub(super) fn tell(
    folder: &Path,
    about: &str,
    records: &Records,
    findings: &[Finding],
) -> Result<()> {
    let table = table(about, records, findings);
    shell::print(&table)?;
    let mut text = table;
    for finding in findings.iter().filter(|finding| !finding.holds()) {
        writeln!(text, "\n{}: broken {} times", finding.rule, finding.broken_count)?;
        for evidence in &finding.broken {
            writeln!(text, "  {evidence}")?;
        }
    }
    fs::write(folder.join("report.txt"), text)?;
    let bodies = folder.join("bodies");
    if findings.iter().any(|finding| !finding.holds()) {
        fs::create_dir_all(&bodies)?;
        for (name, body) in &records.bodies {
            fs::write(bodies.join(format!("{name:016x}.json")), body)?;
        }
    }
    Ok(())
}

fn table(about: &str, records: &Records, findings: &[Finding]) -> String {
    let mut text = String::from(
        "\n| fault | lasted | caught up after | reads | failed | good | slowest |\n|---|---|---|---|---|---|---|\n",
    );
    for episode in &records.episodes {
        let end_ms = episode.caught_up_ms.unwrap_or(episode.healed_ms);
        let score = Score::between(&records.reads, episode.began_ms, end_ms);
        let lasted = seconds(episode.healed_ms - episode.began_ms);
        let caught_up = episode
            .caught_up_ms
            .map_or("never".to_owned(), |at_ms| seconds(at_ms - episode.healed_ms));
        let Score { requests, failed, slowest_ms, .. } = score;
        let row = format!(
            "| {} | {lasted} | {caught_up} | {requests} | {failed} | {} | {slowest_ms} ms |\n",
            episode.fault,
            share(requests - failed, requests)
        );
        text += &row;
    }
    text += "\n| rule | | figures |\n|---|---|---|\n";
    for finding in findings {
        let verdict = if finding.holds() { "holds" } else { "BROKEN" };
        text += &format!("| {} | {verdict} | {} |\n", finding.rule, finding.figures);
        for evidence in finding.broken.iter().take(3) {
            text += &format!("|   {} | | |\n", evidence.lines().next().unwrap_or_default());
        }
    }
    if let Some(most) = records.stalls.iter().max() {
        let count = records.stalls.len();
        text += &format!(
            "\nThis machine was busy with other work {count} times, for up to {most} ms.\n"
        );
    }
    text += &format!("\n{about}");
    text
}

fn seconds(ms: i64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// A percentage, rounded down: less than all is never shown as 100 %.
fn share(good: usize, all: usize) -> String {
    let hundredths = (good * 10_000).checked_div(all);
    hundredths.map_or("none asked".to_owned(), |it| format!("{}.{:02} %", it / 100, it % 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down() {
        assert_eq!(share(99_999, 100_000), "99.99 %");
        assert_eq!(share(7, 7), "100.00 %");
        assert_eq!(share(0, 0), "none asked");
    }
}
