//! The kernel `bc` in the table.

use kernels::bc::{BcParams, BcResult, BcSources, bc, verify};

use super::{Kernel, Outcome, Parameter, Parameters, Sources, Value, Values, ranking};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "bc",
    about: "how often every vertex lies on shortest paths (betweenness); parallel edges are paths of their own",
    value: "score",
    parameters: &[Parameter::Source, Parameter::Sources, Parameter::Seed],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    run,
};

/// Up to so many vertices, all of them are sources unless told otherwise: the exact centrality.
const MAX_EXACT_VERTICES: usize = 1000;
/// Of a larger graph, so many are sampled unless told otherwise.
const DEFAULT_SAMPLE: usize = 16;
/// The seed of the sample unless told otherwise: the same graph gives the same sources.
const SAMPLE_SEED: u64 = 1;

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn Outcome>> {
    let sampled = |count| BcSources::Sampled { count, seed: parameters.seed.unwrap_or(SAMPLE_SEED) };
    let sources = match (parameters.sources(view)?, parameters.sources) {
        (given, None) if !given.is_empty() => BcSources::Given(given),
        (_, Some(count)) if count >= view.num_vertices() as u64 => BcSources::All,
        (_, Some(count)) => sampled(usize::try_from(count).unwrap_or(usize::MAX)),
        (_, None) if view.num_vertices() <= MAX_EXACT_VERTICES => BcSources::All,
        (_, None) => sampled(DEFAULT_SAMPLE),
    };
    let params = BcParams { sources };
    let result = view.explained(bc(&parameters.context(view), view.lists(), &params))?;
    Ok(Box::new(Found { params, result }))
}

struct Found {
    params: BcParams,
    result: BcResult,
}

impl Outcome for Found {
    fn summary(&self, view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![
            ("sources", Value::Keys(view.keys(&self.result.sources)?)),
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
}
