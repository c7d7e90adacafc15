//! Appends, drops, merges and all other operations in random order, against a plain model with one set of edges for
//! each snapshot.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_graph::{GraphKind, WeightType};
use anden_snapshots::{GraphOptions, KeyScheme, MergeScope, Retention, Store};
use anden_testkit::{FaultStorage, Random};

use crate::model;
use crate::model::past::{Content, Past, below};

fn path() -> &'static Path {
    Path::new("db")
}

fn options(random: &mut Random) -> GraphOptions {
    let weights = [None, Some(WeightType::U32), Some(WeightType::I64), Some(WeightType::F32), Some(WeightType::F64)];
    GraphOptions {
        graph_kind: if below(random, 3) == 0 { GraphKind::Undirected } else { GraphKind::Directed },
        multigraph: below(random, 4) == 0,
        ordered: false,
        keys: [KeyScheme::Integer, KeyScheme::String, KeyScheme::Dense][below(random, 3)],
        weight_type: weights[below(random, weights.len())],
        edge_properties: below(random, 3) == 0,
        in_edges: below(random, 4) > 0,
    }
}

/// A database with its model, and operations that change both.
struct Pair {
    disk: FaultStorage,
    store: Store,
    past: Past,
    retention: Retention,
    pool: Pool,
}

impl Pair {
    fn new(random: &mut Random) -> Self {
        let mut first = Content::new(options(random), [0, 3, 40, 1025, 2100][below(random, 5)]);
        for _ in 0..below(random, 5) {
            first.evolve_all(random);
            first.revive();
            first.rows.forget_firsts();
        }
        let disk = FaultStorage::default();
        let store = first.write(Arc::new(disk.clone()), path(), None).unwrap();
        let pool = Pool::new(1 + below(random, 2)).unwrap();
        Self { disk, store, past: Past::new(first, None), retention: Retention::All, pool }
    }

    fn append(&mut self, random: &mut Random) {
        append(&self.store, &mut self.past, self.retention, random);
    }

    fn given_up(&self) -> Vec<u32> {
        given_up(&self.past, self.retention)
    }

    /// Merges with concurrent appends and drops.
    fn merge_beside_others(&mut self, random: &mut Random) {
        let Self { store, past, retention, pool, .. } = self;
        let others = Others { store, retention: *retention, hands: Mutex::new((past, random)) };
        store.merge(MergeScope::All, pool, &others).unwrap();
    }

    fn step(&mut self, random: &mut Random) {
        let num_kept = self.past.snapshots.len();
        let (a, b) = (below(random, num_kept), below(random, num_kept));
        match below(random, 16) {
            0..7 => self.append(random),
            7 => {
                let numbers: Vec<u32> = self.past.numbers().into_iter().filter(|_| below(random, 3) == 0).collect();
                let answer = self.store.drop_snapshots(&numbers, &Silent);
                if numbers.len() == num_kept {
                    assert!(answer.unwrap_err().to_string().contains("no snapshot would be left"));
                } else {
                    answer.unwrap();
                    self.past.forget(&numbers);
                }
            }
            8 if below(random, 2) == 0 => {
                self.store.merge(MergeScope::All, &self.pool, &Silent).unwrap();
            }
            8 => self.merge_beside_others(random),
            9 => {
                let scope = MergeScope::Newest(below(random, 6) as u32);
                let report = self.store.merge(scope, &self.pool, &Silent).unwrap();
                assert!(report.deltas_after <= report.deltas_before);
            }
            10 => {
                self.retention =
                    [Retention::All, Retention::Last(3), Retention::Named, Retention::Days(1)][below(random, 4)];
                let given_up = self.given_up();
                assert_eq!(self.store.retain(self.retention).unwrap(), given_up);
                self.past.forget(&given_up);
            }
            11 => self.past.compare_window(&self.store, a.min(b), a.max(b)).unwrap(),
            12 => self.past.compare_diff(&self.store, a, b).unwrap(),
            13 => {
                let reader = Store::open_read_only(Arc::new(self.disk.clone()), path()).unwrap();
                self.past.compare(&reader).unwrap();
                assert!(!reader.refresh().unwrap());
            }
            14 => self.reopen(),
            _ => {
                let report = self.store.verify(&self.pool).unwrap();
                assert_eq!((report.num_snapshots, report.unknown_files.len()), (num_kept, 0));
                assert_eq!(report.num_bytes, self.store.stats().bytes);
            }
        }
    }

    fn reopen(&mut self) {
        // The lock must be free before it is taken again.
        let read_only = Store::open_read_only(Arc::new(self.disk.clone()), path()).unwrap();
        drop(std::mem::replace(&mut self.store, read_only));
        let store = Store::open(Arc::new(self.disk.clone()), path()).unwrap();
        self.store = store.with_unix_time(model::IDENTITY.unix_time);
        assert_eq!(self.store.retention(), self.retention);
    }
}

fn append(store: &Store, past: &mut Past, retention: Retention, random: &mut Random) {
    let mut content = past.newest.clone();
    if below(random, 8) > 0 {
        content.evolve_all(random);
    }
    let number = past.next_number;
    let name = (below(random, 4) == 0).then(|| format!("v{number}"));
    let info = content.changes_from(&past.newest).with(|changes| store.append(changes, name.as_deref()));
    assert_eq!(info.unwrap().number, number);
    past.append(content, name.as_deref());
    past.forget(&given_up(past, retention));
}

fn given_up(past: &Past, retention: Retention) -> Vec<u32> {
    let kept = &past.snapshots;
    let older = kept[..kept.len() - 1].iter().enumerate();
    let goes = |place: usize| match retention {
        Retention::All | Retention::Days(_) => false,
        Retention::Last(num_kept) => kept.len() - place > num_kept as usize,
        Retention::Named => true,
    };
    older.filter(|(place, (_, name, _))| name.is_none() && goes(*place)).map(|(_, (number, ..))| *number).collect()
}

/// Changes a database during a merge.
struct Others<'a> {
    store: &'a Store,
    retention: Retention,
    hands: Mutex<(&'a mut Past, &'a mut Random)>,
}

impl Progress for Others<'_> {
    fn wrote(&self, num_bytes: u64) {
        assert!(num_bytes > 0);
        let (past, random) = &mut *self.hands.lock().unwrap();
        let numbers = past.numbers();
        match below(random, 4) {
            0 | 1 if below(random, 3) > 0 => append(self.store, past, self.retention, random),
            2 if numbers.len() > 1 => {
                let dropped = [numbers[numbers.len() - 1 - below(random, 2)]];
                self.store.drop_snapshots(&dropped, &Silent).unwrap();
                past.forget(&dropped);
            }
            _ => {}
        }
    }
}

#[test]
fn any_order_of_everything_shows_what_the_model_shows() {
    let num_steps = 60;
    for seed in 0..48 {
        println!("seed {seed}");
        let random = &mut Random::new(seed);
        let mut pair = Pair::new(random);
        for step in 0..num_steps {
            pair.step(random);
            if step % 4 == 0 {
                pair.past.compare(&pair.store).unwrap();
            }
        }
        pair.past.compare(&pair.store).unwrap();
        pair.store.verify(&pair.pool).unwrap();
        pair.reopen();
        pair.past.compare(&pair.store).unwrap();
    }
}
