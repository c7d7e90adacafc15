//! A child forked from a writer cannot write, ends without waiting for its parent's threads, and keeps no lock that its
//! parent released.

use std::path::Path;
use std::time::Duration;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Durability, Engine, ErrorKind, MergeScope, Missing, Retention, Update};
use anden_graph::Graph;
use anden_snapshots::GraphOptions;
use anden_testkit::{holds_within, wait_until};

fn edge(source: u64, target: u64) -> Update {
    Update::add_edge(source, target)
}

/// The fault that the child found, if any.
fn in_child(database: Engine, view: &anden_snapshots::SnapshotView, pool: Pool) -> Option<&'static str> {
    let is_refused =
        |error: anden_engine::Error| error.kind() == ErrorKind::Locked && error.to_string().contains("forked");
    let checks = [
        ("apply", database.apply(&[edge(7, 8)], Missing::Lenient, &pool).is_err_and(is_refused)),
        ("submit", database.submit(&[edge(7, 8)], &pool).is_err_and(is_refused)),
        ("begin", database.begin(&pool).is_err_and(is_refused)),
        ("checkpoint", database.checkpoint(None).is_err_and(is_refused)),
        ("view", database.view().is_err_and(is_refused)),
        ("an older view", view.num_edges() == 2),
        ("a loop", pool.map_chunks(0..100, 1, |_, chunk| chunk.start).into_iter().sum::<usize>() == 4950),
    ];
    let wrong = checks.iter().find(|(_, holds)| !holds).map(|&(what, _)| what);
    let closed = if database.close().is_err_and(is_refused) { None } else { Some("close") };
    drop(pool);
    wrong.or(closed)
}

/// A forked child of this process.
struct Child(libc::pid_t);

impl Child {
    /// Forks. Returns `None` in the child, which must end by [`exit`].
    fn fork() -> Option<Self> {
        // SAFETY: the child runs on its copy of this thread alone, and leaves by `exit` without returning to the
        // harness. It takes no lock that another thread may have held at the fork, except the allocator's locks, which
        // the C library releases.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        (child != 0).then_some(Self(child))
    }

    fn kill(&self) {
        // SAFETY: the child is ours and not waited for yet, so its process id is not reused.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }

    /// The status with which it ended.
    fn wait(&self) -> i32 {
        let mut status = -1;
        let has_ended = || {
            // SAFETY: `status` is a number of ours that lives as long as the call.
            unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) != 0 }
        };
        if !holds_within(Duration::from_secs(60), has_ended) {
            self.kill();
            panic!("the child waits for a thread that it does not have");
        }
        status
    }
}

/// Ends the child and prints the fault.
fn exit(wrong: Option<&'static str>) -> ! {
    if let Some(what) = wrong {
        eprintln!("in the child: {what}");
    }
    // SAFETY: ends this process, and touches no memory of ours.
    unsafe { libc::_exit(i32::from(wrong.is_some())) }
}

#[test]
fn a_forked_child_cannot_write_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("g");
    let pool = Pool::new(2).unwrap();
    let database = Engine::create(&path, GraphOptions::default()).unwrap();
    // Starts the WAL thread, with bytes that wait to be written.
    database.set_durability(Durability::None);
    database.apply(&[edge(1, 2), edge(2, 3)], Missing::Lenient, &pool).unwrap();
    let view = database.view().unwrap();

    let Some(child) = Child::fork() else { exit(in_child(database, &view, pool)) };
    assert_eq!(child.wait(), 0, "the child said what is wrong");

    // The parent continues and still has the lock.
    database.apply(&[edge(3, 4)], Missing::Lenient, &pool).unwrap();
    assert_eq!(Engine::open(&path).unwrap_err().kind(), ErrorKind::Locked);
    database.close().unwrap();
    let again = Engine::open(&path).unwrap();
    assert_eq!(again.view().unwrap().num_edges(), 3);
}

