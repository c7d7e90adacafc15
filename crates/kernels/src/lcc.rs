//! The local clustering coefficient: how near the neighbours of a vertex come to being all joined.
//!
//! **Result**: for every vertex with at least two neighbours, the number of arcs between its neighbours
//! over the number that there could be, as LDBC Graphalytics defines it: a neighbour is a vertex that an
//! edge leads to or from; of a directed graph each arc between two neighbours counts, of an undirected
//! one each edge as two. Loops and parallel edges do not count. 0 for all other vertices.
//!
//! **Algorithm**: the triangles of the graph without directions are found as
//! [`triangles`](crate::triangles) finds them, with an oriented copy by degree and rows of bits for the
//! hubs, and noted at all three corners: at each, as many times as arcs join the other two. A list of
//! the copy keeps the neighbours that are joined both ways apart from the others.
//!
//! **Parameters**: the number of hubs; see [`default_corner_hubs`](crate::triangles::default_corner_hubs).
//!
//! # Source
//! A. Iosup et al.: LDBC Graphalytics, VLDB 2016, section 2.2.3 (LCC). T. Schank, D. Wagner: Finding,
//! Counting and Listing All Triangles in Large Graphs, WEA 2005. Ours differs: rows of bits, and counts
//! of each worker's own.

mod verify;

use graph::{Direction, InEdges};

use crate::triangles::corners::{self, Corners, Noted};
use crate::{Context, Result};

pub use verify::verify;

/// How coefficients are to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LccParams {
    /// How many vertices of the highest degrees have rows of bits; `None`:
    /// [`default_corner_hubs`](crate::triangles::default_corner_hubs).
    pub num_hubs: Option<usize>,
}

/// The coefficients.
#[derive(Clone, Debug, PartialEq)]
pub struct LccResult {
    /// The coefficient of each vertex, by vertex id; 0 where there is no vertex.
    pub coefficients: Vec<f64>,
    /// Their mean over the vertices; 0 where there are none.
    pub mean: f64,
    /// The time for the oriented copy, in seconds.
    pub preparation_seconds: f64,
    /// The bytes of the oriented copy and of the rows of the hubs.
    pub copy_bytes: u64,
}

/// The local clustering coefficient of every vertex.
///
/// *Cost*: that of counting the triangles, about twice. *Memory*: 4 bytes an edge (an arc, where edges
/// have directions), up to 44 bytes a vertex, 10 a vertex and worker, 64 a worker and entry of the longest list
/// of the copy, and the rows of the hubs, twice where edges have directions; they are left out where the budget
/// forbids them, and where the copy does not fit, as of [`triangles`](crate::triangles::triangles()), it is made in
/// parts, beside 24 bytes a vertex. *Determinism*: the same bits in every run.
///
/// # Errors
/// The budget is too small, the graph is damaged, or the work was cancelled.
pub fn lcc(ctx: &Context<'_>, graph: &impl InEdges, params: &LccParams) -> Result<LccResult> {
    let noted = if graph.direction() == Direction::Directed { Noted::Arcs } else { Noted::Edge };
    let found = corners::find(ctx, graph, "lcc", params.num_hubs, noted)?;
    let Corners { counts, degrees, ranks, preparation_seconds, copy_bytes, .. } = found;
    let arcs_an_edge = if noted == Noted::Arcs { 1.0 } else { 2.0 };
    let mut coefficients = base::memory::zeroed_huge::<f64>(graph.vertex_bound());
    ctx.pool.for_each_part_mut(&mut coefficients, 1 << 14, |start, part| {
        for (coefficient, &rank) in part.iter_mut().zip(&ranks[start..]) {
            let degree = f64::from(degrees[rank as usize]);
            if degree >= 2.0 {
                *coefficient = arcs_an_edge * counts[rank as usize] as f64 / (degree * (degree - 1.0));
            }
        }
    });
    let sums = ctx.pool.map_chunks(0..coefficients.len(), 1 << 14, |_, chunk| coefficients[chunk].iter().sum::<f64>());
    let mean = sums.into_iter().sum::<f64>() / graph.num_vertices().max(1) as f64;
    Ok(LccResult { coefficients, mean, preparation_seconds, copy_bytes })
}
