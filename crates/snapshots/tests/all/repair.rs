//! Damages files of small databases of every kind, and repairs them: nothing wrong is saved, and all that is not saved
//! is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_graph::property::PropertyValue;
use anden_graph::{Graph, GraphKind, WeightType};
use anden_snapshots::{
    ChangedArc, DamagedStore, Direction, GraphOptions, KeyScheme, Loss, Result, SnapshotView, Store, VertexSpan,
};
use anden_testkit::{FaultStorage, Random, scaled};

use crate::model::past::{Content, arcs_of, below};
use crate::model::samples;

const DB: &str = "db";
const NEW: &str = "new";

/// An undamaged database.
struct Whole {
    name: &'static str,
    disk: FaultStorage,
    store: Store,
}

impl Whole {
    fn new(name: &'static str, disk: FaultStorage) -> Self {
        let store = Store::open_read_only(Arc::new(disk.duplicate()), DB.as_ref()).unwrap();
        Self { name, disk, store }
    }

    fn files(&self) -> Vec<String> {
        let mut names = self.disk.list(DB.as_ref()).unwrap();
        names.retain(|name| name != "LOCK" && name != "MANIFEST");
        names
    }
}

/// Several pages, two snapshots behind the base, removed vertices, and properties.
fn paged(options: GraphOptions) -> FaultStorage {
    let random = &mut Random::new(5);
    let mut content = Content::new(options, 5000);
    for i in 0..9000_u32 {
        content.add_edge(below(random, 5000) as VertexId, below(random, 5000) as VertexId, i % 90);
    }
    content.properties.add(random);
    (0..400).for_each(|vertex| content.properties.set(vertex * 11, random));
    let disk = FaultStorage::default();
    let store = content.write(Arc::new(disk.clone()), DB.as_ref(), Some("first")).unwrap();
    for _ in 0..2 {
        let old = content.clone();
        for i in 0..300_u32 {
            content.add_edge(below(random, 5000) as VertexId, below(random, 5000) as VertexId, i % 90);
        }
        content.remove_vertex(below(random, 5000) as VertexId);
        content.add_vertices(3);
        content.changes_from(&old).with(|changes| store.append(changes, None)).unwrap();
    }
    disk
}

fn databases() -> Vec<Whole> {
    let undirected = GraphOptions { graph_kind: GraphKind::Undirected, ..GraphOptions::default() };
    let strings = GraphOptions { keys: KeyScheme::String, multigraph: true, ..GraphOptions::default() };
    let one_way = GraphOptions { in_edges: false, weight_type: Some(WeightType::I64), ..GraphOptions::default() };
    let mut all = vec![
        Whole::new("versions", samples::versions().0),
        Whole::new("rows", samples::rows().0),
        Whole::new("weighted rows", samples::weighted_rows().0),
        Whole::new("indexed", samples::indexed().0),
        Whole::new("prepared", samples::prepared().0),
        Whole::new("undirected versions", samples::write_versions(undirected, DB).0),
        Whole::new("undirected rows", samples::write_versions(GraphOptions { multigraph: true, ..undirected }, DB).0),
        Whole::new("one way", samples::write_versions(one_way, DB).0),
        Whole::new("pages", paged(strings)),
        Whole::new("undirected pages", paged(GraphOptions { keys: KeyScheme::Dense, ..undirected })),
    ];
    for (name, model) in samples::all() {
        let disk = FaultStorage::default();
        drop(model.write(Arc::new(disk.clone()), DB.as_ref()).unwrap());
        all.push(Whole::new(name, disk));
    }
    all
}

/// A store that was repaired, and its losses.
fn repair(disk: &FaultStorage) -> Result<(Store, Vec<Loss>)> {
    let (storage, pool): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), Pool::new(1).unwrap());
    let before: Vec<_> = contents(disk);
    let repaired = DamagedStore::open(&*storage, DB.as_ref())?.repair(&storage, NEW.as_ref(), &pool, &Silent);
    assert!(contents(disk) == before, "the damaged database was changed");
    let repaired = repaired?;
    repaired.restored.publish(&[])?;
    let store = Store::open_read_only(storage, NEW.as_ref())?;
    store.verify(&pool)?;
    Ok((store, repaired.losses))
}

fn contents(disk: &FaultStorage) -> Vec<(String, Option<Vec<u8>>)> {
    let names = disk.list(DB.as_ref()).unwrap();
    names.into_iter().map(|name| (name.clone(), disk.contents(&Path::new(DB).join(name)))).collect()
}

fn is_in(span: &VertexSpan, vertex: VertexId) -> bool {
    (span.first..=span.last).contains(&vertex)
}

