//! Changes against a plain model: every list is a map from (target, weight) to how often it is there.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::side::Sense;

const NUM_LISTS: u16 = 3;

/// The lists of a page, at places that are apart.
type Lists = BTreeMap<(u16, VertexId, u64), i64>;

#[derive(Clone, Copy, Debug)]
struct Kind {
    multigraph: bool,
    has_weights: bool,
}

/// The changes that lead from `old` to `new`.
fn difference(old: &Lists, new: &Lists, kind: Kind) -> PageChanges {
    let mut net = new.clone();
    old.iter().for_each(|(arc, count)| *net.entry(*arc).or_default() -= count);
    let mut changes = PageChanges::default();
    for list in 0..NUM_LISTS {
        let arcs = |sign: i64| -> (Vec<VertexId>, Vec<u64>) {
            let of_list = net.iter().filter(|((local, ..), count)| *local == place(list) && *count * sign > 0);
            let copies = of_list.flat_map(|(&(_, target, weight), count)| {
                std::iter::repeat_n((target, weight), count.unsigned_abs() as usize)
            });
            let (targets, weights) = copies.unzip();
            (targets, if kind.has_weights { weights } else { Vec::new() })
        };
        let (added, removed) = (arcs(1), arcs(-1));
        changes.push(place(list), (&added.0, &added.1), (&removed.0, &removed.1));
    }
    changes
}

fn place(list: u16) -> u16 {
    [0, 77, PAGE_VERTICES as u16 - 1][list as usize]
}

fn lists(arcs: &[(u16, VertexId, u64)], kind: Kind) -> Lists {
    let mut lists = Lists::new();
    for &(list, target, weight) in arcs {
        let local = place(list);
        let is_there = lists.keys().any(|arc| (arc.0, arc.1) == (local, target));
        if kind.multigraph || !is_there {
            *lists.entry((local, target, if kind.has_weights { weight } else { 0 })).or_default() += 1;
        }
    }
    lists
}

/// The list at a place; among equal targets the heaviest first, as a level would never write them.
fn list(lists: &Lists, local: u16, kind: Kind) -> (Vec<VertexId>, Vec<u64>) {
    let of_list = lists.iter().filter(|((other, ..), _)| *other == local);
    let mut arcs: Vec<(VertexId, u64)> =
        of_list.flat_map(|(arc, &count)| std::iter::repeat_n((arc.1, arc.2), count as usize)).collect();
    arcs.sort_by_key(|&(target, weight)| (target, std::cmp::Reverse(weight)));
    let (targets, weights) = arcs.into_iter().unzip();
    (targets, if kind.has_weights { weights } else { Vec::new() })
}

fn composed(parts: &[PageChanges]) -> PageChanges {
    // What was there before must not matter, nor what the scratch was used for.
    let mut scratch = ComposeScratch::default();
    let mut out = PageChanges::default();
    let (heavy, plain) = ((&[9, 9][..], &[1, 2][..]), (&[4][..], &[][..]));
    let mut weighted = PageChanges::default();
    weighted.push(5, heavy, (&[], &[]));
    let mut unweighted = PageChanges::default();
    unweighted.push(5, plain, plain);
    compose(&[weighted.clone(), weighted], &mut out, &mut scratch);
    compose(&[unweighted.clone(), unweighted], &mut out, &mut scratch);
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
        // As a level stores what does not fit into one entry.
        let halves = |count: u32| [count / 2, count - count / 2];
        self.vertices.iter().flat_map(move |vertex| {
            let (added, removed) = (halves(vertex.num_added), halves(vertex.num_removed));
            [0, 1].map(|half| (vertex.local, added[half], removed[half]))
        })
    }

    fn targets(&self) -> &[VertexId] {
        &self.targets
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    (any::<bool>(), any::<bool>()).prop_map(|(multigraph, has_weights)| Kind { multigraph, has_weights })
}

