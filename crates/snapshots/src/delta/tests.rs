//! Delta files: they read as written, and damaged or forged files are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anden_base::MAX_VERTICES;
use anden_base::storage::Storage;
use anden_graph::GraphKind;
use anden_testkit::{FaultPlan, FaultStorage};
use proptest::prelude::*;

use super::*;
use crate::changes::{ArcData, ChangedArc};
use crate::file::{FileKind, FileWriter, FramedFile, WrittenFile};
use crate::options::DatabaseId;

const ID: DatabaseId = DatabaseId([3; 16]);

/// One more than the largest vertex: the last of three pages is not full.
const BOUND: usize = 2 * PAGE_VERTICES + 100;

fn options(weight_type: Option<WeightType>) -> GraphOptions {
    GraphOptions { weight_type, ..GraphOptions::default() }
}

fn undirected() -> GraphOptions {
    GraphOptions { graph_kind: GraphKind::Undirected, ..GraphOptions::default() }
}

fn writer(disk: &FaultStorage, options: &GraphOptions, number: u32) -> DeltaWriter {
    DeltaWriter::create(disk, "".as_ref(), options, ID, number).unwrap()
}

fn open(disk: &FaultStorage, file: &WrittenFile, options: &GraphOptions) -> crate::Result<Vec<Delta>> {
    let file = FramedFile::open(disk, &file.path, FileKind::Delta, ID)?;
    Ok(DeltaFile::open(&file, options)?.deltas().to_vec())
}

fn arc(list: VertexId, neighbor: VertexId, weight: u64) -> ChangedArc {
    ChangedArc { list, neighbor, data: ArcData::of_weight(weight) }
}

/// Data of the arc with this number: weights descend as rows ascend.
fn data(options: &GraphOptions, number: u64) -> ArcData {
    const ROWS: u64 = 1 << 40;
    let weight = match options.weight_type {
        None => 0,
        Some(WeightType::F64) => (number as f64 / 8.0).to_bits(),
        Some(WeightType::F32) => u64::from((number as f32 / 8.0).to_bits()),
        Some(WeightType::U32 | WeightType::I64) => number,
    };
    ArcData { row: if options.has_rows() { ROWS - number } else { 0 }, weight }
}

/// Entries without weights and rows.
fn plain(targets: &[VertexId]) -> ListEntries<'_> {
    ListEntries { targets, ..ListEntries::default() }
}

const NONE: ListEntries<'_> = ListEntries { targets: &[], weights: &[], rows: &[] };

/// The arcs that a delta adds and removes in one direction.
fn arcs(delta: &Delta, direction: Direction) -> (Vec<ChangedArc>, Vec<ChangedArc>) {
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    let mut changes = PageChanges::default();
    for page in delta.pages(direction).unwrap() {
        assert!(delta.touches(direction, page as usize));
        assert!(delta.read_page(direction, page as usize, &mut changes).unwrap() && !changes.is_empty());
        for list in changes.lists() {
            let vertex = (page as usize * PAGE_VERTICES + list.local as usize) as VertexId;
            let arcs_of = |entries: ListEntries<'_>| -> Vec<ChangedArc> {
                let targets = entries.targets.iter().enumerate();
                targets
                    .map(|(i, &target)| ChangedArc { list: vertex, neighbor: target, data: entries.data(i) })
                    .collect()
            };
            added.extend(arcs_of(list.added));
            removed.extend(arcs_of(list.removed));
        }
    }
    assert_eq!(delta.num_arcs(direction), (added.len() as u64, removed.len() as u64));
    (added, removed)
}

