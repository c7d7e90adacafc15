//! Queries and analyses beside each other, each kind with its share of the cores.

use crate::{Database, Result, View};

impl Database {
    /// Runs a short query on a view of everything that is committed: it never waits for who writes, and never conflicts.
    ///
    /// It runs on the thread of whoever calls, as soon as fewer queries run than [`Split::navigational`] allows, so
    /// that the rest of the cores is left to [analyses](Self::analyse). What the view runs in loops has one thread.
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
    /// [`Split::navigational`]: crate::Split::navigational
    ///
    /// # Errors
    /// What the query returns; damage that was met before; the system refuses to start a thread.
    pub fn navigate<R>(&self, query: impl FnOnce(&View) -> Result<R>) -> Result<R> {
        self.session().workers().navigate(|pool| query(&self.view_in(&self.session().with_pool(pool))?))?
    }

    /// Runs an analysis on a view of everything that is committed when it begins, with the threads that
    /// [`Split::analytics`] says. It never waits for who writes, and never conflicts; analyses wait for each other.
    ///
    /// It must not call this method itself. The view may be kept, but should not be: what is run on it later takes turns
    /// with nobody.
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
    /// [`Split::analytics`]: crate::Split::analytics
    ///
    /// # Errors
    /// What the analysis returns; damage that was met before; the system refuses to start a thread.
    pub fn analyse<R>(&self, analysis: impl FnOnce(&View) -> Result<R>) -> Result<R> {
        self.session().workers().analyse(|pool| analysis(&self.view_in(&self.session().with_pool(pool))?))?
    }
}
