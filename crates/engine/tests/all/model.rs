//! Databases against a plain model, over all combinations of options.

use std::path::Path;
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::progress::Silent;
use anden_engine::{Duplicates, Engine, GraphOptions, IdOrder, KeyScheme, LoadOptions};
use anden_graph::{GraphKind, Weight, WeightType};
use anden_testkit::FaultStorage;
use proptest::prelude::*;

use crate::loading::{DB, Input, InputEdge, Model, files, fixed_identity};

/// The form of keys.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Dense,
    /// Small integers, for a bitmap.
    Small,
    /// Integers of 32 bits, too sparse for a bitmap.
    Sparse,
    /// Integers of any size.
    Wide,
    /// Small integers and a few large ones.
    Mixed,
    Strings,
}

impl Keys {
    const ALL: [Self; 6] = [Self::Dense, Self::Small, Self::Sparse, Self::Wide, Self::Mixed, Self::Strings];

    fn scheme(self) -> KeyScheme {
        match self {
            Self::Dense => KeyScheme::Dense,
            Self::Strings => KeyScheme::String,
            _ => KeyScheme::Integer,
        }
    }

    fn key(self, number: u64) -> String {
        match self {
            Self::Dense => number.to_string(),
            Self::Small => (3 * number + 5).to_string(),
            Self::Sparse => (number.wrapping_mul(0x9e37_79b9) & 0xffff_ffff).to_string(),
            Self::Wide => number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string(),
            Self::Mixed if number.is_multiple_of(11) => (number << 40).to_string(),
            Self::Mixed => number.to_string(),
            Self::Strings => format!("{}{number}", ["key", "", "ключ-", "a"][number as usize % 4]),
        }
    }
}

#[derive(Clone, Debug)]
struct Case {
    edges: Vec<InputEdge>,
    options: LoadOptions,
}

fn options() -> impl Strategy<Value = (Keys, LoadOptions)> {
    let duplicates = [Duplicates::Min, Duplicates::Last, Duplicates::Sum, Duplicates::Keep];
    let weights =
        [None, None, Some(WeightType::U32), Some(WeightType::I64), Some(WeightType::F32), Some(WeightType::F64)];
    let kinds = [(GraphKind::Directed, false), (GraphKind::Directed, true), (GraphKind::Undirected, false)];
    let choose = (
        prop::sample::select(Keys::ALL.to_vec()),
        prop::sample::select(kinds.to_vec()),
        prop::sample::select(duplicates.to_vec()),
        prop::sample::select(weights.to_vec()),
        any::<bool>(),
        prop::sample::select(IdOrder::ALL.map(|(order, _)| order).to_vec()),
    );
    choose.prop_map(|(keys, (graph_kind, ordered), duplicates, weight_type, in_edges, order)| {
        let graph = GraphOptions {
            graph_kind,
            ordered,
            keys: keys.scheme(),
            weight_type,
            edge_properties: false,
            in_edges,
            multigraph: duplicates == Duplicates::Keep,
        };
        let order = match order {
            // Refused: dense keys are ids, and ids direct the edges of an ordered graph.
            _ if keys.scheme() == KeyScheme::Dense => IdOrder::Auto,
            IdOrder::Degree | IdOrder::Bfs | IdOrder::Hub if ordered => IdOrder::Auto,
            order => order,
        };
        (keys, LoadOptions { graph, duplicates, order, identity: Some(fixed_identity()), ..LoadOptions::default() })
    })
}

fn cases() -> impl Strategy<Value = Case> {
    let edges = prop::collection::vec((0_u64..60, 0_u64..60, 0_u32..50), 0..400);
    (options(), edges, any::<bool>()).prop_map(|((keys, options), mut edges, sort)| {
        if sort {
            edges.sort_unstable();
        }
        let weight = |w: u32| match options.graph.weight_type {
            Some(WeightType::F32 | WeightType::F64) => format!("{}.{}", w / 7, w % 7),
            Some(WeightType::I64) => (i64::from(w) - 25).to_string(),
            _ => w.to_string(),
        };
        let edges = edges.into_iter().map(|(u, v, w)| (keys.key(u), keys.key(v), weight(w))).collect();
        Case { edges, options }
    })
}

/// Loads a case with these threads, this memory for sorting and this block size.
fn load(case: &Case, threads: usize, sort_memory: Option<u64>, block_bytes: usize) -> (FaultStorage, Engine) {
    let input = Input::edges(&case.edges);
    let mut options = case.options.clone();
    options.sort_memory = sort_memory;
    options.source.block_bytes = block_bytes;
    let disk = FaultStorage::default();
    let pool = Pool::new(threads).unwrap();
    let (storage, path) = (Arc::new(disk.clone()), Path::new(DB));
    let (db, report) = Engine::load_in(storage, path, &input.paths(), &options, &pool, &Silent).unwrap();
    db.verify(&pool).unwrap();
    assert_eq!((report.skipped, report.snapshot), (0, 1));
    (disk, db)
}

fn check<W: Weight>(case: &Case) {
    let (disk, db) = load(case, 1, None, 4 << 20);
    let expected = Model::<W>::new(&case.edges, &case.options);
    let mut found = Model::<W>::of(&db.view().unwrap());
    if case.options.graph.graph_kind == GraphKind::Directed && !case.options.graph.in_edges {
        assert!(found.in_lists.is_empty());
        found.in_lists = expected.in_lists.clone();
    }
    assert_eq!(found, expected);
    let expected = files(&disk);
    for (threads, sort_memory, block_bytes) in [
        (2, None, 300),
        (1, Some(1500), 300),
        (2, Some(1500), 200),
        (3, Some(20_000), 300),
        (2, Some(6000), 300),
        (2, Some(0), 1000),
    ] {
        let found = files(&load(case, threads, sort_memory, block_bytes).0);
        let names = |files: &std::collections::BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected));
        for (name, bytes) in &found {
            assert!(bytes == &expected[name], "{name} differs, {threads} threads, {sort_memory:?} bytes to sort in");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_load_variant_matches_the_model(case in cases()) {
        match case.options.graph.weight_type {
            None | Some(WeightType::U32) => check::<u32>(&case),
            Some(WeightType::I64) => check::<i64>(&case),
            Some(WeightType::F32) => check::<f32>(&case),
            Some(WeightType::F64) => check::<f64>(&case),
        }
    }
}
