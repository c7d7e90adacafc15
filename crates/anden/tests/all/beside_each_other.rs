//! Queries and analyses run beside commits, each on their share of the cores. The result of an analysis equals that of
//! the kernel on a graph built later from the commits of its view.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anden::kernel::Distances;
use anden::session::Split;
use anden::{Database, Durability, KeyScheme, OpenOptions, Options, PageRankParams, Session, Update, View, WeightType};
use anden_testkit::{Random, wait_until};

const NUM_VERTICES: u64 = 3_000;
const BATCH: usize = 50;
const NUM_BATCHES: usize = 400;
const BATCHES_AN_ANALYSIS: usize = 50;

fn options() -> Options {
    Options { keys: KeyScheme::Dense, weight_type: Some(WeightType::U32), ..Options::default() }
}

/// A batch adds two edges from the first vertex to new ones, and edges between smaller vertices. Some batches remove
/// edges of the batch before.
fn batch(number: usize) -> Vec<Update> {
    let mut random = Random::new(number as u64);
    let mut random = |bound: u64| random.below_u64(bound);
    let mut updates: Vec<Update> =
        (0..2).map(|i| Update::add_weighted_edge(0, NUM_VERTICES + 2 * number as u64 + i, 1 + i as i64)).collect();
    while updates.len() < BATCH {
        let (source, target) = (1 + random(NUM_VERTICES - 1), 1 + random(NUM_VERTICES - 1));
        updates.push(match random(5) {
            0 => Update::remove_edge(source, target),
            _ => Update::add_weighted_edge(source, target, 1 + random(200) as i64),
        });
    }
    updates
}

/// The results of kernels, and the number of batches in the graph.
struct Finding {
    num_batches: usize,
    num_edges: u64,
    hops: Vec<u32>,
    distances: Distances,
    components: Vec<u32>,
    ranks: Vec<f64>,
    triangles: u64,
}

impl Finding {
    fn of(view: &View) -> anden::Result<Self> {
        let hops = view.bfs(0)?;
        let num_new = hops.iter().skip(NUM_VERTICES as usize).filter(|&&hops| hops == 1).count();
        assert!(num_new.is_multiple_of(2), "half a batch");
        Ok(Self {
            num_batches: num_new / 2,
            num_edges: view.num_edges(),
            hops,
            distances: view.sssp(0)?,
            components: view.wcc()?,
            ranks: view.pagerank(&PageRankParams::default())?,
            triangles: view.triangles()?,
        })
    }