#[test]
fn deltas_come_back_from_a_pack() {
    let weight_types = [None, Some(WeightType::U32), Some(WeightType::F64)];
    for (weight_type, edge_properties) in weight_types.into_iter().flat_map(|of| [(of, false), (of, true)]) {
        let disk = FaultStorage::default();
        let options = GraphOptions { edge_properties, ..options(weight_type) };
        let arc = |list, neighbor, number| ChangedArc { list, neighbor, data: data(&options, number) };
        let directions = [
            (vec![arc(0, 5, 9), arc(0, 7, 2), arc(2047, 1, 4)], vec![arc(0, 6, 1)]),
            (vec![arc(2100, 0, 1)], vec![arc(5, 0, 3), arc(5, 2, 3), arc(1500, 1024, 6)]),
        ];
        let mut file = writer(&disk, &options, 1);
        file.begin_delta(1, 2, BOUND, &[3, 5], &[1]).unwrap();
        file.append_arcs(Direction::Out, &directions[0].0, &directions[0].1).unwrap();
        file.append_arcs(Direction::In, &directions[1].0, &directions[1].1).unwrap();
        file.begin_delta(2, 3, BOUND, &[], &[]).unwrap();
        file.begin_delta(3, 7, BOUND + 5, &[], &[BOUND as u32 + 4]).unwrap();
        file.append_arcs(Direction::Out, &[arc(0, 5, 1)], &[]).unwrap();
        let num_bytes = file.num_bytes();
        let deltas = open(&disk, &file.finish().unwrap(), &options).unwrap();
        // Once as written, once packed again in another order.
        let mut pack = writer(&disk, &options, 2);
        [2, 1, 0].into_iter().for_each(|i| pack.append_delta(&deltas[i]).unwrap());
        let mut packed = open(&disk, &pack.finish().unwrap(), &options).unwrap();
        packed.reverse();
        for deltas in [deltas, packed] {
            let [first, second, third] = &deltas[..] else { panic!("three deltas expected") };
            assert_eq!((first.from(), first.to(), first.vertex_bound()), (1, 2, BOUND));
            assert_eq!((third.from(), third.to(), third.vertex_bound()), (3, 7, BOUND + 5));
            assert_eq!((first.died().unwrap(), first.returned().unwrap()), (&[3, 5][..], &[1][..]));
            assert!(second.died().unwrap().is_empty() && second.returned().unwrap().is_empty());
            assert_eq!(
                (arcs(first, Direction::Out), arcs(first, Direction::In)),
                (directions[0].clone(), directions[1].clone())
            );
            assert_eq!((arcs(second, Direction::Out), arcs(second, Direction::In)), Default::default());
            assert_eq!(arcs(third, Direction::Out), (vec![arc(0, 5, 1)], vec![]));
            assert_eq!(third.returned().unwrap(), [BOUND as u32 + 4]);
            assert_eq!(first.pages(Direction::In).unwrap(), [0, 1, 2]);
            assert!(!first.touches(Direction::Out, 2) && !first.touches(Direction::Out, usize::MAX));
            let mut changes = PageChanges::default();
            changes.push(1, plain(&[2]), NONE);
            assert!(!second.read_page(Direction::Out, 0, &mut changes).unwrap() && changes.is_empty());
            assert_eq!(deltas.iter().map(Delta::num_bytes).sum::<u64>(), num_bytes);
            deltas.iter().for_each(|delta| delta.verify().unwrap());
        }
    }
}

#[test]
fn long_lists_have_several_entries() {
    for (num_added, num_removed) in [(2047, 2047), (2048, 0), (0, 2048), (5000, 3), (3, 5000), (4094, 2048)] {
        let disk = FaultStorage::default();
        let options = undirected();
        let even: Vec<_> = (0..num_added).map(|i| arc(7, 2 * i, 0)).collect();
        let odd: Vec<_> = (0..num_removed).map(|i| arc(7, 2 * i + 1, 0)).collect();
        let mut file = writer(&disk, &options, 1);
        file.begin_delta(1, 2, 20_000, &[], &[]).unwrap();
        file.append_arcs(Direction::Out, &even, &odd).unwrap();
        let deltas = open(&disk, &file.finish().unwrap(), &options).unwrap();
        assert_eq!(arcs(&deltas[0], Direction::Out), (even, odd));
        assert_eq!(
            deltas[0].parts(Direction::Out).unwrap().unwrap().vertices.len() as u32,
            num_added.max(num_removed).div_ceil(2047)
        );
        deltas[0].verify().unwrap();
    }
}

