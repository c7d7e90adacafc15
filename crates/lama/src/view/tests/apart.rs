//! Single lists of pages that levels change are what the patched pages have, and patch nothing.

use super::*;

/// The list of a vertex of a side, read in every way there is.
fn list(view: &View, side: &Side, vertex: VertexId) -> Vec<ModelArc> {
    let mut targets = Vec::new();
    let _ = side.for_each_fragment(vertex, |fragment| {
        targets.extend_from_slice(fragment);
        ControlFlow::Continue(())
    });
    assert_eq!(side.degree(vertex), targets.len());
    let in_order = |list: Vec<VertexId>| assert_eq!(list, targets);
    if view.weight_type().is_some() {
        in_order(values::<u32>(side, vertex).into_iter().map(|(target, _)| target).collect());
    }
    if view.options().has_rows() {
        in_order(values::<Row>(side, vertex).into_iter().map(|(target, _)| target).collect());
    }
    let mut arcs = arcs_of_list(view, side, vertex, &targets);
    // Without memory, a list is in several pieces.
    arcs.sort_unstable();
    arcs
}

#[test]
fn a_few_lists_are_read_without_their_pages() {
    let mut num_read = 0;
    for (seed, options) in kinds().into_iter().enumerate() {
        for size in [40, 900] {
            let random = &mut Random(seed as u64 * 100 + size as u64);
            let history = History::new(options, 7, size, random);
            let levels = history.levels(&FaultStorage::default());
            for anchor in [0, 3, 6] {
                for version in (0..7).filter(|&version| version != anchor) {
                    let between = |range: Range<usize>| levels[range].iter().cloned();
                    let steps: Vec<_> = match anchor < version {
                        true => between(anchor..version).map(|level| (level, Sense::Forward)).collect(),
                        false => between(version..anchor).rev().map(|level| (level, Sense::Backward)).collect(),
                    };
                    let base = history.base(anchor, PLENTY);
                    let view = View::open(history.parts(&base, steps, version)).unwrap();
                    for side in SIDES.into_iter().filter(|&side| view.side(side).is_some()) {
                        let (arcs, lists) = (history.arcs(version, side), view.side(side).unwrap());
                        for _ in 0..10 {
                            let vertex = random.skewed(view.vertex_bound());
                            let expected = arcs.iter().filter(|arc| arc.0 == vertex);
                            assert!(
                                list(&view, lists, vertex).iter().eq(expected),
                                "{side:?} of {vertex}: {options:?}, seed {seed}, size {size}, base {anchor}, {version}"
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

/// A version with a level that changes its first page.
fn changed(patch_bytes: u64) -> (History, View) {
    let history = History::new(kinds()[0], 2, 900, &mut Random(3));
    let levels = history.levels(&FaultStorage::default());
    let base = history.base(0, patch_bytes);
    let view = View::open(history.parts(&base, vec![(levels[0].clone(), Sense::Forward)], 1)).unwrap();
    (history, view)
}

#[test]
fn who_reads_on_or_wants_the_page_patches_it() {
    for patch_bytes in [0, PLENTY] {
        let (history, view) = changed(patch_bytes);
        let (lists, arcs) = (view.out_side(), history.arcs(1, graph::Side::Out));
        let expected: Vec<_> = arcs.iter().filter(|arc| arc.0 == 0).copied().collect();
        for _ in 0..200 {
            assert_eq!(list(&view, lists, 0), expected);
        }
        assert_eq!(lists.num_patched(), 1);
        let wants: [fn(&Side); 3] = [
            |lists| assert!(lists.for_each_page(0..1, |_| ControlFlow::Break(())).is_break()),
            |lists| {
                lists.for_each_fragment_of(&WantedLists::groups(0..1).next().unwrap(), |_, _| ControlFlow::Break(()))
            },
            |lists| assert!(lists.single_list(0).is_none_or(|list| list.is_sorted())),
        ];
        for want in wants {
            let (_, view) = changed(patch_bytes);
            want(view.out_side());
            assert_eq!(view.out_side().num_patched(), 1);
            assert_eq!(list(&view, view.out_side(), 0), expected);
        }
    }
}

/// The values of one read stand beside those of another only if no list changes its order in between.
#[test]
fn a_settled_list_keeps_its_order() {
    for settles in [false, true] {
        let mut is_kept = true;
        for (seed, options) in kinds().into_iter().enumerate().filter(|(_, options)| options.has_rows()) {
            let history = History::new(options, 2, 900, &mut Random(seed as u64));
            let levels = history.levels(&FaultStorage::default());
            let base = history.base(0, 0);
            let view = View::open(history.parts(&base, vec![(levels[0].clone(), Sense::Forward)], 1)).unwrap();
            if settles {
                (0..view.vertex_bound() as VertexId).for_each(|vertex| view.fix_list_order(vertex));
            }
            let read = |_| (0..view.vertex_bound() as VertexId).map(|v| values::<Row>(view.out_side(), v)).collect();
            let reads: Vec<Vec<_>> = (0..3).map(read).collect();
            is_kept &= reads.iter().all(|read| *read == reads[0]);
        }
        assert_eq!(is_kept, settles);
    }
}

#[test]
fn who_reads_a_page_that_another_view_has_shares_it() {
    let history = History::new(kinds()[2], 2, 900, &mut Random(4));
    let levels = history.levels(&FaultStorage::default());
    let base = history.base(0, PLENTY);
    let open = || View::open(history.parts(&base, vec![(levels[0].clone(), Sense::Forward)], 1)).unwrap();
    let (first, second) = (open(), open());
    assert_eq!(read(&first, graph::Side::In), history.arcs(1, graph::Side::In));
    list(&second, second.side(graph::Side::In).unwrap(), 0);
    assert_eq!(second.side(graph::Side::In).unwrap().num_patched(), 1);
}

#[test]
fn a_list_that_a_level_does_not_fit_is_damage() {
    const NONE: ArcData = ArcData::of_weight(0);
    let options = kinds()[0];
    let version = |arcs: &[ModelArc]| Version { bound: 3000, arcs: arcs.to_vec(), ..Version::default() };
    let arcs = [(0, 1, NONE), (5, 2, NONE), (1, 1, NONE)];
    let history = History { options, versions: vec![version(&arcs[..1]), version(&arcs[..2]), version(&arcs[2..])] };
    let levels = history.levels(&FaultStorage::default());
    let base = history.base(0, PLENTY);
    // The second level removes what the first added, which is left out.
    let view = View::open(history.parts(&base, vec![(levels[1].clone(), Sense::Forward)], 2)).unwrap();
    assert_eq!(list(&view, view.out_side(), 1), [(1, 1, NONE)]);
    view.check().unwrap();
    assert_eq!(list(&view, view.out_side(), 5), []);
    assert!(view.check().unwrap_err().to_string().contains("the levels do not fit the out-lists of page 0"));
    assert_eq!(list(&view, view.out_side(), 1), [], "a damaged page looks empty");
}
