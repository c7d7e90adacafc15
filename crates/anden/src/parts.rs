//! Parts of snapshots that were laid out, kept for the next question about them.
//!
//! Parts of windows and of changes that are in no snapshot are not kept. A window depends on the snapshot before it, which
//! may be dropped; changes are another version after each commit, and a part would hold their memory. What is kept is the
//! part of the snapshot that they lie over.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Session;

/// Parts that nothing uses may take this share of the free memory.
const SHARE: u64 = 8;
/// At most this many parts are kept.
const MAX_PARTS: usize = 16;

/// The lists of filtered views, by name; the part that was used last stands last.
#[derive(Debug, Default)]
pub(crate) struct Parts(Mutex<Vec<Part>>);

#[derive(Debug)]
struct Part {
    name: String,
    lists: lama::View,
    num_bytes: u64,
}

/// The name that a view has among the parts of its database. Two views with one name show the same.
#[derive(Clone, Debug)]
pub(crate) struct PartName {
    parts: Arc<Parts>,
    shown: Shown,
}

/// What a view shows. It becomes a text only when a part is asked for: most views are opened for a short question.
#[derive(Clone, Debug)]
enum Shown {
    /// The version of a snapshot; no two have one number.
    Version(u32),
    /// The name of a part.
    Part(String),
}

impl Parts {
    fn lock(&self) -> MutexGuard<'_, Vec<Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all parts, so that the files that they hold are closed.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// The name of lists, if they are those of a version.
    pub(crate) fn name_of(self: &Arc<Self>, lists: &lama::View) -> Option<PartName> {
        Some(PartName { parts: Arc::clone(self), shown: Shown::Version(lists.version()?) })
    }
}

impl PartName {
    /// The name of the part for which predicates are true.
    pub(crate) fn part(&self, edges: Option<&str>, vertices: Option<&str>) -> Self {
        let name = format!("{}, {edges:?}, {vertices:?}", self.name());
        Self { parts: Arc::clone(&self.parts), shown: Shown::Part(name) }
    }

    fn name(&self) -> Cow<'_, str> {
        match &self.shown {
            Shown::Version(number) => number.to_string().into(),
            Shown::Part(name) => name.into(),
        }
    }

    /// The lists of this name, if they are kept.
    pub(crate) fn find(&self) -> Option<lama::View> {
        let (name, mut parts) = (self.name(), self.parts.lock());
        let place = parts.iter().position(|part| part.name == name)?;
        let part = parts.remove(place);
        let lists = part.lists.clone();
        parts.push(part);
        Some(lists)
    }

    /// Keeps lists under this name, in place of those that were not used for longest. A session with a budget keeps none:
    /// its memory is for the work that it is asked for.
    pub(crate) fn keep(&self, lists: &lama::View, session: &Session) {
        if session.memory().is_some() {
            return;
        }
        let (num_bytes, room) = (lists.stored_bytes(), base::memory::available() / SHARE);
        let name = self.name();
        let mut parts = self.parts.lock();
        parts.retain(|part| part.name != name);
        let taken = |parts: &[Part]| parts.iter().map(|part| part.num_bytes).sum::<u64>();
        while !parts.is_empty() && (parts.len() >= MAX_PARTS || taken(&parts) + num_bytes > room) {
            parts.remove(0);
        }
        if num_bytes <= room {
            parts.push(Part { name: name.into_owned(), lists: lists.clone(), num_bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use graph::Graph;

    use crate::{Database, Options, Update, View};

    fn names(db: &Database) -> Vec<String> {
        db.parts().lock().iter().map(|part| part.name.clone()).collect()
    }

    /// Where the list of a vertex lies: views with the same lists have it at one place.
    fn place(view: &View) -> Option<*const u32> {
        let (mut place, vertex) = (None, view.vertex(1).unwrap());
        let _ = view.graph().for_each_out_fragment(vertex, |list| {
            place = place.or(Some(list.as_ptr()));
            ControlFlow::Continue(())
        });
        place
    }

    #[test]
    fn parts_of_snapshots_are_found_again() {
        let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
        let edge = |target: u64| Update::add_edge_with(1, target, [("amount", target as i64)]);
        db.apply(&[edge(2), edge(3), edge(4)]).unwrap();
        let number = db.checkpoint(None).unwrap().number;
        let of = |view: View, text: &str| view.filter(Some(text), None).unwrap();
        let first = of(db.snapshot(number).unwrap(), "amount > 2");
        assert_eq!((first.num_edges(), names(&db).len()), (2, 1));
        let again = of(db.snapshot(number).unwrap(), "amount > 2");
        assert_eq!((again.num_edges(), names(&db).len(), place(&again)), (2, 1, place(&first)));
        // Parts of parts have names of their own.
        assert_eq!((of(first, "amount > 3").num_edges(), names(&db).len()), (1, 2));
        assert_eq!((of(db.snapshot(number).unwrap(), "amount > 3").num_edges(), names(&db).len()), (1, 3));
        // What is committed is the newest snapshot, until changes lie over it.
        assert_eq!(of(db.view().unwrap(), "amount > 2").num_edges(), 2);
        db.apply(&[edge(5), edge(1)]).unwrap();
        // Changes are laid over the part of the snapshot.
        let live = of(db.view().unwrap(), "amount > 2");
        assert_eq!((live.num_edges(), names(&db).len(), place(&live)), (3, 3, place(&again)));
        assert_eq!(of(db.snapshot(number).unwrap(), "amount > 2").num_edges(), 2);
        db.merge().unwrap();
        assert!(names(&db).is_empty());
    }

    #[test]
    fn many_single_questions_lay_a_part_out() {
        let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
        db.apply(&[Update::add_edge_with(1, 2, [("amount", 3_i64)]), Update::add_edge(1, 3)]).unwrap();
        db.checkpoint(None).unwrap();
        let part = db.view().unwrap().filter(Some("amount > 2"), None).unwrap();
        for _ in 0..10 {
            assert_eq!(part.neighbors(1, crate::Side::Out).unwrap(), [2.into()]);
        }
        assert!(names(&db).is_empty(), "nothing is laid out for a few questions");
        for _ in 0..1_000 {
            assert_eq!(part.neighbors(1, crate::Side::Out).unwrap(), [2.into()]);
        }
        assert_eq!(names(&db).len(), 1);
        let again = db.view().unwrap().filter(Some("amount > 2"), None).unwrap();
        assert_eq!((again.num_edges(), place(&again)), (1, place(&part)));
    }

    #[test]
    fn a_budget_keeps_no_parts() {
        let session = crate::Session::new(1).unwrap().with_memory(Some(1 << 30));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        drop(Database::create(&path, Options::default()).unwrap());
        let db = Database::open_in(&path, &session).unwrap();
        db.apply(&[Update::add_edge(1, 2)]).unwrap();
        let number = db.checkpoint(None).unwrap().number;
        assert_eq!(db.snapshot(number).unwrap().filter(Some("1 = 1"), None).unwrap().num_edges(), 1);
        assert!(names(&db).is_empty());
    }
}
