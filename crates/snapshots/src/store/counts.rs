//! Net changes of several deltas.

use std::collections::BTreeSet;

use anden_base::VertexId;
use anden_graph::{Direction, GraphKind};

use crate::Result;
use crate::changes::{ComposeScratch, PageChanges, compose};
use crate::delta::Delta;
use crate::options::GraphOptions;
use crate::table::PAGE_VERTICES;

/// The pages of one direction that any of the deltas changes, ascending.
pub(super) fn changed_pages(deltas: &[Delta], direction: Direction) -> Result<Vec<usize>> {
    let mut pages = BTreeSet::new();
    for delta in deltas {
        pages.extend(delta.pages(direction)?.into_iter().map(|page| page as usize));
    }
    Ok(pages.into_iter().collect())
}

/// Fills `net` with the net changes of the deltas on a page.
pub(super) fn net_page(
    deltas: &[Delta],
    direction: Direction,
    page: usize,
    net: &mut PageChanges,
    scratch: &mut ComposeScratch,
) -> Result<()> {
    let mut parts = Vec::new();
    for delta in deltas.iter().filter(|delta| delta.touches(direction, page)) {
        let mut part = PageChanges::default();
        if delta.read_page(direction, page, &mut part)? {
            parts.push(part);
        }
    }
    compose(&parts, net, scratch);
    Ok(())
}

/// The net numbers of edges that consecutive deltas add and remove.
///
/// Cost: nothing for one delta of a directed graph; otherwise reads all deltas.
pub(crate) fn net_counts(deltas: &[Delta], options: &GraphOptions) -> Result<(u64, u64)> {
    let is_directed = options.graph_kind == GraphKind::Directed;
    // One delta is net already, and in a directed graph an arc is an edge.
    if let ([delta], true) = (deltas, is_directed) {
        return Ok(delta.num_arcs(Direction::Out));
    }
    let (mut num_added, mut num_removed) = (0, 0);
    let (mut net, mut scratch) = (PageChanges::default(), ComposeScratch::default());
    for page in changed_pages(deltas, Direction::Out)? {
        net_page(deltas, Direction::Out, page, &mut net, &mut scratch)?;
        let first = (page * PAGE_VERTICES) as VertexId;
        for list in net.lists() {
            // An undirected edge is counted in the list of its smaller end.
            let vertex = first + VertexId::from(list.local);
            let count = |targets: &[VertexId]| match is_directed {
                true => targets.len() as u64,
                false => targets.iter().filter(|&&target| vertex <= target).count() as u64,
            };
            num_added += count(list.added.targets);
            num_removed += count(list.removed.targets);
        }
    }
    Ok((num_added, num_removed))
}
