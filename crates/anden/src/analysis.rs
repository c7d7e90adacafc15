//! The kernels as methods of a view, for those who know which one they want.
//!
//! The one table of all kernels, with every parameter, is [`Job`](crate::Job).

use base::VertexId;
use kernels::bc::{BcParams, BcSources};
use kernels::bfs::BfsParams;
use kernels::cdlp::CdlpParams;
use kernels::kcore::KcoreParams;
use kernels::lcc::LccParams;
use kernels::pagerank::PageRankParams;
use kernels::scc::SccParams;
use kernels::sssp::{Distances, SsspParams};
use kernels::triangles::TriangleParams;
use kernels::wcc::WccParams;

use crate::weighted::on_weighted;
use crate::{Key, Result, View};

/// All methods fail on damage met on the way, when cancelled, and where the graph or the memory
/// budget does not give what the kernel needs. Results are by vertex id.
impl View {
    /// The PageRank of every vertex. The ranks add up to 1, but to less with
    /// [`Algorithm::Gap`](kernels::pagerank::Algorithm::Gap) where vertices have no out-edges.
    ///
    /// # Errors
    /// See above; a parameter outside its bounds.
    pub fn pagerank(&self, params: &PageRankParams) -> Result<Vec<f64>> {
        Ok(self.on_all(|context, lists| kernels::pagerank::pagerank(context, lists, params))?.scores)
    }

    /// The number of steps from `source`; `u32::MAX`: not reached.
    ///
    /// # Errors
    /// See above; there is no such vertex.
    pub fn bfs(&self, source: impl Into<Key>) -> Result<Vec<u32>> {
        let params = BfsParams { source: self.vertex(source)?, parents: false };
        Ok(self.on_all(|context, lists| kernels::bfs::bfs(context, lists, &params))?.hops)
    }

    /// The smallest id of the strongly connected component.
    ///
    /// # Errors
    /// See above.
    pub fn scc(&self) -> Result<Vec<VertexId>> {
        Ok(self.on_all(|context, lists| kernels::scc::scc(context, lists, &SccParams::default()))?.labels)
    }

    /// The coreness, without regard to directions, loops and parallel edges.
    ///
    /// # Errors
    /// See above.
    pub fn kcore(&self) -> Result<Vec<u32>> {
        Ok(self.on_all(|context, lists| kernels::kcore::kcore(context, lists, &KcoreParams::default()))?.cores)
    }

    /// The community: the label, which is a vertex, after up to `iterations` of label propagation.
    ///
    /// # Errors
    /// See above.
    pub fn cdlp(&self, iterations: u32) -> Result<Vec<VertexId>> {
        let params = CdlpParams { iterations, order: self.order_of_keys()? };
        Ok(self.on_all(|context, lists| kernels::cdlp::cdlp(context, lists, &params))?.labels)
    }

    /// The smallest id of the weakly connected component.
    ///
    /// # Errors
    /// See above.
    pub fn wcc(&self) -> Result<Vec<VertexId>> {
        Ok(self.on_all(|context, lists| kernels::wcc::wcc(context, lists, &WccParams::default()))?.labels)
    }

    /// The least sum of weights from `source`; largest or infinite: not reached.
    ///
    /// # Errors
    /// See above; there is no such vertex, or a weight is negative.
    pub fn sssp(&self, source: impl Into<Key>) -> Result<Distances> {
        self.needs_weights("sssp")?;
        let source = self.vertex(source)?;
        let params = SsspParams { source, weights: Some(self.weight_statistics()?), ..SsspParams::default() };
        self.all_lists()?;
        let result = on_weighted!(self, graph => kernels::sssp::sssp(&self.context(), graph, &params));
        Ok(self.explained(result)?.distances)
    }

    /// The betweenness centrality, as far as paths from `sources` give it.
    ///
    /// # Errors
    /// See above; there is no such vertex.
    pub fn bc(&self, sources: &[Key]) -> Result<Vec<f64>> {
        let sources = sources.iter().map(|key| self.vertex(key.clone())).collect::<Result<_>>()?;
        let params = BcParams { sources: BcSources::Given(sources) };
        Ok(self.on_all(|context, lists| kernels::bc::bc(context, lists, &params))?.scores)
    }

    /// The number of triangles, without regard to directions, loops and parallel edges.
    ///
    /// # Errors
    /// See above.
    pub fn triangles(&self) -> Result<u64> {
        Ok(self
            .on_all(|context, lists| kernels::triangles::triangles(context, lists, &TriangleParams::default()))?
            .triangles)
    }

    /// The number of triangles that each vertex is a corner of.
    ///
    /// # Errors
    /// See above.
    pub fn triangles_by_vertex(&self) -> Result<Vec<u64>> {
        let params = TriangleParams { by_vertex: true, ..TriangleParams::default() };
        let result = self.on_all(|context, lists| kernels::triangles::triangles(context, lists, &params))?;
        Ok(result.by_vertex.unwrap_or_default())
    }

    /// The local clustering coefficient, as Graphalytics defines it.
    ///
    /// # Errors
    /// See above.
    pub fn lcc(&self) -> Result<Vec<f64>> {
        Ok(self.on_all(|context, lists| kernels::lcc::lcc(context, lists, &LccParams::default()))?.coefficients)
    }
}
