//! The parameters of all kernels together. Each kernel takes some of them and refuses the rest.

use crate::{Error, Key, Result, View};
use base::VertexId;
use kernels::{Context, Medium};

/// What a job may be told; everything that is not given is chosen by the kernel.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// Where to start.
    pub source: Vec<Key>,
    /// How many sources to sample; as many as there are vertices or more: all of them.
    pub sources: Option<u64>,
    /// What the sample is drawn by: the same seed gives the same sources.
    pub seed: Option<u64>,
    /// How many iterations to make.
    pub iterations: Option<u32>,
    /// When to stop: at a smaller change.
    pub tolerance: Option<f64>,
    /// The share of rank that follows edges.
    pub damping: Option<f64>,
    /// The width of a bucket of distances.
    pub delta: Option<f64>,
    /// Which algorithm, where there are several.
    pub algorithm: Option<String>,
    /// The edge property that holds the weights.
    pub weight: Option<String>,
    /// Whether parents are wanted in place of distances.
    pub parents: bool,
    /// Whether to take the way that suits a graph in memory, or the one for a graph on a disk, wherever it is. Every
    /// kernel takes it; some have one way only.
    pub variant: Medium,
    /// Whether the values by vertex are wanted where they cost extra (triangles). Every kernel takes it.
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
}

impl Parameter {
    /// What users call it.
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
        }
    }
}

impl Parameters {
    /// Those that are given.
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
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, parameter)| parameter).collect()
    }

    /// What a kernel works with beside the view.
    pub(super) fn context<'a>(&self, view: &'a View) -> Context<'a> {
        Context { medium: self.variant, ..view.context() }
    }

    /// The sources as ids.
    pub(super) fn sources(&self, view: &View) -> Result<Vec<VertexId>> {
        self.source.iter().map(|key| view.vertex(key.clone())).collect()
    }

    /// The view with the weights that the kernel is to use.
    pub(super) fn weighted(&self, view: &View) -> Result<View> {
        self.weight.as_deref().map_or_else(|| Ok(view.clone()), |name| view.with_weight(name))
    }

    /// The source of a kernel that needs one.
    pub(super) fn one_source(&self, view: &View) -> Result<VertexId> {
        let source = self.source.first().ok_or_else(|| Error::InvalidInput("a source is needed".into()))?;
        view.vertex(source.clone())
    }
}
