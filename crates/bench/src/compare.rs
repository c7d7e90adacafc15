//! `compare FILE FILE`: the changes between two reports that exceed their noise.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Prints the lines of both reports that differ beyond noise.
pub fn compare(before: &Path, after: &Path) -> Result<()> {
    let (before, after) = (read(before)?, read(after)?);
    let mut num_changed = 0;
    for report in &after {
        // A lone report is compared whatever its graph is called, so that one graph can stand for another.
        let is_same = |old: &&Value| before.len() == 1 || old["graph"] == report["graph"];
        let Some(old) = before.iter().find(is_same) else { continue };
        if after.len() > 1 {
            println!("{}", report["graph"].as_str().unwrap_or("?"));
        }
        num_changed += compare_lines(lines(old)?, lines(report)?);
    }
    println!("{num_changed} lines changed beyond the noise");
    Ok(())
}

/// Prints the lines that differ beyond noise. Returns their number.
fn compare_lines(before: &[Value], after: &[Value]) -> usize {
    let mut num_changed = 0;
    for line in after {
        let same = |other: &&Value| other["name"] == line["name"] && other["other_name"] == line["other_name"];
        let Some(old) = before.iter().find(same) else { continue };
        if let Some(change) = change(old, line) {
            println!("{:<42} {change}", line["name"].as_str().unwrap_or("?"));
            num_changed += 1;
        }
    }
    num_changed
}

/// Reads the reports of a file: one, or one for each graph of a family.
pub fn read(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let reports = serde_json::Deserializer::from_str(&text).into_iter().collect::<Result<Vec<Value>, _>>();
    let reports = reports.with_context(|| format!("{} is not a report", path.display()))?;
    if reports.is_empty() {
        bail!("{} has no report", path.display());
    }
    Ok(reports)
}

/// The lines of a report.
pub fn lines(report: &Value) -> Result<&Vec<Value>> {
    match report["lines"].as_array() {
        Some(lines) => Ok(lines),
        None => bail!("a report has no lines"),
    }
}

/// The change of a line, or `None` within noise. Ratios differ if their intervals do not overlap, figures if they
/// differ by more than one per cent.
fn change(old: &Value, new: &Value) -> Option<String> {
    let get = |line: &Value, name: &str| line[name].as_f64();
    let describe = |a: f64, b: f64| format!("{a:.4} → {b:.4} ({:+.1} %)", (b / a - 1.0) * 100.0);
    if let (Some(a), Some(b)) = (get(old, "ratio"), get(new, "ratio")) {
        let apart = get(old, "high")? < get(new, "low")? || get(new, "high")? < get(old, "low")?;
        return apart.then(|| format!("ratio {}", describe(a, b)));
    }
    let (a, b) = (get(old, "ours")?, get(new, "ours")?);
    ((b / a - 1.0).abs() > 0.01).then(|| format!("{} {}", new["unit"].as_str().unwrap_or(""), describe(a, b)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_may_have_several_reports() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("family.json");
        std::fs::write(&path, "{\"graph\": \"a\"}\n{\"graph\": \"b\"}\n").unwrap();
        assert_eq!(read(&path).unwrap(), [json!({ "graph": "a" }), json!({ "graph": "b" })]);
        std::fs::write(&path, "").unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn only_intervals_apart_are_a_change() {
        let line = |ratio: f64, low: f64, high: f64| json!({"ratio": ratio, "low": low, "high": high, "ours": 1.0});
        assert!(change(&line(1.0, 0.9, 1.1), &line(1.2, 1.05, 1.3)).is_none());
        let change = change(&line(1.0, 0.9, 1.1), &line(1.5, 1.2, 1.6)).unwrap();
        assert_eq!(change, "ratio 1.0000 → 1.5000 (+50.0 %)");
    }
}
