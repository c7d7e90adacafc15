//! Property indexes: lookup by value, and unique values.

use crate::property::{IndexInfo, IndexKind};
use crate::{Database, Error, Result};

/// The kind of element that can have an index, as users write it.
const VERTEX: &str = "vertex";

/// Property indexes. Only vertex properties can have one: `of` is `"vertex"`.
impl Database {
    /// Creates an index of a property. [`View::find_vertices`](crate::View::find_vertices) and
    /// [`Transaction::find`](crate::Transaction::find) use the index on all snapshots. Every later change updates it.
    ///
    /// With [`IndexKind::Unique`], no two vertices may have equal values; null is allowed any number of times. A
    /// violation fails with [`Error::UniqueViolation`]: a transaction when it sets the value, `apply` and `append` at
    /// their end. Nothing is changed then.
    ///
    /// Pending changes become a snapshot first. Readers and commits continue while the values are collected; commits
    /// wait while the index is written. The index is durable when this method returns. After an earlier crash the
    /// database has no index.
    ///
    /// Cost: reads the property in all snapshots; 8 bytes a value on disk, 16 in memory meanwhile.
    ///
    /// ```
    /// use anden::{Database, Error, Options};
    /// use anden::property::IndexKind;
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.transact(|tx| tx.set(1, "email", "ann@example.org"))?;
    /// db.create_index("vertex", "email", IndexKind::Unique)?;
    /// let view = db.view()?;
    /// assert_eq!(view.find_vertices("email", "ann@example.org")?, [view.vertex(1)?]);
    ///
    /// let mut tx = db.begin()?;
    /// let refused = tx.set(2, "email", "ann@example.org");
    /// assert!(matches!(refused, Err(Error::UniqueViolation { .. })));
    /// tx.set(2, "email", "bob@example.org")?;
    /// tx.commit()?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: the property does not exist. [`Error::Exists`]: it has an index. [`Error::InvalidInput`]: a
    /// unique index finds two vertices with one value; the message names both. [`Error::Unsupported`]: `of` is not
    /// `"vertex"`. [`Error::Memory`]. The database is open for reading only; the disk fails; cancellation. No index is
    /// created then.
    pub fn create_index(&self, of: &str, property: &str, kind: IndexKind) -> Result<()> {
        require_vertex(of)?;
        Ok(self.inner().create_index(property, kind, self.session().progress())?)
    }

    /// Drops the index of a property. Pending changes become a snapshot first.
    ///
    /// # Errors
    /// [`Error::NotFound`]: the property has no index. The database is open for reading only; the disk fails.
    pub fn drop_index(&self, of: &str, property: &str) -> Result<()> {
        require_vertex(of)?;
        Ok(self.inner().drop_index(property)?)
    }

    /// All indexes, in the order of their properties.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.inner().indexes()
    }
}

fn require_vertex(of: &str) -> Result<()> {
    match of {
        VERTEX => Ok(()),
        other => {
            let what = format!("cannot change the index of a property of {other:?}: only {VERTEX:?} has indexes");
            Err(Error::Unsupported(what.into()))
        }
    }
}
