//! The output of a benchmark: one line for each comparison, as text or as JSON.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Pairs;

/// Printed instead of the time of a side that did not run.
pub const NOT_RUN: &str = "not run";

/// A comparison, or a figure of our side alone.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name of the measurement.
    pub name: String,
    /// The unit of both sides.
    pub unit: &'static str,
    /// Our median; `None` if our side did not run.
    pub ours: Option<f64>,
    /// The median of the other side (`None` if it did not run) and its name.
    pub other: Option<(Option<f64>, String)>,
    /// The ratio ours ÷ other and the ends of its interval.
    pub ratio: Option<(f64, f64, f64)>,
    /// The theoretical bound, or the target.
    pub bound: String,
}

impl Line {
    /// A comparison of seconds. Empty `pairs` mean that neither side ran.
    pub fn compared(name: impl Into<String>, pairs: &Pairs, other_name: &str, bound: impl Into<String>) -> Self {
        let has_run = !pairs.is_empty();
        Self {
            name: name.into(),
            unit: "s",
            ours: has_run.then(|| pairs.ours()),
            other: Some((has_run.then(|| pairs.other()), other_name.to_owned())),
            ratio: has_run.then(|| pairs.ratio()),
            bound: bound.into(),
        }
    }

    /// A figure of our side alone.
    pub fn figure(name: impl Into<String>, unit: &'static str, ours: f64, bound: impl Into<String>) -> Self {
        Self { name: name.into(), unit, ours: Some(ours), other: None, ratio: None, bound: bound.into() }
    }

    /// A figure that was not measured, with the reason.
    pub fn not_run(name: impl Into<String>, unit: &'static str, reason: impl Into<String>) -> Self {
        Self { ours: None, ..Self::figure(name, unit, 0.0, reason) }
    }

    /// The value for [`other`](Self::other).
    pub fn beside(other: f64, name: impl Into<String>) -> Option<(Option<f64>, String)> {
        Some((Some(other), name.into()))
    }

    /// The line as text.
    fn text(&self) -> String {
        let figure =
            |value: Option<f64>| value.map_or(NOT_RUN.into(), |value| format!("{} {}", number(value), self.unit));
        let other = self.other.as_ref().map_or(String::new(), |(value, _)| figure(*value));
        let ratio = self.ratio.map_or(String::new(), |(r, ..)| format!("{r:.3}"));
        let interval = self.ratio.map_or(String::new(), |(_, l, h)| format!("[{l:.3}, {h:.3}]"));
        let name = match &self.other {
            Some((_, other_name)) => format!("{} vs {other_name}", self.name),
            None => self.name.clone(),
        };
        let ours = figure(self.ours);
        format!("{name:<42} {ours:>11} {other:>11} {ratio:>8}  {interval:<17} {}", self.bound)
    }

    fn json(&self) -> Value {
        let (ratio, low, high) = self.ratio.map_or((None, None, None), |(r, l, h)| (Some(r), Some(l), Some(h)));
        json!({
            "name": self.name,
            "unit": self.unit,
            "ours": self.ours,
            "other": self.other.as_ref().and_then(|(value, _)| *value),
            "other_name": self.other.as_ref().map(|(_, name)| name),
            "ratio": ratio,
            "low": low,
            "high": high,
            "bound": self.bound,
        })
    }
}

/// The lines of one benchmark. Text is printed line by line, JSON at the end.
#[derive(Debug)]
pub struct Report {
    benchmark: &'static str,
    graph: String,
    threads: usize,
    json: bool,
    lines: Vec<Line>,
}

impl Report {
    /// Begins a report and prints its head.
    pub fn new(benchmark: &'static str, graph: String, threads: usize, json: bool) -> Self {
        let report = Self { benchmark, graph, threads, json, lines: Vec::new() };
        if !json {
            println!("{benchmark} on {} · {threads} threads · {} · commit {}", report.graph, machine(), commit());
            println!(
                "{:<42} {:>11} {:>11} {:>8}  {:<17} bound or target",
                "", "ours", "other", "ratio", "95 % interval"
            );
        }
        report
    }

    /// Adds and prints a line.
    pub fn line(&mut self, line: Line) {
        if !self.json {
            println!("{}", line.text());
        }
        self.lines.push(line);
    }

    /// Ends the report. Prints the JSON object if requested.
    pub fn finish(self) {
        if self.json {
            println!(
                "{}",
                json!({
                    "benchmark": self.benchmark,
                    "machine": machine(),
                    "threads": self.threads,
                    "commit": commit(),
                    "graph": self.graph,
                    "lines": self.lines.iter().map(Line::json).collect::<Vec<_>>(),
                })
            );
        }
    }
}

/// A lower bound, marked if `value` misses it.
pub fn at_least(target: f64, value: f64) -> String {
    let verdict = if value < target { ", missed" } else { "" };
    format!("≥ {target}{verdict}")
}

/// An upper bound, marked if `value` misses it.
pub fn at_most(target: f64, value: f64) -> String {
    let verdict = if value > target { ", missed" } else { "" };
    format!("≤ {target}{verdict}")
}

/// Four significant digits.
pub fn number(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    format!("{value:.*}", (3 - digits).clamp(0, 9) as usize)
}

/// The name and the number of processors, and the memory.
fn machine() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let model = model.trim_start_matches([' ', '\t', ':']).trim();
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: u64 = total.and_then(|t| t.trim().split(' ').next()?.parse().ok()).unwrap_or(0);
    let num_processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{num_processors} × {model}, {} GiB", kib >> 20)
}

/// The commit of the sources, marked if the work tree differs from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--short", "HEAD"]) {
        Some(hash) if git(&["status", "--porcelain"]).is_some_and(|s| !s.is_empty()) => format!("{hash}+"),
        Some(hash) => hash,
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let shown: Vec<String> = [0.0, 0.012_345, 1.0, 123.456, 98_765.4].map(number).to_vec();
        assert_eq!(shown, ["0.000", "0.01235", "1.000", "123.5", "98765"]);
    }

    #[test]
    fn a_miss_is_called_one() {
        assert_eq!([at_least(2.0, 1.9), at_least(1.5, 1.5)], ["≥ 2, missed", "≥ 1.5"]);
        assert_eq!([at_most(1.6, 1.7), at_most(1.6, 1.6)], ["≤ 1.6, missed", "≤ 1.6"]);
    }

    #[test]
    fn json_lines_have_every_name() {
        let mut pairs = Pairs::default();
        pairs.push(1.0, 2.0);
        let json = Line::compared("bfs", &pairs, "plain csr", "≤ 1.02").json();
        for name in ["name", "unit", "ours", "other", "other_name", "ratio", "low", "high", "bound"] {
            assert!(!json[name].is_null(), "{name}");
        }
        assert!(Line::figure("bytes", "B", 4.1, "").json()["ratio"].is_null());
    }

    #[test]
    fn a_side_that_did_not_run_has_no_time() {
        for line in [Line::compared("bfs", &Pairs::default(), "GAPBS", ""), Line::not_run("bfs", "s", "no memory")] {
            assert!(!line.text().contains("0.0") && line.text().contains(NOT_RUN), "{}", line.text());
            let json = line.json();
            assert!(["ours", "other", "ratio", "low", "high"].iter().all(|name| json[name].is_null()), "{json}");
        }
    }
}
