//! Chains under drops, retention and appends: which versions are kept, hidden and composed.

use super::*;
use proptest::prelude::*;

fn version(number: u32, is_kept: bool) -> ChainVersion {
    ChainVersion {
        number,
        is_kept,
        name: None,
        unix_time: 0,
        as_of: None,
        epoch: u64::from(number) * 10,
        next_row: 0,
        vertex_bound: 0,
        num_vertices: 0,
        num_edges: u64::from(number),
        num_arcs: 0,
        num_added: 1,
        num_removed: 0,
        delta: (number > 1).then_some(delta(number)),
    }
}

/// Versions 1 to `newest`, all kept, with the base at 1.
fn chain(newest: u32) -> Chain {
    let versions = (1..=newest).map(|number| version(number, true)).collect();
    Chain { versions, anchor: 1, merged_deltas: Vec::new() }
}

fn numbers(chain: &Chain) -> Vec<(u32, bool)> {
    chain.versions.iter().map(|version| (version.number, version.is_kept)).collect()
}

fn delta(file: u32) -> DeltaRef {
    DeltaRef { file, index: 0 }
}

#[test]
fn a_dropped_version_goes_into_the_next() {
    let plan = chain(4).without(&[2]);
    assert_eq!(numbers(&plan.chain), [(1, true), (3, true), (4, true)]);
    assert_eq!(plan.compositions, [Composition { from: 1, to: 3, parts: vec![delta(2), delta(3)] }]);
    assert_eq!(plan.chain.versions[1].delta, Some(DeltaRef::composed(0)));
    assert_eq!(plan.recounts, [3]);
    let plan = chain(5).without(&[2, 3, 4]);
    assert_eq!(plan.compositions, [Composition { from: 1, to: 5, parts: (2..=5).map(delta).collect() }]);
}

#[test]
fn anchor_and_newest_stay_hidden() {
    let plan = chain(3).without(&[1]);
    assert_eq!(numbers(&plan.chain), [(1, false), (2, true), (3, true)]);
    assert!(plan.compositions.is_empty() && plan.recounts.is_empty());
    assert_eq!(plan.chain.versions[1].num_added, 2, "the oldest has added everything");

    let plan = plan.chain.without(&[3]);
    assert_eq!(numbers(&plan.chain), [(1, false), (2, true), (3, false)]);
    let next = ChainVersion { delta: Some(DeltaRef::NEW), ..version(4, true) };
    let plan = plan.chain.with(next, &[], |_| 5);
    assert_eq!(numbers(&plan.chain), [(1, false), (2, true), (3, false), (4, true)]);
    assert_eq!(plan.recounts, [4]);
}

#[test]
fn merge_moves_anchor_and_drops_older_deltas() {
    let dropped = chain(4).without(&[1, 2]).chain;
    assert_eq!(numbers(&dropped), [(1, false), (3, true), (4, true)]);
    let plan = dropped.merged_to(4);
    assert_eq!((numbers(&plan.chain), plan.chain.anchor), (vec![(3, true), (4, true)], 4));
    assert!(plan.compositions.is_empty());
    assert_eq!(plan.chain.versions[0].delta, None);
    let backward = vec![(delta(4), ApplyDirection::Backward)];
    assert_eq!((plan.chain.steps(4), plan.chain.steps(3)), (vec![], backward));

    let only = plan.chain.without(&[3]);
    assert_eq!(numbers(&only.chain), [(4, true)]);
    assert_eq!(only.chain.delta_refs().count(), 0);
}

