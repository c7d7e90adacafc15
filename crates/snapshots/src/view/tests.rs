//! Views over random histories, from bases before, amid and behind them, against plain lists.

mod merged_on_demand;
mod overlaid;

use std::collections::BTreeSet;

use anden_graph::{Direction, WeightType};
use anden_testkit::{FaultStorage, Random};

use super::*;
use crate::arc_columns::{ArcRow, ArcValue};
use crate::base::AdjacencyFiles;
use crate::base_writer::{BaseWriter, FinishedBase};
use crate::changes::{ArcData, ChangedArc};
use crate::delta::{DeltaFile, DeltaWriter};
use crate::dictionary::Dictionary;
use crate::file::{FileKind, FramedFile};
use crate::lists::ListRules;
use crate::options::DatabaseId;

const ID: DatabaseId = DatabaseId([9; 16]);

/// An arc with its row and weight.
type ModelArc = (VertexId, VertexId, ArcData);

/// The graph at one version.
#[derive(Clone, Debug, Default)]
struct Version {
    bound: usize,
    arcs: Vec<ModelArc>,
    dead: BTreeSet<VertexId>,
    /// The row of the next edge; rows are unique.
    next_row: u64,
}

/// A random vertex. Small numbers are more frequent than large ones, so that some lists get long.
fn skewed(random: &mut Random, bound: usize) -> VertexId {
    let limit = 1 + random.index(bound);
    let limit = if random.below(3) == 0 { 1 + random.index(limit.min(8)) } else { limit };
    random.index(limit) as VertexId
}

struct History {
    options: GraphOptions,
    versions: Vec<Version>,
}

impl History {
    /// Versions that each add and remove a little of everything.
    fn new(options: GraphOptions, num_versions: usize, size: usize, random: &mut Random) -> Self {
        let mut history = Self { options, versions: Vec::new() };
        let mut version = Version { bound: 1500, ..Version::default() };
        history.change(&mut version, 9 * size, 0, random);
        history.versions.push(version.clone());
        for number in 1..num_versions {
            version.bound += random.index(700);
            for _ in 0..random.below(4) {
                let vertex = random.index(version.bound) as VertexId;
                if !version.dead.remove(&vertex) {
                    version.dead.insert(vertex);
                    version.arcs.retain(|&(u, v, _)| u != vertex && v != vertex);
                }
            }
            // Small graphs sometimes lose half; every fourth version loses nothing.
            let share = [100, if size < 1000 { 2 } else { 40 }, 50][number % 3];
            let num_removed = if number % 4 == 0 { 0 } else { version.arcs.len() / share };
            history.change(&mut version, size, num_removed, random);
            history.versions.push(version.clone());
        }
        history
    }

    fn change(&self, version: &mut Version, num_added: usize, num_removed: usize, random: &mut Random) {
        let is_undirected = self.options.graph_kind == GraphKind::Undirected;
        let mut removed = BTreeSet::new();
        for _ in 0..num_removed {
            let (u, v, _) = version.arcs[random.index(version.arcs.len())];
            removed.insert((u, v));
            if is_undirected {
                removed.insert((v, u));
            }
        }
        version.arcs.retain(|&(u, v, _)| !removed.contains(&(u, v)));
        let mut present: BTreeSet<_> = version.arcs.iter().map(|&(u, v, _)| (u, v)).collect();
        for _ in 0..num_added {
            // In large graphs, few vertices have most edges, so that their lists are long enough for fragments.
            let u =
                if num_added < 1000 { skewed(random, version.bound) } else { 40 * skewed(random, version.bound / 40) };
            let v = random.index(version.bound) as VertexId;
            let weight = if self.options.weight_type.is_some() { random.below_u64(5) } else { 0 };
            let data = ArcData { row: if self.options.has_rows() { version.next_row } else { 0 }, weight };
            version.next_row += 1;
            if version.dead.contains(&u) || version.dead.contains(&v) {
                continue;
            }
            if !present.insert((u, v)) && !self.options.multigraph {
                continue;
            }
            version.arcs.push((u, v, data));
            if is_undirected && u != v {
                present.insert((v, u));
                version.arcs.push((v, u, data));
            }
        }
        version.arcs.sort_unstable();
    }

