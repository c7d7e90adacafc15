//! Changes against a plain model: a list is a map from target, row and weight to a count.

use std::collections::BTreeMap;

use anden_graph::WeightType;
use proptest::prelude::*;

use super::*;
use crate::changes::ApplyDirection;

const NUM_LISTS: u16 = 3;

/// The lists of a page, at distant positions.
type Lists = BTreeMap<(u16, VertexId, ArcData), i64>;

#[derive(Clone, Copy, Debug)]
struct Kind {
    multigraph: bool,
    has_weights: bool,
    has_rows: bool,
}

impl Kind {
    /// Data of the arc with this number: weights descend as rows ascend.
    fn data(self, number: u64) -> ArcData {
        let weight = if self.has_rows { !number } else { number };
        ArcData { row: if self.has_rows { number } else { 0 }, weight: if self.has_weights { weight } else { 0 } }
    }

    /// Entries with the columns of this kind of graph.
    fn entries(self, arcs: impl Iterator<Item = (VertexId, ArcData)>) -> EntryBuffer {
        let mut entries = EntryBuffer::default();
        for (target, data) in arcs {
            entries.targets.push(target);
            entries.weights.extend(self.has_weights.then_some(data.weight));
            entries.rows.extend(self.has_rows.then_some(data.row));
        }
        entries
    }
}

/// Entries without weights and rows.
fn plain(targets: &[VertexId]) -> ListEntries<'_> {
    ListEntries { targets, ..ListEntries::default() }
}

const NONE: ListEntries<'_> = ListEntries { targets: &[], weights: &[], rows: &[] };

/// The changes that lead from `old` to `new`.
fn difference(old: &Lists, new: &Lists, kind: Kind) -> PageChanges {
    let mut net = new.clone();
    old.iter().for_each(|(arc, count)| *net.entry(*arc).or_default() -= count);
    let mut changes = PageChanges::default();
    for list in 0..NUM_LISTS {
        let arcs = |sign: i64| {
            let of_list = net.iter().filter(|((local, ..), count)| *local == place(list) && *count * sign > 0);
            kind.entries(of_list.flat_map(|(&(_, target, data), count)| {
                std::iter::repeat_n((target, data), count.unsigned_abs() as usize)
            }))
        };
        changes.push(place(list), arcs(1).all(), arcs(-1).all());
    }
    changes
}

fn place(list: u16) -> u16 {
    [0, 77, PAGE_VERTICES as u16 - 1][list as usize]
}

fn lists(arcs: &[(u16, VertexId, u64)], kind: Kind) -> Lists {
    let mut lists = Lists::new();
    for &(list, target, number) in arcs {
        let local = place(list);
        let is_there = lists.keys().any(|arc| (arc.0, arc.1) == (local, target));
        if kind.multigraph || !is_there {
            *lists.entry((local, target, kind.data(number))).or_default() += 1;
        }
    }
    lists
}

/// The list at a position; equal targets descend by row and weight, which a delta never contains.
fn list(lists: &Lists, local: u16, kind: Kind) -> EntryBuffer {
    let of_list = lists.iter().filter(|((other, ..), _)| *other == local);
    let mut arcs: Vec<(VertexId, ArcData)> =
        of_list.flat_map(|(arc, &count)| std::iter::repeat_n((arc.1, arc.2), count as usize)).collect();
    arcs.sort_by_key(|&(target, data)| (target, std::cmp::Reverse(data)));
    kind.entries(arcs.into_iter())
}

/// The entries of a list, sorted.
fn sorted(entries: ListEntries<'_>) -> Vec<(VertexId, ArcData)> {
    let mut arcs: Vec<_> =
        entries.targets.iter().enumerate().map(|(place, &target)| (target, entries.data(place))).collect();
    arcs.sort_unstable();
    arcs
}

fn composed(parts: &[PageChanges]) -> PageChanges {
    // Earlier contents of output and scratch must not matter.
    let mut scratch = ComposeScratch::default();
    let mut out = PageChanges::default();
    let heavy = ListEntries { targets: &[9, 9], weights: &[1, 2], rows: &[] };
    let full = ListEntries { rows: &[4, 5], ..heavy };
    for (added, removed) in [(heavy, NONE), (full, NONE), (plain(&[4]), plain(&[4]))] {
        let mut part = PageChanges::default();
        part.push(5, added, removed);
        compose(&[part.clone(), part], &mut out, &mut scratch);
    }
    compose(parts, &mut out, &mut scratch);
    out
}

