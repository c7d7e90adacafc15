//! Edges one after the other, with their properties.

use std::sync::Arc;

use super::batches::{BatchRows, Batches};
use crate::{EdgeId, EdgeWeight, Error, Key, OwnedValue, Result, View};

/// An edge of a [`View`], with its properties; see [`View::iter_edges`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredEdge {
    /// The source; in an undirected graph, the end with the smaller id.
    pub source: Key,
    /// The target.
    pub target: Key,
    /// The weight, if the graph has weights.
    pub weight: Option<EdgeWeight>,
    /// In a multigraph, the lasting number of the edge among those of its ends.
    pub number: Option<u64>,
    /// The names of all edge properties. All edges share them.
    names: Arc<[String]>,
    /// A value for each name.
    values: Vec<OwnedValue>,
}

impl StoredEdge {
    /// The value of a property; `None` if the edge has none.
    pub fn get(&self, name: &str) -> Option<&OwnedValue> {
        self.properties().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Names and values of the properties that are not null, in the order of the schema.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &OwnedValue)> {
        let all = self.names.iter().map(String::as_str).zip(&self.values);
        all.filter(|(_, value)| **value != OwnedValue::Null)
    }

    /// The lasting name of the edge in a multigraph.
    pub fn id(&self) -> Option<EdgeId> {
        Some(EdgeId { source: self.source.clone(), target: self.target.clone(), number: self.number? })
    }
}

/// An iterator over the edges of a [`View`]; see [`View::iter_edges`].
#[derive(Debug)]
pub struct EdgeIter<'a> {
    rows: BatchRows<'a>,
    names: Arc<[String]>,
    has_weight: bool,
    has_number: bool,
}

impl View {
    /// Iterates over all edges with their weights and properties, in storage order. An undirected edge comes once.
    ///
    /// Cost: reads all out-lists and all edge properties, in batches that all workers read in parallel.
    /// [`edges`](Self::edges) reads chosen columns only, which is faster if there are many.
    ///
    /// ```
    /// use anden::{Database, Options, OwnedValue, Update};
    ///
    /// let db = Database::in_memory(Options { edge_properties: true, ..Options::default() })?;
    /// db.apply(&[Update::add_edge_with(1, 2, [("amount", 5_i64)]), Update::add_edge(2, 3)])?;
    /// let view = db.view()?;
    /// for edge in view.iter_edges()? {
    ///     let edge = edge?;
    ///     match edge.get("amount") {
    ///         Some(amount) => println!("{} owes {} {amount:?}", edge.source, edge.target),
    ///         None => println!("{} knows {}", edge.source, edge.target),
    ///     }
    /// }
    /// let amounts = view.iter_edges()?.filter_map(|edge| edge.ok()?.get("amount").cloned());
    /// assert_eq!(amounts.collect::<Vec<_>>(), [OwnedValue::I64(5)]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Memory`]: the budget is too small for one batch. An item is an error on damage and on cancellation, and
    /// the last one.
    pub fn iter_edges(&self) -> Result<EdgeIter<'_>> {
        let options = self.stored().options();
        Ok(EdgeIter {
            rows: Batches::of_whole_edges(self)?.rows(),
            // Shared by all edges, because a copy of the names would outweigh most values.
            names: self.edge_schema().iter().map(|(name, _)| name.to_owned()).collect(),
            has_weight: options.weight_type.is_some(),
            has_number: options.multigraph,
        })
    }
}

impl EdgeIter<'_> {
    /// The edge of a row: ends, weight, number, then the properties.
    fn edge(&self, row: Vec<OwnedValue>) -> Option<StoredEdge> {
        // `of_whole_edges` fixes the order of the columns.
        let mut values = row.into_iter();
        let source = key(values.next()?)?;
        let target = key(values.next()?)?;
        let weight = match self.has_weight {
            true => Some(weight(&values.next()?)?),
            false => None,
        };
        let number = match self.has_number.then(|| values.next()) {
            Some(Some(OwnedValue::U64(number))) => Some(number),
            Some(_) => return None,
            None => None,
        };
        Some(StoredEdge { source, target, weight, number, names: Arc::clone(&self.names), values: values.collect() })
    }
}

impl Iterator for EdgeIter<'_> {
    type Item = Result<StoredEdge>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(row.and_then(|row| self.edge(row).ok_or_else(|| Error::Internal("an edge lacks a column".into()))))
    }
}

fn key(value: OwnedValue) -> Option<Key> {
    match value {
        OwnedValue::U64(key) => Some(Key::Integer(key)),
        OwnedValue::String(key) => Some(Key::String(key)),
        _ => None,
    }
}

fn weight(value: &OwnedValue) -> Option<EdgeWeight> {
    match *value {
        // Weights of type u32 arrive as i64, because no property has type u32.
        OwnedValue::I64(weight) => Some(EdgeWeight::Integer(weight)),
        OwnedValue::F32(weight) => Some(EdgeWeight::Real(weight.into())),
        OwnedValue::F64(weight) => Some(EdgeWeight::Real(weight)),
        _ => None,
    }
}
