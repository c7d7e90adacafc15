//! The twelve tests of LDBC's ACID test suite (Waudby et al., TPCTC 2020), and some more that fit a graph: each tries to
//! bring about one anomaly, with clients that meet at barriers, and with a floor on what was committed. All run on every
//! kind of graph.

use anden_engine::{EdgeWeight, GraphOptions, KeyScheme};
use graph::{Direction, WeightType};

const PLAIN: GraphOptions = GraphOptions {
    direction: Direction::Directed,
    multigraph: false,
    ordered: false,
    keys: KeyScheme::Integer,
    weight_type: None,
    edge_properties: false,
    in_edges: true,
};

mod plain {
    use super::*;
    const OPTIONS: GraphOptions = PLAIN;
    const WEIGHT: Option<EdgeWeight> = None;
    include!("acid/suite.rs");
}

mod weighted {
    use super::*;
    const OPTIONS: GraphOptions = GraphOptions { weight_type: Some(WeightType::F64), ..PLAIN };
    const WEIGHT: Option<EdgeWeight> = Some(EdgeWeight::Real(0.5));
    include!("acid/suite.rs");
}

mod with_properties {
    use super::*;
    const OPTIONS: GraphOptions = GraphOptions { edge_properties: true, ..PLAIN };
    const WEIGHT: Option<EdgeWeight> = None;
    include!("acid/suite.rs");
}

mod multigraph {
    use super::*;
    const OPTIONS: GraphOptions = GraphOptions { multigraph: true, ..PLAIN };
    const WEIGHT: Option<EdgeWeight> = None;
    include!("acid/suite.rs");
}

mod multigraph_with_properties {
    use super::*;
    const OPTIONS: GraphOptions = GraphOptions { multigraph: true, edge_properties: true, ..PLAIN };
    const WEIGHT: Option<EdgeWeight> = None;
    include!("acid/suite.rs");
}
