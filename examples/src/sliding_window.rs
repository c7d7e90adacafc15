//! PageRank over the last batches of a stream of edges.
//!
//! Every batch is a snapshot, and the window shows the edges that the last ones added, with their vertices. The cost of
//! a batch grows with the edges of the window and the vertices of the stream, not with the stream's edges. The database
//! may be in memory.

use anden::job::Value;
use anden::{Changes, Database, Job, Key, Parameters, Result, View};

/// Reads `source target` lines in batches of `batch_edges`. After each batch, calls `seen` with the window and with its
/// vertices of the highest rank, best first.
///
/// # Errors
/// A line does not hold two keys that fit the graph, `seen` fails, or the work was cancelled.
pub fn trends(
    db: &Database,
    lines: impl Iterator<Item = String>,
    batch_edges: usize,
    num_batches: u32,
    mut seen: impl FnMut(&View, &[(Key, f64)]) -> Result<()>,
) -> Result<()> {
    let window = db.sliding_window(num_batches)?;
    let ranks = Job::new("pagerank", Parameters::default())?;
    let mut lines = lines.filter(|line| !line.trim().is_empty()).peekable();
    while lines.peek().is_some() {
        let mut batch = Changes::default();
        for line in lines.by_ref().take(batch_edges.max(1)) {
            let mut keys = line.split_whitespace();
            let (Some(source), Some(target)) = (keys.next(), keys.next()) else {
                return Err(anden::Error::InvalidInput(format!("{line:?}: two keys expected").into()));
            };
            batch = batch.add_edge(source, target);
        }
        let view = window.push(&batch)?;
        let output = view.run(&ranks)?;
        let top = output.summary.iter().find_map(|(_, value)| match value {
            Value::Ranking(top) => Some(&top[..]),
            _ => None,
        });
        seen(&view, top.unwrap_or_default())?;
    }
    Ok(())
}
