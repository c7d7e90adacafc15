//! A commit that meets damage halfway has no effect, and no commit follows before a snapshot is made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_base::storage::Storage;
use anden_engine::{
    Applied, Direction, Engine, ErrorKind, GraphOptions, Key, KeyScheme, LoadOptions, Missing, Op, Result, Update,
};
use anden_graph::Graph;
use anden_testkit::FaultStorage;

use crate::loading::{DB, Input};

/// A vertex whose list is damaged.
const DAMAGED: u64 = 0;
/// The number of its edges, which fill the block with the wrong checksum.
const NUM_DAMAGED: usize = 2_100;
/// A vertex of another page, whose list is in another block.
const WHOLE: u64 = 5_000;

fn open(disk: &FaultStorage) -> Result<Engine> {
    Engine::open_in(Arc::new(disk.clone()), Path::new(DB))
}

/// A database with edges of both vertices, the file of their lists, and its bytes.
fn whole() -> (FaultStorage, PathBuf, Vec<u8>) {
    let disk = FaultStorage::default();
    let graph = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
    let edges: String = (1..=NUM_DAMAGED).map(|target| format!("{DAMAGED} {target}\n")).collect();
    let input = Input::text(&format!("{edges}{WHOLE} 5001\n"));
    let options = LoadOptions { graph, ..LoadOptions::default() };
    let pool = Pool::new(1).unwrap();
    let storage = Arc::new(disk.clone());
    Engine::load_in(storage, Path::new(DB), &input.paths(), &options, &pool, &Silent).unwrap().0.close().unwrap();
    let name = disk.list(Path::new(DB)).unwrap().into_iter().find(|name| name.ends_with("-out")).unwrap();
    let path = Path::new(DB).join(name);
    let bytes = disk.contents(&path).unwrap();
    (disk, path, bytes)
}

fn add(target: u64) -> Update {
    Update::add_edge(WHOLE, target)
}

fn degree(db: &Engine, vertex: u64) -> usize {
    db.view().unwrap().degree(Direction::Out, vertex as u32)
}

fn with_many(updates: [Update; 2], len: usize) -> Vec<Update> {
    let padding = std::iter::repeat_n(Update::AddVertex(WHOLE.into()), len);
    updates.into_iter().chain(padding).collect()
}

/// A later, refused batch passes through the queue or is a group of its own. Only the latter rolls back version table
/// entries.
const REFUSED: [Missing; 2] = [Missing::Lenient, Missing::Strict];

/// A way to add an edge of each vertex.
type Way = (&'static str, fn(&Engine, &Pool) -> Result<Applied>);

fn ways() -> Vec<Way> {
    fn both() -> [Update; 2] {
        [add(8), Update::add_edge(DAMAGED, 4_000)]
    }
    vec![
        ("in a group", |db, pool| db.apply(&both(), Missing::Lenient, pool)),
        ("strict", |db, pool| db.apply(&both(), Missing::Strict, pool)),
        ("large", |db, pool| db.apply(&with_many(both(), 2_000), Missing::Lenient, pool)),
        ("planned on all workers", |db, pool| db.apply(&vec![both(); 3_000].concat(), Missing::Lenient, pool)),
        ("pairs", |db, pool| db.apply_edges(&[(5_000, 8), (0, 4_000)].repeat(1_000), Op::Insert, pool)),
    ]
}

#[test]
fn batch_that_meets_damage_is_rolled_back() {
    let (disk, path, bytes) = whole();
    let pool = Pool::new(1).unwrap();
    let mut flipped = bytes.clone();
    // The first section holds the lists and begins after the header.
    flipped[4096] ^= 1;
    for (refused, (way, fail)) in
        REFUSED.into_iter().flat_map(|refused| ways().into_iter().map(move |way| (refused, way)))
    {
        let disk = disk.duplicate();
        disk.set_contents(&path, &flipped);
        let db = open(&disk).unwrap();
        db.apply(&[add(7)], Missing::Lenient, &pool).unwrap();
        let mut tx = db.begin(&pool).unwrap();
        assert_eq!(tx.degree(&WHOLE.into(), Direction::Out).unwrap(), 2);
        let epoch = db.epoch();

        let error = fail(&db, &pool).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{way}: {error}");
        assert!(error.to_string().contains(&*path.to_string_lossy()), "{way}: {error}");
        let error = db.apply(&[add(10)], refused, &pool).unwrap_err();
        assert!(error.to_string().contains("an earlier batch failed half way"), "{way}: {error}");
        assert_eq!((db.epoch(), degree(&db, WHOLE)), (epoch, 2), "{way}: readers go on");

        // The process ends here. Neither commit survives, whether the damage is repaired or not.
        for is_mended in [false, true] {
            let left = disk.duplicate();
            if is_mended {
                left.set_contents(&path, &bytes);
            }
            let db = open(&left).unwrap();
            assert_eq!((db.epoch(), degree(&db, WHOLE)), (epoch, 2), "{way}, opened again");
            db.apply(&[add(11)], Missing::Lenient, &pool).unwrap();
            assert_eq!(degree(&db, WHOLE), 3);
            if is_mended {
                assert_eq!(degree(&db, DAMAGED), NUM_DAMAGED);
                fail(&db, &pool).unwrap();
                assert_eq!(
                    (degree(&db, WHOLE), degree(&db, DAMAGED)),
                    (4, NUM_DAMAGED + 1),
                    "{way}, where nothing is damaged"
                );
                db.verify(&pool).unwrap();
            }
        }

        // Alternatively the process continues with the earlier commits.
        db.checkpoint(None).unwrap();
        assert_eq!((db.epoch(), degree(&db, WHOLE)), (epoch, 2), "{way}, after a snapshot");
        tx.add_edge(&WHOLE.into(), &Key::from(12), None).unwrap();
        tx.commit().unwrap_or_else(|error| panic!("{way}: nothing changed that was read: {error}"));
        assert_eq!((db.epoch(), degree(&db, WHOLE)), (epoch + 1, 3), "{way}");
        drop(db);
        let db = open(&disk).unwrap();
        assert_eq!((db.epoch(), degree(&db, WHOLE)), (epoch + 1, 3), "{way}, after the end");
    }
}