/// Compares the newest snapshot of a repaired store with the original's, and the differences with the losses.
fn compare(whole: &Whole, store: &Store, losses: &[Loss]) {
    for info in store.snapshots() {
        let original = whole.store.snapshot(info.number).unwrap();
        let is_newest = info.number == store.snapshots().last().unwrap().number;
        // Older snapshots are saved whole, or not at all.
        let losses = if is_newest { losses } else { &[] };
        let saved = store.snapshot(info.number).unwrap();
        compare_vertices(&original, &saved, losses);
        compare_edges(&original, &saved, losses);
        compare_values(&original, &saved, losses);
    }
    let numbers = |store: &Store| store.snapshots().iter().map(|info| info.number).collect::<BTreeSet<_>>();
    let missing: Vec<u32> = numbers(&whole.store).difference(&numbers(store)).copied().collect();
    let listed = |loss: &Loss| if let Loss::Snapshot { number, .. } = loss { Some(*number) } else { None };
    assert_eq!(missing, losses.iter().filter_map(listed).collect::<Vec<_>>(), "{losses:?}");
}

fn compare_vertices(original: &SnapshotView, saved: &SnapshotView, losses: &[Loss]) {
    let mut num_missing = 0;
    for vertex in 0..original.vertex_bound() as VertexId {
        let has_lost_key = losses.iter().any(|loss| matches!(loss, Loss::Keys { vertices } if is_in(vertices, vertex)));
        if saved.is_live(vertex) {
            assert!(original.is_live(vertex) && !has_lost_key, "{vertex} was removed: {losses:?}");
            let key = original.key(vertex).unwrap();
            assert_eq!(saved.key(vertex).unwrap(), key);
            assert_eq!(saved.vertex(&key).unwrap(), Some(vertex));
        } else if original.is_live(vertex) && !has_lost_key {
            num_missing += 1;
        }
    }
    let listed = |loss: &Loss| if let Loss::Vertices { num_vertices } = loss { *num_vertices } else { 0 };
    assert_eq!(num_missing, losses.iter().map(listed).sum::<u64>(), "{losses:?}");
    assert!((original.vertex_bound() as VertexId..saved.vertex_bound() as VertexId).all(|v| !saved.is_live(v)));
}

fn compare_edges(original: &SnapshotView, saved: &SnapshotView, losses: &[Loss]) {
    let is_undirected = original.options().graph_kind == GraphKind::Undirected;
    let is_listed = |from: VertexId, to: VertexId| {
        losses.iter().any(|loss| match loss {
            Loss::Edges { from: sources, to: targets } => {
                let is_lost = |from, to| is_in(sources, from) && targets.as_ref().is_none_or(|span| is_in(span, to));
                is_lost(from, to) || is_undirected && is_lost(to, from)
            }
            Loss::Keys { vertices } => is_in(vertices, from) || is_in(vertices, to),
            _ => false,
        })
    };
    let mut expected = arcs_of(original, Direction::Out);
    let found: BTreeSet<ChangedArc> = arcs_of(saved, Direction::Out).into_iter().collect();
    expected.retain(|arc| {
        let is_saved = found.contains(arc);
        assert!(is_saved || is_listed(arc.list, arc.neighbor), "{arc:?} is lost and not listed: {losses:?}");
        is_saved
    });
    assert_eq!(expected.len(), saved.num_arcs() as usize, "an edge that was never there");
    saved.check().unwrap();
}

