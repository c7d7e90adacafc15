//! The kernel `lcc` in the table.

use kernels::lcc::{LccParams, LccResult, lcc, verify};

use super::{Kernel, Outcome, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "lcc",
    about: "how near the neighbours of every vertex come to being all joined (clustering coefficient)",
    value: "coefficient",
    parameters: &[],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn Outcome>> {
    let result = view.explained(lcc(&parameters.context(view), view.lists(), &LccParams::default()))?;
    Ok(Box::new(Found { result }))
}

struct Found {
    result: LccResult,
}

impl Outcome for Found {
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
}
