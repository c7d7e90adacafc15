//! A cache of laid-out parts of snapshots, for the next question about them.
//!
//! Parts of windows and of memtable versions are not cached. A window depends on the snapshot before it, which may be
//! dropped. A memtable version is replaced by each commit, and a part would pin its memory. For memtable versions, the
//! cache holds the part of the snapshot below.

use std::borrow::Cow;
use std::sync::Arc;

use anden_graph::Graph;
use anden_snapshots::SnapshotView;
use parking_lot::{Mutex, MutexGuard};

use crate::Session;

/// Cached parts may take one in this many bytes of the free memory.
const SHARE: u64 = 8;
/// Bytes of the offsets of one vertex, in both directions.
const OFFSET_BYTES: u64 = 8;
/// Maximum number of cached parts.
const MAX_PARTS: usize = 16;

/// Adjacency lists of filtered views by name, in LRU order: the most recent one is last.
#[derive(Debug, Default)]
pub(crate) struct PartCache(Mutex<Vec<CachedPart>>);

#[derive(Debug)]
struct CachedPart {
    name: String,
    lists: SnapshotView,
    num_bytes: u64,
}

/// The cache key of a view. Two views with equal keys show equal graphs.
#[derive(Clone, Debug)]
pub(crate) struct PartName {
    parts: Arc<PartCache>,
    shown: Shown,
}

/// The version that a view shows. Formatted only on a lookup, because most views serve one short question.
#[derive(Clone, Debug)]
enum Shown {
    /// A snapshot, by its unique version number.
    Version(u32),
    /// A part, by its name.
    Part(String),
}

impl PartCache {
    fn lock(&self) -> MutexGuard<'_, Vec<CachedPart>> {
        self.0.lock()
    }

    /// Drops all parts, which closes the files that they hold.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// The cache key of these lists; `None` if they are not exactly one snapshot.
    pub(crate) fn name_of(self: &Arc<Self>, lists: &SnapshotView) -> Option<PartName> {
        Some(PartName { parts: Arc::clone(self), shown: Shown::Version(lists.version()?) })
    }
}

impl PartName {
    /// The key of the part that these predicates select.
    pub(crate) fn part(&self, edges: Option<&str>, vertices: Option<&str>) -> Self {
        // Quotes keep the parts of the name apart, so two filters never share a name.
        let name = format!("{}, {edges:?}, {vertices:?}", self.name());
        Self { parts: Arc::clone(&self.parts), shown: Shown::Part(name) }
    }

