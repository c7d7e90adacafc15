//! Adds changes up.

use super::PageChanges;

/// Memory that [`compose`] uses again.
#[derive(Debug, Default)]
pub(crate) struct ComposeScratch {}

/// The net of `parts`, applied one after the other (oldest first).
pub(crate) fn compose(parts: &[PageChanges], out: &mut PageChanges, scratch: &mut ComposeScratch) {
    let _ = (parts, out, scratch);
}
