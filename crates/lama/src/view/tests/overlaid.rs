//! Changes laid over a version must show what the version shows that has them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::*;
use crate::{Added, AddedPiece, KeyRef, ListChanges, Underlay};

/// What leads from one version to a younger one.
#[derive(Debug)]
struct Step {
    version: Version,
    num_edges: u64,
    /// Added and removed arcs of either side.
    changes: [(Vec<ChangedArc>, Vec<ChangedArc>); 2],
    /// What lists gain, as an overlay gives it.
    added: [BTreeMap<VertexId, AddedList>; 2],
}

/// What a list gains.
#[derive(Debug, Default)]
struct AddedList {
    targets: Vec<VertexId>,
    /// The bytes of what stands beside them, in whole words.
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
        Self { targets: arcs.iter().map(|arc| arc.neighbour).collect(), words, num_bytes: bytes.len() }
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

    fn num_changes(&self, side: graph::Side, vertex: VertexId) -> ListChanges {
        let (added, removed) = &self.changes[side as usize];
        ListChanges { added: of_list(added, vertex).count(), removed: of_list(removed, vertex).count() }
    }

    fn removed(&self, side: graph::Side, vertex: VertexId) -> Cow<'_, [VertexId]> {
        of_list(&self.changes[side as usize].1, vertex).map(|arc| arc.neighbour).collect()
    }

    fn for_each_added(&self, side: graph::Side, vertex: VertexId, body: &mut AddedPiece<'_>) -> ControlFlow<()> {
        let Some(list) = self.added[side as usize].get(&vertex) else { return ControlFlow::Continue(()) };
        let entry_bytes = list.num_bytes / list.targets.len();
        // In pieces of two entries.
        for first in (0..list.targets.len()).step_by(2) {
            let end = list.targets.len().min(first + 2);
            body(&list.targets[first..end], &list.bytes()[first * entry_bytes..end * entry_bytes])?;
        }
        ControlFlow::Continue(())
    }

    fn added(&self, side: graph::Side, vertex: VertexId) -> Option<Added<'_>> {
        // Some lists are in pieces, some are not.
        let list = self.added[side as usize].get(&vertex).filter(|_| vertex % 3 != 1)?;
        Some((&list.targets, list.bytes()))
    }
}

impl History {
    /// What leads from one version to another.
    fn step(&self, from: usize, to: usize) -> Arc<Step> {
        let version = self.versions[to].clone();
        let changes = SIDES.map(|side| {
            let (old, new) = (self.arcs(from, side), self.arcs(to, side));
            (missing(&new, &old), missing(&old, &new))
        });
        let added = [&changes[0].0, &changes[1].0].map(|added| {
            let lists = added.chunk_by(|a, b| a.list == b.list);
            lists.map(|arcs| (arcs[0].list, AddedList::new(arcs, &self.options))).collect()
        });
        let num_loops = version.arcs.iter().filter(|&&(u, v, _)| u == v).count();
        let num_edges = match self.options.direction {
            Direction::Directed => version.arcs.len(),
            Direction::Undirected => (version.arcs.len() + num_loops) / 2,
        };
        Arc::new(Step { version, num_edges: num_edges as u64, changes, added })
    }
}

#[test]
fn changes_over_a_version_show_the_one_that_has_them() {
    for (seed, options) in kinds().into_iter().enumerate().filter(|(_, options)| !options.multigraph) {
        let history = History::new(options, 5, 300, &mut Random(7000 + seed as u64));
        let disk = FaultStorage::default();
        let levels = history.levels(&disk);
        // As it is in its run; changed by a level, anew and in pieces.
        for (anchor, patch_bytes) in [(1, PLENTY), (0, PLENTY), (0, 0)] {
            let base = history.base(anchor, patch_bytes);
            let steps = levels[anchor..1].iter().map(|level| (level.clone(), Sense::Forward)).collect();
            let view = View::open(history.parts(&base, steps, 1)).unwrap();
            let underlay = Underlay::new(&view, history.versions[4].bound);
            let sides: Vec<_> = SIDES.into_iter().filter(|&side| view.side(side).is_some()).collect();
            // Views of all versions stay as they are while more and more lists are touched.
            let mut views = Vec::new();
            for to in 1..5 {
                let step = history.step(1, to);
                for &side in &sides {
                    let (added, removed) = &step.changes[side as usize];
                    added.iter().for_each(|arc| underlay.touch(side, arc.list));
                    removed.iter().for_each(|arc| underlay.cut(side, arc.list, arc.neighbour));
                }
                views.push((to, underlay.overlaid(step)));
                for (version, view) in &views {
                    for &side in &sides {
                        let what = format!("{side:?} of {options:?}, {version} over 1 over {anchor}, {patch_bytes}");
                        assert!(read(view, side) == history.arcs(*version, side), "{what}");
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
            assert_eq!(read(&view, graph::Side::Out), history.arcs(1, graph::Side::Out), "what is below stays");
        }
    }
}

/// The degree was what is below, which is nothing on a damaged page, less what is removed.
#[test]
fn what_is_removed_from_a_damaged_page_is_damage() {
    let arcs = [1, 2, 2500].map(|target| (0, target, ArcData::default()));
    let version = |bound, arcs: &[ModelArc]| Version { bound, arcs: arcs.to_vec(), ..Version::default() };
    let history = History {
        options: kinds()[0],
        versions: vec![version(3000, &arcs), version(2000, &[]), version(2000, &arcs[2..])],
    };
    // The page has a target that is no vertex.
    let view = View::open(history.parts(&history.base(0, PLENTY), Vec::new(), 1)).unwrap();
    let underlay = Underlay::new(&view, 3000);
    let step = history.step(0, 2);
    step.changes[0].1.iter().for_each(|arc| underlay.cut(graph::Side::Out, arc.list, arc.neighbour));
    let view = underlay.overlaid(step);
    assert_eq!((view.out_degree(0), view.rough_out_degree(0)), (0, 0));
    assert!(view.check().unwrap_err().to_string().contains("a target below 2000 expected, 2500 found"));
}