    fn name(&self) -> Cow<'_, str> {
        match &self.shown {
            Shown::Version(number) => number.to_string().into(),
            Shown::Part(name) => name.into(),
        }
    }

    /// Looks the lists up, and marks them as most recent.
    pub(crate) fn find(&self) -> Option<SnapshotView> {
        let (name, mut parts) = (self.name(), self.parts.lock());
        let place = parts.iter().position(|part| part.name == name)?;
        let part = parts.remove(place);
        let lists = part.lists.clone();
        // Most recent parts stand last, so eviction takes the first.
        parts.push(part);
        Some(lists)
    }

    /// Caches the lists and evicts the least recent ones. A session with a memory budget caches nothing, because the
    /// budget belongs to requested work.
    pub(crate) fn keep(&self, lists: &SnapshotView, session: &Session) {
        if session.memory().is_some() {
            return;
        }
        // Measured before the lock: the free memory is read from files of the system.
        let room = anden_base::memory::available() / SHARE;
        // A part of few edges still has offsets for all vertices, which `stored_bytes` leaves out.
        let num_bytes = lists.stored_bytes() + OFFSET_BYTES * lists.vertex_bound() as u64;
        let name = self.name();
        let mut parts = self.parts.lock();
        // Two views may have laid out one part at the same time: keep one copy.
        parts.retain(|part| part.name != name);
        let taken = |parts: &[CachedPart]| parts.iter().map(|part| part.num_bytes).sum::<u64>();
        while !parts.is_empty() && (parts.len() >= MAX_PARTS || taken(&parts) + num_bytes > room) {
            parts.remove(0);
        }
        if num_bytes <= room {
            parts.push(CachedPart { name: name.into_owned(), lists: lists.clone(), num_bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use anden_graph::{Direction, Graph};

    use crate::{Database, GraphKind, Options, Update, View};

    fn names(db: &Database) -> Vec<String> {
        db.parts().lock().iter().map(|part| part.name.clone()).collect()
    }

    fn place(view: &View) -> Option<*const u32> {
        place_of(view, 1)
    }

    /// Address of a list: views that share lists have it at one address.
    fn place_of(view: &View, key: u64) -> Option<*const u32> {
        let (mut place, vertex) = (None, view.vertex(key).unwrap());
        let _ = view.graph().for_each_fragment(Direction::Out, vertex, |list| {
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
        // A part of a part has its own name.
        assert_eq!((of(first, "amount > 3").num_edges(), names(&db).len()), (1, 2));
        assert_eq!((of(db.snapshot(number).unwrap(), "amount > 3").num_edges(), names(&db).len()), (1, 3));
        // After a checkpoint, everything committed is the newest snapshot, until the memtable has changes.
        assert_eq!(of(db.view().unwrap(), "amount > 2").num_edges(), 2);
        db.apply(&[edge(5), edge(1)]).unwrap();
        // Changes are overlaid on the part of the snapshot.
        let live = of(db.view().unwrap(), "amount > 2");
        assert_eq!((live.num_edges(), names(&db).len(), place(&live)), (3, 3, place(&again)));
        assert_eq!(of(db.snapshot(number).unwrap(), "amount > 2").num_edges(), 2);
        db.merge().unwrap();
        assert!(names(&db).is_empty());
    }

    /// The arcs of a view as pairs of keys.
    fn arcs(view: &View) -> Vec<(String, String)> {
        let mut arcs = Vec::new();
        for vertex in 0..view.vertex_bound() as u32 {
            let _ = view.graph().for_each_fragment(Direction::Out, vertex, |list| {
                let ends = list.iter().map(|&target| (vertex, target));
                arcs.extend(ends.map(|(a, b)| (view.key(a).unwrap().to_string(), view.key(b).unwrap().to_string())));
                ControlFlow::Continue(())
            });
        }
        arcs.sort();
        arcs
    }

    /// Vertices that change, appear, return or go are filtered over the part of the snapshot, for each direction.
    #[test]
    fn changed_vertices_overlay_the_part_of_the_snapshot() {
        for graph_kind in [GraphKind::Directed, GraphKind::Undirected] {
            let db = Database::in_memory(Options { graph_kind, ..Options::default() }).unwrap();
            let edges =
                [(1, 2), (2, 3), (3, 3), (3, 4), (4, 1), (5, 1), (6, 2), (8, 9)].map(|(a, b)| Update::add_edge(a, b));
            db.apply(&edges).unwrap();
            let group = |vertex: u64, group: i64| Update::set_vertex(vertex, "group", group);
            db.apply(&[1, 2, 3, 8, 9].map(|vertex| group(vertex, 1))).unwrap();
            db.apply(&[group(4, 2), group(5, 2)]).unwrap();
            db.apply(&[Update::RemoveVertex(6_u64.into())]).unwrap();
            let number = db.checkpoint(None).unwrap().number;
            let filter = |view: &View, text: &str| view.filter(None, Some(text)).unwrap();
            let below = filter(&db.snapshot(number).unwrap(), "\"group\" = 1");
            assert_eq!((below.num_vertices(), place(&below).is_some()), (5, true));
            // 4 comes, 2 goes, 3 is removed, 6 returns, and 7 is new. Vertex 5 stays hidden.
            db.apply(&[group(4, 1), group(2, 2), Update::RemoveVertex(3_u64.into())]).unwrap();
            db.apply(&[Update::add_edge(6, 1), group(6, 1), Update::add_edge(1, 7), group(7, 1)]).unwrap();
            let live = db.view().unwrap();
            let part = filter(&live, "\"group\" = 1");
            let expected = match graph_kind {
                GraphKind::Directed => vec![("1", "7"), ("4", "1"), ("6", "1"), ("8", "9")],
                GraphKind::Undirected => {
                    [("1", "4"), ("1", "6"), ("1", "7"), ("4", "1"), ("6", "1"), ("7", "1"), ("8", "9"), ("9", "8")]
                        .into()
                }
            };
            let expected: Vec<_> = expected.into_iter().map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
            assert_eq!(arcs(&part), expected, "{graph_kind:?}");
            assert_eq!((part.num_vertices(), part.num_edges()), (6, 4), "{graph_kind:?}");
            assert!(part.vertex(2_u64).is_err() && part.vertex(3_u64).is_err() && part.vertex(5_u64).is_err());
            // The lists that stay are those of the part of the snapshot.
            assert_eq!(place_of(&part, 8), place_of(&below, 8), "{graph_kind:?}");
            // A property that is younger than the snapshot is null in it.
            db.apply(&[Update::set_vertex(1_u64, "color", "red"), Update::set_vertex(4_u64, "color", "red")]).unwrap();
            let red = filter(&db.view().unwrap(), "color = 'red'");
            assert_eq!((red.num_vertices(), red.num_edges()), (2, 1), "{graph_kind:?}");
            // A part of a part is laid out with all lists, and agrees.
            let anew = filter(&db.view().unwrap().filter(Some("TRUE"), None).unwrap(), "\"group\" = 1");
            assert_eq!((arcs(&anew), anew.num_vertices()), (expected, 6), "{graph_kind:?}");
        }
    }

    #[test]
    fn many_single_questions_lay_a_part_out() {
        let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
        db.apply(&[Update::add_edge_with(1, 2, [("amount", 3_i64)]), Update::add_edge(1, 3)]).unwrap();
        db.checkpoint(None).unwrap();
        let part = db.view().unwrap().filter(Some("amount > 2"), None).unwrap();
        for _ in 0..10 {
            assert_eq!(part.neighbors(1, crate::Neighbors::Out).unwrap(), [2.into()]);
        }
        assert!(names(&db).is_empty(), "nothing is laid out for a few questions");
        for _ in 0..1_000 {
            assert_eq!(part.neighbors(1, crate::Neighbors::Out).unwrap(), [2.into()]);
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
        let db = Database::open_with(&path, &crate::OpenOptions::from(&session)).unwrap();
        db.apply(&[Update::add_edge(1, 2)]).unwrap();
        let number = db.checkpoint(None).unwrap().number;
        assert_eq!(db.snapshot(number).unwrap().filter(Some("1 = 1"), None).unwrap().num_edges(), 1);
        assert!(names(&db).is_empty());
    }
}