#[test]
fn hidden_versions_stay_until_they_are_a_crowd() {
    let append = |chain: &Chain, dropped: &[u32], num_bytes: fn(DeltaRef) -> u64| {
        let number = chain.newest().number + 1;
        chain.with(ChainVersion { delta: Some(DeltaRef::NEW), ..version(number, true) }, dropped, num_bytes)
    };
    // Seven of one size stay, eight become one; one as large as the others together is left out.
    let dropped: Vec<u32> = (2..=8).collect();
    let plan = append(&chain(10), &dropped, |_| 5);
    assert!(plan.compositions.is_empty() && plan.chain.versions.len() == 11);
    assert_eq!(plan.recounts, [9]);
    let eight: Vec<u32> = (2..=9).collect();
    let plan = append(&chain(10), &eight, |_| 5);
    assert_eq!(plan.compositions, [Composition { from: 1, to: 9, parts: eight.iter().map(|&n| delta(n)).collect() }]);
    assert_eq!(numbers(&plan.chain), [(1, true), (9, false), (10, true), (11, true)]);
    assert_eq!(plan.chain.deltas_between(1, 10), [DeltaRef::composed(0), delta(10)]);
    let large: fn(DeltaRef) -> u64 = |delta| if delta.file == 2 { 40 } else { 5 };
    assert!(append(&chain(10), &eight, large).compositions.is_empty());
    let plan = append(&chain(11), &(2..=10).collect::<Vec<u32>>(), large);
    assert_eq!(plan.compositions, [Composition { from: 2, to: 10, parts: (3..=10).map(delta).collect() }]);
    // An explicit drop composes at once.
    assert_eq!(plan.chain.without(&[]).chain.versions.len(), 3);
}

#[test]
fn merged_deltas_shorten_the_way() {
    let merged = |from, to, file| MergedDelta { from, to, delta: delta(file) };
    let mut chain = chain(8);
    chain.anchor = 3;
    chain.merged_deltas = vec![merged(4, 7, 47), merged(3, 6, 36), merged(6, 8, 68), merged(1, 3, 13)];
    let files = |number| chain.steps(number).iter().map(|(delta, _)| delta.file).collect::<Vec<_>>();
    assert_eq!((files(8), files(7), files(6)), (vec![36, 68], vec![36, 7], vec![36]));
    assert_eq!((files(5), files(3), files(2), files(1)), (vec![4, 5], vec![], vec![3], vec![13]));
    assert!(chain.steps(1).iter().all(|(_, sense)| *sense == ApplyDirection::Backward));
    assert_eq!((chain.newest_range(1), chain.newest_range(2)), (None, None), "too few, and there already");
    assert_eq!((chain.newest_range(3), chain.newest_range(100)), (Some((5, 8)), Some((3, 8))));
    assert_eq!(chain.with_merged_delta(merged(3, 8, 38)).merged_deltas, [merged(1, 3, 13), merged(3, 8, 38)]);
    assert!(chain.merged_to(8).chain.merged_deltas.is_empty());
    assert!(chain.merged_to(5).chain.merged_deltas.iter().all(|merged| merged.from >= 5));
    // A merged delta that begins in the middle of another does not make the ones behind it useless.
    chain.merged_deltas = vec![merged(3, 6, 36), merged(6, 8, 68)];
    assert_eq!(chain.with_merged_delta(merged(5, 8, 58)).steps(8).len(), 2);
}

#[test]
fn retention_spares_names_and_the_newest() {
    let mut chain = chain(6);
    chain.versions[1].name = Some("two".into());
    chain.versions.iter_mut().for_each(|version| version.unix_time = u64::from(version.number) * 86_400);
    assert!(chain.given_up(Retention::All, u64::MAX).is_empty());
    assert_eq!(chain.given_up(Retention::Last(2), 0), [1, 3, 4]);
    assert_eq!(chain.given_up(Retention::Last(1), 0), [1, 3, 4, 5]);
    assert_eq!(chain.given_up(Retention::Named, 0), [1, 3, 4, 5]);
    assert_eq!(chain.given_up(Retention::Days(2), 6 * 86_400), [1, 3]);
    assert_eq!(chain.given_up(Retention::Days(2), u64::MAX), [1, 3, 4, 5]);
}

