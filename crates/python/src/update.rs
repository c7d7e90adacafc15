//! Single changes, for batches without reads.

use std::sync::Arc;

use anden::changes::EdgeAction;
use anden::property::NewValue;
use anden::{EdgeId, EdgeWeight, Key};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calls::SignalWatch;
use crate::error::{Result, wrong_type};
use crate::key::key_of;
use crate::value::{value_of, weight_of};

/// One change of the graph, for `Database.submit` and `Database.apply`. Made by the static methods.
///
/// Examples
/// --------
/// >>> import anden
/// >>> db = anden.create(None)
/// >>> db.apply([anden.Update.add_edge(1, 2), anden.Update.remove_vertex(9)])["updates"]
/// 2
#[pyclass(frozen, module = "anden")]
#[derive(Clone)]
pub struct Update(anden::Update);

fn edge_update(
    source: &Bound<'_, PyAny>,
    target: &Bound<'_, PyAny>,
    number: Option<u64>,
    action: EdgeAction,
    whole: impl FnOnce(Key, Key) -> anden::Update,
) -> Result<Update> {
    let (source, target) = (key_of(source)?, key_of(target)?);
    Ok(Update(match number {
        Some(number) => anden::Update::change_edge(EdgeId { source, target, number }, action),
        None => whole(source, target),
    }))
}

#[pymethods]
impl Update {
    /// Add an edge and its missing ends, with a weight if and only if the graph has weights, and with properties.
    #[staticmethod]
    #[pyo3(signature = (source, target, weight=None, **properties))]
    fn add_edge(
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weight: Option<&Bound<'_, PyAny>>,
        properties: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self> {
        let (source, target) = (key_of(source)?, key_of(target)?);
        let weight = weight.map(weight_of).transpose()?;
        let named = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| -> Result<_> {
            let name: String = name.extract()?;
            Ok((Arc::from(name), NewValue::Value(value_of(&value)?)))
        };
        let properties = properties.into_iter().flat_map(|given| given.iter()).map(named).collect::<Result<_>>()?;
        Ok(Self(anden::Update::AddEdge { source, target, weight, properties }))
    }

    /// Set the weight of an edge, which is added if it does not exist; in a multigraph of all edges of the pair, or of
    /// the one with this number.
    #[staticmethod]
    #[pyo3(signature = (source, target, weight, *, number=None))]
    fn set_weight(
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        weight: &Bound<'_, PyAny>,
        number: Option<u64>,
    ) -> Result<Self> {
        let weight: EdgeWeight = weight_of(weight)?;
        edge_update(source, target, number, EdgeAction::SetWeight(weight), |source, target| {
            anden::Update::set_weight(source, target, weight)
        })
    }

    /// Remove an edge if it exists; in a multigraph all edges of the pair, or the one with this number.
    #[staticmethod]
    #[pyo3(signature = (source, target, *, number=None))]
    fn remove_edge(source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>, number: Option<u64>) -> Result<Self> {
        edge_update(source, target, number, EdgeAction::Remove, |source, target| {
            anden::Update::remove_edge(source, target)
        })
    }

    /// Add a vertex if it does not exist.
    #[staticmethod]
    fn add_vertex(vertex: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self(anden::Update::AddVertex(key_of(vertex)?)))
    }

    /// Remove a vertex with its edges and properties, if it exists.
    #[staticmethod]
    fn remove_vertex(vertex: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self(anden::Update::RemoveVertex(key_of(vertex)?)))
    }

    /// Set a property of a vertex, which is added if it does not exist. None removes the value.
    #[staticmethod]
    fn set_vertex(vertex: &Bound<'_, PyAny>, name: &str, value: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self(anden::Update::set_vertex(key_of(vertex)?, name, value_of(value)?)))
    }

    /// Set a property of an existing edge; of several parallel ones, of the newest, or of the one with this number.
    #[staticmethod]
    #[pyo3(signature = (source, target, name, value, *, number=None))]
    fn set_edge(
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        name: &str,
        value: &Bound<'_, PyAny>,
        number: Option<u64>,
    ) -> Result<Self> {
        let value = NewValue::Value(value_of(value)?);
        let action = EdgeAction::SetProperty { name: name.to_owned(), value: value.clone() };
        edge_update(source, target, number, action, |source, target| {
            anden::Update::set_edge(source, target, name, value)
        })
    }

    fn __repr__(&self) -> String {
        format!("<anden.Update {}>", line_of(&self.0))
    }
}

/// An update as a line of a file of updates; values of properties are left out.
fn line_of(update: &anden::Update) -> String {
    use anden::Update as One;
    let action = |action: &EdgeAction| match action {
        EdgeAction::Remove => "-".to_owned(),
        EdgeAction::SetWeight(_) => "=".to_owned(),
        EdgeAction::SetProperty { .. } => "p".to_owned(),
    };
    match update {
        One::AddEdge { source, target, weight: Some(weight), .. } => format!("+ {source} {target} {weight}"),
        One::AddEdge { source, target, .. } => format!("+ {source} {target}"),
        One::SetWeight { source, target, weight } => format!("= {source} {target} {weight}"),
        One::RemoveEdge { source, target } => format!("- {source} {target}"),
        One::ChangeEdge { id, action: what } => {
            format!("{} {} {} #{}", action(what), id.source, id.target, id.number)
        }
        One::AddVertex(vertex) => format!("v+ {vertex}"),
        One::RemoveVertex(vertex) => format!("v- {vertex}"),
        One::SetVertexProperty { vertex, name, .. } => format!("p {vertex} {name}"),
        One::SetEdgeProperty { source, target, name, .. } => format!("p {source} {target} {name}"),
    }
}

/// The updates of an iterable.
pub fn updates_of(value: &Bound<'_, PyAny>) -> Result<Vec<anden::Update>> {
    // An object may claim any length.
    let mut updates = Vec::with_capacity(value.len().unwrap_or(0).min(1 << 16));
    let signals = SignalWatch::default();
    for item in value.try_iter()? {
        let item = item?;
        signals.count(value.py())?;
        match item.cast::<Update>() {
            Ok(update) => updates.push(update.get().0.clone()),
            Err(_) => {
                let (place, kind) = (updates.len(), item.get_type().name()?);
                return Err(wrong_type(format!("updates[{place}] is an anden.Update, not {kind}")));
            }
        }
    }
    Ok(updates)
}