#[test]
fn closed_database_is_unlocked_despite_forked_child() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("g");
    let database = Engine::create(&path, GraphOptions::default()).unwrap();
    let Some(child) = Child::fork() else {
        // The subject: a child that lives until it is killed. It ends by itself if the parent fails.
        std::thread::sleep(Duration::from_secs(60));
        exit(Some("no signal killed it"))
    };
    assert_eq!(Engine::open(&path).unwrap_err().kind(), ErrorKind::Locked);
    database.close().unwrap();
    let opened = Engine::open(&path).map(drop);
    child.kill();
    child.wait();
    opened.unwrap();
}

/// A database with the snapshots 1 to 4.
fn with_snapshots(path: &Path) -> Engine {
    let (database, pool) = (Engine::create(path, GraphOptions::default()).unwrap(), Pool::new(1).unwrap());
    for key in 1..4 {
        database.apply(&[edge(key, key + 1)], Missing::Lenient, &pool).unwrap();
        database.checkpoint(None).unwrap();
    }
    database
}

fn numbers(database: &Engine) -> Vec<u32> {
    database.snapshots().iter().map(|snapshot| snapshot.number).collect()
}

#[test]
fn lease_of_another_process_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (path, ready) = (directory.path().join("g"), directory.path().join("ready"));
    let database = with_snapshots(&path);
    let Some(child) = Child::fork() else {
        // A reader, which opens the database anew.
        let reader = Engine::open_read_only(&path).unwrap();
        let leases = [reader.lease(2).unwrap(), reader.lease(2).unwrap()];
        std::fs::write(&ready, "").unwrap();
        std::thread::sleep(Duration::from_secs(60));
        drop(leases);
        exit(Some("no signal killed it"))
    };
    wait_until("the child has its leases", || ready.exists());
    let leases = database.leases().unwrap();
    let is_of_child = |number| leases.iter().all(|lease| lease.snapshot == 2 && lease.holder.process == Some(number));
    assert!(leases.len() == 2 && is_of_child(child.0 as u32), "{leases:?}");
    let refused = database.drop_snapshots(&[1, 2], &Silent).unwrap_err();
    let text = refused.to_string();
    assert_eq!(refused.kind(), ErrorKind::Locked, "{text}");
    assert!(text.contains("cannot drop snapshot 2: process ") && text.contains(&child.0.to_string()), "{text}");
    assert_eq!(numbers(&database), [1, 2, 3, 4], "none is dropped");
    // A merge loses no snapshot, so a lease does not stop it.
    database.merge(MergeScope::All, &Pool::new(1).unwrap(), &Silent).unwrap();
    assert_eq!(database.retain(Retention::Last(1)).unwrap(), [1, 3]);
    database.checkpoint(None).unwrap();
    assert_eq!(numbers(&database), [2, 5], "retention leaves it out");
    assert_eq!(database.snapshot(2).unwrap().num_edges(), 1);
    child.kill();
    child.wait();
    assert!(database.leases().unwrap().is_empty());
    database.checkpoint(None).unwrap();
    assert_eq!(numbers(&database), [6], "the next snapshot drops it");
    assert_eq!(database.lease(2).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn forked_child_ends_no_lease_of_its_parent() {
    let directory = tempfile::tempdir().unwrap();
    let (path, ready) = (directory.path().join("g"), directory.path().join("ready"));
    let database = with_snapshots(&path);
    let lease = database.lease(1).unwrap();
    let Some(child) = Child::fork() else {
        drop(lease);
        std::fs::write(&ready, "").unwrap();
        std::thread::sleep(Duration::from_secs(60));
        exit(Some("no signal killed it"))
    };
    wait_until("the child has dropped its copy", || ready.exists());
    let refused = database.drop_snapshots(&[1], &Silent);
    drop(lease);
    // The living child shares the open file.
    let dropped = database.drop_snapshots(&[1], &Silent);
    child.kill();
    child.wait();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Locked);
    dropped.unwrap();
}
