//! The kernel `sssp` in the table.

use std::time::Instant;

use anden_kernels::sssp::{DistanceValue, Distances, SsspAlgorithm, SsspParams, SsspResult, sssp, verify};

use super::{JobOutcome, Kernel, Parameter, Parameters, Sources, Value, Values};
use crate::weighted::on_weighted;
use crate::{Result, View};

pub(super) const KERNEL: Kernel = Kernel {
    name: "sssp",
    about: "single-source shortest paths: the smallest sum of weights from a source to each vertex",
    value: "distance",
    parameters: &[Parameter::Source, Parameter::Delta, Parameter::Algorithm, Parameter::Weight],
    algorithms: &["delta-stepping", BELLMAN_FORD],
    excludes: &[(BELLMAN_FORD, Parameter::Delta)],
    needs: Sources::One,
    shows_top: false,
    prepares: |_, _| None,
    run,
};

/// The algorithm that relaxes the edges of all changed vertices in each round.
const BELLMAN_FORD: &str = "bellman-ford";

fn run(view: &View, parameters: &Parameters) -> Result<Box<dyn JobOutcome>> {
    // The copy and the scan of weights happen once a view, so they are timed apart.
    let start = Instant::now();
    let view = parameters.weighted(view)?;
    view.needs_weights(KERNEL.name)?;
    let algorithm = match parameters.algorithm.as_deref() {
        Some(BELLMAN_FORD) => SsspAlgorithm::BellmanFord,
        _ => SsspAlgorithm::DeltaStepping,
    };
    let source = parameters.one_source(&view)?;
    let weights = view.weight_statistics()?;
    let preparation_seconds = start.elapsed().as_secs_f64();
    let params = SsspParams { source, delta: parameters.delta, algorithm, weights, ..SsspParams::default() };
    let result = on_weighted!(view, graph => sssp(&parameters.context(&view), graph, &params));
    let result = view.explained(result)?;
    Ok(Box::new(SsspJobOutcome { params, view, result, preparation_seconds }))
}

struct SsspJobOutcome {
    params: SsspParams,
    /// The view with the weights that were used.
    view: View,
    result: SsspResult,
    /// Seconds to copy property weights and to scan all weights; once for each view.
    preparation_seconds: f64,
}

fn value(distance: DistanceValue) -> Value {
    match distance {
        DistanceValue::Integer(sum) => Value::Integer(sum),
        DistanceValue::Float(sum) => Value::Real(sum),
    }
}

impl JobOutcome for SsspJobOutcome {
    fn summary(&self, view: &View) -> Result<Vec<(&'static str, Value)>> {
        Ok(vec![
            ("source", Value::Key(view.key(self.params.source)?)),
            ("reached", Value::Integer(self.result.reached)),
            ("max_distance", value(self.result.max_distance)),
            ("sum_distance", value(self.result.sum_distance)),
        ])
    }

    fn values(&self) -> Option<Values<'_>> {
        Some(match &self.result.distances {
            Distances::Integer(sums) => Values::Distances(sums.into()),
            Distances::Float(sums) => Values::Reals(sums.into()),
        })
    }

    fn into_values(self: Box<Self>) -> Option<Values<'static>> {
        Some(match self.result.distances {
            Distances::Integer(sums) => Values::Distances(sums.into()),
            Distances::Float(sums) => Values::Reals(sums.into()),
        })
    }

    fn check(&self, _view: &View) -> Result<(), String> {
        // The view of the caller may lack the chosen weights.
        on_weighted!(self.view, graph => verify(graph, &self.params, &self.result))
    }

    fn preparation_seconds(&self) -> Option<f64> {
        Some(self.preparation_seconds)
    }
}
