//! The kernel `kcore` in the table.

use kernels::kcore::{KcoreParams, KcoreResult, kcore, verify};

use super::{Kernel, Outcome, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "kcore",
    about: "how dense the densest part is that every vertex belongs to (coreness)",
    value: "core",
    parameters: &[],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn Outcome>> {
    let result = view.explained(kcore(&parameters.context(view), view.lists(), &KcoreParams::default()))?;
    Ok(Box::new(Found { result }))
}

struct Found {
    result: KcoreResult,
}

impl Outcome for Found {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![("degeneracy", Value::Integer(self.result.degeneracy.into()))])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(Values::Numbers((&self.result.cores).into()))
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(Values::Numbers(self.result.cores.into()))
    }

    fn check(&self, view: &View) -> Result<(), String> {
        verify(view.lists(), &KcoreParams::default(), &self.result)
    }
}