/// The arcs of consecutive versions: mostly those of the version before.
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
            let (mut targets, mut weights) = (vec![100], Vec::new());
            apply((&old.0, &old.1), &changes, kind.multigraph, &mut targets, &mut weights).unwrap();
            let new = list(last, changes.local, kind);
            prop_assert_eq!(&targets[1..], &new.0);
            prop_assert_eq!(weights.len(), new.1.len());
            let mut arcs: Vec<(VertexId, u64)> = targets[1..].iter().copied().zip(weights.iter().copied()).collect();
            let mut expected: Vec<(VertexId, u64)> = new.0.into_iter().zip(new.1).collect();
            arcs.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(arcs, expected);
        }
    }

    #[test]
    fn parts_of_one_kind_join_to_what_they_compose_to(multigraph in any::<bool>(), history in histories(), senses in any::<u8>()) {
        let kind = Kind { multigraph, has_weights: false };
        let versions: Vec<Lists> = history.iter().map(|arcs| lists(arcs, kind)).collect();
        for grows in [false, true] {
            // What is added to nothing, version by version; or both ways.
            let nothing = Lists::new();
            let part = |pair: &[Lists]| difference(if grows { &nothing } else { &pair[0] }, &pair[1], kind);
            let parts: Vec<PageChanges> = versions.windows(2).map(part).collect();
            for senses in [0, u8::MAX, senses] {
                let of = |place: usize| if senses >> (place % 8) & 1 == 0 { Sense::Forward } else { Sense::Backward };
                let parts: Vec<(PageChanges, Sense)> =
                    parts.iter().enumerate().map(|(place, part)| (part.clone(), of(place))).collect();
                let applied: Vec<PageChanges> = parts.iter().map(|(part, sense)| match sense {
                    Sense::Forward => part.clone(),
                    Sense::Backward => inverted(part),
                }).collect();
                let all: Vec<_> = applied.iter().flat_map(PageChanges::lists).collect();
                let is_one_kind = all.iter().all(|list| list.added.is_empty()) || all.iter().all(|list| list.removed.is_empty());
                let (mut joined, mut starts) = (PageChanges::default(), vec![9; 3]);
                joined.push(7, (&[1], &[]), (&[], &[]));
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
        let arcs = |list: VertexId, targets: &[VertexId], weights: &[u64]| -> Vec<ChangedArc> {
            let weights = weights.iter().copied().chain(std::iter::repeat(0));
            targets.iter().zip(weights).map(|(&neighbour, weight)| ChangedArc { list, neighbour, weight }).collect()
        };
        let id = |local: u16| first + VertexId::from(local);
        let added: Vec<_> = changes.lists().flat_map(|l| arcs(id(l.local), l.added, l.added_weights)).collect();
        let removed: Vec<_> = changes.lists().flat_map(|l| arcs(id(l.local), l.removed, l.removed_weights)).collect();
        let mut same = PageChanges::default();
        same.extend_from_arcs(&added, &removed, kind.has_weights);
        prop_assert_eq!(same, changes);
    }
}

#[test]
fn hubs_compose_as_short_lists_do() {
    // Each part adds every 64th target, and removes what the part two before it added.
    const NUM_PARTS: u32 = 64;
    let of_part = |part: u32| -> Vec<VertexId> { (0..1000).map(|i| i * NUM_PARTS + part).collect() };
    let parts: Vec<PageChanges> = (0..NUM_PARTS)
        .map(|part| {
            let mut changes = PageChanges::default();
            let removed = if part >= 2 { of_part(part - 2) } else { Vec::new() };
            changes.push(3, (&of_part(part), &[]), (&removed, &[]));
            changes
        })
        .collect();
    let left: Vec<VertexId> = (0..1000).flat_map(|i| [i * NUM_PARTS + 62, i * NUM_PARTS + 63]).collect();
    let mut expected = PageChanges::default();
    expected.push(3, (&left, &[]), (&[], &[]));
    assert_eq!(composed(&parts), expected);
}

#[test]
fn long_lists_take_what_is_new_wherever_it_belongs() {
    for num_old in [0, 1, 15, 16, 17, 40, 100] {
        let old: Vec<VertexId> = (0..num_old).map(|i| 10 + 10 * i).collect();
        // Every run of new targets, from before all to behind all, alone and beside others.
        for first in 0..=num_old {
            for num_added in [1, 2, 9, 60] {
                let own: Vec<VertexId> =
                    (0..num_added).map(|i| 1 + 10 * first + 9 * i + u32::from(9 * i % 10 == 9)).collect();
                let added: Vec<VertexId> = own.into_iter().filter(|target| target % 10 != 0).collect();
                let mut changes = PageChanges::default();
                changes.push(0, (&added, &[]), (&[], &[]));
                let list = changes.lists().next().unwrap();
                let (mut targets, mut weights) = (vec![7], Vec::new());
                apply((&old, &[]), &list, false, &mut targets, &mut weights).unwrap();
                let mut expected = [&old[..], &added].concat();
                expected.sort_unstable();
                assert_eq!(targets[1..], expected, "{added:?} to {num_old}");
                // And any one of them that is there already.
                for &twice in &added {
                    let mut old = old.clone();
                    old.insert(old.partition_point(|&target| target < twice), twice);
                    let error = apply((&old, &[]), &list, false, &mut targets, &mut weights).unwrap_err();
                    assert!(error.contains(&format!("edge to {twice} is to be added")), "{error}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let applied = |old: (&[u32], &[u64]), added: (&[u32], &[u64]), removed: (&[u32], &[u64]), multigraph| {
        let mut changes = PageChanges::default();
        changes.push(0, added, removed);
        let (mut targets, mut weights) = (Vec::new(), Vec::new());
        let list = changes.lists().next().unwrap();
        apply(old, &list, multigraph, &mut targets, &mut weights).map(|()| (targets, weights))
    };
    const NONE: (&[u32], &[u64]) = (&[], &[]);
    let says = |result: Result<_, String>, what: &str| {
        let error = result.unwrap_err();
        assert!(error.contains(what), "{error}");
    };
    says(applied((&[1, 5], &[]), (&[5], &[]), NONE, false), "edge to 5 is to be added that is there");
    assert_eq!(applied((&[1, 5], &[]), (&[5], &[]), NONE, true).unwrap().0, [1, 5, 5]);
    says(applied((&[1, 5], &[]), (&[7, 7], &[]), NONE, false), "edge to 7");
    says(applied((&[1, 5], &[]), NONE, (&[2], &[]), false), "edge to 2 is to be removed that is not there");
    says(applied((&[1, 5], &[]), NONE, (&[9], &[]), true), "edge to 9");
    says(applied((&[5], &[3]), NONE, (&[5], &[4]), false), "not with this weight");
    says(applied((&[5, 5], &[3, 4]), NONE, (&[5, 5], &[3, 3]), true), "not with this weight");
    says(applied((&[5], &[]), (&[6], &[1]), NONE, true), "1 targets with 0 weights");
    says(applied((&[5], &[1]), (&[6], &[]), NONE, true), "1 targets with 1 weights");
    assert_eq!(applied((&[5], &[3]), (&[5], &[9]), (&[5], &[3]), false).unwrap(), (vec![5], vec![9]));
}
