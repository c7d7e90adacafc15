//! Two small databases that between them use every structure of the format.

use graph::{Direction, WeightType};

use super::*;

/// Directed, with weights, in-lists and string keys in no order.
pub fn directed() -> Model {
    let options =
        GraphOptions { keys: KeyScheme::String, weight_type: Some(WeightType::F32), ..GraphOptions::default() };
    let keys = (0..60_u64).map(|v| Key::from(format!("vertex-{}", v * 7919 % 1009))).collect();
    let edges: Vec<_> = (0..240_u32).map(|i| (i * i % 59, i * 17 % 60, i as f32 / 4.0)).collect();
    Model::new(options, keys, &edges)
}

/// Undirected, dense keys, an empty page between two others.
pub fn undirected() -> Model {
    let options = GraphOptions { direction: Direction::Undirected, keys: KeyScheme::Dense, ..GraphOptions::default() };
    let keys = (0..2100_u64).map(Key::Integer).collect();
    let edges: Vec<_> = (0..150_u32).map(|i| (i * i % 97, if i % 9 == 0 { 2099 - i } else { i }, 1_u32)).collect();
    Model::new(options, keys, &edges)
}

/// A multigraph without in-lists, integer keys in no order.
pub fn multigraph() -> Model {
    let options = GraphOptions {
        multigraph: true,
        in_edges: false,
        weight_type: Some(WeightType::I64),
        ..GraphOptions::default()
    };
    let keys = (0..40_u64).map(|v| Key::Integer(v.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let edges: Vec<_> = (0..200_u32).map(|i| (i * i % 39, i * 7 % 10, i64::from(i) - 100)).collect();
    Model::new(options, keys, &edges)
}

/// All of them, with their names.
pub fn all() -> Vec<(&'static str, Model)> {
    vec![("directed", directed()), ("undirected", undirected()), ("multigraph", multigraph())]
}
