//! Databases whose files were tampered with, and whose checksums all fit: `base` computes none when
//! it is built for fuzzing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use base::progress::Silent;
use base::storage::{FaultStorage, Storage};
use engine::{Database, GraphOptions, KeyScheme, LoadOptions, Result};
use graph::formats::InputPath;
use graph::{Direction, Graph, InEdges, WeightType, WeightedEdges};

use crate::{input_file, pool};

/// A database on a disk of its own, with the files that a reader looks at.
struct Sample {
    disk: FaultStorage,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn sample(options: GraphOptions) -> Sample {
    let lines: String = (0..300).map(|i| format!("{} {} {}\n", i * i % 97, i * 31 % 83, i % 7)).collect();
    let input = InputPath::File(input_file("txt", lines.as_bytes()));
    let disk = FaultStorage::default();
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let options = LoadOptions { graph: options, io_order: true, ..LoadOptions::default() };
    Database::load_in(storage, "db".as_ref(), &[input], &options, pool(), &Silent).expect("a sound input loads");
    let names = disk.list("db".as_ref()).expect("the directory is there");
    let paths = names.into_iter().filter(|name| name != "LOCK").map(|name| Path::new("db").join(name));
    let files = paths.map(|path| (path.clone(), disk.contents(&path).expect("the file is there"))).collect();
    Sample { disk, files }
}

fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let weight_type = Some(WeightType::F32);
        let strings = GraphOptions { keys: KeyScheme::String, weight_type, ..GraphOptions::default() };
        let integers = GraphOptions { direction: Direction::Undirected, ..GraphOptions::default() };
        vec![sample(strings), sample(integers)]
    })
}

/// Opens and reads a database after the edits that the input lists: its first byte chooses the
/// database and the next the file, then follow places (two bytes) and what to put there (one), and a
/// rest of one byte cuts the file.
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
    // Damage may be refused, or be another graph; it may not be a panic or a target that is no vertex.
    let _ = read_everything(disk);
}

fn read_everything(disk: FaultStorage) -> Result<()> {
    let database = Database::open_read_only_in(Arc::new(disk), "db".as_ref())?;
    let view = database.view()?;
    let bound = view.vertex_bound();
    let check = |list: &[u32]| {
        assert!(list.iter().all(|&target| (target as usize) < bound));
        ControlFlow::Continue(())
    };
    for vertex in 0..bound.min(1 << 12) as u32 {
        let _ = view.for_each_out_fragment(vertex, check);
        let _ = view.for_each_in_fragment(vertex, check);
        let _ = view.for_each_weighted_out_fragment::<f32>(vertex, |list, _| check(list));
        if let Ok(key) = view.key(vertex) {
            let _ = view.vertex(&key);
        }
    }
    view.check()?;
    database.verify(pool()).map(drop)
}