    /// The arcs of one direction.
    fn arcs(&self, version: usize, direction: Direction) -> Vec<ModelArc> {
        let arcs = &self.versions[version].arcs;
        match direction {
            Direction::Out => arcs.clone(),
            Direction::In => {
                let mut arcs: Vec<_> = arcs.iter().map(|&(u, v, w)| (v, u, w)).collect();
                arcs.sort_unstable();
                arcs
            }
        }
    }

    fn write_base(&self, disk: &FaultStorage, index: usize) -> FinishedBase {
        let version = &self.versions[index];
        let number = index as u32;
        let writer = BaseWriter::create(disk, "".as_ref(), &self.options, ID, version.bound, number).unwrap();
        let directions =
            if self.options.stores_in_lists() { &[Direction::Out, Direction::In][..] } else { &[Direction::Out] };
        for &direction in directions {
            let arcs = self.arcs(index, direction);
            let mut degrees = vec![0; version.bound];
            arcs.iter().for_each(|&(u, ..)| degrees[u as usize] += 1);
            let targets: Vec<_> = arcs.iter().map(|&(_, v, _)| v).collect();
            let weights: Vec<_> = arcs.iter().map(|(.., data)| data.weight as u32).collect();
            let weights = if self.options.weight_type.is_some() { &weights[..] } else { &[] };
            let rows: Vec<_> = arcs.iter().map(|(.., data)| data.row).collect();
            let rows = if self.options.has_rows() { &rows[..] } else { &[] };
            writer.append::<u32>(direction, &degrees, &targets, weights, rows).unwrap();
        }
        writer.finish_with_dead(&version.dead.iter().copied().collect::<Vec<_>>()).unwrap()
    }

    fn base(&self, version: usize, patch_bytes: u64) -> Arc<OpenBase> {
        let disk = &FaultStorage::default();
        let base = self.write_base(disk, version);
        let open = |kind: FileKind| {
            let file = base.files.iter().find(|file| file.kind == kind);
            file.map(|file| Arc::new(FramedFile::open(disk, &file.path, kind, ID).unwrap()))
        };
        let files = |direction: Direction| {
            Some(AdjacencyFiles {
                table: open(FileKind::table(direction))?,
                targets: open(FileKind::targets(direction))?,
                weights: open(FileKind::weights(direction)).zip(self.options.weight_type),
                rows: open(FileKind::rows(direction)),
            })
        };
        let (out_files, in_files) = (files(Direction::Out).unwrap(), files(Direction::In));
        let rules = ListRules { vertex_bound: self.versions[version].bound, multigraph: self.options.multigraph };
        OpenBase::open(&out_files, in_files.as_ref(), rules, patch_bytes).unwrap()
    }

    /// The deltas between adjacent versions.
    fn deltas(&self, disk: &FaultStorage) -> Vec<Delta> {
        let mut writer = DeltaWriter::create(disk, "".as_ref(), &self.options, ID, 1).unwrap();
        for to in 1..self.versions.len() {
            let (old, new) = (&self.versions[to - 1], &self.versions[to]);
            let died: Vec<_> = new.dead.difference(&old.dead).copied().collect();
            let returned: Vec<_> = old.dead.difference(&new.dead).copied().collect();
            writer.begin_delta(to as u32 - 1, to as u32, new.bound, &died, &returned).unwrap();
            let directions = if self.options.stores_in_lists() { &DIRECTIONS[..] } else { &DIRECTIONS[..1] };
            for &direction in directions {
                let (old, new) = (self.arcs(to - 1, direction), self.arcs(to, direction));
                writer.append_arcs(direction, &missing(&new, &old), &missing(&old, &new)).unwrap();
            }
        }
        let file = writer.finish().unwrap();
        let file = FramedFile::open(disk, &file.path, FileKind::Delta, ID).unwrap();
        DeltaFile::open(&file, &self.options).unwrap().deltas().to_vec()
    }

