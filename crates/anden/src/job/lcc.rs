//! The kernel `lcc` in the table.

use anden_kernels::lcc::{LccParams, LccResult, lcc, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "lcc",
    about: "local clustering coefficient: the share of pairs of a vertex's neighbors that are joined",
    value: "coefficient",
    parameters: &[Parameter::Top],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    shows_top: false,
    prepares: |_, graph| Some(anden_kernels::lcc::stored_form(graph)),
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let result = view.explained(lcc(&parameters.context(view), view.lists(), &LccParams::default()))?;
    Ok(Box::new(LccJobOutcome { result }))
}

struct LccJobOutcome {
    result: LccResult,
}

impl JobOutcome for LccJobOutcome {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![("mean", Value::Real(self.result.mean))])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(Values::Reals((&self.result.coefficients).into()))
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(Values::Reals(self.result.coefficients.into()))
    }

    fn check(&self, view: &View) -> Result<(), String> {
        verify(view.lists(), &self.result)
    }

    fn preparation_seconds(&self) -> Option<f64> {
        Some(self.result.preparation_seconds)
    }

    fn was_prepared(&self) -> Option<bool> {
        Some(self.result.was_prepared)
    }
}
