//! The twelve tests of LDBC's ACID test suite (Waudby et al., TPCTC 2020), and more that fit a graph. Each test
//! provokes one anomaly, with clients that meet at barriers, and requires a minimum of commits. All tests run on every
//! kind of graph.

#![allow(clippy::duplicate_mod, reason = "the suite runs once for each kind of graph")]

use anden_engine::{EdgeWeight, GraphOptions, KeyScheme};
use anden_graph::{GraphKind, WeightType};

const PLAIN: GraphOptions = GraphOptions {
    graph_kind: GraphKind::Directed,
    multigraph: false,
    ordered: false,
    keys: KeyScheme::Integer,
    weight_type: None,
    edge_properties: false,
    in_edges: true,
};

#[path = "acid/suite.rs"]
mod plain;

#[path = "acid/suite.rs"]
mod weighted;

#[path = "acid/suite.rs"]
mod with_properties;

#[path = "acid/suite.rs"]
mod weighted_with_properties;

#[path = "acid/suite.rs"]
mod multigraph;

#[path = "acid/suite.rs"]
mod multigraph_with_properties;

/// The kind of graph in the name of a module, and the weight of its edges.
fn kind(module: &str) -> (GraphOptions, Option<EdgeWeight>) {
    let (_, name) = module.rsplit_once("::").unwrap_or_default();
    match name {
        "plain" => (PLAIN, None),
        "weighted" => (GraphOptions { weight_type: Some(WeightType::F64), ..PLAIN }, Some(EdgeWeight::Real(0.5))),
        "with_properties" => (GraphOptions { edge_properties: true, ..PLAIN }, None),
        "weighted_with_properties" => (
            GraphOptions { weight_type: Some(WeightType::F64), edge_properties: true, ..PLAIN },
            Some(EdgeWeight::Real(0.5)),
        ),
        "multigraph" => (GraphOptions { multigraph: true, ..PLAIN }, None),
        "multigraph_with_properties" => (GraphOptions { multigraph: true, edge_properties: true, ..PLAIN }, None),
        _ => panic!("{name} is no kind of graph"),
    }
}
