//! Power cuts, errors and cancellation at every point of a load, and of work with indexes.

mod indexes;

use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_base::storage::Storage;
use anden_engine::{Engine, ErrorKind, IdOrder, KeyScheme, LoadOptions, Result};
use anden_graph::{GraphKind, WeightType};
use anden_testkit::{FaultPlan, FaultStorage, crash_every_call, scaled};

use crate::loading::{DB, Input, InputEdge, Model, fixed_identity};

/// The number of possible disks after a crash to check for each call.
fn num_disks() -> u64 {
    scaled(6)
}

struct Load {
    name: &'static str,
    edges: Vec<InputEdge>,
    options: LoadOptions,
}

/// Loads in memory with every kind of file, through scratch files, and undirected with string keys.
fn loads() -> Vec<Load> {
    let edges = |factor: u64| -> Vec<InputEdge> {
        (0..120_u64).map(|i| [i * 7 % 31 * factor, i * i % 29, i % 13].map(|x| x.to_string()).into()).collect()
    };
    let mut weighted =
        LoadOptions { identity: Some(fixed_identity()), order: IdOrder::Input, ..LoadOptions::default() };
    weighted.graph.weight_type = Some(WeightType::F64);
    let mut spilled =
        LoadOptions { sort_memory: Some(700), identity: Some(fixed_identity()), ..LoadOptions::default() };
    spilled.source.block_bytes = 150;
    let mut strings = LoadOptions { identity: Some(fixed_identity()), ..LoadOptions::default() };
    strings.graph.graph_kind = GraphKind::Undirected;
    strings.graph.keys = KeyScheme::String;
    vec![
        Load { name: "weighted, ids in input order", edges: edges(1 << 34), options: weighted },
        Load { name: "in scratch files", edges: edges(1), options: spilled },
        Load { name: "undirected, strings", edges: edges(3), options: strings },
    ]
}

impl Load {
    fn run(&self, disk: &FaultStorage, progress: &dyn Progress) -> Result<Engine> {
        let input = Input::edges(&self.edges);
        let pool = Pool::new(1).unwrap();
        let path = Path::new(DB);
        Engine::load_in(Arc::new(disk.clone()), path, &input.paths(), &self.options, &pool, progress).map(|(db, _)| db)
    }

    fn check(&self, db: &Engine) {
        db.verify(&Pool::new(1).unwrap()).unwrap();
        let view = db.view().unwrap();
        if self.options.graph.weight_type.is_some() {
            assert_eq!(Model::<f64>::of(&view), Model::new(&self.edges, &self.options));
        } else {
            assert_eq!(Model::<u32>::of(&view), Model::new(&self.edges, &self.options));
        }
    }

    fn num_calls(&self) -> u64 {
        let disk = FaultStorage::new(FaultPlan::Never);
        self.check(&self.run(&disk, &Silent).unwrap());
        disk.num_calls()
    }
}

#[test]
fn a_crash_at_any_call_leaves_everything_or_nothing() {
    for load in loads() {
        let (mut num_whole, mut num_none) = (0, 0);
        let start = || (FaultStorage::default(), ());
        let run = |disk: &FaultStorage, ()| load.run(disk, &Silent).is_ok();
        let num_calls = crash_every_call(num_disks(), start, run, |&has_answered, after, place| {
            match Engine::open_in(Arc::new(after.clone()), Path::new(DB)) {
                Ok(db) => {
                    load.check(&db);
                    num_whole += 1;
                }
                Err(error) => {
                    let place = format!("{}: {place}: {error}", load.name);
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{place}");
                    assert!(!has_answered, "{place}");
                    // The remains do not obstruct another load.
                    load.check(&load.run(after, &Silent).expect(&place));
                    num_none += 1;
                }
            }
        });
        assert_eq!(num_calls, load.num_calls());
        assert!(num_whole > 0 && num_none > 0);
        println!(
            "crash_every_call[load] {1}: {num_calls} calls, {0} disks each: {num_whole} times everything, {num_none} \
             times nothing",
            num_disks(),
            load.name
        );
    }
}

#[test]
fn an_error_at_any_call_leaves_nothing() {
    for load in loads() {
        let (num_calls, mut num_failed) = (load.num_calls(), 0);
        for call in 0..num_calls {
            let disk = FaultStorage::new(FaultPlan::FailAt(call, IoKind::StorageFull));
            match load.run(&disk, &Silent) {
                Ok(db) => load.check(&db),
                Err(error) => {
                    num_failed += 1;
                    assert_eq!(error.kind(), ErrorKind::Io, "call {call}: {error}");
                    assert!(!disk.exists(Path::new(DB)).unwrap(), "call {call} left something: {error}");
                }
            }
        }
        assert!(num_failed > 0);
        println!("fail_every_call[load] {}: {num_failed} of {num_calls} calls end it, nothing is left", load.name);
    }
}

/// Cancels at the check with this number.
struct CancelAt {
    looks: AtomicU64,
    at: u64,
}

impl Progress for CancelAt {
    fn is_cancelled(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.at
    }
}

#[test]
fn cancellation_at_any_look_leaves_nothing() {
    for load in loads() {
        let mut at = 0;
        loop {
            let disk = FaultStorage::default();
            let progress = CancelAt { looks: AtomicU64::new(0), at };
            match load.run(&disk, &progress) {
                Ok(db) => {
                    load.check(&db);
                    break;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "look {at}: {error}"),
            }
            assert!(!disk.exists(Path::new(DB)).unwrap(), "look {at} left something");
            at += 1;
        }
        assert!(at > 5, "{at} looks");
        println!("cancel_every_look[load] {}: {at} looks", load.name);
    }
}
