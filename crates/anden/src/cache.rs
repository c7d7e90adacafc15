//! The cache of a database: laid-out parts of snapshots, and the forms of snapshots and parts that kernels prepared.
//!
//! Both kinds share one limit of bytes, and the least recently used entry leaves first. A kernel that needs the memory
//! itself [shrinks](PreparationCache::shrink) the cache. The cache is cleared when snapshots or files leave the
//! database, because parts hold files open.
//!
//! Nothing of windows and of memtable versions is cached. A window depends on the snapshot before it, which may be
//! dropped. A memtable version is replaced by each commit, and an entry would pin its memory. For memtable versions,
//! the cache holds the part of the snapshot below.
//!
//! The view of a snapshot whose forms are [stored](crate::Database::prepare) also reads these, without a limit: they
//! enter the cache like forms that a kernel made.

use std::any::Any;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_engine::StoredForms;
use anden_graph::{Graph, StoredFormKey, StoredFormReader};
use anden_kernels::{PreparationCache, PreparationKey};
use anden_snapshots::SnapshotView;
use parking_lot::Mutex;

use crate::Session;
use crate::session::CACHE_SHARE;

/// Bytes of the offsets of one vertex, in both directions.
const OFFSET_BYTES: u64 = 8;
/// Maximum number of entries, because a lookup visits all of them.
const MAX_ENTRIES: usize = 64;

/// The cache of a database at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Bytes of all entries. What a kernel uses at this moment is not among them.
    pub bytes: u64,
    /// Number of entries: parts of snapshots, and forms that kernels prepared.
    pub entries: usize,
    /// Bytes that the cache may take; without a limit of the session, a share of the free memory.
    pub limit_bytes: u64,
}

/// The cache that all views of a database share.
#[derive(Debug, Default)]
pub(crate) struct GraphCache(Mutex<CacheEntries>);

#[derive(Debug, Default)]
struct CacheEntries {
    /// In LRU order: the most recent one is last.
    list: Vec<CacheEntry>,
    /// The number of times that the cache was cleared.
    generation: u64,
}

#[derive(Debug)]
struct CacheEntry {
    shown: CachedGraph,
    form: CachedForm,
    num_bytes: u64,
}

#[derive(Debug)]
enum CachedForm {
    /// The lists of a part.
    Part(Box<SnapshotView>),
    /// What a kernel prepared.
    Preparation(PreparationKey, Box<dyn Any + Send>),
}

/// The graph that a view shows. Two views with equal values show equal graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CachedGraph {
    /// A snapshot, by its unique version number.
    Version(u32),
    /// A part, by the name of the graph that it is a part of, and its predicates.
    Part(String),
}

/// The cache at a moment before a graph was read. An older graph may hold files that left the database since, so what
/// is made of it is not cached after the next clearing.
#[derive(Clone, Debug)]
pub(crate) struct CacheMoment {
    cache: Arc<GraphCache>,
    generation: u64,
    stored: Option<Arc<StoredForms>>,
}

/// The entries of one view in the cache.
#[derive(Clone, Debug)]
pub(crate) struct ViewCache {
    moment: CacheMoment,
    /// The limit of the session in bytes; `None`: a share of the free memory.
    limit: Option<u64>,
    /// `None`: the view is no snapshot and no part of one, so nothing of it is cached.
    shown: Option<CachedGraph>,
    /// The forms that the database stores of this graph.
    stored: Option<Arc<StoredForms>>,
}

impl GraphCache {
    /// The present moment, at which these forms are stored.
    pub(crate) fn now(self: &Arc<Self>, stored: Option<StoredForms>) -> CacheMoment {
        CacheMoment { cache: Arc::clone(self), generation: self.0.lock().generation, stored: stored.map(Arc::new) }
    }

    /// Drops all entries, which closes the files that they hold.
    pub(crate) fn clear(&self) {
        let mut entries = self.0.lock();
        entries.generation += 1;
        let old = std::mem::take(&mut entries.list);
        drop(entries);
        // Closing files and freeing memory takes time, so it happens outside of the lock.
        drop(old);
    }

    /// Drops the least recently used entries until the rest takes at most `num_bytes`.
    pub(crate) fn shrink(&self, num_bytes: u64) {
        let evicted = self.0.lock().shrink(num_bytes);
        drop(evicted);
    }

    /// Drops all entries if the session has a budget: before work that may take all of it.
    pub(crate) fn yield_budget(&self, session: &Session) {
        if session.memory().is_some() {
            self.shrink(0);
        }
    }

