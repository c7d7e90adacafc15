//! The kernel `wcc` in the table.

use anden_kernels::wcc::{WccParams, WccResult, verify, wcc};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "wcc",
    about: "weakly connected components: edges connect in both directions",
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
    // `Job::run` has laid a part out, so `lists` shows the part and not a failure.
    let result = view.explained(wcc(&parameters.context(view), view.lists(), &WccParams::default()))?;
    Ok(Box::new(WccJobOutcome { result }))
}

struct WccJobOutcome {
    result: WccResult,
}

impl JobOutcome for WccJobOutcome {
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
        verify(view.lists(), &WccParams::default(), &self.result)
    }
}