#[test]
fn invalid_chain_is_refused() {
    let refused = |change: fn(&mut Chain)| {
        let mut chain = chain(3);
        assert_eq!(chain.check(), Ok(()));
        change(&mut chain);
        assert!(chain.check().is_err(), "{chain:?}");
    };
    refused(|chain| chain.versions.clear());
    refused(|chain| chain.versions[0].delta = Some(delta(1)));
    refused(|chain| chain.versions[2].delta = None);
    refused(|chain| chain.versions[2].number = 2);
    refused(|chain| chain.versions[0].number = 0);
    refused(|chain| chain.versions[0].vertex_bound = 7);
    refused(|chain| chain.versions[2].num_vertices = 7);
    refused(|chain| chain.anchor = 4);
    refused(|chain| chain.versions.iter_mut().for_each(|version| version.is_kept = false));
    refused(|chain| chain.versions.iter_mut().for_each(|version| version.name = Some("x".into())));
    refused(|chain| chain.merged_deltas.push(MergedDelta { from: 2, to: 2, delta: delta(9) }));
    refused(|chain| chain.merged_deltas.push(MergedDelta { from: 2, to: 5, delta: delta(9) }));
}

/// Executes plans: gives each delta its range of versions, and checks that compositions join successive deltas.
#[derive(Debug, Default)]
struct Deltas {
    ranges: HashMap<DeltaRef, (u32, u32)>,
    next_file: u32,
}

impl Deltas {
    fn write(&mut self, range: (u32, u32)) -> DeltaRef {
        self.next_file += 1;
        let place = delta(self.next_file);
        self.ranges.insert(place, range);
        place
    }

