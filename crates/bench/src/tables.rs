//! `tables FILE…`: reports as the Markdown of `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use crate::compare::{lines, read};
use crate::report::{NOT_RUN, number};

const HEAD: &str = "\
# Benchmarks

Made by `make bench` from the JSON that the benchmarks print; run it to get your own. The two sides of
a line ran in turn on one machine; the ratio is the median of the ratios of neighbours in time, with
the interval that holds it with 95 % confidence (of fewer than six pairs: the smallest and the largest).
";

/// What a reader should know of the tables of a benchmark; said once, above the first of them.
fn note(benchmark: &str) -> Option<&'static str> {
    match benchmark {
        "snapshots" => Some(
            "\
Rows that begin with `window of` are of a window that slides along a stream: what a batch and the window cost, and
whether that grows (`anden-bench snapshots --part window`).",
        ),
        "updates" => Some(
            "\
Rows of bytes count what a container holds: those *of nodes* the nodes of the newest version, the others all that is
resident because of it, with its tables, its room for more and what its workers keep. Rows *in turn* are ours
and the best of the other containers in this program, batch by batch.",
        ),
        "tiers" => Some(
            "\
Rows are named for the part of Terrace's evaluation (SIGMOD 2021) that they stand for: its *figures 6, 11 and 12* for the
thresholds, *S* (the longest list in place) and *L* (the longest packed list), its *tables 10 and 11* for the homes
that are left out. The paper's text was not at hand: this is concluded from what the benchmark is to show, and which of
them has updates, kernels or bytes is not known. Cache misses are not counted. A mean is geometric, with the
smallest and the largest ratio; below 1, the setting is better than the defaults.",
        ),
        _ => None,
    }
}

/// Prints a section for each report.
pub fn print(files: &[PathBuf]) -> Result<()> {
    let mut text = HEAD.to_owned();
    let mut title = String::new();
    for file in files {
        section(&mut text, &mut title, &read(file)?)?;
    }
    print!("{text}");
    Ok(())
}

/// The table of a report, under its title unless that is `title`, the one before.
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
    writeln!(text, "| | unit | ours | other | | ratio | interval | bound or target |")?;
    writeln!(text, "| --- | --- | ---: | ---: | --- | ---: | --- | --- |")?;
    for line in lines(report)? {
        let figure = |name: &str| line[name].as_f64().map_or(String::new(), number);
        let side = |name: &str| line[name].as_f64().map_or(NOT_RUN.into(), number);
        let word = |name: &str| line[name].as_str().unwrap_or("");
        let interval = match line["ratio"].is_null() {
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
