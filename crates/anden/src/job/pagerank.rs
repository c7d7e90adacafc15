//! The kernel `pagerank` in the table.

use kernels::pagerank::{Algorithm, PageRankParams, PageRankResult, Variant, pagerank, verify};

use super::{Kernel, Outcome, Parameter, Parameters, Sources, Value, Values, ranking};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "pagerank",
    about: "how much weight the edges give to every vertex; with sources, seen from them",
    parameters: &[
        Parameter::Source,
        Parameter::Iterations,
        Parameter::Tolerance,
        Parameter::Damping,
        Parameter::Algorithm,
        Parameter::Variant,
    ],
    algorithms: &["standard", GAP],
    needs: Sources::Any,
    run,
};

/// The algorithm that drops the mass of vertices without out-edges.
const GAP: &str = "gap";

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn Outcome>> {
    let defaults = PageRankParams::default();
    let params = PageRankParams {
        damping: parameters.damping.unwrap_or(defaults.damping),
        iterations: parameters.iterations,
        tolerance: parameters.tolerance,
        algorithm: if parameters.algorithm.as_deref() == Some(GAP) { Algorithm::Gap } else { Algorithm::Standard },
        variant: match parameters.variant.as_deref() {
            Some("memory") => Variant::Binned,
            Some("disk") if view.has_in_edges() => Variant::Pull,
            Some("disk") => Variant::Push,
            _ => Variant::Auto,
        },
        sources: parameters.sources(view)?,
        ..defaults
    };
    let result = pagerank(&view.context(), view.lists(), &params)?;
    Ok(Box::new(Found { params, result }))
}

struct Found {
    params: PageRankParams,
    result: PageRankResult,
}

impl Outcome for Found {
    fn summary(&self, view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![
            ("iterations", Value::Integer(self.result.iterations.into())),
            ("delta", Value::Real(self.result.delta)),
            ("sum", Value::Real(self.result.sum)),
            ("top", ranking(view, &self.result.scores)?),
        ])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(Values::Reals((&self.result.scores).into()))
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(Values::Reals(self.result.scores.into()))
    }

    fn check(&self, view: &View) -> Result<(), String> {
        verify(view.lists(), &self.params, &self.result)
    }

    fn preparation_seconds(&self) -> Option<f64> {
        Some(self.result.preparation_seconds)
    }
}
