//! The kernel `cdlp` in the table.

use anden_kernels::cdlp::{CdlpParams, CdlpResult, cdlp, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "cdlp",
    about: "communities by label propagation: each vertex takes the most frequent label of its neighbors",
    value: "community",
    parameters: &[Parameter::Iterations, Parameter::Top],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    shows_top: false,
    prepares: |_, graph| anden_kernels::cdlp::stored_form(graph),
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let defaults = CdlpParams::default();
    let iterations = parameters.iterations.unwrap_or(defaults.iterations);
    // Ties between labels go to the smallest key, so that results do not depend on ids.
    let params = CdlpParams { iterations, order: view.order_of_keys()? };
    let result = view.explained(cdlp(&parameters.context(view), view.lists(), &params))?;
    Ok(Box::new(CdlpJobOutcome { params, result }))
}

struct CdlpJobOutcome {
    params: CdlpParams,
    result: CdlpResult,
}

impl JobOutcome for CdlpJobOutcome {
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
