//! The kernel `bfs` in the table.

use anden_kernels::bfs::{BfsParams, BfsResult, bfs, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "bfs",
    about: "breadth-first search: the number of hops from a source to each vertex",
    value: "distance",
    parameters: &[Parameter::Source, Parameter::Parents],
    algorithms: &[],
    excludes: &[],
    needs: Sources::One,
    shows_top: false,
    prepares: |_, _| None,
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let params = BfsParams { source: parameters.one_source(view)?, parents: parameters.parents };
    let result = view.explained(bfs(&parameters.context(view), view.lists(), &params))?;
    Ok(Box::new(BfsJobOutcome { params, result }))
}

struct BfsJobOutcome {
    params: BfsParams,
    result: BfsResult,
}

impl JobOutcome for BfsJobOutcome {
    fn summary(&self, view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![
            ("source", Value::Key(view.key(self.params.source)?)),
            ("reached", Value::Integer(self.result.reached)),
            ("depth", Value::Integer(self.result.depth.into())),
        ])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(match &self.result.parents {
            Some(parents) => Values::Vertices(parents.into()),
            None => Values::Hops((&self.result.hops).into()),
        })
    }

    fn values_by_key(&self, view: &View) -> Result<Option<Values<'_>>> {
        match &self.result.parents {
            Some(parents) => Ok(Some(Values::Vertices(view.parents_by_key(&self.result.hops, parents)?))),
            None => Ok(self.values()),
        }
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(match self.result.parents {
            Some(parents) => Values::Vertices(parents.into()),
            None => Values::Hops(self.result.hops.into()),
        })
    }

    fn check(&self, view: &View) -> Result<(), String> {
        verify(view.lists(), &self.params, &self.result)
    }
}
