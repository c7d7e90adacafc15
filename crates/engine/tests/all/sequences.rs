//! Commits of a sequence happen up to the first that is refused, and no further.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;

use anden_engine::{Database, Durability, ErrorKind, GraphOptions, Sequence, Update};
use base::parallel::Pool;
use base::storage::{FaultPlan, FaultStorage};
use graph::Graph;

fn create(disk: &FaultStorage, multigraph: bool) -> Database {
    let options = GraphOptions { multigraph, ..GraphOptions::default() };
    Database::create_in(Arc::new(disk.clone()), Path::new("db"), options).unwrap()
}

#[test]
fn what_is_behind_a_refused_commit_of_its_sequence_is_refused() {
    let pool = Pool::new(1).unwrap();
    // Each commit of a multigraph is a snapshot.
    for multigraph in [false, true] {
        let db = create(&FaultStorage::default(), multigraph);
        let (ours, others) = (Sequence::default(), Sequence::default());
        let submit = |sequence: &Sequence, update: Update| {
            db.submit_next(sequence, vec![update], Durability::Sync, &pool).unwrap()
        };
        let first = submit(&ours, Update::add_edge(1, 2));
        // The graph has no weights.
        let wrong = submit(&ours, Update::add_weighted_edge(2, 3, 5));
        let behind = submit(&ours, Update::add_edge(3, 4));
        let other = submit(&others, Update::add_edge(5, 6));
        let alone = db.submit(&[Update::add_edge(7, 8)], &pool).unwrap();
        first.wait().unwrap();
        assert!(wrong.wait().unwrap_err().to_string().contains("weight"));
        // It is refused whether the one before it was asked for or not, and so is what comes later.
        let late = submit(&ours, Update::add_edge(9, 10));
        for pending in [behind, late] {
            assert_eq!(pending.wait().unwrap_err().to_string(), "a commit before it was refused");
        }
        other.wait().unwrap();
        alone.wait().unwrap();
        submit(&others, Update::add_edge(6, 7)).wait().unwrap();
        let view = db.view().unwrap();
        assert_eq!((view.num_edges(), view.num_vertices()), (4, 6), "{multigraph}");
    }
}

/// There may be room for the next one: it does not happen without those before it.
#[test]
fn what_cannot_be_logged_ends_its_sequence() {
    let (pool, disk) = (Pool::new(1).unwrap(), FaultStorage::default());
    let db = create(&disk, false);
    let sequence = Sequence::default();
    let submit = |key: u64| db.submit_next(&sequence, vec![Update::add_edge(key, 0)], Durability::Sync, &pool).unwrap();
    submit(1).wait().unwrap();
    disk.set_plan(FaultPlan::FailNext("wal", IoKind::StorageFull));
    let refused = [submit(2), submit(3)];
    for pending in refused {
        assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::Io);
    }
    assert_eq!(submit(4).wait().unwrap_err().to_string(), "a commit before it was refused");
    db.submit(&[Update::add_edge(5, 0)], &pool).unwrap().wait().unwrap();
    assert_eq!(db.view().unwrap().num_edges(), 2);
}
