//! Round trips: random graphs of every kind against a plain graph in memory.

use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::storage::{DiskStorage, Storage};
use anden_graph::{Direction, Graph, GraphKind, WeightType};
use anden_snapshots::{GraphOptions, Key, KeyScheme, PAGE_VERTICES, Store};
use anden_testkit::FaultStorage;
use proptest::prelude::*;

use crate::model::Model;

fn options() -> impl Strategy<Value = GraphOptions> {
    let keys = prop_oneof![Just(KeyScheme::Integer), Just(KeyScheme::String), Just(KeyScheme::Dense)];
    let weights = prop_oneof![
        Just(None),
        Just(Some(WeightType::U32)),
        Just(Some(WeightType::I64)),
        Just(Some(WeightType::F32)),
        Just(Some(WeightType::F64))
    ];
    (any::<bool>(), any::<bool>(), keys, weights, any::<bool>(), any::<bool>()).prop_map(
        |(directed, multigraph, keys, weight_type, edge_properties, in_edges)| GraphOptions {
            graph_kind: if directed { GraphKind::Directed } else { GraphKind::Undirected },
            multigraph,
            ordered: false,
            keys,
            weight_type,
            edge_properties,
            in_edges,
        },
    )
}

/// Keys of `num_vertices` vertices. `order` 0 gives a range, 1 ascending keys, 2 unordered ones.
fn keys(scheme: KeyScheme, num_vertices: usize, order: u8) -> Vec<Key> {
    let number = |v: usize| match order {
        0 => v as u64 + 5,
        1 => (v * v) as u64 * 3,
        _ => (v as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    let key = |v: usize| match scheme {
        KeyScheme::Dense => Key::Integer(v as u64),
        KeyScheme::Integer => Key::Integer(number(v)),
        KeyScheme::String if order == 2 => Key::from(format!("ключ {}", number(v))),
        KeyScheme::String => Key::from(format!("{v:05}")),
    };
    (0..num_vertices).map(key).collect()
}

fn model() -> impl Strategy<Value = Model> {
    // A bit more than two pages, so that pages with and without edges are adjacent.
    let num_vertices = prop_oneof![1_usize..5, PAGE_VERTICES - 1..PAGE_VERTICES + 2, 2048_usize..2500];
    (options(), num_vertices, 0_u8..3, 1_usize..3000).prop_flat_map(|(options, num_vertices, order, chunk)| {
        let bound = num_vertices as u32;
        let edges = prop::collection::vec((0..bound, 0..bound, 0_u32..100), 0..300);
        // Sources only in the first page, so that other pages are empty.
        let few = prop::collection::vec((0..bound.min(9), 0..bound, 0_u32..100), 0..60);
        prop_oneof![edges, few].prop_map(move |edges| {
            let keys = keys(options.keys, num_vertices, order);
            let mut model = match options.weight_type {
                None | Some(WeightType::U32) => Model::new(options, keys, &edges),
                Some(WeightType::I64) => with_weights(options, keys, &edges, |w| i64::from(w) - 50),
                Some(WeightType::F32) => with_weights(options, keys, &edges, |w| w as f32 / 3.0),
                Some(WeightType::F64) => with_weights(options, keys, &edges, |w| f64::from(w) / 7.0),
            };
            model.chunk = chunk;
            model
        })
    })
}

fn with_weights<W: anden_graph::Weight>(
    options: GraphOptions,
    keys: Vec<Key>,
    edges: &[(u32, u32, u32)],
    weight: impl Fn(u32) -> W,
) -> Model {
    let edges: Vec<_> = edges.iter().map(|&(source, target, w)| (source, target, weight(w))).collect();
    Model::new(options, keys, &edges)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_view_answers_as_the_graph_in_memory(model in model()) {
        let disk: Arc<dyn Storage> = Arc::new(FaultStorage::default());
        let path = "db".as_ref();
        let written = model.write(Arc::clone(&disk), path).unwrap();
        model.compare(&written.view().unwrap()).unwrap();
        drop(written);

        let store = Store::open(disk, path).unwrap();
        prop_assert_eq!(store.options(), &model.options);
        let snapshots = store.snapshots();
        prop_assert_eq!(snapshots[0].num_edges, model.csr.num_edges());
        prop_assert_eq!(snapshots[0].name.as_deref(), Some("first"));
        let view = store.view().unwrap();
        model.compare(&view).unwrap();
        let report = store.verify(&Pool::new(2).unwrap()).unwrap();
        let num_directions = 1 + u64::from(model.options.graph_kind == GraphKind::Directed && view.has_lists(Direction::In));
        prop_assert_eq!(report.num_arcs, num_directions * model.csr.num_arcs());
        prop_assert!(report.unknown_files.is_empty());
        prop_assert_eq!(report.num_bytes, store.stats().bytes);
    }
}

#[test]
fn the_disk_holds_what_memory_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph.anden");
    let disk: Arc<dyn Storage> = Arc::new(DiskStorage);
    let options = GraphOptions { weight_type: Some(WeightType::F64), ..GraphOptions::default() };
    let edges: Vec<_> = (0..5000_u32).map(|i| (i * 7 % 3000, i * i % 2999, f64::from(i))).collect();
    let model = Model::new(options, keys(KeyScheme::Integer, 3000, 2), &edges);
    drop(model.write(Arc::clone(&disk), &path).unwrap());
    let store = Store::open_read_only(disk, &path).unwrap();
    model.compare(&store.view().unwrap()).unwrap();
    let stats = store.stats();
    assert_eq!((stats.dense_pages, stats.empty_pages, stats.bases), (6, 0, 1));
    let on_disk: u64 = std::fs::read_dir(&path)
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.file_name() != "LOCK")
        .map(|e| e.metadata().unwrap().len())
        .sum();
    assert_eq!(stats.bytes, on_disk);
}
