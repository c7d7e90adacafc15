//! Lists that are merged on demand equal those of patched pages, and patch no page.

use super::*;
use anden_graph::Direction;

/// The list of a vertex, read in every possible way.
fn list(view: &SnapshotView, lists: &AdjacencyView, vertex: VertexId) -> Vec<ModelArc> {
    let mut targets = Vec::new();
    let _ = lists.for_each_fragment(vertex, |fragment| {
        targets.extend_from_slice(fragment);
        ControlFlow::Continue(())
    });
    assert_eq!(lists.degree(vertex), targets.len());
    let in_order = |list: Vec<VertexId>| assert_eq!(list, targets);
    if view.weight_type().is_some() {
        in_order(values::<u32>(lists, vertex).into_iter().map(|(target, _)| target).collect());
    }
    if view.options().has_rows() {
        in_order(values::<ArcRow>(lists, vertex).into_iter().map(|(target, _)| target).collect());
    }
    let mut arcs = arcs_of_list(view, lists, vertex, &targets);
    // Without memory, a list is in several fragments.
    arcs.sort_unstable();
    arcs
}

#[test]
fn a_few_lists_are_read_without_their_pages() {
    let mut num_read = 0;
    for (seed, options) in kinds().into_iter().enumerate() {
        for size in [40, 900] {
            let random = &mut Random::new(seed as u64 * 100 + size as u64);
            let history = History::new(options, 7, size, random);
            let deltas = history.deltas(&FaultStorage::default());
            for anchor in [0, 3, 6] {
                for version in (0..7).filter(|&version| version != anchor) {
                    let between = |range: Range<usize>| deltas[range].iter().cloned();
                    let steps: Vec<_> = match anchor < version {
                        true => between(anchor..version).map(|delta| (delta, ApplyDirection::Forward)).collect(),
                        false => {
                            between(version..anchor).rev().map(|delta| (delta, ApplyDirection::Backward)).collect()
                        }
                    };
                    let base = history.base(anchor, PLENTY);
                    let view = SnapshotView::open(history.parts(&base, steps, version)).unwrap();
                    for direction in DIRECTIONS.into_iter().filter(|&direction| view.adjacency(direction).is_some()) {
                        let (arcs, lists) = (history.arcs(version, direction), view.adjacency(direction).unwrap());
                        for _ in 0..10 {
                            let vertex = skewed(random, view.vertex_bound());
                            let expected = arcs.iter().filter(|arc| arc.0 == vertex);
                            assert!(
                                list(&view, lists, vertex).iter().eq(expected),
                                "{direction:?} of {vertex}: {options:?}, seed {seed}, {size}, base {anchor}, {version}"
                            );
                            num_read += 1;
                        }
                        assert_eq!(lists.num_patched(), 0);
                    }
                    view.check().unwrap();
                }
            }
        }
    }
    assert!(num_read > 2_000, "{num_read}");
}

/// A version with a delta that changes its first page.
fn changed(patch_bytes: u64) -> (History, SnapshotView) {
    let history = History::new(kinds()[0], 2, 900, &mut Random::new(3));
    let deltas = history.deltas(&FaultStorage::default());
    let base = history.base(0, patch_bytes);
    let view = SnapshotView::open(history.parts(&base, vec![(deltas[0].clone(), ApplyDirection::Forward)], 1)).unwrap();
    (history, view)
}

#[test]
fn repeated_or_whole_page_reads_patch_the_page() {
    for patch_bytes in [0, PLENTY] {
        let (history, view) = changed(patch_bytes);
        let (lists, arcs) = (view.out_adjacency(), history.arcs(1, Direction::Out));
        let expected: Vec<_> = arcs.iter().filter(|arc| arc.0 == 0).copied().collect();
        for _ in 0..200 {
            assert_eq!(list(&view, lists, 0), expected);
        }
        assert_eq!(lists.num_patched(), 1);
        let wants: [fn(&AdjacencyView); 3] = [
            |lists| assert!(lists.for_each_page(0..1, |_| ControlFlow::Break(())).is_break()),
            |lists| {
                lists.for_each_fragment_of(&VertexMask::groups(0..1).next().unwrap(), |_, _| ControlFlow::Break(()))
            },
            |lists| assert!(lists.single_list(0).is_none_or(|list| list.is_sorted())),
        ];
        for want in wants {
            let (_, view) = changed(patch_bytes);
            want(view.out_adjacency());
            assert_eq!(view.out_adjacency().num_patched(), 1);
            assert_eq!(list(&view, view.out_adjacency(), 0), expected);
        }
    }
}

/// Two reads of a list can be matched by position only if no list changes its order in between.
#[test]
fn a_settled_list_keeps_its_order() {
    for settles in [false, true] {
        let mut is_kept = true;
        for (seed, options) in kinds().into_iter().enumerate().filter(|(_, options)| options.has_rows()) {
            let history = History::new(options, 2, 900, &mut Random::new(seed as u64));
            let deltas = history.deltas(&FaultStorage::default());
            let base = history.base(0, 0);
            let view = SnapshotView::open(history.parts(&base, vec![(deltas[0].clone(), ApplyDirection::Forward)], 1))
                .unwrap();
            if settles {
                (0..view.vertex_bound() as VertexId).for_each(|vertex| view.fix_list_order(vertex));
            }
            let read =
                |_| (0..view.vertex_bound() as VertexId).map(|v| values::<ArcRow>(view.out_adjacency(), v)).collect();
            let reads: Vec<Vec<_>> = (0..3).map(read).collect();
            is_kept &= reads.iter().all(|read| *read == reads[0]);
        }
        assert_eq!(is_kept, settles);
    }
}

#[test]
fn patched_page_of_another_view_is_shared() {
    let history = History::new(kinds()[2], 2, 900, &mut Random::new(4));
    let deltas = history.deltas(&FaultStorage::default());
    let base = history.base(0, PLENTY);
    let open =
        || SnapshotView::open(history.parts(&base, vec![(deltas[0].clone(), ApplyDirection::Forward)], 1)).unwrap();
    let (first, second) = (open(), open());
    assert_eq!(read(&first, Direction::In), history.arcs(1, Direction::In));
    list(&second, second.adjacency(Direction::In).unwrap(), 0);
    assert_eq!(second.adjacency(Direction::In).unwrap().num_patched(), 1);
}

#[test]
fn delta_unfit_for_list_is_damage() {
    const NONE: ArcData = ArcData::of_weight(0);
    let options = kinds()[0];
    let version = |arcs: &[ModelArc]| Version { bound: 3000, arcs: arcs.to_vec(), ..Version::default() };
    let arcs = [(0, 1, NONE), (5, 2, NONE), (1, 1, NONE)];
    let history = History { options, versions: vec![version(&arcs[..1]), version(&arcs[..2]), version(&arcs[2..])] };
    let deltas = history.deltas(&FaultStorage::default());
    let base = history.base(0, PLENTY);
    // The second delta removes arcs that the first one added, which is left out.
    let view = SnapshotView::open(history.parts(&base, vec![(deltas[1].clone(), ApplyDirection::Forward)], 2)).unwrap();
    assert_eq!(list(&view, view.out_adjacency(), 1), [(1, 1, NONE)]);
    view.check().unwrap();
    assert_eq!(list(&view, view.out_adjacency(), 5), []);
    assert!(view.check().unwrap_err().to_string().contains("the deltas do not fit the out-lists of page 0"));
    assert_eq!(list(&view, view.out_adjacency(), 1), [], "a damaged page looks empty");
}
