//! Composes consecutive deltas into one.

use anden_base::VertexId;
use anden_graph::Direction;

use super::{DIRECTIONS, Delta, DeltaWriter};
use crate::changes::{ComposeScratch, PageChanges, compose};
use crate::options::GraphOptions;
use crate::property::{PropertyChanges, compose_properties};
use crate::{Error, Result};

/// Appends to `writer` the composition of these consecutive deltas, which leads from the start of the first to the end
/// of the last.
///
/// Cost: one pass over all changes, page by page; memory for the changes of one page, besides the writer's.
///
/// # Errors
/// There is no delta, or one does not start where the one before ends; one is damaged; they contradict each other.
pub(crate) fn compose_deltas(deltas: &[Delta], writer: &mut DeltaWriter, options: &GraphOptions) -> Result<()> {
    let [first, .., last] = deltas else {
        // One delta is net already, and is copied as stored.
        let [delta] = deltas else { return Err(Error::Input("no deltas to be composed".into())) };
        return writer.append_delta(delta);
    };
    for pair in deltas.windows(2) {
        if pair[0].to() != pair[1].from() {
            let what = format!("a delta from version {} expected, one from {} found", pair[0].to(), pair[1].from());
            return Err(Error::Input(what));
        }
        // Vertices are never taken back, so the bound cannot shrink.
        if pair[0].vertex_bound() > pair[1].vertex_bound() {
            return Err(pair[1].corrupt("a delta with fewer vertices than the one before").into());
        }
    }
    let (died, returned) = net_deaths(deltas)?;
    writer.begin_delta(first.from(), last.to(), last.vertex_bound(), &died, &returned)?;
    let num_directions = if options.stores_in_lists() { 2 } else { 1 };
    DIRECTIONS
        .into_iter()
        .take(num_directions)
        .try_for_each(|direction| compose_direction(deltas, direction, writer))?;
    for changes in net_properties(deltas)? {
        writer.append_properties(changes.column(), changes.as_ref())?;
    }
    Ok(())
}

/// Net changes of vertex properties over these deltas, by column; columns without net changes are left out.
pub(crate) fn net_properties(deltas: &[Delta]) -> Result<Vec<PropertyChanges>> {
    let mut columns: Vec<u32> = deltas.iter().flat_map(Delta::property_columns).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut net = Vec::new();
    for column in columns {
        let parts = deltas.iter().filter_map(|delta| delta.property_changes(column).transpose());
        net.push(compose_properties(column, &parts.collect::<anden_base::Result<Vec<_>>>()?));
    }
    // Changes that cancel each other leave nothing to store.
    net.retain(|changes| !changes.is_empty());
    Ok(net)
}

/// The vertices that died in these deltas and did not return, and the opposite; both ascend.
pub(crate) fn net_deaths(deltas: &[Delta]) -> Result<(Vec<VertexId>, Vec<VertexId>)> {
    let mut signed: Vec<(VertexId, i32)> = Vec::new();
    for delta in deltas {
        signed.extend(delta.died()?.iter().map(|&vertex| (vertex, 1)));
        signed.extend(delta.returned()?.iter().map(|&vertex| (vertex, -1)));
    }
    signed.sort_unstable();
    let (mut died, mut returned) = (Vec::new(), Vec::new());
    for same in signed.chunk_by(|a, b| a.0 == b.0) {
        // A vertex that died and returned as often is as before.
        match same.iter().map(|(_, sign)| sign).sum::<i32>() {
            0 => {}
            1.. => died.push(same[0].0),
            _ => returned.push(same[0].0),
        }
    }
    Ok((died, returned))
}

fn compose_direction(deltas: &[Delta], direction: Direction, writer: &mut DeltaWriter) -> Result<()> {
    let mut touched: Vec<(u32, u32)> = Vec::new();
    for (index, delta) in deltas.iter().enumerate() {
        touched.extend(delta.pages(direction)?.into_iter().map(|page| (page, index as u32)));
    }
    // By page, then by delta, so that the parts of a page stand together.
    touched.sort_unstable();
    let mut parts: Vec<PageChanges> = Vec::new();
    let (mut net, mut scratch) = (PageChanges::default(), ComposeScratch::default());
    for same_page in touched.chunk_by(|a, b| a.0 == b.0) {
        let page = same_page[0].0 as usize;
        // Parts are reused from page to page, with their memory.
        if parts.len() < same_page.len() {
            parts.resize(same_page.len(), PageChanges::default());
        }
        for (&(_, index), part) in same_page.iter().zip(&mut parts) {
            deltas[index as usize].read_page(direction, page, part)?;
        }
        compose(&parts[..same_page.len()], &mut net, &mut scratch);
        writer.append_page(direction, page, &net)?;
    }
    Ok(())
}