fn compare_values(original: &SnapshotView, saved: &SnapshotView, losses: &[Loss]) {
    let schema = original.properties().schema();
    for (place, (name, _)) in schema.iter().enumerate() {
        for vertex in (0..original.vertex_bound() as VertexId).filter(|&vertex| saved.is_live(vertex)) {
            let value = |view: &SnapshotView| format!("{:?}", view.properties().value(place, vertex).unwrap());
            let is_listed = |loss: &Loss| matches!(loss, Loss::Values { property, vertices } if property == name && is_in(vertices, vertex));
            let is_lost = losses.iter().any(is_listed);
            let expected = if is_lost { format!("{:?}", PropertyValue::Null) } else { value(original) };
            assert_eq!(value(saved), expected, "{name} of {vertex}: {losses:?}");
        }
    }
    let mut rows: Vec<u64> = arcs_of(saved, Direction::Out).iter().map(|arc| arc.data.row).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut differing: BTreeMap<String, u64> = BTreeMap::new();
    for (place, (name, _)) in original.edge_properties().schema().iter().enumerate() {
        for &row in &rows {
            let [value, before] = [saved, original].map(|view| view.edge_properties().value(place, row).unwrap());
            if value != before {
                assert_eq!(value, PropertyValue::Null, "{name} of row {row}: {losses:?}");
                *differing.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    for (name, num_differing) in differing {
        let listed = |loss: &Loss| match loss {
            Loss::EdgeValues { property, num_edges } if *property == name => *num_edges,
            _ => 0,
        };
        assert!(num_differing <= losses.iter().map(listed).sum::<u64>(), "{name}: {losses:?}");
    }
    if original.options().multigraph {
        let number = |view: &SnapshotView, row| view.edge_properties().number(row).unwrap();
        let num_differing = rows.iter().filter(|&&row| number(saved, row) != number(original, row)).count() as u64;
        let listed = |loss: &Loss| if let Loss::EdgeNumbers { num_edges } = loss { *num_edges } else { 0 };
        assert!(num_differing <= losses.iter().map(listed).sum::<u64>(), "{losses:?}");
    }
}

/// A kind of damage to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Removed,
    CutAt(usize),
    FlippedAt(usize),
}

fn damage(disk: &FaultStorage, name: &str, damage: Damage) {
    let path = Path::new(DB).join(name);
    let mut bytes = disk.contents(&path).unwrap();
    match damage {
        Damage::Removed => return disk.remove_file(&path).unwrap(),
        Damage::CutAt(len) => bytes.truncate(len),
        Damage::FlippedAt(place) => bytes[place] ^= 0x10,
    }
    disk.set_contents(&path, &bytes);
}

#[test]
fn a_whole_database_is_repaired_to_an_equal_one() {
    for whole in databases() {
        let disk = whole.disk.duplicate();
        let (store, losses) = repair(&disk).unwrap();
        assert_eq!(losses, [], "{}", whole.name);
        assert_ne!(store.id(), whole.store.id());
        compare(&whole, &store, &[]);
    }
}

#[test]
fn all_but_the_listed_losses_is_saved() {
    let mut num_losses = BTreeMap::new();
    for whole in databases() {
        let mut random = Random::new(11);
        for name in whole.files() {
            let len = whole.disk.contents(&Path::new(DB).join(&name)).unwrap().len();
            let mut kinds = vec![Damage::Removed, Damage::CutAt(0), Damage::CutAt(len - 1)];
            kinds.extend((0..scaled(4)).map(|_| Damage::FlippedAt(below(&mut random, len))));
            kinds.extend((4096..len).step_by((len / 5).max(64)).map(Damage::FlippedAt));
            for kind in kinds {
                let disk = whole.disk.duplicate();
                damage(&disk, &name, kind);
                let (store, losses) =
                    repair(&disk).unwrap_or_else(|error| panic!("{}, {name}, {kind:?}: {error}", whole.name));
                let result =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compare(&whole, &store, &losses)));
                assert!(result.is_ok(), "{}, {name}, {kind:?}: {losses:?}", whole.name);
                losses.iter().for_each(|loss| *num_losses.entry(loss.kind()).or_insert(0) += 1);
            }
        }
    }
    // The damage was of every kind.
    for kind in ["snapshot", "edges", "vertices", "keys", "values", "edge_values", "edge_numbers", "index"] {
        assert!(num_losses.contains_key(kind), "{kind}: {num_losses:?}");
    }
}

#[test]
fn several_damaged_files_are_repaired() {
    let whole = databases();
    let mut random = Random::new(23);
    for _ in 0..scaled(150) {
        let whole = &whole[below(&mut random, whole.len())];
        let (disk, names) = (whole.disk.duplicate(), whole.files());
        let mut damages = Vec::new();
        for _ in 0..2 + below(&mut random, 3) {
            let name = &names[below(&mut random, names.len())];
            let path = Path::new(DB).join(name);
            // Removed by the damage before?
            let Some(len) = disk.contents(&path).map(|bytes| bytes.len()).filter(|&len| len > 0) else { continue };
            let kind = match below(&mut random, 8) {
                0 => Damage::Removed,
                1 => Damage::CutAt(below(&mut random, len)),
                _ => Damage::FlippedAt(below(&mut random, len)),
            };
            damages.push((name, kind));
            damage(&disk, name, kind);
        }
        let (store, losses) = repair(&disk).unwrap_or_else(|error| panic!("{}, {damages:?}: {error}", whole.name));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| compare(whole, &store, &losses)));
        assert!(result.is_ok(), "{}, {damages:?}: {losses:?}", whole.name);
    }
}

#[test]
fn damaged_pages_come_from_the_other_ends() {
    for whole in [
        Whole::new("pages", paged(GraphOptions::default())),
        Whole::new("undirected", {
            paged(GraphOptions { graph_kind: GraphKind::Undirected, ..GraphOptions::default() })
        }),
    ] {
        let disk = whole.disk.duplicate();
        // The first list of the second page, in the base.
        damage(&disk, "base-000001-out", Damage::FlippedAt(4096 + 4 * 2200));
        let (store, losses) = repair(&disk).unwrap();
        let is_lost = |loss: &Loss| matches!(loss, Loss::Edges { .. });
        match whole.name {
            "pages" => assert!(!losses.iter().any(is_lost), "{losses:?}"),
            // Edges within the page are lost, and no others.
            _ => {
                let pages = losses.iter().filter(|loss| is_lost(loss));
                let has_one = |loss: &Loss| match loss {
                    Loss::Edges { from, to: Some(to) } => from == to && from.last - from.first < 1024,
                    _ => false,
                };
                assert!(pages.clone().count() == 1 && pages.clone().all(has_one), "{losses:?}");
            }
        }
        compare(&whole, &store, &losses);
    }
}

#[test]
fn a_damaged_manifest_is_refused() {
    let whole = Whole::new("versions", samples::versions().0);
    for kind in [Damage::Removed, Damage::CutAt(100), Damage::FlippedAt(200)] {
        let disk = whole.disk.duplicate();
        damage(&disk, "MANIFEST", kind);
        let error = repair(&disk).unwrap_err().to_string();
        assert!(error.contains("MANIFEST"), "{error}");
        assert!(!disk.exists(NEW.as_ref()).unwrap());
    }
}
