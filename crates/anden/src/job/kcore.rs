//! The kernel `kcore` in the table.

use anden_kernels::kcore::{KcoreParams, KcoreResult, kcore, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "kcore",
    about: "k-core decomposition: the coreness of each vertex",
    value: "core",
    parameters: &[Parameter::Top],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    shows_top: false,
    prepares: |_, graph| anden_kernels::kcore::stored_form(graph),
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let result = view.explained(kcore(&parameters.context(view), view.lists(), &KcoreParams::default()))?;
    Ok(Box::new(KcoreJobOutcome { result }))
}

struct KcoreJobOutcome {
    result: KcoreResult,
}

impl JobOutcome for KcoreJobOutcome {
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