fn inverted(changes: &PageChanges) -> PageChanges {
    let mut changes = changes.clone();
    changes.invert();
    changes
}

impl UnweightedPart for PageChanges {
    fn counts(&self) -> impl Iterator<Item = (u16, u32, u32)> {
        // As a delta stores counts that do not fit into one entry.
        let halves = |count: u32| [count / 2, count - count / 2];
        self.vertices.iter().flat_map(move |vertex| {
            let (added, removed) = (halves(vertex.num_added), halves(vertex.num_removed));
            [0, 1].map(|half| (vertex.local, added[half], removed[half]))
        })
    }

    fn targets(&self) -> &[VertexId] {
        &self.entries.targets
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(multigraph, has_weights, has_rows)| Kind {
        multigraph,
        has_weights,
        has_rows,
    })
}

/// The arcs of consecutive versions, each mostly equal to the one before.
fn histories() -> impl Strategy<Value = Vec<Vec<(u16, VertexId, u64)>>> {
    let arc = (0..NUM_LISTS, 0..7_u32, prop_oneof![Just(0), Just(1), Just(u64::MAX)]);
    let step = (prop::collection::vec(arc, 0..12), any::<u32>());
    prop::collection::vec(step, 1..7).prop_map(|steps| {
        let mut arcs: Vec<(u16, VertexId, u64)> = Vec::new();
        let version = |(new, keep): (Vec<_>, u32)| {
            let mut place = 0;
            arcs.retain(|_| {
                place += 1;
                keep >> (place % 32) & 1 == 1 || place % 3 == 0
            });
            arcs.extend(new);
            arcs.clone()
        };
        steps.into_iter().map(version).collect()
    })
}

proptest! {
    #[test]
    fn parts_compose_to_the_difference_of_the_ends(kind in kinds(), history in histories(), cut in any::<prop::sample::Index>()) {
        let versions: Vec<Lists> = history.iter().map(|arcs| lists(arcs, kind)).collect();
        let parts: Vec<PageChanges> =
            versions.windows(2).map(|pair| difference(&pair[0], &pair[1], kind)).collect();
        let (first, last) = (&versions[0], &versions[versions.len() - 1]);
        let net = difference(first, last, kind);
        prop_assert_eq!(&composed(&parts), &net);
        let (early, late) = parts.split_at(cut.index(parts.len() + 1));
        prop_assert_eq!(&composed(&[composed(early), composed(late)]), &net);
        let backward: Vec<PageChanges> = parts.iter().rev().map(inverted).collect();
        prop_assert_eq!(composed(&backward), inverted(&net));
        prop_assert_eq!(inverted(&net), difference(last, first, kind));
        prop_assert!(composed(&[net.clone(), inverted(&net)]).is_empty());
    }

    #[test]
    fn applied_changes_lead_from_one_version_to_the_next(kind in kinds(), history in histories()) {
        let versions: Vec<Lists> = history.iter().map(|arcs| lists(arcs, kind)).collect();
        let (first, last) = (&versions[0], &versions[versions.len() - 1]);
        for changes in difference(first, last, kind).lists() {
            let old = list(first, changes.local, kind);
            let mut found = EntryBuffer { targets: vec![100], ..EntryBuffer::default() };
            apply(old.all(), &changes, kind.multigraph, &mut found).unwrap();
            found.targets.remove(0);
            let new = list(last, changes.local, kind);
            prop_assert_eq!(&found.targets, &new.targets);
            prop_assert_eq!((found.weights.len(), found.rows.len()), (new.weights.len(), new.rows.len()));
            prop_assert_eq!(sorted(found.all()), sorted(new.all()));
        }
    }

    #[test]
    fn same_kind_parts_join_to_their_composition(multigraph in any::<bool>(), history in histories(), senses in any::<u8>()) {
        let kind = Kind { multigraph, has_weights: false, has_rows: false };
        let versions: Vec<Lists> = history.iter().map(|arcs| lists(arcs, kind)).collect();
        for grows in [false, true] {
            // Versions that only add to nothing, or that change in both directions.
            let nothing = Lists::new();
            let part = |pair: &[Lists]| difference(if grows { &nothing } else { &pair[0] }, &pair[1], kind);
            let parts: Vec<PageChanges> = versions.windows(2).map(part).collect();
            for senses in [0, u8::MAX, senses] {
                let of = |place: usize| match senses >> (place % 8) & 1 {
                    0 => ApplyDirection::Forward,
                    _ => ApplyDirection::Backward,
                };
                let parts: Vec<(PageChanges, ApplyDirection)> =
                    parts.iter().enumerate().map(|(place, part)| (part.clone(), of(place))).collect();
                let applied: Vec<PageChanges> = parts.iter().map(|(part, sense)| match sense {
                    ApplyDirection::Forward => part.clone(),
                    ApplyDirection::Backward => inverted(part),
                }).collect();
                let all: Vec<_> = applied.iter().flat_map(PageChanges::lists).collect();
                let is_one_kind = all.iter().all(|list| list.added.targets.is_empty())
                    || all.iter().all(|list| list.removed.targets.is_empty());
                let (mut joined, mut starts) = (PageChanges::default(), vec![9; 3]);
                joined.push(7, plain(&[1]), NONE);
                prop_assert_eq!(join(&parts, &mut joined, &mut starts), is_one_kind);
                prop_assert_eq!(joined, if is_one_kind { composed(&applied) } else { PageChanges::default() });
            }
        }
    }

    #[test]
    fn arcs_make_the_same_changes_as_lists(kind in kinds(), history in histories()) {
        let versions: Vec<Lists> = history.iter().map(|arcs| lists(arcs, kind)).collect();
        let changes = difference(&versions[0], &versions[versions.len() - 1], kind);
        let first = 5 * PAGE_VERTICES as VertexId;
        let arcs = |local: u16, entries: ListEntries<'_>| -> Vec<ChangedArc> {
            let list = first + VertexId::from(local);
            let targets = entries.targets.iter().enumerate();
            targets.map(|(place, &neighbor)| ChangedArc { list, neighbor, data: entries.data(place) }).collect()
        };
        let added: Vec<_> = changes.lists().flat_map(|list| arcs(list.local, list.added)).collect();
        let removed: Vec<_> = changes.lists().flat_map(|list| arcs(list.local, list.removed)).collect();
        prop_assert!(added.is_sorted() && removed.is_sorted());
        let weight_type = kind.has_weights.then_some(WeightType::F64);
        let options = GraphOptions { weight_type, edge_properties: kind.has_rows, ..GraphOptions::default() };
        let mut same = PageChanges::default();
        same.extend_from_arcs(&added, &removed, &options);
        prop_assert_eq!(same, changes);
    }
}