    fn carry_out(&mut self, plan: ChainPlan, new: Option<(u32, u32)>) -> Chain {
        let mut places = HashMap::new();
        if let Some(range) = new {
            self.ranges.insert(DeltaRef::NEW, range);
            places.insert(DeltaRef::NEW, self.write(range));
        }
        for (index, composition) in plan.compositions.iter().enumerate() {
            let ranges: Vec<_> = composition.parts.iter().map(|part| self.ranges[part]).collect();
            assert!(ranges.len() > 1 && ranges.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ranges:?}");
            assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (composition.from, composition.to));
            let place = self.write((composition.from, composition.to));
            places.insert(DeltaRef::composed(index as u32), place);
        }
        let mut chain = plan.chain;
        chain.relocate(&places);
        chain
    }

    /// Users see these versions, every path in the chain is complete, and the chain keeps nothing that it does not
    /// need.
    fn check(&self, chain: &Chain, kept: &[u32], is_strict: bool) {
        assert_eq!(chain.check(), Ok(()));
        assert_eq!(chain.kept().map(|version| version.number).collect::<Vec<_>>(), kept);
        let newest = chain.newest().number;
        for version in &chain.versions {
            let mut place = chain.anchor;
            for (step, sense) in chain.steps(version.number) {
                let (from, to) = self.ranges[&step];
                let (start, end) = if sense == ApplyDirection::Forward { (from, to) } else { (to, from) };
                assert_eq!(start, place);
                place = end;
            }
            assert_eq!(place, version.number);
            let is_needed = version.is_kept || version.number == newest || version.number == chain.anchor;
            assert!(is_needed || !is_strict, "{version:?}");
        }
        for pair in kept.windows(2) {
            let mut place = pair[0];
            for delta in chain.deltas_between(pair[0], pair[1]) {
                assert_eq!(self.ranges[&delta].0, place);
                place = self.ranges[&delta].1;
            }
            assert_eq!(place, pair[1]);
        }
        let oldest = chain.versions[0].number;
        assert!(oldest == chain.anchor || oldest == kept[0]);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Append {
        last: Option<u32>,
        spread: u32,
    },
    Drop(Vec<prop::sample::Index>),
    /// Up to the version this many before the newest.
    MergeAll(usize),
    MergeNewest(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let drops = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    prop_oneof![
        9 => (prop::option::of(1_u32..4), 1_u32..9).prop_map(|(last, spread)| Step::Append { last, spread }),
        3 => drops.prop_map(Step::Drop),
        1 => (0_usize..5).prop_map(Step::MergeAll),
        2 => (1_u32..9).prop_map(Step::MergeNewest),
    ]
}

/// The steps of the change feed, by the epochs from which they begin: ten times the numbers.
#[test]
fn steps_lead_from_kept_epochs_to_later_ones() {
    let steps = |chain: &Chain| (0..=6).map(|number| chain.step_after(number * 10)).collect::<Vec<_>>();
    let whole = chain(5);
    let [a, b, c, d] = [1, 2, 3, 4].map(|number| Some((number, number + 1)));
    assert_eq!(steps(&whole), [None, a, b, c, d, None, None]);
    assert!((1..60).filter(|epoch| epoch % 10 != 0).all(|epoch| whole.step_after(epoch).is_none()));
    // The deltas of dropped versions are joined with the next ones. The base's stays, and is no step for all that.
    let dropped = whole.without(&[1, 3]).chain;
    assert_eq!(dropped.deltas_between(2, 4), [DeltaRef::composed(0)]);
    assert_eq!(steps(&dropped), [None, None, Some((2, 4)), None, d, None, None]);
    // A version that retention dropped stays hidden for a while, and is no step.
    let mut hidden = whole.clone();
    hidden.versions[2].is_kept = false;
    assert_eq!(steps(&hidden), [None, a, Some((2, 4)), None, d, None, None]);
    // The WAL goes on from the newest version, even if its snapshot was dropped.
    assert_eq!(steps(&whole.without(&[5]).chain), [None, a, b, c, d, None, None]);
    // Versions without a commit between them share an epoch.
    let mut same = whole;
    (same.versions[1].epoch, same.versions[3].epoch) = (10, 30);
    assert_eq!(steps(&same), [None, Some((2, 4)), None, Some((4, 5)), None, None, None]);
    same.versions[3].is_kept = false;
    assert_eq!(steps(&same), [None, Some((2, 4)), None, Some((4, 5)), None, None, None]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_chain_does_what_a_set_of_versions_does(steps in prop::collection::vec(step(), 1..60)) {
        let mut deltas = Deltas::default();
        let mut chain = chain(1);
        let mut kept = vec![1];
        let (mut next, mut is_strict) = (2, true);
        for step in steps {
            match step {
                Step::Append { last, spread } => {
                    let retention = last.map_or(Retention::All, Retention::Last);
                    let from = chain.newest().number;
                    let new = ChainVersion { delta: Some(DeltaRef::NEW), ..version(next, true) };
                    let mut longer = chain.clone();
                    longer.versions.push(new.clone());
                    let given_up = longer.given_up(retention, 0);
                    let plan = chain.with(new, &given_up, |delta| u64::from(delta.file % spread) * 100 + 1);
                    chain = deltas.carry_out(plan, Some((from, next)));
                    kept.push(next);
                    kept.retain(|number| !given_up.contains(number));
                    is_strict = false;
                    next += 1;
                }
                Step::Drop(which) => {
                    let dropped: Vec<u32> = which.iter().map(|index| kept[index.index(kept.len())]).collect();
                    if kept.iter().any(|number| !dropped.contains(number)) {
                        chain = deltas.carry_out(chain.without(&dropped), None);
                        kept.retain(|number| !dropped.contains(number));
                        is_strict = true;
                    }
                }
                Step::MergeAll(back) => {
                    let anchor = chain.index(chain.anchor).unwrap();
                    let index = (chain.versions.len() - 1).saturating_sub(back).max(anchor);
                    let number = chain.versions[index].number;
                    chain = deltas.carry_out(chain.merged_to(number), None);
                    is_strict = true;
                }
                Step::MergeNewest(num_deltas) => {
                    if let Some((from, to)) = chain.newest_range(num_deltas) {
                        let delta = deltas.write((from, to));
                        chain = chain.with_merged_delta(MergedDelta { from, to, delta });
                    }
                }
            }
            deltas.check(&chain, &kept, is_strict);
        }
    }
}
