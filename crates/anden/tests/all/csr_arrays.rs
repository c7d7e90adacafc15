//! The lists of views as the arrays of a CSR.

use anden::graph::{CsrArrays, Direction, Weights};
use anden::{Changes, Database, EdgeWeight, Key, KeyScheme, Neighbors, Options, View, WeightType};
use anden_testkit::Random;

fn options(weight_type: Option<WeightType>) -> Options {
    Options { keys: KeyScheme::Dense, weight_type, ..Options::default() }
}

fn lists(csr: &CsrArrays) -> Vec<Vec<Key>> {
    let list =
        |pair: &[i64]| csr.targets[pair[0] as usize..pair[1] as usize].iter().map(|&id| Key::from(u64::from(id)));
    csr.offsets.windows(2).map(|pair| list(pair).collect()).collect()
}

/// Compares the arrays with the answers of queries.
fn check(view: &View) -> CsrArrays {
    for (direction, neighbors) in [(Direction::In, Neighbors::In), (Direction::Out, Neighbors::Out)] {
        let csr = view.csr(direction).unwrap();
        // A window lacks vertices without an edge, whose lists are empty.
        let of_query = |vertex: usize| match view.is_live(vertex as u32) {
            true => view.neighbors(vertex as u64, neighbors).unwrap(),
            false => Vec::new(),
        };
        assert_eq!(lists(&csr), (0..view.vertex_bound()).map(of_query).collect::<Vec<_>>());
        assert_eq!(csr.targets.len() as u64, view.num_arcs());
        assert_eq!(csr.weights.as_ref().map(Weights::len), view.weight_type().map(|_| csr.targets.len()));
    }
    view.csr(Direction::Out).unwrap()
}

fn random_changes(random: &mut Random, has_weights: bool) -> Changes {
    let mut edge = |source: u64, target: u64| {
        let weight = has_weights.then(|| EdgeWeight::Integer(i64::from(random.below(100))));
        (Key::from(source), Key::from(target), weight)
    };
    let mut added: Vec<_> = (0..3000).map(|vertex| edge(vertex, vertex)).collect();
    let mut ends = Random::new(7);
    added.extend((0..9000).map(|_| edge(ends.below(3000).into(), ends.below(3000).into())));
    Changes { added, ..Changes::default() }
}

#[test]
fn arrays_of_a_base_are_those_that_are_stored() {
    for weight_type in [None, Some(WeightType::U32), Some(WeightType::F64)] {
        let db = Database::in_memory(options(weight_type)).unwrap();
        db.append(&random_changes(&mut Random::new(1), weight_type.is_some())).unwrap();
        db.merge().unwrap();
        let (first, second) = (check(&db.view().unwrap()), check(&db.snapshot(2).unwrap()));
        assert!(!first.is_copy && first.targets.as_ptr() == second.targets.as_ptr(), "{weight_type:?}");
        // The arrays outlive the database.
        drop(db);
        assert!(first.targets.iter().all(|&target| target < 3000));
    }
}

#[test]
fn lists_in_several_places_are_copied() {
    for weight_type in [None, Some(WeightType::I64), Some(WeightType::F32)] {
        let db = Database::in_memory(options(weight_type)).unwrap();
        let weight = weight_type.map(|_| EdgeWeight::Integer(3));
        db.append(&random_changes(&mut Random::new(1), weight_type.is_some())).unwrap();
        db.merge().unwrap();
        let before = lists(&check(&db.view().unwrap()));
        let added = (10..2000).map(|vertex| (Key::from(vertex), Key::from(vertex + 1), weight)).collect();
        db.append(&Changes { added, ..Changes::default() }).unwrap();
        let delta = check(&db.view().unwrap());
        assert!(delta.is_copy && lists(&delta) != before);
        // An older snapshot, a window, changes in memory, and a part that a filter selects.
        assert_eq!(lists(&check(&db.snapshot(2).unwrap())), before);
        check(&db.window(3..=3).unwrap());
        db.transact(|tx| tx.remove_edge(10, 11)).unwrap();
        assert!(check(&db.view().unwrap()).is_copy);
        if weight_type.is_some() {
            check(&db.view().unwrap().filter(Some("weight > 2"), None).unwrap());
        }
    }
}