    /// The size of the cache, and its limit in this session.
    pub(crate) fn stats(&self, session: &Session) -> CacheStats {
        let limit_bytes = self.limit(session.cache_limit());
        let entries = self.0.lock();
        CacheStats { bytes: entries.num_bytes(), entries: entries.list.len(), limit_bytes }
    }

    /// The limit of a session in bytes, or else a share of the memory that would be free without the cache.
    fn limit(&self, limit: Option<u64>) -> u64 {
        limit.unwrap_or_else(|| (anden_base::memory::available() + self.num_bytes()) / CACHE_SHARE)
    }

    fn num_bytes(&self) -> u64 {
        self.0.lock().num_bytes()
    }
}

impl CacheEntries {
    fn num_bytes(&self) -> u64 {
        self.list.iter().map(|entry| entry.num_bytes).sum()
    }

    fn shrink(&mut self, num_bytes: u64) -> Vec<CacheEntry> {
        let mut held = self.num_bytes();
        let is_too_much = |entry: &&CacheEntry| {
            let is_too_much = held > num_bytes;
            held -= entry.num_bytes;
            is_too_much
        };
        let num_evicted = self.list.iter().take_while(is_too_much).count();
        self.list.drain(..num_evicted).collect()
    }
}

impl CacheMoment {
    /// The entries of a view that shows `lists`.
    pub(crate) fn of(&self, lists: &SnapshotView, session: &Session) -> ViewCache {
        let shown = lists.version().map(CachedGraph::Version);
        // A version number means one graph, whatever base holds it.
        let stored = self.stored.clone().filter(|stored| lists.version() == Some(stored.version()));
        ViewCache { moment: self.clone(), limit: session.cache_limit(), shown, stored }
    }

    /// The entries of the snapshot under a memtable.
    pub(crate) fn below(&self, lists: &SnapshotView, session: &Session) -> ViewCache {
        let shown = lists.below().and_then(|below| below.version()).map(CachedGraph::Version);
        ViewCache { moment: self.clone(), limit: session.cache_limit(), shown, stored: None }
    }
}

impl ViewCache {
    /// The entries of the part that these predicates select.
    pub(crate) fn part(&self, edges: Option<&str>, vertices: Option<&str>) -> Self {
        let whole = self.shown.as_ref().map(|shown| match shown {
            CachedGraph::Version(number) => number.to_string(),
            CachedGraph::Part(name) => name.clone(),
        });
        // Quotes keep the parts of the name apart, so two filters never share a name.
        let shown = whole.map(|whole| CachedGraph::Part(format!("{whole}, {edges:?}, {vertices:?}")));
        Self { shown, stored: None, ..self.clone() }
    }

    /// Entries of a part without a name, of which nothing is cached.
    pub(crate) fn unnamed(&self) -> Self {
        Self { shown: None, ..self.clone() }
    }

    /// Whether nothing is cached.
    pub(crate) fn is_off(&self) -> bool {
        self.limit == Some(0)
    }

    /// Whether the database stores forms of this graph.
    pub(crate) fn has_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Whether the view is a snapshot or a part of one.
    pub(crate) fn is_named(&self) -> bool {
        self.shown.is_some()
    }

    /// Bytes of all entries, of other views too.
    pub(crate) fn num_bytes(&self) -> u64 {
        self.moment.cache.num_bytes()
    }

    /// As [`GraphCache::yield_budget`].
    pub(crate) fn yield_budget(&self, session: &Session) {
        self.moment.cache.yield_budget(session);
    }

    /// Looks the lists of the part up, and marks them as most recent.
    pub(crate) fn find_part(&self) -> Option<SnapshotView> {
        let mut entries = self.moment.cache.0.lock();
        let entry = self.remove(&mut entries, |form| matches!(form, CachedForm::Part(_)))?;
        let lists = match &entry.form {
            CachedForm::Part(lists) => Some(SnapshotView::clone(lists)),
            CachedForm::Preparation(..) => None,
        };
        entries.list.push(entry);
        lists
    }

    /// Caches the lists of the part.
    pub(crate) fn keep_part(&self, lists: &SnapshotView) {
        // A part of few edges still has offsets for all vertices, which `stored_bytes` leaves out.
        let num_bytes = lists.stored_bytes() + OFFSET_BYTES * lists.vertex_bound() as u64;
        self.add(CachedForm::Part(Box::new(lists.clone())), num_bytes);
    }

