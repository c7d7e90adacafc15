//! A window that moves with a stream of batches.

use engine::Retention;

use crate::{Changes, Database, Error, Result, View};

/// The last batches of a stream, as a graph: [`push`](Self::push) appends one, and the oldest leaves the window.
///
/// Each batch is a snapshot, and the database keeps as many as the window has, and the one before them. What a
/// window shows is what it added: the edges that are there at its end and were not, or had another weight, before
/// its first batch. An edge that is removed leaves it at once; one that the window removed and added again as it
/// was is not in it. What a batch added stays in the database, and in [`Database::view`], when the batch leaves.
///
/// Whatever makes a snapshot moves the window by one: an append of files, or a [checkpoint](Database::checkpoint) of
/// what was [applied](Database::apply), which a push makes by itself of what lies there.
///
/// Cost: a batch is written once when it comes, and a few times in all when what left the window is packed, whatever
/// the number of batches before it; a view reads the batches of the window. Merges into the base run come as after
/// any append: a batch that one is due after takes as long as writing the graph anew.
///
/// # Source
/// Macko, Marathe, Margo, Seltzer: LLAMA, ICDE 2015, section IV (streaming). There a window's edges are all that there
/// is; here the database keeps what left it.
#[derive(Debug)]
pub struct SlidingWindow<'a> {
    database: &'a Database,
    num_batches: u32,
}

impl Database {
    /// The last `num_batches` snapshots as a window that moves with every new one. Sets the retention accordingly,
    /// also for later openings: older snapshots without names go now. The oldest of all snapshots is never in it.
    ///
    /// ```
    /// use anden::{Changes, Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let window = db.sliding_window(2)?;
    /// window.push(&Changes::default().add_edge(1, 2))?;
    /// window.push(&Changes::default().add_edge(2, 3))?;
    /// let view = window.push(&Changes::default().add_edge(3, 4))?;
    /// assert!(view.has_edge(2, 3)? && !view.has_edge(1, 2)?);
    /// assert_eq!((view.num_edges(), db.view()?.num_edges()), (2, 3));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: a window without batches, or the database is open for reading only; the disk fails.
    pub fn sliding_window(&self, num_batches: u32) -> Result<SlidingWindow<'_>> {
        let num_kept = num_batches.checked_add(1).filter(|_| num_batches > 0);
        let num_kept = num_kept.ok_or_else(|| Error::InvalidInput(format!("a window of {num_batches} batches")))?;
        self.retain(Retention::Last(num_kept))?;
        Ok(SlidingWindow { database: self, num_batches })
    }
}

impl SlidingWindow<'_> {
    /// Appends a batch; gives the window with it.
    ///
    /// # Errors
    /// As [`Database::append`]; the window has then not moved.
    pub fn push(&self, batch: &Changes) -> Result<View> {
        self.database.append(batch)?;
        self.view()
    }

    /// The window as it is; without edges while there is no batch. All vertices of the newest snapshot are in it.
    ///
    /// # Errors
    /// Damage in what it needs.
    pub fn view(&self) -> Result<View> {
        let (graph, numbers) = self.database.inner().newest_window(self.num_batches)?;
        let name = match numbers {
            Some(numbers) => format!("window {}..{}", numbers.start(), numbers.end()),
            None => "window without snapshots".to_owned(),
        };
        Ok(self.database.opened(graph, self.database.session(), name))
    }
}