    fn require_same(&self, other: &Self) {
        assert_eq!(
            (self.num_batches, self.num_edges, self.triangles),
            (other.num_batches, other.num_edges, other.triangles)
        );
        assert!(self.hops == other.hops && self.distances == other.distances && self.components == other.components);
        let is_near = |(&a, &b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b;
        assert!(self.ranks.len() == other.ranks.len() && self.ranks.iter().zip(&other.ranks).all(is_near));
    }
}

#[test]
fn every_analysis_is_of_a_whole_number_of_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batches.anden");
    let first: Vec<Update> = (1..NUM_VERTICES).map(|v| Update::add_weighted_edge(v - 1, v, 7)).collect();
    let db = Database::create(&path, options()).unwrap();
    db.apply(&first).unwrap();
    db.close().unwrap();
    let session = Session::new(1).unwrap().with_split(Split { navigational: 2, analytics: 3 });
    assert_eq!(session.split(), Split { navigational: 2, analytics: 3 });
    let db = Database::open_with(&path, &OpenOptions::from(&session)).unwrap();
    db.set_durability(Durability::None);
    db.set_checkpoint_bytes(Some(200_000));
    db.set_background_write_rate(None);
    let (is_over, num_findings) = (AtomicBool::new(false), AtomicUsize::new(0));
    let findings = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let num_new = db
                        .navigate(|view| {
                            assert_eq!(view.context().pool.num_threads(), 1);
                            assert_eq!(view.path(0, 1)?.map(|path| path.vertices.len()), Some(2));
                            view.out_degree(0)
                        })
                        .unwrap();
                    assert!(num_new % 2 == 1 && num_new >= last, "{num_new} edges after {last}");
                    last = num_new;
                }
            });
        }
        let analyst = scope.spawn(|| {
            let mut findings = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let finding = db.analyse(|view| {
                    assert_eq!(view.context().pool.num_threads(), 3);
                    Finding::of(view)
                });
                findings.push(finding.unwrap());
                num_findings.fetch_add(1, Ordering::Relaxed);
            }
            findings
        });
        for number in 0..NUM_BATCHES {
            // Commits wait for analyses at times, to bound their number on fast machines.
            while num_findings.load(Ordering::Relaxed) < number / BATCHES_AN_ANALYSIS && !analyst.is_finished() {
                std::thread::yield_now();
            }
            assert!(db.apply(&batch(number)).is_ok());
        }
        is_over.store(true, Ordering::Relaxed);
        analyst.join().unwrap()
    });
    assert!(db.metrics().live.automatic_checkpoints > 2, "{:?}", db.metrics().live);
    let offline = Database::in_memory(options()).unwrap();
    offline.set_checkpoint_bytes(None);
    offline.apply(&first).unwrap();
    let mut num_applied = 0;
    let last = db.analyse(Finding::of).unwrap();
    assert_eq!(last.num_batches, NUM_BATCHES);
    for finding in findings.iter().chain([&last]) {
        (num_applied..finding.num_batches).for_each(|number| assert!(offline.apply(&batch(number)).is_ok()));
        num_applied = finding.num_batches;
        finding.require_same(&Finding::of(&offline.view().unwrap()).unwrap());
    }
    println!("{} analyses of {NUM_BATCHES} batches", findings.len());
    assert!(findings.len() >= NUM_BATCHES / BATCHES_AN_ANALYSIS - 1, "{} analyses", findings.len());
}

#[test]
fn query_errors_reach_the_caller() {
    let db = Database::in_memory(Options::default()).unwrap();
    assert!(matches!(db.navigate(|view| view.path(1, 2)), Err(anden::Error::NotFound { .. })));
    assert!(matches!(db.analyse(|view| view.bfs(1)), Err(anden::Error::NotFound { .. })));
    assert_eq!(db.analyse(|view| Ok(view.num_vertices())).unwrap(), 0);
}

#[test]
fn statistics_tell_which_views_are_open() {
    let db = Database::in_memory(Options::default()).unwrap();
    db.apply(&[Update::add_edge(1, 2)]).unwrap();
    assert_eq!(db.metrics().views.open, 0);
    let view = db.view().unwrap();
    let (clone, other) = (view.clone(), db.snapshot(1).unwrap());
    let stats = db.stats();
    assert_eq!((stats.metrics.views.open, stats.metrics.live.added), (2, 1));
    drop((view, other));
    assert_eq!(db.metrics().views.open, 1);
    db.navigate(|_| {
        assert_eq!(db.metrics().views.open, 2);
        Ok(())
    })
    .unwrap();
    let transaction = db.begin().unwrap();
    assert_eq!(db.metrics().views.open, 2);
    drop(clone);
    assert_eq!(db.metrics().views.open, 1);
    transaction.commit().unwrap();
    db.transact(|_| {
        assert_eq!(db.metrics().views.open, 1);
        Ok(())
    })
    .unwrap();
    assert_eq!((db.metrics().views.open, db.metrics().views.oldest_age.is_zero()), (0, true));
}

#[test]
fn the_oldest_view_that_is_held_ages() {
    let db = Database::in_memory(Options::default()).unwrap();
    let oldest_age = || db.metrics().views.oldest_age;
    assert_eq!(oldest_age(), Duration::ZERO);
    let old = db.view().unwrap();
    let held_for = Duration::from_millis(5);
    wait_until("the view ages", || oldest_age() >= held_for);
    let start = Instant::now();
    let young = db.view().unwrap();
    assert!(oldest_age() >= held_for, "a younger one is not the oldest");
    drop(old);
    let age = oldest_age();
    assert!(age <= start.elapsed(), "{age:?}: only the younger one is open");
    drop(young);
    assert_eq!(oldest_age(), Duration::ZERO);
}