#[test]
fn small_deltas_are_small_in_a_pack() {
    const NUM_DELTAS: u32 = 2000;
    let disk = FaultStorage::default();
    let options = GraphOptions { weight_type: Some(WeightType::F64), ..undirected() };
    let mut file = writer(&disk, &options, 1);
    for version in 1..=NUM_DELTAS {
        file.begin_delta(version, version + 1, 5000, &[], &[]).unwrap();
        file.append_arcs(Direction::Out, &[arc(version, 4999, 0), arc(4999, version, 0)], &[]).unwrap();
    }
    let file = file.finish().unwrap();
    assert!(file.len < 250 * u64::from(NUM_DELTAS), "{} bytes", file.len);
    let deltas = open(&disk, &file, &options).unwrap();
    assert_eq!(deltas.len(), NUM_DELTAS as usize);
    assert_eq!(deltas[1233].to(), 1235);
    assert_eq!(arcs(&deltas[1233], Direction::Out).0, [arc(1234, 4999, 0), arc(4999, 1234, 0)]);
}

/// Scattered changes have the cost that the description of the format states.
#[test]
fn changes_are_small() {
    let disk = FaultStorage::default();
    let options = undirected();
    let bound = 100 * PAGE_VERTICES;
    let added: Vec<_> = (0..bound as u32).step_by(8).map(|v| arc(v, v / 2, 0)).collect();
    let mut file = writer(&disk, &options, 1);
    file.begin_delta(1, 2, bound, &[], &[]).unwrap();
    file.append_arcs(Direction::Out, &added, &[]).unwrap();
    let file = file.finish().unwrap();
    let num_bytes = open(&disk, &file, &options).unwrap()[0].num_bytes();
    assert_eq!(num_bytes, 104 + 100 * 16 + added.len() as u64 * 8);
    assert!(file.len < num_bytes + num_bytes / 1000 + 6000, "{} for {num_bytes}", file.len);
}

/// Expects that this append is refused with this text.
fn says(options: &GraphOptions, append: &dyn Fn(&mut DeltaWriter) -> crate::Result<()>, what: &str) {
    let disk = FaultStorage::default();
    let mut file = writer(&disk, options, 1);
    let error = append(&mut file).unwrap_err().to_string();
    assert!(error.contains(what), "{error}");
}

#[test]
fn rows_that_break_a_rule_are_not_written() {
    let weighted = GraphOptions { multigraph: true, edge_properties: true, ..options(Some(WeightType::U32)) };
    let twice = |rows: &'static [u64], weights: &'static [u64]| {
        move |file: &mut DeltaWriter| {
            let mut changes = PageChanges::default();
            changes.push(3, ListEntries { targets: &[2, 2], weights, rows }, NONE);
            file.begin_delta(1, 2, BOUND, &[], &[])?;
            file.append_page(Direction::Out, 0, &changes)
        }
    };
    says(&weighted, &twice(&[5, 4], &[1, 2]), "changes of vertex 3 that ascend expected");
    says(&weighted, &twice(&[], &[1, 2]), "2 rows expected, 0 found");
    says(&GraphOptions { weight_type: None, ..weighted }, &twice(&[], &[]), "2 rows expected, 0 found");
    says(&options(None), &twice(&[4, 5], &[]), "0 rows expected, 2 found");
    twice(&[4, 5], &[2, 1])(&mut writer(&FaultStorage::default(), &weighted, 1)).unwrap();
    // A row appears in a list once, whatever its weight.
    let of_row = |weight| [ChangedArc { list: 9, neighbor: 8, data: ArcData { row: 3, weight } }];
    let append = |file: &mut DeltaWriter| {
        file.begin_delta(1, 2, BOUND, &[], &[])?;
        file.append_arcs(Direction::Out, &of_row(1), &of_row(2))
    };
    says(&weighted, &append, "from 9 to 8 is both added and removed");
}

