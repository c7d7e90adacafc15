//! A version under changes in memory must equal the version that contains the changes.

use anden_graph::Direction;
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::*;
use crate::{Added, AddedFragment, KeyRef, ListChanges, OverlayBase};

/// The changes from one version to a younger one.
#[derive(Debug)]
struct Step {
    version: Version,
    num_edges: u64,
    /// Added and removed arcs of both directions.
    changes: [(Vec<ChangedArc>, Vec<ChangedArc>); 2],
    /// Additions of lists, as an overlay gives them.
    added: [BTreeMap<VertexId, AddedList>; 2],
}

/// Additions of a list.
#[derive(Debug, Default)]
struct AddedList {
    targets: Vec<VertexId>,
    /// Rows and weights beside them, as whole words.
    words: Vec<u64>,
    num_bytes: usize,
}

impl AddedList {
    fn new(arcs: &[ChangedArc], options: &GraphOptions) -> Self {
        let bytes_of = |ChangedArc { data, .. }: &ChangedArc| match (options.weight_type.is_some(), options.has_rows())
        {
            (false, false) => Vec::new(),
            (true, false) => (data.weight as u32).to_le_bytes().to_vec(),
            (false, true) => data.row.to_le_bytes().to_vec(),
            (true, true) => [data.row.to_le_bytes(), data.weight.to_le_bytes()].concat(),
        };
        let bytes: Vec<u8> = arcs.iter().flat_map(bytes_of).collect();
        let mut words = vec![0; bytes.len().div_ceil(size_of::<u64>())];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        Self { targets: arcs.iter().map(|arc| arc.neighbor).collect(), words, num_bytes: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.num_bytes]
    }
}

fn of_list(arcs: &[ChangedArc], vertex: VertexId) -> impl Iterator<Item = &ChangedArc> {
    arcs.iter().filter(move |arc| arc.list == vertex)
}

impl Overlay for Step {
    fn vertex_bound(&self) -> usize {
        self.version.bound
    }

    fn num_vertices(&self) -> usize {
        self.version.bound - self.version.dead.len()
    }

    fn num_edges(&self) -> u64 {
        self.num_edges
    }

    fn num_arcs(&self) -> u64 {
        self.version.arcs.len() as u64
    }

    fn is_live(&self, vertex: VertexId) -> Option<bool> {
        Some(!self.version.dead.contains(&vertex))
    }

    fn vertex(&self, _: &Key) -> Option<VertexId> {
        None
    }

    fn key(&self, _: VertexId) -> Option<KeyRef<'_>> {
        None
    }

    fn num_changes(&self, direction: Direction, vertex: VertexId) -> ListChanges {
        let (added, removed) = &self.changes[direction as usize];
        ListChanges { added: of_list(added, vertex).count(), removed: of_list(removed, vertex).count() }
    }

    fn removed(&self, direction: Direction, vertex: VertexId) -> Cow<'_, [VertexId]> {
        of_list(&self.changes[direction as usize].1, vertex).map(|arc| arc.neighbor).collect()
    }

    fn for_each_added(&self, direction: Direction, vertex: VertexId, body: &mut AddedFragment<'_>) -> ControlFlow<()> {
        let Some(list) = self.added[direction as usize].get(&vertex) else { return ControlFlow::Continue(()) };
        let entry_bytes = list.num_bytes / list.targets.len();
        // In fragments of two entries.
        for first in (0..list.targets.len()).step_by(2) {
            let end = list.targets.len().min(first + 2);
            body(&list.targets[first..end], &list.bytes()[first * entry_bytes..end * entry_bytes])?;
        }
        ControlFlow::Continue(())
    }

    fn added(&self, direction: Direction, vertex: VertexId) -> Option<Added<'_>> {
        // Some lists are in several fragments, others in one.
        let list = self.added[direction as usize].get(&vertex).filter(|_| vertex % 3 != 1)?;
        Some((&list.targets, list.bytes()))
    }
}

