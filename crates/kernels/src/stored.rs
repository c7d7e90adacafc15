//! Forms that a database stores: prepared once, and read by the first runs of later processes.
//!
//! A stored form is a list of arrays of little-endian numbers. Its reader checks all that a kernel relies on, because
//! the bytes may come from another program. [`prepare`] makes a form as a run would make it; a run that finds the form
//! in its [cache](crate::PreparationCache::read_stored) copies it to memory.

use anden_graph::{Graph, StoredForm, StoredFormKey};

use crate::context::FIXED_BYTES;
use crate::pagerank::StoredBins;
use crate::transposed::{InLists, Transposed};
use crate::triangles::oriented::Oriented;
use crate::{Context, Result};

/// Prepares a form of `graph`, and passes its arrays to `take`.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn prepare<R>(
    ctx: &Context<'_>,
    graph: &impl Graph,
    key: StoredFormKey,
    take: impl FnOnce(&[Vec<&[u8]>]) -> R,
) -> Result<R> {
    match key.form {
        StoredForm::Bins => Ok(take(&StoredBins::build(ctx, graph, key.parameter)?.arrays())),
        StoredForm::Oriented => {
            let (oriented, ranks) = build_oriented(ctx, graph, key.parameter)?;
            Ok(take(&oriented.arrays(&ranks)))
        }
        StoredForm::InLists => Ok(take(&build_in_lists(ctx, graph)?.arrays())),
    }
}

/// Compares the arrays of a stored form with the form that `graph` gives now. Returns the first difference as text;
/// `None`: there is none.
///
/// # Errors
/// As [`prepare`].
pub fn compare(ctx: &Context<'_>, graph: &impl Graph, key: StoredFormKey, stored: &[&[u8]]) -> Result<Option<String>> {
    let is_equal = match key.form {
        StoredForm::Bins => are_equal(&StoredBins::build(ctx, graph, key.parameter)?.arrays(), stored),
        StoredForm::InLists => are_equal(&build_in_lists(ctx, graph)?.arrays(), stored),
        StoredForm::Oriented => {
            let found = match Oriented::from_arrays(ctx, graph, key.parameter, stored) {
                Ok(found) => found,
                Err(what) => return Ok(Some(what)),
            };
            let (oriented, ranks) = build_oriented(ctx, graph, key.parameter)?;
            found.1 == ranks && found.0.has_lists_of(&oriented)
        }
    };
    Ok((!is_equal).then(|| "the form is not that of the graph".into()))
}

fn build_oriented(ctx: &Context<'_>, graph: &impl Graph, num_hubs: u64) -> Result<(Oriented, Vec<u32>)> {
    ctx.progress.stage("triangles: orient", None);
    ctx.require_memory("the oriented copy", Oriented::num_bytes(graph, ctx.pool.num_threads()) + FIXED_BYTES)?;
    Oriented::build(ctx, graph, num_hubs.min(graph.vertex_bound() as u64) as u32)
}

fn build_in_lists(ctx: &Context<'_>, graph: &impl Graph) -> Result<InLists> {
    ctx.require_memory("in-lists", Transposed::num_bytes(graph) + FIXED_BYTES)?;
    InLists::build(ctx, graph)
}

fn are_equal(made: &[Vec<&[u8]>], stored: &[&[u8]]) -> bool {
    let is_equal = |pieces: &[&[u8]], stored: &[u8]| {
        let mut rest = stored;
        let are_equal = pieces.iter().all(|piece| rest.split_off(..piece.len()) == Some(*piece));
        are_equal && rest.is_empty()
    };
    made.len() == stored.len() && made.iter().zip(stored).all(|(pieces, stored)| is_equal(pieces, stored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_equal_as_a_whole() {
        let made = vec![vec![&[1_u8, 2][..], &[3]], vec![]];
        assert!(are_equal(&made, &[&[1, 2, 3], &[]]));
        for stored in [&[&[1_u8, 2, 3][..]][..], &[&[1, 2, 3], &[4]], &[&[1, 2], &[]], &[&[1, 2, 4], &[]]] {
            assert!(!are_equal(&made, stored), "{stored:?}");
        }
    }
}
