//! The kernel `cdlp` in the table.

use kernels::cdlp::{CdlpParams, CdlpResult, cdlp, verify};

use super::{Kernel, Outcome, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "cdlp",
    about: "communities: vertices that take the label that most of their neighbours have",
    value: "community",
    parameters: &[Parameter::Iterations],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn Outcome>> {
    let defaults = CdlpParams::default();
    let iterations = parameters.iterations.unwrap_or(defaults.iterations);
    // Of labels that are as frequent, the one with the smallest key wins, whatever the ids are.
    let params = CdlpParams { iterations, order: view.order_of_keys()? };
    let result = view.explained(cdlp(&parameters.context(view), view.lists(), &params))?;
    Ok(Box::new(Found { params, result }))
}

struct Found {
    params: CdlpParams,
    result: CdlpResult,
}

impl Outcome for Found {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![
            ("communities", Value::Integer(self.result.communities)),
            ("iterations", Value::Integer(self.result.iterations.into())),
        ])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(Values::Vertices((&self.result.labels).into()))
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(Values::Vertices(self.result.labels.into()))
    }

    fn check(&self, view: &View) -> Result<(), String> {
        verify(view.lists(), &self.params, &self.result)
    }
}
