//! The kernel `bc` in the table.

use anden_kernels::bc::{BcParams, BcResult, bc, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "bc",
    about: "betweenness centrality: how often each vertex lies on shortest paths; parallel edges are paths of their own",
    value: "score",
    parameters: &[Parameter::Source, Parameter::Sources, Parameter::Seed, Parameter::Top],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    shows_top: true,
    prepares: |_, _| None,
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let params = BcParams { sources: parameters.source_choice(view)? };
    let result = view.explained(bc(&parameters.context(view), view.lists(), &params))?;
    Ok(Box::new(BcJobOutcome { params, result }))
}

struct BcJobOutcome {
    params: BcParams,
    result: BcResult,
}

impl JobOutcome for BcJobOutcome {
    fn summary(&self, view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![("sources", Value::Keys(view.keys(&self.result.sources)?))])
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
