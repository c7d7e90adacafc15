//! A child that was forked from who writes: it cannot write, ends without waiting for its parent's
//! threads, and keeps no lock that its parent gave up.

use std::time::{Duration, Instant};

use anden_engine::{Database, Durability, ErrorKind, Missing, Update};
use base::parallel::Pool;
use graph::Graph;
use lama::GraphOptions;

fn edge(source: u64, target: u64) -> Update {
    Update::add_edge(source, target)
}

/// What the child found wrong; nothing where all was as it should be.
fn in_child(database: Database, view: &lama::View, pool: Pool) -> Option<&'static str> {
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
    /// Forks; nothing where this is the child, which must end by [`exit`].
    fn fork() -> Option<Self> {
        // SAFETY: the child runs on its copy of this thread alone, and leaves by `exit` without going back to the harness. Of
        // what another thread may have held at the fork, it takes the allocator's locks only, which the C library frees.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        (child != 0).then_some(Self(child))
    }

    fn kill(&self) {
        // SAFETY: the child is ours and not waited for yet, so its number is nobody else's.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }

    /// The status with which it ended.
    fn wait(&self) -> i32 {
        let mut status = -1;
        let start = Instant::now();
        // SAFETY: `status` is a number of ours that lives as long as the call.
        while unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) } == 0 {
            if start.elapsed().as_secs() >= 60 {
                self.kill();
                panic!("the child waits for somebody who is not there");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        status
    }
}

/// Ends the child, which says what was wrong.
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
    let database = Database::create(&path, GraphOptions::default()).unwrap();
    // So that the log has its thread, and something waits to be written.
    database.set_durability(Durability::None);
    database.apply(&[edge(1, 2), edge(2, 3)], Missing::Lenient, &pool).unwrap();
    let view = database.view().unwrap();

    let Some(child) = Child::fork() else { exit(in_child(database, &view, pool)) };
    assert_eq!(child.wait(), 0, "the child said what is wrong");

    // The parent goes on, and has the lock still.
    database.apply(&[edge(3, 4)], Missing::Lenient, &pool).unwrap();
    assert_eq!(Database::open(&path).unwrap_err().kind(), ErrorKind::Locked);
    database.close().unwrap();
    let again = Database::open(&path).unwrap();
    assert_eq!(again.view().unwrap().num_edges(), 3);
}

#[test]
fn a_database_that_is_closed_is_free_while_a_child_lives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("g");
    let database = Database::create(&path, GraphOptions::default()).unwrap();
    let Some(child) = Child::fork() else {
        std::thread::sleep(Duration::from_secs(60));
        exit(Some("nobody killed it"))
    };
    assert_eq!(Database::open(&path).unwrap_err().kind(), ErrorKind::Locked);
    database.close().unwrap();
    let opened = Database::open(&path).map(drop);
    child.kill();
    child.wait();
    opened.unwrap();
}