    fn parts(&self, base: &Arc<OpenBase>, steps: Vec<(Delta, ApplyDirection)>, version: usize) -> ViewParts {
        let Version { bound, arcs, dead, .. } = &self.versions[version];
        let num_loops = arcs.iter().filter(|&&(u, v, _)| u == v).count();
        let num_edges = match self.options.graph_kind {
            GraphKind::Directed => arcs.len(),
            GraphKind::Undirected => (arcs.len() + num_loops) / 2,
        };
        ViewParts {
            version: Some(version as u32),
            base: Arc::clone(base),
            steps,
            options: self.options,
            vertex_bound: *bound,
            num_vertices: (bound - dead.len()) as u64,
            num_edges: num_edges as u64,
            num_arcs: arcs.len() as u64,
            dictionary: Arc::new(Dictionary::open(KeyScheme::Dense, *bound as u64, &[]).unwrap()),
            properties: Arc::default(),
            edge_properties: Arc::default(),
            files: Arc::default(),
            path: "db".into(),
        }
    }
}

/// Memory for all patched pages, in bytes.
const PLENTY: u64 = 1 << 26;

const DIRECTIONS: [Direction; 2] = [Direction::Out, Direction::In];

/// The arcs of `all` that `some` lacks, with multiplicity. Both are sorted.
fn missing(all: &[ModelArc], some: &[ModelArc]) -> Vec<ChangedArc> {
    let mut some = some.iter().peekable();
    let mut rest = Vec::new();
    for arc in all {
        while some.next_if(|other| *other < arc).is_some() {}
        if some.next_if(|other| *other == arc).is_none() {
            rest.push(ChangedArc { list: arc.0, neighbor: arc.1, data: arc.2 });
        }
    }
    rest
}

/// The list of a vertex with the values of one column, if the graph has the column.
fn values<P: ArcValue>(lists: &AdjacencyView, vertex: VertexId) -> Vec<(VertexId, P)> {
    let mut list = Vec::new();
    let _ = lists.for_each_fragment_with::<P>(vertex, |targets, values| {
        assert_eq!(targets.len(), values.len());
        list.extend(targets.iter().copied().zip(values.iter().copied()));
        ControlFlow::Continue(())
    });
    list
}

/// The arcs of a vertex's list with these targets, and with all their data. Parallel edges have one order in all
/// columns.
fn arcs_of_list(view: &SnapshotView, lists: &AdjacencyView, vertex: VertexId, targets: &[VertexId]) -> Vec<ModelArc> {
    let (weights, rows) = (values::<u32>(lists, vertex), values::<ArcRow>(lists, vertex));
    let options = view.options();
    assert!(options.has_rows() || rows.is_empty());
    assert!(options.weight_type.is_some() || weights.is_empty());
    let mut arcs: Vec<ModelArc> = targets.iter().map(|&target| (vertex, target, ArcData::default())).collect();
    let by_target = |arcs: &mut Vec<ModelArc>| arcs.sort_by_key(|&(_, target, _)| target);
    by_target(&mut arcs);
    let mut fill = |mut column: Vec<ModelArc>, set: fn(&mut ArcData, ArcData)| {
        // Fragments come in another order than a list that was merged on demand.
        by_target(&mut column);
        assert!(column.iter().map(|arc| arc.1).eq(arcs.iter().map(|arc| arc.1)));
        arcs.iter_mut().zip(column).for_each(|(arc, (.., data))| set(&mut arc.2, data));
    };
    if options.weight_type.is_some() {
        let column = weights.into_iter().map(|(target, weight)| (vertex, target, ArcData::of_weight(weight.into())));
        fill(column.collect(), |data, found| data.weight = found.weight);
    }
    if options.has_rows() {
        let column = rows.into_iter().map(|(target, ArcRow(row))| (vertex, target, ArcData::of_row(row)));
        fill(column.collect(), |data, found| data.row = found.row);
    }
    arcs
}