impl History {
    /// The changes from one version to another.
    fn step(&self, from: usize, to: usize) -> Arc<Step> {
        let version = self.versions[to].clone();
        let changes = DIRECTIONS.map(|direction| {
            let (old, new) = (self.arcs(from, direction), self.arcs(to, direction));
            (missing(&new, &old), missing(&old, &new))
        });
        let added = [&changes[0].0, &changes[1].0].map(|added| {
            let lists = added.chunk_by(|a, b| a.list == b.list);
            lists.map(|arcs| (arcs[0].list, AddedList::new(arcs, &self.options))).collect()
        });
        let num_loops = version.arcs.iter().filter(|&&(u, v, _)| u == v).count();
        let num_edges = match self.options.graph_kind {
            GraphKind::Directed => version.arcs.len(),
            GraphKind::Undirected => (version.arcs.len() + num_loops) / 2,
        };
        Arc::new(Step { version, num_edges: num_edges as u64, changes, added })
    }
}

#[test]
fn overlay_over_snapshot_shows_the_newer_version() {
    for (seed, options) in kinds().into_iter().enumerate().filter(|(_, options)| !options.multigraph) {
        let history = History::new(options, 5, 300, &mut Random::new(7000 + seed as u64));
        let disk = FaultStorage::default();
        let deltas = history.deltas(&disk);
        // As in its base; changed by a delta, with patched pages and in fragments.
        for (anchor, patch_bytes) in [(1, PLENTY), (0, PLENTY), (0, 0)] {
            let base = history.base(anchor, patch_bytes);
            let steps = deltas[anchor..1].iter().map(|delta| (delta.clone(), ApplyDirection::Forward)).collect();
            let view = SnapshotView::open(history.parts(&base, steps, 1)).unwrap();
            let overlay_base = OverlayBase::new(&view, history.versions[4].bound);
            let directions: Vec<_> =
                DIRECTIONS.into_iter().filter(|&direction| view.adjacency(direction).is_some()).collect();
            // Views of all versions keep their contents while more lists become dirty.
            let mut views = Vec::new();
            for to in 1..5 {
                let step = history.step(1, to);
                for &direction in &directions {
                    let (added, removed) = &step.changes[direction as usize];
                    added.iter().for_each(|arc| overlay_base.mark_dirty(direction, arc.list));
                    removed.iter().for_each(|arc| overlay_base.mark_tombstoned(direction, arc.list, arc.neighbor));
                }
                views.push((to, overlay_base.overlaid(step)));
                for (version, view) in &views {
                    for &direction in &directions {
                        let what =
                            format!("{direction:?} of {options:?}, {version} over 1 over {anchor}, {patch_bytes}");
                        assert!(read(view, direction) == history.arcs(*version, direction), "{what}");
                    }
                    view.check().unwrap();
                    let Version { bound, dead, arcs, .. } = &history.versions[*version];
                    assert_eq!((view.vertex_bound(), view.num_vertices()), (*bound, bound - dead.len()));
                    assert_eq!(view.num_arcs(), arcs.len() as u64);
                    assert!(
                        (0..*bound as VertexId + 1)
                            .all(|v| view.is_live(v) == (v < *bound as u32 && !dead.contains(&v)))
                    );
                }
            }
            assert_eq!(read(&view, Direction::Out), history.arcs(1, Direction::Out), "what is below stays");
        }
    }
}

/// A damaged page looks empty, so subtracting its tombstones once gave a negative degree.
#[test]
fn tombstone_over_damaged_page_is_damage() {
    let arcs = [1, 2, 2500].map(|target| (0, target, ArcData::default()));
    let version = |bound, arcs: &[ModelArc]| Version { bound, arcs: arcs.to_vec(), ..Version::default() };
    let history = History {
        options: kinds()[0],
        versions: vec![version(3000, &arcs), version(2000, &[]), version(2000, &arcs[2..])],
    };
    // The page has a target that is no vertex.
    let view = SnapshotView::open(history.parts(&history.base(0, PLENTY), Vec::new(), 1)).unwrap();
    let overlay_base = OverlayBase::new(&view, 3000);
    let step = history.step(0, 2);
    step.changes[0].1.iter().for_each(|arc| overlay_base.mark_tombstoned(Direction::Out, arc.list, arc.neighbor));
    let view = overlay_base.overlaid(step);
    assert_eq!((view.degree(Direction::Out, 0), view.rough_degree(Direction::Out, 0)), (0, 0));
    assert!(view.check().unwrap_err().to_string().contains("a target below 2000 expected, 2500 found"));
}
