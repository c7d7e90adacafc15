//! Texts and small pages that show objects in a console and in a notebook.

use std::fmt::Write;

use anden::session::size;
use anden::stats::DegreeBin;
use anden::{GraphKind, KeyScheme, Neighbors, Options, WeightType};
use pyo3::prelude::*;

use crate::error::Result;
use crate::result::KernelResult;
use crate::snapshot::time_text;

/// Rows of a result that are shown.
const ROWS: usize = 10;
/// Snapshots that are shown.
const SNAPSHOTS: usize = 10;
/// The degree histogram of a larger graph is not computed for a page.
const MOST_COUNTED: usize = 10_000_000;

/// The kind of graph in a few words.
fn kind(options: &Options, weight_type: Option<WeightType>) -> String {
    let mut words = vec![match options.graph_kind {
        GraphKind::Undirected => "undirected",
        GraphKind::Directed if options.ordered => "ordered",
        GraphKind::Directed => "directed",
    }];
    words.extend(options.multigraph.then_some("multigraph"));
    words.extend(weight_type.map(|_| "weighted"));
    words.push(match options.keys {
        KeyScheme::Integer => "integer keys",
        KeyScheme::String => "string keys",
        KeyScheme::Dense => "dense keys",
    });
    words.join(", ")
}

/// A number with thousands separated.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text with the characters of HTML escaped.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A table; all cells but those of the first column are right-aligned.
pub fn table(page: &mut String, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    page.push_str("<table><thead><tr>");
    head.iter().for_each(|cell| {
        let _ = write!(page, "<th>{}</th>", escaped(cell));
    });
    page.push_str("</tr></thead><tbody>");
    for row in rows {
        page.push_str("<tr>");
        for cell in row {
            let _ = write!(page, "<td>{}</td>", escaped(&cell));
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table>");
}

/// A view in one line. A filtered view is not counted, because that may read the graph.
pub fn view_text(view: &anden::View) -> String {
    let kind = kind(view.options(), view.weight_type());
    let name = view.name();
    match name.starts_with("a part of") {
        true => format!("<anden.View of {name}: {kind}>"),
        false => {
            let (vertices, edges) = (count(view.num_vertices() as u64), count(view.num_edges()));
            format!("<anden.View of {name}: {vertices} vertices, {edges} edges, {kind}>")
        }
    }
}

/// A view with the histogram of its degrees.
pub fn view_page(view: &anden::View) -> anden::Result<String> {
    let (vertices, edges) = (count(view.num_vertices() as u64), count(view.num_edges()));
    let mut page = format!(
        "<div><b>anden.View</b> of {}: {vertices} vertices, {edges} edges, {}",
        escaped(view.name()),
        escaped(&kind(view.options(), view.weight_type())),
    );
    if view.num_vertices() > 0 && view.vertex_bound() <= MOST_COUNTED {
        let statistics = view.degree_statistics(Neighbors::Out)?;
        let _ = write!(page, "<br>out-degrees: mean {:.2}, largest {}", statistics.mean, count(statistics.max));
        page.push_str(&histogram(&statistics.bins));
    }
    page.push_str("</div>");
    Ok(page)
}

/// The bins of a histogram as an SVG image. Heights are logarithmic, because degrees follow power laws.
fn histogram(bins: &[DegreeBin]) -> String {
    const WIDTH: usize = 18;
    const HEIGHT: f64 = 48.0;
    let height = |number: u64| ((number + 1) as f64).ln();
    let highest = bins.iter().map(|bin| height(bin.num_vertices)).fold(1.0, f64::max);
    let mut image = format!("<br><svg width=\"{}\" height=\"{HEIGHT}\">", bins.len() * WIDTH);
    for (place, bin) in bins.iter().enumerate() {
        let tall = height(bin.num_vertices) / highest * HEIGHT;
        let (low, high) = (bin.degrees.start(), bin.degrees.end());
        let (x, y, number) = (place * WIDTH, HEIGHT - tall, count(bin.num_vertices));
        let _ = write!(
            image,
            "<rect x=\"{x}\" y=\"{y:.1}\" width=\"{}\" height=\"{tall:.1}\" fill=\"#4477aa\">\
             <title>degree {low} to {high}: {number} vertices</title></rect>",
            WIDTH - 2,
        );
    }
    image + "</svg>"
}

/// A database in one line.
pub fn database_text(database: &anden::Database, place: &str) -> String {
    let kind = kind(database.options(), database.options().weight_type);
    let snapshots = count(database.snapshots().len() as u64);
    match database.view() {
        Ok(view) => {
            let (vertices, edges) = (count(view.num_vertices() as u64), count(view.num_edges()));
            format!("<anden.Database {place}: {vertices} vertices, {edges} edges, {kind}, {snapshots} snapshots>")
        }
        Err(error) => format!("<anden.Database {place}: {error}>"),
    }
}

/// A database with its newest snapshots.
pub fn database_page(database: &anden::Database, place: &str) -> anden::Result<String> {
    let (view, snapshots) = (database.view()?, database.snapshots());
    let mut page = format!(
        "<div><b>anden.Database</b> {}: {} vertices, {} edges, {}",
        escaped(place),
        count(view.num_vertices() as u64),
        count(view.num_edges()),
        escaped(&kind(database.options(), database.options().weight_type)),
    );
    let rows = snapshots.iter().rev().take(SNAPSHOTS).map(|info| {
        vec![
            info.number.to_string(),
            info.name.clone().unwrap_or_default(),
            time_text(info.unix_time),
            count(info.num_vertices),
            count(info.num_edges),
            count(info.added),
            count(info.removed),
            size(info.bytes),
        ]
    });
    table(&mut page, &["snapshot", "name", "time", "vertices", "edges", "added", "removed", "bytes"], rows);
    if snapshots.len() > SNAPSHOTS {
        let _ = write!(page, "and {} older snapshots", count((snapshots.len() - SNAPSHOTS) as u64));
    }
    page.push_str("</div>");
    Ok(page)
}

/// A result as a small table.
pub fn result_text(py: Python<'_>, result: &KernelResult) -> Result<String> {
    let mut text = format!("<anden.Result of {}>", result.headline(py)?);
    let rows = result.rows(py, ROWS)?;
    let head = ["key".to_owned(), result.column().to_owned()];
    let width = rows.iter().chain([&head]).map(|row| row[0].chars().count()).max().unwrap_or(0);
    if !rows.is_empty() {
        for [key, value] in [head].iter().chain(&rows) {
            let _ = write!(text, "\n{key:<width$}  {value}");
        }
    }
    Ok(text)
}

/// A result as a table of a page.
pub fn result_page(py: Python<'_>, result: &KernelResult) -> Result<String> {
    let mut page = format!("<div><b>anden.Result</b> of {}", escaped(&result.headline(py)?));
    let rows = result.rows(py, ROWS)?;
    if !rows.is_empty() {
        table(&mut page, &["key", result.column()], rows.into_iter().map(Vec::from));
    }
    page.push_str("</div>");
    Ok(page)
}
