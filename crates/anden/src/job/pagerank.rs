//! The kernel `pagerank` in the table.

use anden_kernels::pagerank::{
    Algorithm, PageRankParams, PageRankResult, pagerank, verify, verify_weighted, weighted_pagerank,
};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::weighted::on_weighted;
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "pagerank",
    about: "PageRank: the influence of each vertex; with sources, personalized PageRank",
    value: "score",
    parameters: &[
        Parameter::Source,
        Parameter::Iterations,
        Parameter::Tolerance,
        Parameter::Damping,
        Parameter::Algorithm,
        Parameter::Weight,
        Parameter::Top,
    ],
    algorithms: &["standard", GAP],
    excludes: &[],
    needs: Sources::Any,
    shows_top: true,
    prepares: |_, graph| anden_kernels::pagerank::stored_form(graph),
    run,
};

/// The algorithm that drops the rank of vertices without out-edges.
const GAP: &str = "gap";

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let defaults = PageRankParams::default();
    let params = PageRankParams {
        damping: parameters.damping.unwrap_or(defaults.damping),
        iterations: parameters.iterations,
        tolerance: parameters.tolerance,
        algorithm: if parameters.algorithm.as_deref() == Some(GAP) { Algorithm::Gap } else { Algorithm::Standard },
        sources: parameters.sources(view)?,
        ..defaults
    };
    // Weights of the graph itself count only on request.
    if parameters.weight.is_none() {
        let result = view.explained(pagerank(&parameters.context(view), view.lists(), &params))?;
        return Ok(Box::new(PageRankJobOutcome { params, weighted: None, result }));
    }
    let view = parameters.weighted(view)?;
    let result = on_weighted!(view, graph => weighted_pagerank(&parameters.context(&view), graph, &params));
    let result = view.explained(result)?;
    Ok(Box::new(PageRankJobOutcome { params, weighted: Some(view), result }))
}

struct PageRankJobOutcome {
    params: PageRankParams,
    /// The view with the weights, in a weighted run.
    weighted: Option<View>,
    result: PageRankResult,
}

impl JobOutcome for PageRankJobOutcome {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![
            ("iterations", Value::Integer(self.result.iterations.into())),
            ("delta", Value::Real(self.result.delta)),
            ("sum", Value::Real(self.result.sum)),
        ])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(Values::Reals((&self.result.scores).into()))
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(Values::Reals(self.result.scores.into()))
    }

    fn check(&self, view: &View) -> Result<(), String> {
        match &self.weighted {
            Some(view) => on_weighted!(view, graph => verify_weighted(graph, &self.params, &self.result)),
            None => verify(view.lists(), &self.params, &self.result),
        }
    }

    fn preparation_seconds(&self) -> Option<f64> {
        Some(self.result.preparation_seconds)
    }

    fn was_prepared(&self) -> Option<bool> {
        Some(self.result.was_prepared)
    }
}