#[test]
fn invalid_delta_is_not_written() {
    let simple = options(None);
    let added = |arcs: &'static [(u32, u32)]| {
        move |file: &mut DeltaWriter| {
            file.begin_delta(1, 2, BOUND, &[], &[])?;
            let arcs: Vec<_> = arcs.iter().map(|&(list, target)| arc(list, target, 0)).collect();
            file.append_arcs(Direction::Out, &arcs, &[])
        }
    };
    says(&simple, &added(&[(3, 1), (2, 1)]), "changes out of order");
    says(&simple, &added(&[(3, 1), (3, 1)]), "vertex 3 that ascend strictly");
    says(&simple, &added(&[(3, BOUND as u32)]), "target below 2148 expected, 2148 found");
    says(&simple, &added(&[(BOUND as u32, 3)]), "vertex below 2148 expected, 2148 found");
    says(&simple, &|file| file.append_arcs(Direction::Out, &[], &[]), "before a delta was begun");
    says(&undirected(), &|file| file.append_page(Direction::In, 0, &PageChanges::default()), "no in-lists");
    says(&simple, &|file| file.begin_delta(2, 2, 1, &[], &[]), "from version 2 to 2");
    says(&simple, &|file| file.begin_delta(1, 2, MAX_VERTICES + 1, &[], &[]), "at most");
    says(&simple, &|file| file.begin_delta(1, 2, 5, &[2, 2], &[]), "ascend strictly below 5");
    says(&simple, &|file| file.begin_delta(1, 2, 5, &[], &[5]), "ascend strictly below 5");
    says(&simple, &|file| file.begin_delta(1, 2, 5, &[1, 2], &[2, 3]), "vertex 2 both died and returned");
    let with = |arcs: [ChangedArc; 2]| {
        move |file: &mut DeltaWriter| {
            file.begin_delta(1, 2, BOUND, &[], &[])?;
            file.append_arcs(Direction::Out, &arcs[..1], &arcs[1..])
        }
    };
    says(&simple, &with([arc(9, 8, 0); 2]), "from 9 to 8 is both added and removed");
    let nan = arc(1, 2, u64::from(f32::NAN.to_bits()));
    says(&options(Some(WeightType::F32)), &with([nan, arc(1, 2, 0)]), "no number");
    says(&options(Some(WeightType::U32)), &with([arc(1, 2, 1 << 32), arc(1, 2, 0)]), "no number");
    let page = |page| {
        move |file: &mut DeltaWriter| {
            let mut changes = PageChanges::default();
            changes.push(0, plain(&[2]), NONE);
            file.begin_delta(1, 2, BOUND, &[], &[])?;
            file.append_page(Direction::Out, 1, &changes)?;
            file.append_page(Direction::Out, page, &changes)
        }
    };
    says(&simple, &page(1), "page 1 out of order");
    says(&options(Some(WeightType::I64)), &page(2), "1 weights expected, 0 found");
    let disk = FaultStorage::default();
    let mut file = writer(&disk, &simple, 1);
    file.begin_delta(1, 2, BOUND, &[], &[]).unwrap();
    file.append_arcs(Direction::Out, &[arc(BOUND as u32, 0, 0)], &[]).unwrap_err();
    file.append_arcs(Direction::Out, &[arc(0, 0, 0)], &[]).unwrap();
    assert!(file.finish().unwrap_err().to_string().contains("failed before"));
}

/// The sections of a file with one delta of two pages, as bytes that tests change; checksums always fit.
struct Forged {
    delta: DeltaEntry,
    pages: [DeltaPageEntry; 2],
    vertices: Vec<VertexEntry>,
    targets: Vec<u32>,
    weights: Vec<f32>,
    /// `None` in a graph without rows.
    rows: Option<Vec<u64>>,
    died: Vec<u32>,
    returned: Vec<u32>,
}

impl Forged {
    fn new(has_rows: bool) -> Self {
        let entry = |local, num_added, num_removed| VertexEntry { local, num_added, num_removed };
        let page = |page, vertices_start, targets_start| DeltaPageEntry { page, vertices_start, targets_start };
        Self {
            delta: DeltaEntry {
                from: 4,
                to: 5,
                vertex_bound: BOUND as u64,
                directions: [
                    AdjacencyCounts { num_pages: 2, num_vertices: 3, num_added: 4, num_removed: 1 },
                    AdjacencyCounts::default(),
                ],
                num_died: 2,
                num_returned: 1,
                num_columns: 0,
            },
            pages: [page(0, 0, 0), page(2, 2, 3)],
            vertices: vec![entry(0, 1, 1), entry(1, 1, 0), entry(99, 2, 0)],
            targets: vec![1, 2, 3, 4, 5],
            weights: vec![0.5; 5],
            rows: has_rows.then(|| vec![7; 5]),
            died: vec![3, 5],
            returned: vec![4],
        }
    }

