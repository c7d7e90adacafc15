//! The commits of a sequence happen up to the first refused one.

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_engine::{Durability, Engine, ErrorKind, GraphOptions, Sequence, Update};
use anden_graph::Graph;
use anden_testkit::{FaultPlan, FaultStorage};

fn create(disk: &FaultStorage, multigraph: bool) -> Engine {
    let options = GraphOptions { multigraph, ..GraphOptions::default() };
    Engine::create_in(Arc::new(disk.clone()), Path::new("db"), options).unwrap()
}

#[test]
fn commits_behind_a_refused_one_are_refused() {
    let pool = Pool::new(1).unwrap();
    // Simple graphs and multigraphs.
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
        // A commit after it is refused, whether the refused one was waited for or not. So is a later one.
        let late = submit(&ours, Update::add_edge(9, 10));
        for pending in [behind, late] {
            assert_eq!(
                pending.wait().unwrap_err().to_string(),
                "cannot commit: an earlier commit of the sequence was refused"
            );
        }
        other.wait().unwrap();
        alone.wait().unwrap();
        submit(&others, Update::add_edge(6, 7)).wait().unwrap();
        let view = db.view().unwrap();
        assert_eq!((view.num_edges(), view.num_vertices()), (4, 6), "{multigraph}");
    }
}

/// The disk may have room for the next commit, but it does not happen without its predecessors.
#[test]
fn unlogged_commit_ends_its_sequence() {
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
    assert_eq!(
        submit(4).wait().unwrap_err().to_string(),
        "cannot commit: an earlier commit of the sequence was refused"
    );
    db.submit(&[Update::add_edge(5, 0)], &pool).unwrap().wait().unwrap();
    assert_eq!(db.view().unwrap().num_edges(), 2);
}