/// The arcs of a view in one direction, read list by list; pages, degrees and whole pages must agree.
fn read(view: &SnapshotView, direction: Direction) -> Vec<ModelArc> {
    let mut arcs = Vec::new();
    let lists = view.adjacency(direction).unwrap();
    for vertex in 0..view.vertex_bound() as VertexId {
        let mut list = Vec::new();
        let _ = lists.for_each_fragment(vertex, |targets| {
            assert!(targets.is_sorted());
            list.extend_from_slice(targets);
            ControlFlow::Continue(())
        });
        assert_eq!(list.len(), lists.degree(vertex));
        match lists.single_list(vertex) {
            Some(single) => assert_eq!(single, list),
            None => {
                // Before that, the list may have been merged on demand.
                let mut num_pieces = 0;
                let _ = lists.for_each_fragment(vertex, |_| {
                    num_pieces += 1;
                    ControlFlow::Continue(())
                });
                assert!(num_pieces != 1 || view.overlay.is_some());
            }
        }
        let of_list = arcs_of_list(view, lists, vertex, &list);
        if let Some((targets, weights)) = lists.weighted_list::<u32>(vertex) {
            let weighted = targets.iter().zip(weights).map(|(&target, &weight)| (target, u64::from(weight)));
            assert!(weighted.eq(of_list.iter().map(|&(_, target, data)| (target, data.weight))));
        }
        arcs.extend(of_list);
    }
    arcs.sort_unstable();
    check_pages(view, direction, &arcs);
    arcs
}

/// Looks up some arcs, and some that are absent.
fn check_finder(view: &SnapshotView, arcs: &[ModelArc], what: &str) {
    let mut finder = view.finder();
    let step = arcs.len() / 40 + 1;
    for &(u, v, _) in arcs.iter().step_by(step) {
        let wanted = [v.saturating_sub(1), v, v + 1];
        let wanted = &wanted[usize::from(v == 0)..];
        let mut found = Vec::new();
        finder.prefetch(u);
        finder.prefetch_arc(u, v);
        finder.find(u, wanted.iter().copied(), |index, data| found.push((u, wanted[index], data))).unwrap();
        found.sort_unstable();
        let expected: Vec<_> = arcs.iter().copied().filter(|arc| arc.0 == u && wanted.contains(&arc.1)).collect();
        assert_eq!(found, expected, "arcs of {u} near {v} of {what}");
    }
    let beyond = view.vertex_bound() as VertexId;
    finder.prefetch(beyond);
    finder.prefetch_arc(beyond, 0);
    finder.find(beyond, [0], |_, _| panic!("an arc of no vertex")).unwrap();
}

fn check_pages(view: &SnapshotView, direction: Direction, arcs: &[ModelArc]) {
    let lists = view.adjacency(direction).unwrap();
    let mut from_pages = Vec::new();
    let _ = lists.for_each_page(3..view.vertex_bound() as VertexId, |page| {
        match page {
            Page::Dense(page) => page.lists().for_each(|(u, list)| from_pages.extend(list.iter().map(|&v| (u, v)))),
            Page::Patched(vertices) => vertices.for_each(|u| {
                let _ = lists.for_each_fragment(u, |list| {
                    from_pages.extend(list.iter().map(|&v| (u, v)));
                    ControlFlow::Continue(())
                });
            }),
            Page::Empty(vertices) => vertices.for_each(|u| assert_eq!(lists.degree(u), 0)),
        }
        ControlFlow::Continue(())
    });
    from_pages.sort_unstable();
    assert!(arcs.iter().filter(|arc| arc.0 >= 3).map(|&(u, v, _)| (u, v)).eq(from_pages));
    check_words(view, lists, arcs);
    if view.overlay.is_some() {
        return;
    }
    let mut whole = Vec::new();
    for page in 0..lists.num_pages() {
        let content = lists.whole_page(page).unwrap();
        for (i, ends) in content.offsets.windows(2).enumerate() {
            let u = (page * PAGE_VERTICES + i) as VertexId;
            let entries = content.entries.all();
            let places = ends[0] as usize..ends[1] as usize;
            whole.extend(places.map(|place| (u, entries.targets[place], entries.data(place))));
        }
    }
    assert!(whole.is_sorted_by_key(|&(u, v, _)| (u, v)));
    whole.sort_unstable();
    assert_eq!(whole, arcs);
}

/// Lists that are read in groups, every second one and all; and their approximate lengths.
fn check_words(view: &SnapshotView, lists: &AdjacencyView, arcs: &[ModelArc]) {
    let bound = view.vertex_bound();
    for pattern in [!0, 0xaaaa_aaaa_aaaa_aaaa_u64] {
        let mut from_words = Vec::new();
        for group in VertexMask::groups(0..bound as VertexId) {
            lists.for_each_fragment_of(&group.among(|_, _| pattern), |u, list| {
                from_words.extend(list.iter().map(|&v| (u, v)));
                ControlFlow::Continue(())
            });
        }
        from_words.sort_unstable();
        assert!((0..bound as VertexId).all(|u| match (lists.rough_degree(u), lists.degree(u)) {
            (rough, exact) if view.overlay.is_none() => rough == exact,
            (rough, exact) => rough > 0 || exact == 0,
        }));
        let is_wanted = |u: VertexId| pattern >> (u % 64) & 1 == 1;
        assert!(arcs.iter().filter(|arc| is_wanted(arc.0)).map(|&(u, v, _)| (u, v)).eq(from_words));
    }
}

