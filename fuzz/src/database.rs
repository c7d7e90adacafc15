//! Databases with edited files and valid checksums: `base` computes no checksums when it is built for fuzzing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    AppendOptions, Changes, Engine, GraphOptions, IdOrder, KeyScheme, LoadOptions, Maintenance, MergeScope, Result,
    SnapshotView,
};
use anden_formats::InputPath;
use anden_graph::{Direction, Graph, GraphKind, WeightType, WeightedEdges};
use anden_testkit::FaultStorage;

use crate::{input_file, pool};

/// A database on a disk of its own, with the files that a reader opens.
struct Sample {
    disk: FaultStorage,
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// A database of one snapshot, or of many with `has_past`.
fn sample(options: GraphOptions, has_past: bool) -> Sample {
    let num_lines = if has_past { 60 } else { 300 };
    let lines: String = (0..num_lines).map(|i| format!("{} {} {}\n", i * i % 97, i * 31 % 83, i % 7)).collect();
    let input = InputPath::File(input_file("txt", lines.as_bytes()));
    let disk = FaultStorage::default();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let load = LoadOptions { graph: options, order: IdOrder::Input, ..LoadOptions::default() };
    let (database, _) =
        Engine::load_in(storage, "db".as_ref(), &[input], &load, pool(), &Silent).expect("a sound input loads");
    if has_past {
        give_past(&database).expect("sound changes are appended");
    }
    let names = disk.list("db".as_ref()).expect("the directory is there");
    let paths = names.into_iter().filter(|name| name != "LOCK").map(|name| Path::new("db").join(name));
    let files = paths.map(|path| (path.clone(), disk.contents(&path).expect("the file is there"))).collect();
    Sample { disk, files }
}

/// Leaves snapshots before and after the base, deltas in files of their own, and a merged delta. Also leaves parts of
/// the dictionary, removed vertices with one that returned, and a hidden version at the end.
fn give_past(database: &Engine) -> Result<()> {
    let is_weighted = database.options().weight_type.is_some();
    let append = |step: u64| {
        let key = |number: u64| (number % 90).to_string();
        let mut changes = Changes::default().named(format!("step {step}"));
        for i in 0..4 {
            // Some edges exist already and get another weight; some come with new vertices.
            let (source, target) = (key(step * 13 + i), format!("{}", 80 + step * 7 + i));
            changes = match is_weighted {
                true => changes.add_weighted_edge(&*source, &*target, 1000 - step as i64),
                false => changes.add_edge(&*source, &*target),
            };
        }
        for i in step * 8..step * 8 + 5 {
            changes = changes.remove_edge(&*key(i * i % 97), &*key(i * 31 % 83));
        }
        if step % 2 == 1 {
            changes = changes.remove_vertex(&*key(step));
        }
        if step == 4 {
            changes = changes.add_vertex(&*key(3)).add_vertex("5000");
        }
        let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
        database.append_changes(&changes, &options, pool(), &Silent)
    };
    for step in 1..=3 {
        append(step)?;
    }
    database.merge(MergeScope::All, pool(), &Silent)?;
    for step in 4..=7 {
        append(step)?;
    }
    database.drop_snapshots(&[2, 8], &Silent)?;
    database.merge(MergeScope::Newest(3), pool(), &Silent)?;
    Ok(())
}

fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let weight_type = Some(WeightType::F32);
        let strings = GraphOptions { keys: KeyScheme::String, weight_type, ..GraphOptions::default() };
        let integers = GraphOptions { graph_kind: GraphKind::Undirected, ..GraphOptions::default() };
        let weighted = GraphOptions { weight_type, ..integers };
        let out_only = GraphOptions { in_edges: false, ..GraphOptions::default() };
        let with_past = [strings, integers, weighted, out_only].map(|options| sample(options, true));
        [sample(strings, false), sample(integers, false)].into_iter().chain(with_past).collect()
    })
}

/// Opens and reads a database after the edits in the input.
///
/// The first byte chooses the database, the second the file. Edits follow: a place (two bytes) and a value (one). A
/// remaining byte cuts the file.
pub fn read_database(input: &[u8]) {
    let [choice, file, edits @ ..] = input else { return };
    let sample = &samples()[*choice as usize % samples().len()];
    let (path, whole) = &sample.files[*file as usize % sample.files.len()];
    let mut bytes = whole.clone();
    let (edits, rest) = edits.as_chunks::<3>();
    for &[low, high, value] in edits {
        let place = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
        bytes[place] = value;
    }
    if let [cut] = rest {
        bytes.truncate(bytes.len().saturating_sub(usize::from(*cut)));
    }
    let disk = sample.disk.duplicate();
    disk.set_contents(path, &bytes);
    // Damage may be refused, or give another graph. It must not cause a panic or a target that is no vertex.
    let _ = read_everything(disk);
}

fn read_everything(disk: FaultStorage) -> Result<()> {
    let database = Engine::open_read_only_in(Arc::new(disk), "db".as_ref())?;
    // Each view is read even if another one fails.
    let _ = database.view().and_then(|view| read(&view));
    let numbers: Vec<u32> = database.snapshots().iter().map(|snapshot| snapshot.number).collect();
    for &number in &numbers[..numbers.len() - 1] {
        let _ = database.snapshot(number).and_then(|view| read(&view));
    }
    if let [oldest, .., last_but_one, newest] = numbers[..] {
        let _ = database.window(last_but_one..=newest).and_then(|view| read(&view));
        for (from, to) in [(oldest, newest), (newest, oldest)] {
            let Ok(diff) = database.diff(from, to) else { continue };
            assert!(diff.added.is_sorted() && diff.removed.is_sorted());
        }
    }
    database.verify(pool()).map(drop)
}

pub fn read(view: &SnapshotView) -> Result<()> {
    let bound = view.vertex_bound();
    let check = |list: &[u32]| {
        assert!(list.iter().all(|&target| (target as usize) < bound));
        ControlFlow::Continue(())
    };
    for vertex in 0..bound.min(1 << 12) as u32 {
        let _ = view.for_each_fragment(Direction::Out, vertex, check);
        let _ = view.for_each_fragment(Direction::In, vertex, check);
        let _ = view.for_each_weighted_fragment::<f32>(Direction::Out, vertex, |list, _| check(list));
        if let Ok(key) = view.key(vertex) {
            let _ = view.vertex(&key);
        }
    }
    view.check()?;
    Ok(())
}
