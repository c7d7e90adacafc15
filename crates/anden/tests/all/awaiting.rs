//! Submitted commits are futures that own what they need.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, current, park};

use anden::error::NotFound;
use anden::{Database, Error, Options, Pending, Update};

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor: one future, one thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => park(),
        }
    }
}

fn submit(db: &Database, key: u64) -> Pending {
    db.submit(&[Update::add_edge(key, key + 1)]).unwrap()
}

#[test]
fn awaited_commits_are_visible() {
    let db = Database::in_memory(Options::default()).unwrap();
    let last = block_on(async {
        let pending: Vec<_> = (0..100).map(|key| submit(&db, key)).collect();
        let mut last = 0;
        // The first answer is awaited last.
        for commit in pending.into_iter().rev() {
            last = commit.await.unwrap().max(last);
        }
        last
    });
    assert_eq!((db.view().unwrap().num_edges(), last > 0), (100, true));
    let mut tx = db.begin().unwrap();
    tx.add_edge(200, 201).unwrap();
    block_on(tx.submit().unwrap()).unwrap();
    assert!(db.view().unwrap().has_edge(200, 201).unwrap());
}

#[test]
fn refused_commit_is_an_error_of_await() {
    let db = Database::in_memory(Options { edge_properties: true, ..Options::default() }).unwrap();
    let refused = db.submit(&[Update::set_edge(1, 2, "kind", "x")]).unwrap();
    let error = block_on(refused).unwrap_err();
    assert!(matches!(error, Error::NotFound { what: NotFound::Edge { .. }, .. }), "{error:?}");
}

#[test]
fn answered_future_gives_no_second_answer() {
    let db = Database::in_memory(Options::default()).unwrap();
    let mut commit = submit(&db, 1);
    block_on(&mut commit).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(Pin::new(&mut commit).poll(&mut context), Poll::Ready(Err(Error::InvalidInput(_)))));
    assert!(matches!(commit.wait(), Err(Error::InvalidInput(_))));
}

#[test]
fn threads_await_their_own_commits() {
    let db = Arc::new(Database::in_memory(Options::default()).unwrap());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let db = Arc::clone(&db);
            std::thread::spawn(move || {
                for i in 0..200 {
                    let commit = submit(&db, 1_000 * thread + 2 * i);
                    if i % 3 == 0 { commit.wait() } else { block_on(commit) }.unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(db.view().unwrap().num_edges(), 800);
}

#[test]
fn pending_commit_outlives_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let (awaited, polled, waited);
    {
        let db = Database::create(&path, Options::default()).unwrap();
        (awaited, polled, waited) = (submit(&db, 1), submit(&db, 3), submit(&db, 5));
    }
    // The commits keep the database open.
    assert!(matches!(Database::open(&path), Err(Error::Locked(_))));
    block_on(awaited).unwrap();
    let mut polled = polled;
    let _ = Pin::new(&mut polled).poll(&mut Context::from_waker(Waker::noop()));
    drop(polled);
    std::thread::spawn(move || waited.wait().unwrap()).join().unwrap();
    for num_edges in 3..40 {
        let db = Database::open(&path).unwrap();
        assert_eq!(db.view().unwrap().num_edges(), num_edges);
        // Nothing holds the files once the handle and the future are gone.
        block_on(submit(&db, 2 * num_edges + 1)).unwrap();
        match num_edges % 2 {
            0 => drop(db),
            _ => db.close().unwrap(),
        }
    }
}
