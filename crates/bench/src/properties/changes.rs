//! Filters on a graph that changes: the part of the next version, against a part that is laid out anew.

use std::path::Path;

use anden::{Database, OpenOptions, Session, Update, View};
use anyhow::Result;

use super::AMOUNTS;
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report};
use crate::setting::Setting;

/// Updates of one commit.
const UPDATES: u64 = 1_000;
/// Vertices have groups below this, in turn.
const GROUPS: u64 = 100;

/// Measures the first filter after a commit, with a predicate over edges, and with one over vertices too.
pub(super) fn run(setting: &Setting, path: &Path, session: &Session, report: &mut Report) -> Result<()> {
    // Without a budget, the database keeps the part of the snapshot.
    let database = Database::open_with(path, &OpenOptions::from(&Session::new(session.num_threads())?))?;
    database.set_checkpoint_bytes(None);
    let num_vertices = database.view()?.num_vertices() as u64;
    let groups = (0..num_vertices).map(|vertex| Update::set_vertex(vertex, "group", (vertex % GROUPS) as i64));
    database.apply(&groups.collect::<Vec<_>>())?;
    database.checkpoint(None)?;
    let mut next = 0;
    for (name, vertices) in [("edges", None), ("edges and vertices", Some("\"group\" >= 10"))] {
        let predicate = Some("amount < 100000");
        database.view()?.filter(predicate, vertices)?.num_edges();
        let counted = |view: &View| -> Result<(f64, u64)> {
            let (time, counted) = seconds(|| Ok::<_, anden::Error>(view.filter(predicate, vertices)?.num_edges()));
            Ok((time, counted?))
        };
        let mut pairs = Pairs::default();
        for _ in 0..setting.num_pairs {
            database.apply(&updates(num_vertices, &mut next))?;
            let view = database.view()?;
            let (time, num_edges) = counted(&view)?;
            // A part of a part has no snapshot below it, so all its lists are read.
            let whole = view.filter(Some("TRUE"), None)?;
            whole.num_edges();
            let (other, expected) = counted(&whole)?;
            anyhow::ensure!(num_edges == expected, "{num_edges} edges in the part of the changes, not {expected}");
            pairs.push(time, other);
        }
        let name = format!("filter of {name} after {UPDATES} updates");
        report.line(Line::compared(name, &pairs, "laid out anew", ""));
    }
    Ok(())
}

/// New edges, and one vertex in ten with another group.
fn updates(num_vertices: u64, next: &mut u64) -> Vec<Update> {
    let updates = (*next..*next + UPDATES).map(|index| {
        let [source, target] = [7_919, 104_729].map(|step| index * step % num_vertices);
        match index % 10 {
            0 => Update::set_vertex(source, "group", (index / 10 % GROUPS) as i64),
            _ => Update::add_edge_with(source, target, [("amount", (index * 7_919 % AMOUNTS) as i64)]),
        }
    });
    let updates = updates.collect();
    *next += UPDATES;
    updates
}
