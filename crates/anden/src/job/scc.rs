//! The kernel `scc` in the table.

use anden_kernels::scc::{SccParams, SccResult, scc, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "scc",
    about: "strongly connected components: paths lead from each vertex to every other one",
    value: "component",
    parameters: &[Parameter::Top],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    shows_top: false,
    prepares: |_, _| None,
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let result = view.explained(scc(&parameters.context(view), view.lists(), &SccParams::default()))?;
    Ok(Box::new(SccJobOutcome { result }))
}

struct SccJobOutcome {
    result: SccResult,
}

impl JobOutcome for SccJobOutcome {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![
            ("components", Value::Integer(self.result.components)),
            ("largest", Value::Integer(self.result.largest)),
        ])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(Values::Vertices((&self.result.labels).into()))
    }

    fn values_by_key(&self, view: &View) -> Result<Option<Values<'_>>> {
        Ok(Some(Values::Vertices(view.components_by_key(&self.result.labels)?)))
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(Values::Vertices(self.result.labels.into()))
    }

    fn check(&self, view: &View) -> Result<(), String> {
        verify(view.lists(), &SccParams::default(), &self.result)
    }
}