    /// Takes an entry out of the list. An older view finds none, because it could not put the entry back.
    fn remove(&self, entries: &mut CacheEntries, is_wanted: impl Fn(&CachedForm) -> bool) -> Option<CacheEntry> {
        let shown = self.shown.as_ref().filter(|_| entries.generation == self.moment.generation)?;
        let place = entries.list.iter().position(|entry| entry.shown == *shown && is_wanted(&entry.form))?;
        Some(entries.list.remove(place))
    }

    fn add(&self, form: CachedForm, num_bytes: u64) {
        let Some(shown) = self.shown.clone().filter(|_| !self.is_off()) else { return };
        // Measured before the lock: the free memory is read from files of the system.
        let limit = self.moment.cache.limit(self.limit);
        let mut entries = self.moment.cache.0.lock();
        if num_bytes > limit || entries.generation != self.moment.generation {
            return;
        }
        // Two views may have made one form at the same time: one copy stays.
        let replaced = self.remove(&mut entries, |other| form.replaces(other));
        let mut evicted = entries.shrink(limit - num_bytes);
        if entries.list.len() == MAX_ENTRIES {
            evicted.push(entries.list.remove(0));
        }
        entries.list.push(CacheEntry { shown, form, num_bytes });
        // Freed outside of the lock, because that takes time.
        drop(entries);
        drop((replaced, evicted));
    }
}

impl CachedForm {
    fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Part(_), Self::Part(_)) => true,
            (Self::Preparation(key, _), Self::Preparation(other, _)) => key == other,
            _ => false,
        }
    }
}

impl PreparationCache for ViewCache {
    fn take(&self, key: PreparationKey) -> Option<Box<dyn Any + Send>> {
        let is_wanted = |form: &CachedForm| matches!(form, CachedForm::Preparation(other, _) if *other == key);
        let entry = self.remove(&mut self.moment.cache.0.lock(), is_wanted)?;
        match entry.form {
            CachedForm::Preparation(_, form) => Some(form),
            CachedForm::Part(_) => None,
        }
    }

    fn keep(&self, key: PreparationKey, form: Box<dyn Any + Send>, num_bytes: u64) {
        self.add(CachedForm::Preparation(key, form), num_bytes);
    }

    fn read_stored(&self, key: StoredFormKey, pool: &Pool, take: &mut StoredFormReader<'_>) {
        if let Some(stored) = &self.stored {
            stored.read(key, pool, take);
        }
    }

