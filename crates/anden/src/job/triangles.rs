//! The kernel `triangles` in the table.

use kernels::triangles::{TriangleParams, TriangleResult, triangles, verify};

use super::{Kernel, Outcome, Parameters, Sources, Value, Values};
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "triangles",
    about: "the number of sets of three vertices that are joined pairwise",
    parameters: &[],
    algorithms: &[],
    needs: Sources::Any,
    run,
};

fn run(view: &View, _parameters: &Parameters) -> Result<Box<dyn Outcome>> {
    let result = triangles(&view.context(), view.lists(), &TriangleParams::default())?;
    Ok(Box::new(Found { result }))
}

struct Found {
    result: TriangleResult,
}

impl Outcome for Found {
    fn summary(&self, _view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![("triangles", Value::Integer(self.result.triangles))])
    }

    fn values(&self) -> Option<Values<'_>> {
        None
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        None
    }

    fn check(&self, view: &View) -> Result<(), String> {
        verify(view.lists(), &self.result)
    }

    fn preparation_seconds(&self) -> Option<f64> {
        Some(self.result.preparation_seconds)
    }
}
