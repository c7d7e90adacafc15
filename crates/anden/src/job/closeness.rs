//! The kernel `closeness` in the table.

use anden_kernels::closeness::{ClosenessParams, ClosenessResult, closeness, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Key, Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "closeness",
    about: "closeness centrality: how near the sources are to each vertex; by default all, in large graphs a sample",
    value: "score",
    parameters: &[Parameter::Source, Parameter::Sources, Parameter::Seed, Parameter::Top],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    shows_top: true,
    prepares: |_, _| None,
    run,
};

impl View {
    /// The closeness of each vertex: the inverse of its mean distance from `sources`, times the share of them that
    /// reach it. Empty: from all vertices, which takes a search from each.
    ///
    /// # Errors
    /// Damage, cancellation or too little memory; a source does not exist.
    pub fn closeness(&self, sources: &[Key]) -> Result<Vec<f64>> {
        let given = sources.iter().map(|key| self.vertex(key.clone())).collect::<Result<Vec<_>>>()?;
        let params = match given.is_empty() {
            true => ClosenessParams::default(),
            false => ClosenessParams { sources: anden_kernels::SourceChoice::Given(given) },
        };
        Ok(self.on_all("closeness", |context, lists| closeness(context, lists, &params))?.scores)
    }
}

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    let params = ClosenessParams { sources: parameters.source_choice(view)? };
    let result = view.explained(closeness(&parameters.context(view), view.lists(), &params))?;
    Ok(Box::new(ClosenessJobOutcome { params, result }))
}

struct ClosenessJobOutcome {
    params: ClosenessParams,
    result: ClosenessResult,
}

impl JobOutcome for ClosenessJobOutcome {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![("sources", Value::Integer(self.result.num_sources))])
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