    fn shrink(&self, num_bytes: u64) {
        self.moment.cache.shrink(num_bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use anden_graph::Direction;

    use super::*;
    use crate::{Database, GraphKind, Options, Update, View};

    fn names(db: &Database) -> Vec<String> {
        db.cache().0.lock().list.iter().map(|entry| format!("{:?}", entry.shown)).collect()
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

    fn forms(cache: &ViewCache) -> Vec<u64> {
        let key = |entry: &CacheEntry| match entry.form {
            CachedForm::Preparation(key, _) => (0..9).find(|&number| key == PreparationKey::of::<u8>(number)),
            CachedForm::Part(_) => None,
        };
        cache.moment.cache.0.lock().list.iter().filter_map(key).collect()
    }

    #[test]
    fn least_recently_used_forms_leave_first() {
        let session = Session::new(1).unwrap().with_cache(Some(100));
        let db = Database::in_memory_with(Options::default(), &session).unwrap();
        db.apply(&[Update::add_edge(1, 2)]).unwrap();
        db.checkpoint(None).unwrap();
        let view = db.view().unwrap();
        let cache = view.cache();
        let keep = |number: u64, num_bytes| cache.keep(PreparationKey::of::<u8>(number), Box::new(7_u8), num_bytes);
        keep(0, 101);
        assert!(forms(cache).is_empty(), "larger than the limit");
        (0..3).for_each(|number| keep(number, 40));
        assert_eq!((forms(cache), cache.num_bytes()), (vec![1, 2], 80));
        // A form that was used counts as recent once it is back, and leaves its bytes to others meanwhile.
        assert!(cache.take(PreparationKey::of::<u8>(1)).is_some() && cache.take(PreparationKey::of::<u8>(1)).is_none());
        assert_eq!(cache.num_bytes(), 40);
        keep(1, 40);
        keep(3, 20);
        keep(4, 20);
        assert_eq!(forms(cache), [1, 3, 4]);
        // Forms are replaced, not doubled.
        keep(1, 30);
        assert_eq!((forms(cache), cache.num_bytes()), (vec![3, 4, 1], 70));
        cache.shrink(50);
        assert_eq!((forms(cache), cache.num_bytes()), (vec![4, 1], 50));
        // Parts count in the same limit.
        assert_eq!(view.filter(Some("TRUE"), None).unwrap().num_edges(), 1);
        assert_eq!((names(&db).len(), cache.num_bytes() > 50), (3, true));
        keep(5, 90);
        assert_eq!((forms(cache), names(&db).len()), (vec![5], 1));
    }

    /// An entry that an old view adds after the clearing would hold retired files.
    #[test]
    fn views_from_before_a_clearing_cache_nothing() {
        let db = Database::in_memory(Options::default()).unwrap();
        db.apply(&[Update::add_edge(1, 2)]).unwrap();
        db.checkpoint(None).unwrap();
        let old = db.view().unwrap();
        db.cache().clear();
        assert_eq!(old.filter(Some("TRUE"), None).unwrap().num_edges(), 1);
        assert!(names(&db).is_empty());
        assert_eq!(db.view().unwrap().filter(Some("TRUE"), None).unwrap().num_edges(), 1);
        assert_eq!(names(&db).len(), 1);
        // Nor does it take an entry, which it could not put back.
        assert_eq!(old.filter(Some("TRUE"), None).unwrap().num_edges(), 1);
        assert_eq!(names(&db).len(), 1);
    }

    /// Regression: only explicit merges cleared the cache, so files of merged deltas stayed open.
    #[test]
    fn maintenance_and_retention_clear_the_cache() {
        let db = Database::in_memory(Options::default()).unwrap();
        let cached = |number: u32| {
            assert!(db.snapshot(number).unwrap().filter(Some("TRUE"), None).unwrap().num_edges() > 0);
            names(&db).len()
        };
        for first in [0, 5000] {
            let edges: Vec<_> = (first..first + 5000_u64).map(|vertex| Update::add_edge(vertex, vertex + 1)).collect();
            db.apply(&edges).unwrap();
            db.checkpoint(None).unwrap();
        }
        let newest = db.snapshots().last().unwrap().number;
        assert_eq!(cached(newest), 1);
        // The background thread calls this function.
        let merged = db.inner().maintain(db.session().pool(), db.session().progress()).unwrap();
        assert!(merged.is_some() && names(&db).is_empty());
        assert_eq!((cached(newest), cached(newest - 1)), (1, 2));
        db.retain(crate::Retention::Last(1)).unwrap();
        assert!(names(&db).is_empty());
    }

    #[test]
    fn readers_that_refresh_forget_merged_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let db = Database::create(&path, Options::default()).unwrap();
        for target in [2, 3] {
            db.apply(&[Update::add_edge(1, target)]).unwrap();
            db.checkpoint(None).unwrap();
        }
        let reader = Database::open_read_only(&path).unwrap();
        assert_eq!(reader.view().unwrap().filter(Some("TRUE"), None).unwrap().num_edges(), 2);
        db.apply(&[Update::add_edge(1, 4)]).unwrap();
        assert!(reader.refresh().unwrap());
        assert_eq!(names(&reader).len(), 1, "a commit retires nothing");
        db.merge().unwrap();
        assert!(reader.refresh().unwrap() && names(&reader).is_empty());
    }

    #[test]
    fn budgets_limit_the_cache() {
        let session = Session::new(1).unwrap().with_memory(Some(64 << 20));
        let db = Database::in_memory_with(Options::default(), &session).unwrap();
        db.apply(&[Update::add_edge(1, 2)]).unwrap();
        db.checkpoint(None).unwrap();
        let view = db.view().unwrap();
        assert_eq!(view.filter(Some("TRUE"), None).unwrap().num_edges(), 1);
        assert_eq!(names(&db).len(), 1);
        view.cache().keep(PreparationKey::of::<u8>(1), Box::new(7_u8), 16 << 20);
        assert_eq!((forms(view.cache()), names(&db).len()), (vec![1], 1));
        view.cache().keep(PreparationKey::of::<u8>(2), Box::new(7_u8), (16 << 20) + 1);
        assert_eq!(forms(view.cache()), [1]);
        // A kernel gets what the cache holds before it is refused memory.
        let context = view.context();
        let limit = context.memory.unwrap();
        context.require_memory("a test", limit - (16 << 20)).unwrap();
        assert_eq!(forms(view.cache()), [1]);
        context.require_memory("a test", limit).unwrap();
        assert!(forms(view.cache()).is_empty());
        // So does an append, which counts no bytes of the cache.
        view.cache().keep(PreparationKey::of::<u8>(1), Box::new(7_u8), 1 << 20);
        db.append(&crate::Changes::default().add_edge(1, 3)).unwrap();
        assert!(forms(view.cache()).is_empty());
    }
}