fn kinds() -> Vec<GraphOptions> {
    let directed = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let weighted = GraphOptions { weight_type: Some(WeightType::U32), ..directed };
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..directed };
    vec![
        directed,
        GraphOptions { in_edges: false, ..weighted },
        weighted,
        undirected,
        GraphOptions { multigraph: true, ..directed },
        GraphOptions { multigraph: true, ..weighted },
        GraphOptions { edge_properties: true, ..directed },
        GraphOptions { edge_properties: true, ..weighted },
        GraphOptions { edge_properties: true, multigraph: true, ..weighted },
        GraphOptions { edge_properties: true, weight_type: Some(WeightType::U32), ..undirected },
    ]
}

#[test]
fn every_version_is_shown_from_every_base() {
    let mut counts = PageCountsSum::default();
    for (seed, options) in kinds().into_iter().enumerate() {
        for size in [40, 2500] {
            let random = &mut Random::new(seed as u64 * 1000 + size as u64);
            let history = History::new(options, 7, size, random);
            let disk = FaultStorage::default();
            let deltas = history.deltas(&disk);
            for (anchor, patch_bytes) in [(0, PLENTY), (0, 0), (3, PLENTY), (3, 40_000), (6, PLENTY), (6, 0)] {
                let base = history.base(anchor, patch_bytes);
                for version in 0..history.versions.len() {
                    let between = |range: Range<usize>| deltas[range].iter().cloned();
                    let steps: Vec<_> = match anchor <= version {
                        true => between(anchor..version).map(|delta| (delta, ApplyDirection::Forward)).collect(),
                        false => {
                            between(version..anchor).rev().map(|delta| (delta, ApplyDirection::Backward)).collect()
                        }
                    };
                    let view = SnapshotView::open(history.parts(&base, steps, version)).unwrap();
                    let what = format!(
                        "{options:?}, seed {seed}, size {size}, base {anchor} with {patch_bytes}, version {version}"
                    );
                    // In the stored lists, and in the pages that readers have patched by then.
                    let arcs = &history.versions[version].arcs;
                    check_finder(&view, arcs, &what);
                    for direction in DIRECTIONS.into_iter().filter(|&direction| view.adjacency(direction).is_some()) {
                        assert!(read(&view, direction) == history.arcs(version, direction), "{direction:?} of {what}");
                        counts.add(view.adjacency(direction).unwrap());
                    }
                    check_finder(&view, arcs, &what);
                    view.check().unwrap();
                    let Version { bound, dead, .. } = &history.versions[version];
                    assert!((0..*bound as VertexId).all(|v| view.is_live(v) != dead.contains(&v)), "{what}");
                    assert!(!view.is_live(*bound as VertexId));
                }
            }
        }
    }
    // The history must have produced all kinds of pages.
    assert!(counts.dense > 20 && counts.on_fragmented_page > 20 && counts.rewritten > 20, "{counts:?}");
}

#[derive(Debug, Default)]
struct PageCountsSum {
    dense: usize,
    on_fragmented_page: usize,
    rewritten: usize,
}

impl PageCountsSum {
    fn add(&mut self, lists: &AdjacencyView) {
        let counts = lists.count_pages();
        self.dense += counts.dense;
        let mut on_fragmented_page = 0;
        for page in 0..lists.num_pages() {
            let vertices = (page * PAGE_VERTICES) as VertexId..(page * PAGE_VERTICES + 1) as VertexId;
            let _ = lists.for_each_page(vertices, |page| {
                on_fragmented_page += usize::from(matches!(page, Page::Patched(_)));
                ControlFlow::Continue(())
            });
        }
        self.on_fragmented_page += on_fragmented_page;
        self.rewritten += counts.patched - on_fragmented_page;
    }
}

