//! Local clustering coefficients: the share of a vertex's neighbor pairs that are joined.
//!
//! **Result**: for every vertex with at least two neighbors, the number of arcs between them over the largest possible
//! number. This is the definition of LDBC Graphalytics. A neighbor is a vertex that an edge leads to or from. In a
//! directed graph each arc between two neighbors counts; in an undirected one each edge counts as two. Loops and
//! parallel edges do not count. All other vertices have 0.
//!
//! **Algorithm**: [`triangles`](crate::triangles) finds the triangles of the graph without directions, by an oriented
//! copy ordered by degree and by bit rows for the hubs. Each triangle is counted at its three vertices: at each, as
//! often as arcs join the other two. A list of the copy separates neighbors with arcs both ways from the others.
//!
//! **Parameters**: the number of hubs; see [`default_vertex_hubs`](crate::triangles::default_vertex_hubs).
//!
//! # Source
//! A. Iosup et al.: LDBC Graphalytics, VLDB 2016, section 2.2.3 (LCC). T. Schank, D. Wagner: Finding, Counting and
//! Listing All Triangles in Large Graphs, WEA 2005. Ours differs in bit rows, and in separate counts for each worker.

mod verify;

use anden_graph::{Graph, GraphKind, StoredFormKey};

use crate::triangles::by_vertex::{self, Noted, VertexTriangles};
use crate::{Context, Result};

pub use verify::verify;

/// Parameters of [`lcc`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LccParams {
    /// The number of vertices of highest degree with bit rows; `None`:
    /// [`default_vertex_hubs`](crate::triangles::default_vertex_hubs).
    pub num_hubs: Option<usize>,
}

/// Result of [`lcc`].
#[derive(Clone, Debug, PartialEq)]
pub struct LccResult {
    /// The coefficient of each vertex, by vertex id; 0 for dead vertices.
    pub coefficients: Vec<f64>,
    /// The mean over the live vertices; 0 without any.
    pub mean: f64,
    /// The time to build the oriented copy, in seconds.
    pub preparation_seconds: f64,
    /// Whether an earlier run built the copy, or the database stores it.
    pub was_prepared: bool,
    /// The bytes of the oriented copy and of the bit rows.
    pub copy_bytes: u64,
}

/// The form that a run without parameters reads from a database that stores it.
pub fn stored_form(graph: &impl Graph) -> StoredFormKey {
    by_vertex::stored_form(graph)
}

/// The local clustering coefficient of every vertex.
///
/// *Cost*: about twice that of counting the triangles. *Memory*:
/// - 4 bytes an edge (directed: an arc), up to 44 bytes a vertex, 10 for each vertex and worker;
/// - 64 bytes for each worker and entry of the longest list of the copy;
/// - the bit rows of the hubs, twice if directed; left out if the budget forbids them.
///
/// A copy that does not fit is built in parts, as in [`triangles`](crate::triangles::triangles()), beside 24 bytes a
/// vertex. *Determinism*: equal in every run, bit for bit.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn lcc(ctx: &Context<'_>, graph: &impl Graph, params: &LccParams) -> Result<LccResult> {
    let noted = if graph.graph_kind() == GraphKind::Directed { Noted::Arcs } else { Noted::Edge };
    let found = by_vertex::find(ctx, graph, "lcc", params.num_hubs, noted)?;
    let VertexTriangles { counts, degrees, ranks, preparation_seconds, was_prepared, copy_bytes, .. } = found;
    let arcs_an_edge = if noted == Noted::Arcs { 1.0 } else { 2.0 };
    let mut coefficients = anden_base::memory::zeroed_huge::<f64>(graph.vertex_bound());
    ctx.pool.for_each_part_mut(&mut coefficients, 1 << 14, |start, part| {
        for (coefficient, &rank) in part.iter_mut().zip(&ranks[start..]) {
            let degree = f64::from(degrees[rank as usize]);
            if degree >= 2.0 {
                *coefficient = arcs_an_edge * counts[rank as usize] as f64 / (degree * (degree - 1.0));
            }
        }
    });
    // Chunks have a fixed size, so the sum does not depend on the number of threads.
    let sums = ctx.pool.map_chunks(0..coefficients.len(), 1 << 14, |_, chunk| coefficients[chunk].iter().sum::<f64>());
    let mean = sums.into_iter().sum::<f64>() / graph.num_vertices().max(1) as f64;
    Ok(LccResult { coefficients, mean, preparation_seconds, was_prepared, copy_bytes })
}
