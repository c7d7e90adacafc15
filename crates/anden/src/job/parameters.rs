//! The parameters of all kernels. Each kernel accepts some of them and refuses the rest.

use crate::{Error, Key, Result, View};
use anden_base::VertexId;
use anden_kernels::{Context, Medium, SourceChoice};

/// Graphs with at most this many vertices use all of them as sources by default, which is exact.
const MAX_EXACT_VERTICES: usize = 1000;
/// Default number of sampled sources in a larger graph.
const DEFAULT_SAMPLE: usize = 16;
/// Default seed of the sample: fixed, so that runs are repeatable.
const SAMPLE_SEED: u64 = 1;

/// The parameters of a job. The kernel chooses a default for each missing one.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// The sources, by key.
    pub source: Vec<Key>,
    /// Number of sampled sources. If the graph has no more vertices, all are sources.
    pub sources: Option<u64>,
    /// Seed of the sample. Equal seeds give equal sources.
    pub seed: Option<u64>,
    /// Number of iterations.
    pub iterations: Option<u32>,
    /// The run stops at a change below this value.
    pub tolerance: Option<f64>,
    /// The share of rank that follows edges.
    pub damping: Option<f64>,
    /// The width of a distance bucket.
    pub delta: Option<f64>,
    /// The algorithm, for kernels with several.
    pub algorithm: Option<String>,
    /// The edge property that holds the weights.
    pub weight: Option<String>,
    /// Return parents in place of distances.
    pub parents: bool,
    /// Number of vertices with the highest values, and of the largest groups, in the summary: `top` has vertices by
    /// descending value, and `sizes` components, communities and core numbers by descending number of vertices. Ties
    /// ascend by key. `None`: ten scores of a kernel that ranks vertices. Triangles are counted by vertex for it.
    pub top: Option<usize>,
    /// The variant for graphs in memory or for graphs on disk. Every kernel accepts it; some have one variant only.
    pub variant: Medium,
    /// Return values by vertex even if they cost extra (triangles). Every kernel accepts it.
    pub values: bool,
}

/// The name of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is documented at the field of `Parameters` that it names")]
pub enum Parameter {
    Source,
    Sources,
    Seed,
    Iterations,
    Tolerance,
    Damping,
    Delta,
    Algorithm,
    Weight,
    Parents,
    Top,
}

impl Parameter {
    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Sources => "sources",
            Self::Seed => "seed",
            Self::Iterations => "iterations",
            Self::Tolerance => "tolerance",
            Self::Damping => "damping",
            Self::Delta => "delta",
            Self::Algorithm => "algorithm",
            Self::Weight => "weight",
            Self::Parents => "parents",
            Self::Top => "top",
        }
    }
}

impl Parameters {
    /// The parameters that are set.
    pub fn given(&self) -> Vec<Parameter> {
        let given = [
            (!self.source.is_empty(), Parameter::Source),
            (self.sources.is_some(), Parameter::Sources),
            (self.seed.is_some(), Parameter::Seed),
            (self.iterations.is_some(), Parameter::Iterations),
            (self.tolerance.is_some(), Parameter::Tolerance),
            (self.damping.is_some(), Parameter::Damping),
            (self.delta.is_some(), Parameter::Delta),
            (self.algorithm.is_some(), Parameter::Algorithm),
            (self.weight.is_some(), Parameter::Weight),
            (self.parents, Parameter::Parents),
            (self.top.is_some(), Parameter::Top),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, parameter)| parameter).collect()
    }

    /// The context of the kernel, with the requested variant.
    pub(super) fn context<'a>(&self, view: &'a View) -> Context<'a> {
        Context { medium: self.variant, ..view.context() }
    }

    /// The sources as vertex ids.
    pub(super) fn sources(&self, view: &View) -> Result<Vec<VertexId>> {
        self.source.iter().map(|key| view.vertex(key.clone())).collect()
    }

    /// The sources of a kernel that searches from several: the given ones, a sample, or all.
    pub(super) fn source_choice(&self, view: &View) -> Result<SourceChoice> {
        let sampled = |count| view.sampled_sources(count, self.seed.unwrap_or(SAMPLE_SEED));
        Ok(match (self.sources(view)?, self.sources) {
            (given, None) if !given.is_empty() => SourceChoice::Given(given),
            // A sample of all vertices is exact, so none is drawn.
            (_, Some(count)) if count >= view.num_vertices() as u64 => view.all_sources()?,
            (_, Some(count)) => sampled(usize::try_from(count).unwrap_or(usize::MAX))?,
            (_, None) if view.num_vertices() <= MAX_EXACT_VERTICES => view.all_sources()?,
            // A search from each vertex of a large graph takes too long for a default.
            (_, None) => sampled(DEFAULT_SAMPLE)?,
        })
    }

    /// The view with the requested weights.
    pub(super) fn weighted(&self, view: &View) -> Result<View> {
        self.weight.as_deref().map_or_else(|| Ok(view.clone()), |name| view.with_weight(name))
    }

    /// The source of a kernel that needs exactly one.
    pub(super) fn one_source(&self, view: &View) -> Result<VertexId> {
        // `Kernel::accept` has required a source, so this error is a safeguard.
        let source = self.source.first().ok_or_else(|| Error::InvalidInput("a source is needed".into()))?;
        view.vertex(source.clone())
    }
}