    fn options(&self) -> GraphOptions {
        let edge_properties = self.rows.is_some();
        GraphOptions { edge_properties, in_edges: false, ..options(Some(WeightType::F32)) }
    }

    fn open(&self) -> crate::Result<Delta> {
        let disk = FaultStorage::default();
        let mut file = FileWriter::create(&disk, "delta".as_ref())?;
        let vertices: Vec<u32> = self.vertices.iter().map(|entry| entry.encode()).collect();
        let sections: [(SectionKind, &[u8]); 7] = [
            (SectionKind::DeltaDirectory, bytemuck::bytes_of(&self.delta)),
            (SectionKind::OutDeltaPages, bytemuck::cast_slice(&self.pages)),
            (SectionKind::OutDeltaVertices, bytemuck::cast_slice(&vertices)),
            (SectionKind::OutDeltaTargets, bytemuck::cast_slice(&self.targets)),
            (SectionKind::OutDeltaWeights, bytemuck::cast_slice(&self.weights)),
            (SectionKind::DiedVertices, bytemuck::cast_slice(&self.died)),
            (SectionKind::ReturnedVertices, bytemuck::cast_slice(&self.returned)),
        ];
        let rows = self.rows.iter().map(|rows| (SectionKind::OutDeltaRows, bytemuck::cast_slice(rows)));
        for (kind, bytes) in sections.into_iter().chain(rows) {
            file.begin_section(kind)?;
            file.append(bytes)?;
        }
        let file = file.finish(FileKind::Delta, ID)?;
        Ok(open(&disk, &file, &self.options())?.swap_remove(0))
    }
}

#[test]
fn spilled_delta_equals_unspilled_delta() {
    for (edge_properties, num_sections, least_bytes) in [(false, 4, 9 << 20), (true, 6, 18 << 20)] {
        let options = GraphOptions { edge_properties, ..options(Some(WeightType::F32)) };
        let disk = Arc::new(FaultStorage::new(FaultPlan::Never));
        let arc = |list: u32, neighbor: u32| ChangedArc { list, neighbor, data: data(&options, 4) };
        // More than a megabyte of targets, of weights and of rows, in sections of both directions.
        let arcs: Vec<_> = (0..BOUND as u32).flat_map(|list| (0..300).map(move |i| arc(list, 7 * i))).collect();
        let [plain, spilled] = [false, true].map(|spills| {
            let mut writer = writer(&disk, &options, 5 + u32::from(spills));
            if spills {
                writer = writer.spilling(Spill::new(Arc::clone(&disk) as Arc<dyn Storage>, "".into(), 6));
            }
            writer.begin_delta(1, 2, BOUND, &[], &[]).unwrap();
            writer.append_arcs(Direction::Out, &arcs, &[]).unwrap();
            writer.append_arcs(Direction::In, &[], &arcs).unwrap();
            let num_scratch = disk.list("".as_ref()).unwrap().iter().filter(|name| name.contains("scratch")).count();
            assert_eq!(num_scratch, if spills { num_sections } else { 0 });
            let (num_bytes, file) = (writer.num_bytes(), writer.finish().unwrap());
            (num_bytes, disk.contents(&file.path).unwrap())
        });
        assert!(plain == spilled && plain.0 > least_bytes, "{} and {} bytes", plain.0, spilled.0);
        assert_eq!(disk.list("".as_ref()).unwrap().len(), 2, "scratch files stay");
    }
}

/// Damage whose checksums fit.
type Damage = fn(&mut Forged);

