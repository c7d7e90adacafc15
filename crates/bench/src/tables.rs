//! `tables FILE…`: reports as the Markdown of `docs/benchmarks.md`.

mod series;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use crate::compare::{lines, read};
use crate::report::{NOT_RUN, number};

const HEAD: &str = "\
# Benchmarks

`make bench` writes the measured sections from the JSON that the benchmarks print. The two sides of a line ran in
turn on one machine. A ratio is the median of the ratios of consecutive runs. Its interval holds it with 95 %
confidence; with fewer than six pairs it goes from the smallest to the largest ratio. In a wide table, a cell is a
ratio with its interval, or a figure of ours if there is no other side.
";

/// The note printed once above the first table of a benchmark.
fn note(benchmark: &str) -> Option<&'static str> {
    match benchmark {
        "snapshots" => Some(
            "\
Columns are numbers of snapshots. Rows that begin with `window of` measure a window that slides along a stream
(`anden-bench snapshots --part window`).",
        ),
        "updates" => Some(
            "\
Columns are edges of a batch. Bytes *of nodes* are those of the newest version; other rows of bytes count all that is
resident, with tables, spare room and what the workers keep. Rows *in turn* compare ours with the best of the other
containers in this program, batch by batch.",
        ),
        "tiers" => Some(
            "\
Rows are named for parts of Terrace's evaluation (SIGMOD 2021). *Figures 6, 11 and 12* move the thresholds *S* (the
longest list in place) and *L* (the longest packed list); *tables 10 and 11* leave a tier out. The paper's text was
not at hand, so the numbers name a group, not single figures. Cache misses are not counted. A ratio is a geometric
mean, with the smallest and the largest. Below 1, the setting is better than the defaults.",
        ),
        "family" => Some(
            "\
*First* is opening and the first run of a fresh process, against GAP's reading and its first trial. *Warm* is the
median of later runs, each with its preparation. Bounds stand at the best other side.",
        ),
        "outofcore" => Some(
            "\
Rows without a ratio are single runs; one of more than 15 seconds is cut off. *At 1/3* and *at 1/9* say how much of the
database fits in memory. The *oracle* knows what will be asked, so its columns show what read-ahead could give at best.
Peaks are those of the control group, files included.",
        ),
        _ => None,
    }
}

/// Prints one section for each report.
pub fn print(files: &[PathBuf]) -> Result<()> {
    let mut text = HEAD.to_owned();
    let mut title = String::new();
    for file in files {
        for report in read(file)? {
            section(&mut text, &mut title, &report)?;
        }
    }
    print!("{text}");
    Ok(())
}

/// Appends the tables of a report. Writes the title only if it differs from `title`, the one before.
fn section(text: &mut String, title: &mut String, report: &Value) -> Result<()> {
    let field = |name: &str| report[name].as_str().unwrap_or("?");
    let own_title = format!("{} on {}", field("benchmark"), field("graph"));
    if *title != own_title {
        writeln!(text, "\n## {own_title}")?;
        let has_note = title.starts_with(&format!("{} on ", field("benchmark")));
        if let Some(note) = note(field("benchmark")).filter(|_| !has_note) {
            writeln!(text, "\n{note}")?;
        }
        *title = own_title;
    }
    writeln!(text, "\n{}, {} threads, commit {}.\n", field("machine"), report["threads"], field("commit"))?;
    let (alone, rows) = series::split(field("benchmark"), lines(report)?);
    if !alone.is_empty() {
        plain(text, &alone)?;
    }
    if !rows.is_empty() {
        text.push_str(if alone.is_empty() { "" } else { "\n" });
        series::write(text, &rows)?;
    }
    Ok(())
}

/// Writes one row for each line.
fn plain(text: &mut String, lines: &[&Value]) -> Result<()> {
    writeln!(text, "| | unit | ours | other | | ratio | interval | bound or target |")?;
    writeln!(text, "| --- | --- | ---: | ---: | --- | ---: | --- | --- |")?;
    for line in lines {
        let figure = |name: &str| line[name].as_f64().map_or(String::new(), number);
        let side = |name: &str| line[name].as_f64().map_or(NOT_RUN.into(), number);
        let word = |name: &str| line[name].as_str().unwrap_or("");
        let interval = match line["low"] == line["high"] {
            true => String::new(),
            false => format!("{} – {}", figure("low"), figure("high")),
        };
        let (name, unit, other_name, bound) = (word("name"), word("unit"), word("other_name"), word("bound"));
        let has_other = !line["other_name"].is_null();
        let (ours, ratio) = (side("ours"), figure("ratio"));
        let other = if has_other { side("other") } else { String::new() };
        writeln!(text, "| {name} | {unit} | {ours} | {other} | {other_name} | {ratio} | {interval} | {bound} |")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_becomes_a_table() {
        let line = json!({"name": "bfs", "unit": "s", "ours": 0.000_012_34, "other": 2.0, "other_name": "GAPBS",
            "ratio": 0.5, "low": 0.4, "high": 0.6, "bound": "≤ 0.9"});
        let mut text = String::new();
        section(&mut text, &mut String::new(), &json!({"benchmark": "kernels", "threads": 2, "lines": [line]}))
            .unwrap();
        let row = "| bfs | s | 0.00001234 | 2.000 | GAPBS | 0.5000 | 0.4000 – 0.6000 | ≤ 0.9 |";
        assert!(text.lines().any(|line| line == row), "{text}");
        assert!(!text.contains("Rows are named"), "{text}");
        let missing = json!({"name": "bc", "unit": "s", "ours": 1.0, "other": null, "other_name": "GAPBS"});
        section(&mut text, &mut String::new(), &json!({"benchmark": "kernels", "threads": 2, "lines": [missing]}))
            .unwrap();
        assert!(text.contains("| bc | s | 1.000 | not run | GAPBS |"), "{text}");
        section(&mut text, &mut String::new(), &json!({"benchmark": "tiers", "threads": 2, "lines": []})).unwrap();
        assert!(text.contains("## tiers on ?\n\nRows are named for"), "{text}");
    }
}
