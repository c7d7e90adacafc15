//! Stored preparation: forms that kernels make of a graph, stored beside the base.

use std::time::Instant;

use anden_engine::StoredForms;
use anden_graph::StoredFormKey;
use anden_kernels::stored;

use crate::job::Kernel;
use crate::{Database, Error, Job, Result, View};

/// Result of [`Database::prepare`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrepareReport {
    /// The forms that the kernels read, in the order of the names, or of the table of kernels.
    pub forms: Vec<FormReport>,
    /// The named kernels that need no form on this graph.
    pub without: Vec<&'static str>,
}

/// A stored form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormReport {
    /// The name of the form: `bins`, `oriented` or `in-lists`.
    pub form: &'static str,
    /// The kernels that asked for it.
    pub kernels: Vec<&'static str>,
    /// Bytes of its file.
    pub bytes: u64,
    /// Seconds until it was stored, or found to be whole.
    pub seconds: f64,
    /// Whether it was stored already. Then nothing was written.
    pub was_stored: bool,
}

impl Database {
    /// Stores what these kernels prepare from the graph, so that the first run of a later process reads it; without
    /// names, what all kernels prepare. Results do not depend on it.
    ///
    /// PageRank prepares bins, triangles and clustering coefficients an oriented copy, k-core and label propagation
    /// in-lists for a graph without them. A form that a run without parameters would not read is left out. A form that
    /// is stored already stays as it is, unless its file is missing or damaged. A form serves runs on the base, without
    /// later changes, and leaves the database with the base: with the next merge.
    ///
    /// *Cost*: that of the preparation, and writing the forms. Memory: the largest form, and its making.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options { in_edges: false, ..Options::default() })?;
    /// db.apply(&[Update::add_edge(1, 2), Update::add_edge(2, 3)])?;
    /// db.checkpoint(None)?;
    /// db.merge()?;
    /// let report = db.prepare(&["kcore", "cdlp"])?;
    /// assert_eq!((report.forms[0].form, report.forms[0].kernels.len()), ("in-lists", 2));
    /// assert!(db.prepare(&["kcore"])?.forms[0].was_stored);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: an unknown kernel, or changes over the base: checkpoint and merge first.
    /// [`Error::ReadOnly`]; [`Error::Memory`]; errors of the disk; damage met on the way; cancellation. Forms that were
    /// stored before the error stay.
    pub fn prepare(&self, kernels: &[&str]) -> Result<PrepareReport> {
        let mut named: Vec<&Kernel> = Vec::new();
        for kernel in kernels {
            let kernel = Job::entry(kernel)?;
            // A repeated name asks for nothing more.
            if !named.iter().any(|other| other.name == kernel.name) {
                named.push(kernel);
            }
        }
        let view = self.view()?;
        let version = self.inner().require_base(view.lists())?;
        let mut wanted: Vec<(StoredFormKey, Vec<&'static str>)> = Vec::new();
        let mut without = Vec::new();
        let all: Vec<&Kernel> = Job::table().iter().collect();
        for kernel in if named.is_empty() { &all } else { &named } {
            match (kernel.prepares)(&view.context(), view.lists()) {
                // Several kernels may read one form.
                Some(key) => match wanted.iter_mut().find(|(other, _)| *other == key) {
                    Some((_, names)) => names.push(kernel.name),
                    None => wanted.push((key, vec![kernel.name])),
                },
                None if named.is_empty() => {}
                None => without.push(kernel.name),
            }
        }
        let store = |(key, kernels): (StoredFormKey, _)| {
            let start = Instant::now();
            let stored = self.whole_form(key);
            let (was_stored, bytes) = match stored {
                Some(bytes) => (true, bytes),
                None => (false, self.store_form(&view, version, key)?),
            };
            Ok(FormReport { form: key.form.name(), kernels, bytes, seconds: start.elapsed().as_secs_f64(), was_stored })
        };
        Ok(PrepareReport { forms: wanted.into_iter().map(store).collect::<Result<_>>()?, without })
    }

    /// The stored forms, with their parameters, and the bytes of their files.
    pub fn prepared(&self) -> Vec<(String, u64)> {
        let stored = self.inner().stored_forms();
        stored.iter().flat_map(StoredForms::list).map(|(key, bytes)| (key.to_string(), bytes)).collect()
    }

    /// The bytes of a stored form; `None` if it is not stored, or its file is missing or damaged.
    fn whole_form(&self, key: StoredFormKey) -> Option<u64> {
        let stored = self.inner().stored_forms()?;
        stored.open(key)?.and_then(|file| file.verify(self.session().pool())).ok()?;
        stored.list().find(|(other, _)| *other == key).map(|(_, bytes)| bytes)
    }

    /// Stores a form of the base's version, which `view` shows.
    fn store_form(&self, view: &View, version: u32, key: StoredFormKey) -> Result<u64> {
        let progress = self.session().progress();
        let stored = stored::prepare(&view.context(), view.lists(), key, |arrays| {
            progress.stage("storing", None);
            self.inner().store_form(version, key, arrays, progress)
        });
        Ok(view.explained(stored)??)
    }

    /// Compares each stored form with the base.
    pub(crate) fn verify_forms(&self) -> Result<()> {
        let Some(stored) = self.inner().stored_forms() else { return Ok(()) };
        let base = self.inner().base_view()?;
        // A merge retired the forms meanwhile.
        if base.version() != Some(stored.version()) {
            return Ok(());
        }
        let view = self.opened(base, self.session(), "the base".into(), &self.moment());
        for (key, _) in stored.list() {
            let file = match stored.open(key) {
                Some(Ok(file)) => file,
                // A writer retired it after its checksums were verified.
                Some(Err(anden_snapshots::Error::Base(error)))
                    if error.io_kind() == Some(std::io::ErrorKind::NotFound) =>
                {
                    continue;
                }
                Some(Err(error)) => return Err(error.into()),
                None => continue,
            };
            match view.explained(stored::compare(&view.context(), view.lists(), key, &file.arrays())) {
                Ok(None) | Err(Error::Memory { .. }) => {}
                Ok(Some(what)) => return Err(file.corrupt(&what).into()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
