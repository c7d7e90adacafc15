//! A child forked from a writer cannot write, ends without waiting for its parent's threads, and keeps no lock that its
//! parent released.

use std::time::Duration;

use anden_base::parallel::Pool;
use anden_engine::{Durability, Engine, ErrorKind, Missing, Update};
use anden_graph::Graph;
use anden_snapshots::GraphOptions;
use anden_testkit::holds_within;

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