#[test]
fn versions_share_the_pages_that_are_the_same() {
    let options = kinds()[0];
    let version = |arcs: &[ModelArc]| Version { bound: 3000, arcs: arcs.to_vec(), ..Version::default() };
    let arcs = [(0, 1), (0, 2), (1, 1), (2000, 7)].map(|(u, v)| (u, v, ArcData::default()));
    let versions = vec![version(&arcs[..1]), version(&arcs[..2]), version(&arcs[..3]), version(&arcs)];
    let history = History { options, versions };
    let disk = FaultStorage::default();
    let (base, deltas) = (history.base(0, PLENTY), history.deltas(&disk));
    let open = |version: usize| {
        let steps = deltas[..version].iter().map(|delta| (delta.clone(), ApplyDirection::Forward)).collect();
        let view = SnapshotView::open(history.parts(&base, steps, version)).unwrap();
        assert_eq!(read(&view, Direction::Out), history.arcs(version, Direction::Out));
        view
    };
    let (two, three) = (open(2), open(3));
    let list = |view: &SnapshotView, vertex| view.out_adjacency.single_list(vertex).unwrap().as_ptr();
    // The last delta changes only another page.
    assert_eq!(list(&two, 0), list(&three, 0));
    assert_ne!(list(&open(1), 0), list(&two, 0));
    // Without memory for a table of offsets, a view shows these pages in fragments, and the others keep theirs.
    base.memory().set_limit(0);
    let without_table = open(3);
    assert!(without_table.out_adjacency.single_list(0).is_none(), "nothing is copied where there is no memory");
    base.memory().set_limit(PLENTY);
    assert_eq!(list(&two, 0), list(&open(3), 0));
    drop((two, three, without_table));
    assert_eq!(read(&open(3), Direction::Out), history.arcs(3, Direction::Out));
}

#[test]
fn window_shows_surviving_additions() {
    for (seed, options) in kinds().into_iter().enumerate() {
        let history = History::new(options, 7, 200, &mut Random::new(seed as u64));
        let disk = FaultStorage::default();
        let deltas = history.deltas(&disk);
        for ((first, last), patch_bytes) in [((1, 1), PLENTY), ((2, 5), 0), ((2, 5), PLENTY), ((1, 6), 40_000)] {
            let base = history.base(6, patch_bytes);
            let steps = deltas[last..].iter().rev().map(|delta| (delta.clone(), ApplyDirection::Backward)).collect();
            let parts = history.parts(&base, steps, last);
            let view = SnapshotView::window(parts, &deltas[first - 1..last]).unwrap();
            for direction in DIRECTIONS.into_iter().filter(|&direction| view.adjacency(direction).is_some()) {
                let added = missing(&history.arcs(last, direction), &history.arcs(first - 1, direction));
                let expected: Vec<_> = added.iter().map(|arc| (arc.list, arc.neighbor, arc.data)).collect();
                assert!(read(&view, direction) == expected, "seed {seed}, {direction:?} of {first}..{last}");
            }
            let num_arcs = view.num_arcs();
            match options.graph_kind {
                GraphKind::Directed => assert_eq!(view.num_edges(), num_arcs),
                GraphKind::Undirected => assert!((num_arcs / 2..=num_arcs).contains(&view.num_edges())),
            }
        }
    }
}

#[test]
fn deltas_unfit_for_base_are_damage() {
    let options = kinds()[0];
    let history = History::new(options, 3, 900, &mut Random::new(5));
    let disk = FaultStorage::default();
    let (base, deltas) = (history.base(0, PLENTY), history.deltas(&disk));
    // Without the first delta, the second removes absent arcs.
    let steps = vec![(deltas[1].clone(), ApplyDirection::Forward)];
    let mut parts = history.parts(&base, steps, 2);
    let dead = deltas[1].died().unwrap().len() as u64;
    parts.num_vertices = parts.vertex_bound as u64 - dead;
    if let Ok(view) = SnapshotView::open(parts) {
        let pages = view.adjacency(Direction::Out).unwrap().num_pages();
        let whole = (0..pages).try_for_each(|page| view.adjacency(Direction::Out).unwrap().whole_page(page).map(drop));
        assert!(whole.unwrap_err().to_string().contains("the deltas do not fit the out-lists"));
    }
}