#[test]
fn damage_to_the_directory_is_found_at_the_opening() {
    let at_open: [(Damage, &str); 14] = [
        (|f| f.delta.from = 5, "from version 5 to 5"),
        (|f| f.delta.vertex_bound = u64::MAX, "too many vertices"),
        (|f| f.delta.directions[0].num_pages = u64::MAX, "past the end"),
        (|f| f.delta.directions[0].num_vertices = 4, "past the end"),
        (|f| f.delta.directions[0].num_added = u64::MAX, "past the end"),
        (|f| f.delta.directions[0].num_removed = u64::MAX - 3, "past the end"),
        (|f| f.delta.directions[1].num_removed = 1, "past the end"),
        (|f| f.delta.num_died = 1 << 62, "past the end"),
        (|f| f.delta.num_returned = 0, "vertices that belong to no delta"),
        (|f| f.delta.directions[0].num_pages = 1, "changes that belong to no delta"),
        (|f| f.delta.directions[0].num_added = 3, "changes that belong to no delta"),
        (|f| f.vertices.truncate(2), "past the end"),
        (|f| f.targets.push(9), "6 weights of changes expected, 5 found"),
        (|f| f.weights.truncate(0), "5 weights of changes expected, 0 found"),
    ];
    let refused = |has_rows: bool, damage: Damage, what: &str| {
        let mut forged = Forged::new(has_rows);
        damage(&mut forged);
        let error = forged.open().unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    for has_rows in [false, true] {
        Forged::new(has_rows).open().unwrap().verify().unwrap();
        at_open.iter().for_each(|(damage, what)| refused(has_rows, *damage, what));
    }
    for (num_rows, what) in [(0, "5 rows of changes expected, 0 found"), (6, "5 rows of changes expected, 6 found")] {
        let mut forged = Forged::new(true);
        forged.rows = Some(vec![7; num_rows]);
        let error = forged.open().unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn damage_to_changes_is_found_at_the_first_touch() {
    let at_touch: [(Damage, &str); 29] = [
        (|f| f.pages[0].vertices_start = 1, "index of changed pages"),
        (|f| f.pages[0].targets_start = 1, "index of changed pages"),
        (|f| f.pages[0].page = 2, "index of changed pages"),
        (|f| f.pages[1].page = 3, "index of changed pages"),
        (|f| f.pages[1].page = u32::MAX, "index of changed pages"),
        (|f| f.pages[1].vertices_start = 3, "index of changed pages"),
        (|f| f.pages[1].vertices_start = 0, "index of changed pages"),
        (|f| f.pages[1].targets_start = u64::MAX, "index of changed pages"),
        (|f| f.pages[1].targets_start = 0, "index of changed pages"),
        (|f| f.pages[1].targets_start = 2, "add up to 2 changes"),
        (|f| f.pages[1].vertices_start = 1, "add up to 3 changes"),
        (|f| f.vertices[0].num_added = 2047, "add up to 3 changes"),
        (|f| f.vertices[1].num_added = 0, "vertices out of order"),
        (|f| f.vertices[1].local = 0, "vertices out of order"),
        (|f| f.vertices[0].local = 2, "vertices out of order"),
        (|f| f.vertices[2].local = 100, "vertex below 2148 expected, 2148 found"),
        (|f| f.delta.vertex_bound -= 1, "vertex below 2147 expected, 2147 found"),
        (|f| f.delta.vertex_bound = 2048, "index of changed pages"),
        (|f| f.delta.vertex_bound = 0, "ascend strictly below 0"),
        (|f| f.targets[2] = BOUND as u32, "target below 2148 expected, 2148 found"),
        (|f| f.targets[4] = 4, "ascend strictly"),
        (|f| f.targets[1] = 1, "both added and removed"),
        (|f| f.weights[1] = f32::NAN, "no number"),
        (
            |f| f.vertices[2] = VertexEntry { local: 99, num_added: 1, num_removed: 1 },
            "4 arcs added and 1 removed expected",
        ),
        (|f| f.died[0] = 5, "ascend strictly"),
        (|f| f.died[1] = BOUND as u32, "ascend strictly below 2148"),
        (|f| f.returned[0] = u32::MAX, "ascend strictly below 2148"),
        (|f| f.returned[0] = 3, "vertex 3 both died and returned"),
        (
            |f| f.delta.directions[0] = AdjacencyCounts { num_pages: 2, num_vertices: 3, num_added: 5, num_removed: 0 },
            "arcs added",
        ),
    ];
    for (damage, what) in at_touch {
        met_at_touch(false, damage, what);
        met_at_touch(true, damage, what);
    }
    // Rows, not weights, decide what is both added and removed.
    met_at_touch(
        true,
        |f| {
            f.targets[1] = 1;
            f.weights[1] = 2.0;
        },
        "both added and removed",
    );
    let mut forged = Forged::new(true);
    forged.targets[1] = 1;
    forged.rows = Some(vec![7, 6, 5, 4, 3]);
    forged.open().unwrap().verify().unwrap();
}

fn met_at_touch(has_rows: bool, damage: Damage, what: &str) {
    let mut forged = Forged::new(has_rows);
    damage(&mut forged);
    let delta = forged.open().unwrap();
    let error = delta.verify().unwrap_err().to_string();
    assert!(error.starts_with("delta: damaged at byte") && error.contains(what), "{error}");
    // A second look finds the fault again, and nothing panics.
    assert_eq!(delta.verify().unwrap_err().to_string(), error);
    let mut changes = PageChanges::default();
    for page in 0..4 {
        let is_read = delta.read_page(Direction::Out, page, &mut changes);
        assert!(is_read.is_ok() || delta.touches(Direction::Out, page) && changes.is_empty());
    }
}

/// Flips every bit of the small structures of a file, with checksums that fit.
#[test]
fn no_flipped_bit_panics() {
    let flip = |flip: &dyn Fn(&mut Forged)| {
        for has_rows in [false, true] {
            let mut forged = Forged::new(has_rows);
            flip(&mut forged);
            if let Ok(delta) = forged.open() {
                let _ = delta.verify();
                let mut changes = PageChanges::default();
                (0..4).for_each(|page| drop(delta.read_page(Direction::Out, page, &mut changes)));
                let disk = FaultStorage::default();
                let _ = writer(&disk, &forged.options(), 1).append_delta(&delta);
            }
        }
    };
    for bit in 0..size_of::<DeltaEntry>() * 8 {
        flip(&|f| bytemuck::bytes_of_mut(&mut f.delta)[bit / 8] ^= 1 << (bit % 8));
    }
    for bit in 0..2 * size_of::<DeltaPageEntry>() * 8 {
        flip(&|f| bytemuck::cast_slice_mut::<_, u8>(&mut f.pages)[bit / 8] ^= 1 << (bit % 8));
    }
    for bit in 0..3 * 32 {
        flip(&|f| f.vertices[bit / 32] = VertexEntry::decode(f.vertices[bit / 32].encode() ^ 1 << (bit % 32)));
    }
    for bit in 0..5 * 32 {
        flip(&|f| f.targets[bit / 32] ^= 1 << (bit % 32));
    }
}

#[test]
fn damaged_delta_is_detected_when_read() {
    let disk = FaultStorage::default();
    let options = undirected();
    let mut file = writer(&disk, &options, 1);
    let targets: Vec<u32> = (0..2000).collect();
    let mut changes = PageChanges::default();
    changes.push(3, plain(&targets), NONE);
    file.begin_delta(1, 2, BOUND, &[], &[]).unwrap();
    (0..3).for_each(|page| file.append_page(Direction::Out, page, &changes).unwrap());
    let file = file.finish().unwrap();
    let framed = FramedFile::open(&disk, &file.path, FileKind::Delta, ID).unwrap();
    let place = framed.section(SectionKind::OutDeltaTargets).unwrap().file_offset() as usize + 5 * 4096;
    let mut bytes = disk.contents(&file.path).unwrap();
    bytes[place] ^= 1;
    disk.set_contents(&file.path, &bytes);
    let delta = &open(&disk, &file, &options).unwrap()[0];
    let mut changes = PageChanges::default();
    assert!(delta.read_page(Direction::Out, 0, &mut changes).unwrap());
    assert!(delta.read_page(Direction::Out, 2, &mut changes).unwrap_err().to_string().contains("checksum"));
    assert!(changes.is_empty() && delta.verify().is_err());
    assert!(writer(&disk, &options, 2).append_delta(delta).is_err());
}

/// The arcs of out-lists.
type Arcs = BTreeSet<(u32, u32, ArcData)>;

/// The changes from one set of arcs to another.
fn write_difference(file: &mut DeltaWriter, version: u32, old: &Arcs, new: &Arcs) {
    file.begin_delta(version, version + 1, BOUND, &[], &[]).unwrap();
    for direction in DIRECTIONS {
        let arcs = |a: &Arcs, b: &Arcs| -> Vec<ChangedArc> {
            let difference = a.difference(b).map(|&(source, target, data)| match direction {
                Direction::Out => ChangedArc { list: source, neighbor: target, data },
                Direction::In => ChangedArc { list: target, neighbor: source, data },
            });
            let mut arcs: Vec<_> = difference.collect();
            arcs.sort_unstable();
            arcs
        };
        file.append_arcs(direction, &arcs(new, old), &arcs(old, new)).unwrap();
    }
}

fn kinds() -> impl Strategy<Value = GraphOptions> {
    let weight_types = prop_oneof![Just(None), Just(Some(WeightType::U32)), Just(Some(WeightType::F64))];
    (weight_types, any::<bool>(), any::<bool>()).prop_map(|(weight_type, multigraph, edge_properties)| GraphOptions {
        multigraph,
        edge_properties,
        ..options(weight_type)
    })
}

proptest! {
    #[test]
    fn composed_deltas_lead_from_first_to_last_version(
        options in kinds(),
        versions in prop::collection::vec(prop::collection::btree_set((0..2_u32, 0..3_u32, 0..3_u64), 0..8), 2..6)
    ) {
        // Few vertices, so that changes meet, on all pages.
        let vertex = |v: u32| [5, 1030, BOUND as u32 - 1][v as usize];
        let versions: Vec<Arcs> = versions.iter().map(|numbers| {
            let arcs = numbers.iter().map(|&(a, b, number)| (vertex(a), vertex(b), data(&options, number)));
            match options.multigraph {
                true => arcs.collect(),
                false => {
                    let pairs: BTreeMap<_, _> = arcs.map(|(a, b, data)| ((a, b), data)).collect();
                    pairs.into_iter().map(|((a, b), data)| (a, b, data)).collect()
                }
            }
        }).collect();
        let disk = FaultStorage::default();
        let mut parts = writer(&disk, &options, 1);
        for (i, pair) in versions.windows(2).enumerate() {
            write_difference(&mut parts, i as u32 + 1, &pair[0], &pair[1]);
        }
        let deltas = open(&disk, &parts.finish().unwrap(), &options).unwrap();
        let mut net = writer(&disk, &options, 2);
        compose_deltas(&deltas, &mut net, &options).unwrap();
        write_difference(&mut net, 77, &versions[0], &versions[versions.len() - 1]);
        let net = open(&disk, &net.finish().unwrap(), &options).unwrap();
        prop_assert_eq!((net[0].from(), net[0].to()), (1, versions.len() as u32));
        for direction in DIRECTIONS {
            prop_assert_eq!(arcs(&net[0], direction), arcs(&net[1], direction));
        }
        net[0].verify().unwrap();
    }
}

#[test]
fn deaths_compose_and_gaps_are_refused() {
    let disk = FaultStorage::default();
    let options = undirected();
    let mut file = writer(&disk, &options, 1);
    file.begin_delta(1, 2, 100, &[1, 2, 3], &[9]).unwrap();
    file.begin_delta(2, 4, 100, &[4, 9], &[2, 8]).unwrap();
    file.begin_delta(4, 5, 120, &[2, 110], &[1]).unwrap();
    file.begin_delta(5, 6, 110, &[], &[]).unwrap();
    let deltas = open(&disk, &file.finish().unwrap(), &options).unwrap();
    let mut net = writer(&disk, &options, 2);
    let refused =
        |deltas: &[Delta], net: &mut DeltaWriter| compose_deltas(deltas, net, &options).unwrap_err().to_string();
    assert!(refused(&[], &mut net).contains("no deltas"));
    assert!(
        refused(&[deltas[0].clone(), deltas[2].clone()], &mut net).contains("version 2 expected, one from 4 found")
    );
    assert!(refused(&deltas[2..], &mut net).contains("fewer vertices than the one before"));
    compose_deltas(&deltas[..3], &mut net, &options).unwrap();
    compose_deltas(&deltas[1..2], &mut net, &options).unwrap();
    let net = open(&disk, &net.finish().unwrap(), &options).unwrap();
    assert_eq!((net[0].from(), net[0].to(), net[0].vertex_bound()), (1, 5, 120));
    assert_eq!((net[0].died().unwrap(), net[0].returned().unwrap()), (&[2, 3, 4, 110][..], &[8][..]));
    assert_eq!((net[1].from(), net[1].to(), net[1].died().unwrap()), (2, 4, &[4, 9][..]));
}
