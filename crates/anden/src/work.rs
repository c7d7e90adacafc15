//! Queries and analyses side by side, each kind with its share of the cores.

use crate::{Database, Result, View};

impl Database {
    /// Runs a short query on a view of everything committed. It never waits for writers and never conflicts.
    ///
    /// The query runs on the thread of the caller, once fewer than [`Split::navigational`] queries run. So the other
    /// cores stay free for [analyses](Self::analyse). Parallel loops of the view get one thread.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)])?;
    /// let path = db.navigate(|view| view.path(1, 3))?;
    /// assert_eq!(path.map(|path| path.vertices.len()), Some(3));
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// [`Split::navigational`]: crate::session::Split::navigational
    ///
    /// # Errors
    /// Errors of the query; damage met earlier; the system cannot start a thread.
    pub fn navigate<R>(&self, query: impl FnOnce(&View) -> Result<R>) -> Result<R> {
        // The view is opened once a place is free, so it shows commits of the waiting time.
        self.session().workers().navigate(|pool| query(&self.view_in(&self.session().with_pool(pool))?))?
    }

    /// Runs an analysis on a view of everything committed when it begins, with [`Split::analytics`] threads. It never
    /// waits for writers and never conflicts. Analyses run one after the other.
    ///
    /// `analysis` must not call this method. Do not keep the view: later work on it would not wait for other analyses.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)])?;
    /// let components = db.analyse(|view| view.wcc())?;
    /// assert_eq!(components, [0, 0, 0]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// [`Split::analytics`]: crate::session::Split::analytics
    ///
    /// # Errors
    /// Errors of the analysis; damage met earlier; the system cannot start a thread.
    pub fn analyse<R>(&self, analysis: impl FnOnce(&View) -> Result<R>) -> Result<R> {
        self.session().workers().analyse(|pool| analysis(&self.view_in(&self.session().with_pool(pool))?))?
    }
}
