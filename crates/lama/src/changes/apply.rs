//! Applies changes to a list.

use base::VertexId;

use super::ChangedList;

/// Appends to `targets` and `weights` the list `old` with `changes` applied.
///
/// # Errors
/// What does not fit.
pub(crate) fn apply(
    old: (&[VertexId], &[u64]),
    changes: &ChangedList<'_>,
    multigraph: bool,
    targets: &mut Vec<VertexId>,
    weights: &mut Vec<u64>,
) -> Result<(), String> {
    let _ = (old, changes, multigraph, targets, weights);
    Err("not there yet".into())
}
