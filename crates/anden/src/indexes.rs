//! Indexes of properties: lookup by value, and values that are unique.

use crate::{Database, Error, IndexInfo, IndexKind, Result};

/// What has indexes, as [`Database::create_index`] calls it.
const VERTEX: &str = "vertex";

/// Indexes. Only the properties of vertices have some: `of` is `"vertex"`.
impl Database {
    /// Makes an index of a property, which [`View::find_vertices`](crate::View::find_vertices) and
    /// [`Transaction::find`](crate::Transaction::find) use from then on, on all snapshots. It is kept up to date by all
    /// that changes the database.
    ///
    /// With [`IndexKind::Unique`], no two vertices have the same value; any number have none. A transaction learns of a
    /// second one when it sets it, `apply` and `append` when they are done, and nothing of theirs has happened
    /// ([`Error::UniqueViolation`]).
    ///
    /// What was committed since the newest snapshot becomes a snapshot first. Others read and commit while the index is
    /// collected, and commits wait while it is written. When this returns, it survives a power cut; a crash before leaves
    /// the database without it.
    ///
    /// Cost: reads the property in all snapshots; 8 bytes a value on disk, 16 in memory meanwhile.
    ///
    /// ```
    /// use anden::{Database, Error, IndexKind, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.transact(|tx| tx.set(1, "email", "ann@example.org"))?;
    /// db.create_index("vertex", "email", IndexKind::Unique)?;
    /// let view = db.view()?;
    /// assert_eq!(view.find_vertices("email", "ann@example.org")?, [view.vertex(1)?]);
    ///
    /// let mut tx = db.begin()?;
    /// let refused = tx.set(2, "email", "ann@example.org");
    /// assert!(matches!(refused, Err(Error::UniqueViolation(_))));
    /// tx.set(2, "email", "bob@example.org")?;
    /// tx.commit()?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: there is no such property, it has an index, or two vertices have the same value and the
    /// index is to be unique, and both are named. [`Error::Unsupported`]: `of` is not `"vertex"`. [`Error::Memory`].
    /// The database is open for reading only; the disk fails; cancellation. There is no index then.
    pub fn create_index(&self, of: &str, property: &str, kind: IndexKind) -> Result<()> {
        require_vertex(of)?;
        Ok(self.inner().create_index(property, kind, self.session().progress())?)
    }

    /// Drops the index of a property. What was committed since the newest snapshot becomes a snapshot first.
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: there is none. The database is open for reading only; the disk fails.
    pub fn drop_index(&self, of: &str, property: &str) -> Result<()> {
        require_vertex(of)?;
        Ok(self.inner().drop_index(property)?)
    }

    /// The indexes, in the order of their properties.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.inner().indexes()
    }
}

fn require_vertex(of: &str) -> Result<()> {
    match of {
        VERTEX => Ok(()),
        other => {
            let what = format!("cannot change the index of a property of {other:?}: only {VERTEX:?} has indexes");
            Err(Error::Unsupported(what))
        }
    }
}
