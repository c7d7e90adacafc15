//! What several levels change together.

use std::collections::BTreeSet;

use base::VertexId;
use graph::{Direction, Side};

use crate::Result;
use crate::changes::{ComposeScratch, PageChanges, compose};
use crate::level::Level;
use crate::options::GraphOptions;
use crate::table::PAGE_VERTICES;

/// The pages of a side that any of the levels changes, ascending.
pub(super) fn changed_pages(levels: &[Level], side: Side) -> Result<Vec<usize>> {
    let mut pages = BTreeSet::new();
    for level in levels {
        pages.extend(level.pages(side)?.into_iter().map(|page| page as usize));
    }
    Ok(pages.into_iter().collect())
}

/// Fills `net` with all that the levels change together on a page.
pub(super) fn net_page(
    levels: &[Level],
    side: Side,
    page: usize,
    net: &mut PageChanges,
    scratch: &mut ComposeScratch,
) -> Result<()> {
    let mut parts = Vec::new();
    for level in levels.iter().filter(|level| level.touches(side, page)) {
        let mut part = PageChanges::default();
        if level.read_page(side, page, &mut part)? {
            parts.push(part);
        }
    }
    compose(&parts, net, scratch);
    Ok(())
}

/// The edges that consecutive levels add and remove together.
///
/// Cost: of one level of a directed graph, none; else all of them are read.
pub(crate) fn net_counts(levels: &[Level], options: &GraphOptions) -> Result<(u64, u64)> {
    let is_directed = options.direction == Direction::Directed;
    if let ([level], true) = (levels, is_directed) {
        return Ok(level.num_arcs(Side::Out));
    }
    let (mut num_added, mut num_removed) = (0, 0);
    let (mut net, mut scratch) = (PageChanges::default(), ComposeScratch::default());
    for page in changed_pages(levels, Side::Out)? {
        net_page(levels, Side::Out, page, &mut net, &mut scratch)?;
        let first = (page * PAGE_VERTICES) as VertexId;
        for list in net.lists() {
            // An edge of an undirected graph is counted where its list is the smaller end.
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
