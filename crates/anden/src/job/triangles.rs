//! The kernel `triangles` in the table.

use anden_kernels::triangles::{TriangleParams, TriangleResult, triangles, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "triangles",
    about: "triangles: the number of triples of vertices that are joined pairwise, in all and by vertex",
    value: "triangles",
    parameters: &[Parameter::Top],
    algorithms: &[],
    excludes: &[],
    needs: Sources::Any,
    shows_top: false,
    prepares: anden_kernels::triangles::stored_form,
    run,
};

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    // Counts by vertex cost extra, so they are made only for callers that want values.
    let params =
        TriangleParams { by_vertex: parameters.values || parameters.top.is_some(), ..TriangleParams::default() };
    let result = view.explained(triangles(&parameters.context(view), view.lists(), &params))?;
    Ok(Box::new(TrianglesJobOutcome { result }))
}

struct TrianglesJobOutcome {
    result: TriangleResult,
}

impl JobOutcome for TrianglesJobOutcome {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![("triangles", Value::Integer(self.result.triangles))])
    }

    fn values(&self) -> Option<Values<'_>> {
        self.result.by_vertex.as_ref().map(|counts| Values::Counts(counts.into()))
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        self.result.by_vertex.map(|counts| Values::Counts(counts.into()))
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