#[test]
fn hubs_compose_as_short_lists_do() {
    // Each part adds every 64th target, and removes those that the part two before it added.
    const NUM_PARTS: u32 = 64;
    let of_part = |part: u32| -> Vec<VertexId> { (0..1000).map(|i| i * NUM_PARTS + part).collect() };
    let parts: Vec<PageChanges> = (0..NUM_PARTS)
        .map(|part| {
            let mut changes = PageChanges::default();
            let removed = if part >= 2 { of_part(part - 2) } else { Vec::new() };
            changes.push(3, plain(&of_part(part)), plain(&removed));
            changes
        })
        .collect();
    let left: Vec<VertexId> = (0..1000).flat_map(|i| [i * NUM_PARTS + 62, i * NUM_PARTS + 63]).collect();
    let mut expected = PageChanges::default();
    expected.push(3, plain(&left), NONE);
    assert_eq!(composed(&parts), expected);
}

#[test]
fn long_lists_take_what_is_new_wherever_it_belongs() {
    for num_old in [0, 1, 15, 16, 17, 40, 100] {
        let old: Vec<VertexId> = (0..num_old).map(|i| 10 + 10 * i).collect();
        // Every range of new targets, from before all old ones to behind them, alone and beside others.
        for first in 0..=num_old {
            for num_added in [1, 2, 9, 60] {
                let own: Vec<VertexId> =
                    (0..num_added).map(|i| 1 + 10 * first + 9 * i + u32::from(9 * i % 10 == 9)).collect();
                let added: Vec<VertexId> = own.into_iter().filter(|target| target % 10 != 0).collect();
                let mut changes = PageChanges::default();
                changes.push(0, plain(&added), NONE);
                let list = changes.lists().next().unwrap();
                let mut new = EntryBuffer { targets: vec![7], ..EntryBuffer::default() };
                apply(plain(&old), &list, false, &mut new).unwrap();
                let mut expected = [&old[..], &added].concat();
                expected.sort_unstable();
                assert_eq!(new.targets[1..], expected, "{added:?} to {num_old}");
                // Any one of them may be present already.
                for &twice in &added {
                    let mut old = old.clone();
                    old.insert(old.partition_point(|&target| target < twice), twice);
                    let error = apply(plain(&old), &list, false, &mut new).unwrap_err();
                    assert!(error.contains(&format!("edge to {twice} is to be added")), "{error}");
                }
            }
        }
    }
}

