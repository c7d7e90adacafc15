//! One method of a view for each kernel.
//!
//! [`Job`](crate::Job) is the table of all kernels with all parameters.

use std::time::Instant;

use anden_base::VertexId;
use anden_kernels::SourceChoice;
use anden_kernels::bc::BcParams;
use anden_kernels::bfs::BfsParams;
use anden_kernels::cdlp::CdlpParams;
use anden_kernels::kcore::KcoreParams;
use anden_kernels::lcc::LccParams;
use anden_kernels::pagerank::PageRankParams;
use anden_kernels::scc::SccParams;
use anden_kernels::sssp::{Distances, SsspParams};
use anden_kernels::triangles::TriangleParams;
use anden_kernels::wcc::WccParams;

use crate::weighted::on_weighted;
use crate::{Key, Result, View};

/// All methods fail on damage met on the way, on cancellation, and if the graph or the memory budget lacks what the
/// kernel needs. Result arrays are indexed by vertex id.
impl View {
    /// The PageRank of each vertex. Ranks sum to 1. With [`Algorithm::Gap`](anden_kernels::pagerank::Algorithm::Gap)
    /// the sum is smaller if a vertex has no out-edges.
    ///
    /// # Errors
    /// See above; a parameter outside its bounds.
    pub fn pagerank(&self, params: &PageRankParams) -> Result<Vec<f64>> {
        Ok(self.on_all("pagerank", |context, lists| anden_kernels::pagerank::pagerank(context, lists, params))?.scores)
    }

    /// The number of steps from `source` to each vertex; `u32::MAX`: not reached.
    ///
    /// # Errors
    /// See above; the source does not exist.
    pub fn bfs(&self, source: impl Into<Key>) -> Result<Vec<u32>> {
        // Parents would cost another array, and this method returns hops only.
        let params = BfsParams { source: self.vertex(source)?, parents: false };
        Ok(self.on_all("bfs", |context, lists| anden_kernels::bfs::bfs(context, lists, &params))?.hops)
    }

    /// For each vertex, the smallest id in its strongly connected component.
    ///
    /// # Errors
    /// See above.
    pub fn scc(&self) -> Result<Vec<VertexId>> {
        Ok(self.on_all("scc", |context, lists| anden_kernels::scc::scc(context, lists, &SccParams::default()))?.labels)
    }

    /// The coreness of each vertex. Ignores directions, loops and parallel edges.
    ///
    /// # Errors
    /// See above.
    pub fn kcore(&self) -> Result<Vec<u32>> {
        Ok(self
            .on_all("kcore", |context, lists| anden_kernels::kcore::kcore(context, lists, &KcoreParams::default()))?
            .cores)
    }

    /// The community of each vertex: its label, a vertex id, after at most `iterations` rounds of label propagation.
    ///
    /// # Errors
    /// See above.
    pub fn cdlp(&self, iterations: u32) -> Result<Vec<VertexId>> {
        // Ties between labels go to the smallest key, so results do not depend on ids.
        let params = CdlpParams { iterations, order: self.order_of_keys()? };
        Ok(self.on_all("cdlp", |context, lists| anden_kernels::cdlp::cdlp(context, lists, &params))?.labels)
    }

    /// For each vertex, the smallest id in its weakly connected component.
    ///
    /// # Errors
    /// See above.
    pub fn wcc(&self) -> Result<Vec<VertexId>> {
        Ok(self.on_all("wcc", |context, lists| anden_kernels::wcc::wcc(context, lists, &WccParams::default()))?.labels)
    }

    /// The smallest sum of weights from `source` to each vertex; not reached: largest or infinite value. If a weight is
    /// negative, Bellman-Ford finds the sums, as floating numbers.
    ///
    /// # Errors
    /// See above; the source does not exist, or it reaches a cycle of negative weight.
    pub fn sssp(&self, source: impl Into<Key>) -> Result<Distances> {
        // Refused before the lookup of the source and the scan of all weights.
        self.needs_weights("sssp")?;
        let source = self.vertex(source)?;
        let params = SsspParams { source, weights: self.weight_statistics()?, ..SsspParams::default() };
        // Reports why a part cannot be laid out. Cached statistics leave the part unread.
        self.all_lists()?;
        let run = || on_weighted!(self, graph => anden_kernels::sssp::sssp(&self.context(), graph, &params));
        Ok(self.traced("sssp", || self.explained(run()))?.distances)
    }

    /// The betweenness centrality of each vertex, from the shortest paths that start at `sources`. Empty: from all
    /// vertices, which takes a search from each.
    ///
    /// # Errors
    /// See above; a source does not exist.
    pub fn bc(&self, sources: &[Key]) -> Result<Vec<f64>> {
        let given = sources.iter().map(|key| self.vertex(key.clone())).collect::<Result<Vec<_>>>()?;
        let sources = if given.is_empty() { SourceChoice::All } else { SourceChoice::Given(given) };
        let params = BcParams { sources };
        Ok(self.on_all("bc", |context, lists| anden_kernels::bc::bc(context, lists, &params))?.scores)
    }

    /// The number of triangles. Ignores directions, loops and parallel edges.
    ///
    /// # Errors
    /// See above.
    pub fn triangles(&self) -> Result<u64> {
        Ok(self
            .on_all("triangles", |context, lists| {
                anden_kernels::triangles::triangles(context, lists, &TriangleParams::default())
            })?
            .triangles)
    }

    /// For each vertex, the number of triangles that contain it.
    ///
    /// # Errors
    /// See above.
    pub fn triangles_by_vertex(&self) -> Result<Vec<u64>> {
        // Only this method pays for counts by vertex.
        let params = TriangleParams { by_vertex: true, ..TriangleParams::default() };
        let result =
            self.on_all("triangles", |context, lists| anden_kernels::triangles::triangles(context, lists, &params))?;
        Ok(result.by_vertex.unwrap_or_default())
    }

    /// The local clustering coefficient of each vertex, as defined by LDBC Graphalytics.
    ///
    /// # Errors
    /// See above.
    pub fn lcc(&self) -> Result<Vec<f64>> {
        Ok(self
            .on_all("lcc", |context, lists| anden_kernels::lcc::lcc(context, lists, &LccParams::default()))?
            .coefficients)
    }

    /// Runs a kernel in a span of the crate `tracing`. Without a subscriber for details, it costs one load.
    pub(crate) fn traced<T>(&self, kernel: &str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return run();
        }
        let (vertices, edges) = (self.num_vertices(), self.num_edges());
        let _span = tracing::debug_span!("kernel", kernel, view = self.name(), vertices, edges).entered();
        let begin = Instant::now();
        let result = run();
        let (seconds, succeeded) = (begin.elapsed().as_secs_f64(), result.is_ok());
        tracing::debug!(seconds, succeeded, "kernel ended");
        result
    }
}
