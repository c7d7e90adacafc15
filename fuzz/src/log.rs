//! WALs with edits and valid checksums: `base` computes no checksums when it is built for fuzzing.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anden_engine::{Engine, GraphOptions, Key, KeyScheme, Missing, Result, Update};
use anden_graph::{GraphKind, WeightType};
use anden_testkit::FaultStorage;

use crate::database::read;
use crate::pool;

const DB: &str = "db";
const SEGMENT: &str = "db/wal-000001";
/// The offsets in a segment of the first group, of the length of its payload, and of its payload.
const FIRST_GROUP: usize = 64;
const LEN_AT: usize = FIRST_GROUP + 16;
const PAYLOAD_AT: usize = FIRST_GROUP + 40;

/// A database with commits in the WAL only, and the used bytes of the segment.
fn sample(options: GraphOptions) -> (FaultStorage, Vec<u8>) {
    let disk = FaultStorage::default();
    let database = Engine::create_in(Arc::new(disk.clone()), Path::new(DB), options).expect("a database is made");
    let key = |number: u64| match options.keys {
        KeyScheme::String => Key::from(format!("v{number}")),
        _ => Key::from(number),
    };
    let edge = |source: u64, target: u64| match options.weight_type {
        Some(_) => Update::add_weighted_edge(key(source), key(target), 2),
        None => Update::add_edge(key(source), key(target)),
    };
    let commits = [
        vec![edge(1, 2), edge(2, 3), edge(3, 3)],
        vec![Update::RemoveEdge { source: key(1), target: key(2) }, Update::AddVertex(key(9))],
        vec![Update::set_vertex(key(1), "name", "x"), Update::set_vertex(key(4), "size", 5)],
        vec![Update::RemoveVertex(key(3)), edge(3, 1)],
    ];
    for updates in &commits {
        database.apply(updates, Missing::Lenient, pool()).expect("sound updates are applied");
    }
    let killed = disk.duplicate();
    drop(database);
    let bytes = killed.contents(SEGMENT.as_ref()).expect("the log is there");
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 40);
    (killed, bytes[..end.min(bytes.len())].to_vec())
}

fn samples() -> &'static [(FaultStorage, Vec<u8>)] {
    static SAMPLES: OnceLock<Vec<(FaultStorage, Vec<u8>)>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let integers = GraphOptions::default();
        let strings = GraphOptions { keys: KeyScheme::String, weight_type: Some(WeightType::F32), ..integers };
        let undirected =
            GraphOptions { graph_kind: GraphKind::Undirected, weight_type: Some(WeightType::I64), ..integers };
        let ordered = GraphOptions { ordered: true, ..integers };
        [integers, strings, undirected, ordered].map(sample).into()
    })
}

/// Opens a database with an edited WAL. The first byte chooses the database.
///
/// If its high bit is 0, edits of the segment follow: a place (two bytes) and a value (one). A remaining byte cuts the
/// segment. If it is 1, the rest is the payload of the first commit.
pub fn read_log(input: &[u8]) {
    let [choice, rest @ ..] = input else { return };
    let (disk, whole) = &samples()[*choice as usize % samples().len()];
    let mut bytes = whole.clone();
    if choice & 0x80 == 0 {
        let (edits, cut) = rest.as_chunks::<3>();
        for &[low, high, value] in edits {
            let place = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
            bytes[place] = value;
        }
        if let [cut] = cut {
            bytes.truncate(bytes.len().saturating_sub(usize::from(*cut)));
        }
    } else {
        bytes.truncate(PAYLOAD_AT);
        bytes[LEN_AT..LEN_AT + 8].copy_from_slice(&(rest.len() as u64).to_le_bytes());
        bytes.extend_from_slice(rest);
    }
    let disk = disk.duplicate();
    disk.set_contents(SEGMENT.as_ref(), &bytes);
    // The reader comes first, because a writer truncates the WAL.
    let _ =
        Engine::open_read_only_in(Arc::new(disk.clone()), Path::new(DB)).and_then(|database| read(&database.view()?));
    let _ = write_on(&disk);
}

fn write_on(disk: &FaultStorage) -> Result<()> {
    let database = Engine::open_in(Arc::new(disk.clone()), Path::new(DB))?;
    read(&database.view()?)?;
    database.apply(&[Update::RemoveVertex("v1".into())], Missing::Lenient, pool())?;
    database.close()
}
