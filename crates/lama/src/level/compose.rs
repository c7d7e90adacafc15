//! Makes one level of consecutive ones.

use base::VertexId;
use graph::Side;

use super::{Level, LevelWriter, SIDES};
use crate::changes::{ComposeScratch, PageChanges, compose};
use crate::options::GraphOptions;
use crate::property::{PropertyChanges, compose_properties};
use crate::{Error, Result};

/// Appends to `writer` the level that leads from where the first of these consecutive levels starts to where the last
/// one ends.
///
/// Cost: a pass over all changes, page by page; memory for the changes of one page, besides the writer's.
///
/// # Errors
/// There is no level, or one does not start where the one before it ends; one is damaged; they do not fit together.
pub(crate) fn compose_levels(levels: &[Level], writer: &mut LevelWriter, options: &GraphOptions) -> Result<()> {
    let [first, .., last] = levels else {
        let [level] = levels else { return Err(Error::Input("no levels to be composed".into())) };
        return writer.append_level(level);
    };
    for pair in levels.windows(2) {
        if pair[0].to() != pair[1].from() {
            let what = format!("a level from version {} expected, one from {} found", pair[0].to(), pair[1].from());
            return Err(Error::Input(what));
        }
        if pair[0].vertex_bound() > pair[1].vertex_bound() {
            return Err(pair[1].corrupt("a level with fewer vertices than the one before").into());
        }
    }
    let (died, returned) = net_deaths(levels)?;
    writer.begin_level(first.from(), last.to(), last.vertex_bound(), &died, &returned)?;
    let num_sides = if options.stores_in_lists() { 2 } else { 1 };
    SIDES.into_iter().take(num_sides).try_for_each(|side| compose_side(levels, side, writer))?;
    for changes in net_properties(levels)? {
        writer.append_properties(changes.column(), changes.as_ref())?;
    }
    Ok(())
}

/// What changed in the properties over these levels, column by column; without those in which nothing did.
pub(crate) fn net_properties(levels: &[Level]) -> Result<Vec<PropertyChanges>> {
    let mut columns: Vec<u32> = levels.iter().flat_map(Level::property_columns).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut net = Vec::new();
    for column in columns {
        let parts = levels.iter().filter_map(|level| level.property_changes(column).transpose());
        net.push(compose_properties(column, &parts.collect::<base::Result<Vec<_>>>()?));
    }
    net.retain(|changes| !changes.is_empty());
    Ok(net)
}

/// Who died in these levels and did not return, and the other way round; both ascend.
pub(crate) fn net_deaths(levels: &[Level]) -> Result<(Vec<VertexId>, Vec<VertexId>)> {
    let mut signed: Vec<(VertexId, i32)> = Vec::new();
    for level in levels {
        signed.extend(level.died()?.iter().map(|&vertex| (vertex, 1)));
        signed.extend(level.returned()?.iter().map(|&vertex| (vertex, -1)));
    }
    signed.sort_unstable();
    let (mut died, mut returned) = (Vec::new(), Vec::new());
    for same in signed.chunk_by(|a, b| a.0 == b.0) {
        match same.iter().map(|(_, sign)| sign).sum::<i32>() {
            0 => {}
            1.. => died.push(same[0].0),
            _ => returned.push(same[0].0),
        }
    }
    Ok((died, returned))
}

fn compose_side(levels: &[Level], side: Side, writer: &mut LevelWriter) -> Result<()> {
    let mut touched: Vec<(u32, u32)> = Vec::new();
    for (index, level) in levels.iter().enumerate() {
        touched.extend(level.pages(side)?.into_iter().map(|page| (page, index as u32)));
    }
    touched.sort_unstable();
    let mut parts: Vec<PageChanges> = Vec::new();
    let (mut net, mut scratch) = (PageChanges::default(), ComposeScratch::default());
    for same_page in touched.chunk_by(|a, b| a.0 == b.0) {
        let page = same_page[0].0 as usize;
        if parts.len() < same_page.len() {
            parts.resize(same_page.len(), PageChanges::default());
        }
        for (&(_, index), part) in same_page.iter().zip(&mut parts) {
            levels[index as usize].read_page(side, page, part)?;
        }
        compose(&parts[..same_page.len()], &mut net, &mut scratch);
        writer.append_page(side, page, &net)?;
    }
    Ok(())
}