/// Takes a list of parallel edges with all columns apart, in any order.
#[test]
fn long_groups_of_parallel_edges_lose_what_is_removed() {
    const NUM_EDGES: u64 = 200_000;
    let kind = Kind { multigraph: true, has_weights: true, has_rows: true };
    let of = |rows: &mut dyn Iterator<Item = u64>| kind.entries(rows.map(|row| (5, kind.data(row))));
    let old = of(&mut (0..NUM_EDGES).rev());
    let mut changes = PageChanges::default();
    changes.push(
        0,
        of(&mut (NUM_EDGES..NUM_EDGES + 9)).all(),
        of(&mut (0..NUM_EDGES).filter(|row| row % 1000 > 0)).all(),
    );
    let mut new = EntryBuffer::default();
    apply(old.all(), &changes.lists().next().unwrap(), true, &mut new).unwrap();
    let left = (0..NUM_EDGES).step_by(1000).chain(NUM_EDGES..NUM_EDGES + 9);
    assert_eq!(new, of(&mut left.into_iter()));
}

#[test]
fn changes_unfit_for_list_are_refused() {
    let applied = |old: ListEntries<'_>, added: ListEntries<'_>, removed: ListEntries<'_>, multigraph| {
        let mut changes = PageChanges::default();
        changes.push(0, added, removed);
        let mut new = EntryBuffer::default();
        let list = changes.lists().next().unwrap();
        apply(old, &list, multigraph, &mut new).map(|()| new)
    };
    fn weighted<'a>(targets: &'a [VertexId], weights: &'a [u64]) -> ListEntries<'a> {
        ListEntries { targets, weights, rows: &[] }
    }
    fn with_rows<'a>(targets: &'a [VertexId], rows: &'a [u64]) -> ListEntries<'a> {
        ListEntries { targets, weights: &[], rows }
    }
    fn full<'a>(targets: &'a [VertexId], rows: &'a [u64], weights: &'a [u64]) -> ListEntries<'a> {
        ListEntries { targets, weights, rows }
    }
    let says = |result: Result<_, String>, what: &str| {
        let error = result.unwrap_err();
        assert!(error.contains(what), "{error}");
    };
    says(applied(plain(&[1, 5]), plain(&[5]), NONE, false), "edge to 5 is to be added that is there");
    assert_eq!(applied(plain(&[1, 5]), plain(&[5]), NONE, true).unwrap().targets, [1, 5, 5]);
    says(applied(plain(&[1, 5]), plain(&[7, 7]), NONE, false), "edge to 7");
    says(applied(plain(&[1, 5]), NONE, plain(&[2]), false), "edge to 2 is to be removed that is not there");
    says(applied(plain(&[1, 5]), NONE, plain(&[9]), true), "edge to 9");
    for column in [weighted, with_rows] {
        says(applied(column(&[5], &[3]), NONE, column(&[5], &[4]), false), "not with this weight or row");
        says(applied(column(&[5, 5], &[3, 4]), NONE, column(&[5, 5], &[3, 3]), true), "not with this weight or row");
        says(applied(plain(&[5]), column(&[6], &[1]), NONE, true), "1 targets with 0 weights or rows");
        says(applied(column(&[5], &[1]), plain(&[6]), NONE, true), "1 targets with 1 weights or rows");
        says(applied(full(&[5], &[1], &[1]), column(&[6], &[1]), NONE, true), "1 targets with 1 weights or rows");
        says(applied(column(&[5], &[1]), full(&[6], &[1], &[1]), NONE, true), "1 targets with 0 weights or rows");
        assert_eq!(
            applied(column(&[5], &[3]), column(&[5], &[9]), column(&[5], &[3]), false).unwrap().all(),
            column(&[5], &[9])
        );
    }
    let old = full(&[5, 5], &[3, 4], &[30, 40]);
    for (rows, weights) in [([3, 4], [30, 30]), ([3, 3], [30, 30]), ([4, 9], [40, 90])] {
        says(applied(old, NONE, full(&[5, 5], &rows, &weights), true), "edge to 5 is to be removed that is not there");
    }
    let new = applied(old, full(&[5], &[1], &[90]), full(&[5], &[4], &[40]), true).unwrap();
    assert_eq!(new.all(), full(&[5, 5], &[1, 3], &[90, 30]));
    says(
        applied(full(&[5], &[3], &[1]), full(&[5], &[4], &[1]), NONE, false),
        "edge to 5 is to be added that is there",
    );
}
