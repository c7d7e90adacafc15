//! A window that moves with a stream of batches.

use anden_engine::Retention;

use crate::{Changes, Database, Error, Result, View};

/// The last batches of a stream, as a graph. [`push`](Self::push) appends a batch, and the oldest one leaves the
/// window.
///
/// Each batch is a snapshot. The database keeps the snapshots of the window and the one before it. The window shows the
/// edges that it added: they exist at its end, and did not exist, or had another weight, before its first batch. A
/// removed edge leaves the window at once. An edge that was removed and added again unchanged is not in it. When a
/// batch leaves, its edges stay in the database and in [`Database::view`].
///
/// Every new snapshot moves the window by one: an append of files, or a [checkpoint](Database::checkpoint) of
/// [applied](Database::apply) updates. A push makes a checkpoint of pending updates.
///
/// Cost: a batch is written once, and a few times more when old deltas are packed, independent of the number of earlier
/// batches. A view reads the batches of the window. As after any append, a merge may be due; such a push takes as long
/// as writing the graph.
///
/// # Source
/// Macko, Marathe, Margo, Seltzer: LLAMA, ICDE 2015, section IV (streaming). There the window is the whole graph; here
/// the database keeps older edges.
#[derive(Debug)]
pub struct SlidingWindow<'a> {
    database: &'a Database,
    num_batches: u32,
}

impl Database {
    /// The last `num_batches` snapshots, as a window that moves with each new one. Sets the retention accordingly, also
    /// for later openings: older snapshots without names are dropped now. The oldest snapshot is never in the window.
    ///
    /// ```
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let window = db.sliding_window(2)?;
    /// window.push(&Changes::default().add_edge(1, 2))?;
    /// window.push(&Changes::default().add_edge(2, 3))?;
    /// let view = window.push(&Changes::default().add_edge(3, 4))?;
    /// // Vertex 1 had its only edge before the window, so the window does not have it.
    /// assert!(view.has_edge(2, 3)? && view.vertex(1).is_err());
    /// assert_eq!((view.num_edges(), db.view()?.num_edges()), (2, 3));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: a window without batches. [`Error::ReadOnly`]: the database is open for reading only.
    /// The disk fails.
    pub fn sliding_window(&self, num_batches: u32) -> Result<SlidingWindow<'_>> {
        // The snapshot before the window is kept too, because the window is the difference to it.
        let num_kept = num_batches.checked_add(1).filter(|_| num_batches > 0);
        let num_kept =
            num_kept.ok_or_else(|| Error::InvalidInput(format!("a window of {num_batches} batches").into()))?;
        self.retain(Retention::Last(num_kept))?;
        Ok(SlidingWindow { database: self, num_batches })
    }
}

impl SlidingWindow<'_> {
    /// Appends a batch and returns the moved window.
    ///
    /// # Errors
    /// As [`Database::append`]; the window is then unchanged.
    pub fn push(&self, batch: &Changes) -> Result<View> {
        self.database.append(batch)?;
        // Read after the append, so the window may include batches of other callers.
        self.view()
    }

    /// The current window; empty before the first batch. As in every [window](Database::window), a vertex without an
    /// edge counts as removed.
    ///
    /// # Errors
    /// Damage met on the way.
    pub fn view(&self) -> Result<View> {
        let moment = self.database.moment();
        let (graph, numbers) = self.database.inner().newest_window(self.num_batches)?;
        let name = match numbers {
            Some(numbers) => format!("window {}..{}", numbers.start(), numbers.end()),
            None => "window without snapshots".to_owned(),
        };
        self.database.opened_window(graph, name, &moment)
    }
}
