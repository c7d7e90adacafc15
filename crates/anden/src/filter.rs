//! Filtered views: parts of the graph selected by predicates over properties.

mod evaluate;
mod expression;
mod part;
mod single;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType};
use anden_graph::{Graph, Weight, WeightType};
use anden_kernels::Context;
use anden_snapshots::{Entries, RowSet, SnapshotView};

pub(crate) use self::expression::{MAX_BYTES, Predicate, PredicateColumns};
pub(crate) use self::part::FilteredPart;
pub(crate) use self::single::{SingleLists, TestedLists, on_single};
use crate::weighted::OWN_WEIGHTS;
use crate::{Error, Result};

/// All rows are scanned in sequence if the graph stores at most this many rows for each arc of the view.
const MOST_SCANNED_ROWS: u64 = 4;

/// Says in the message of an error which predicate it is about.
pub(crate) fn said_of(whose: &str, error: Error) -> Error {
    match error {
        Error::InvalidInput(what) => Error::InvalidInput(format!("the predicate over {whose}, {what}").into()),
        error => error,
    }
}

/// What selects a part.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) edges: Option<EdgeFilter>,
    pub(crate) vertices: Option<VertexFilter>,
}

impl Filter {
    /// Parses predicates over the properties of `lists`.
    pub(crate) fn new(lists: &SnapshotView, edges: Option<&str>, vertices: Option<&str>) -> Result<Self> {
        let edges = edges.map(|text| EdgeFilter::new(lists, text)).transpose().map_err(|e| said_of("edges", e))?;
        let vertices = vertices.map(|text| VertexFilter::new(lists, text)).transpose();
        Ok(Self { edges, vertices: vertices.map_err(|e| said_of("vertices", e))? })
    }

    /// Selects the vertices of a set, and the edges between them.
    pub(crate) fn of_set(vertices: Bitmap) -> Self {
        Self { edges: None, vertices: Some(VertexFilter::Set(vertices)) }
    }

    /// Whether the evaluation can fail for some values.
    pub(crate) fn can_fail(&self) -> bool {
        self.edges.as_ref().is_some_and(|edges| edges.0.can_fail())
            || self.vertices.as_ref().is_some_and(VertexFilter::can_fail)
    }
}

/// A choice of vertices.
#[derive(Debug)]
pub(crate) enum VertexFilter {
    /// Those for which a predicate over properties is true.
    Predicate(Predicate),
    /// Those of a set, by id; ids beyond its length are not in the set.
    Set(Bitmap),
}

impl VertexFilter {
    fn new(lists: &SnapshotView, text: &str) -> Result<Self> {
        let columns = lists.properties().schema().iter().collect();
        let predicate = Predicate::parse(text, &PredicateColumns { columns, noun: "property", whose: "vertices" })?;
        Ok(Self::Predicate(predicate))
    }

    fn can_fail(&self) -> bool {
        match self {
            Self::Predicate(predicate) => predicate.can_fail(),
            Self::Set(_) => false,
        }
    }

    /// The positions of the properties that the predicate names.
    pub(crate) fn columns(&self) -> &[usize] {
        match self {
            Self::Predicate(predicate) => &predicate.columns,
            Self::Set(_) => &[],
        }
    }

    /// Marks the vertices of `lists` as hidden that do not pass. A property of `schema` that the lists lack is null for
    /// all vertices.
    pub(crate) fn hide(&self, schema: &PropertySchema, lists: &SnapshotView, hidden: &mut Bitmap) -> Result<()> {
        let (properties, bound) = (lists.properties(), lists.vertex_bound());
        let predicate = match self {
            Self::Predicate(predicate) => predicate,
            Self::Set(set) => {
                (0..bound).filter(|&vertex| !is_in(set, vertex)).for_each(|vertex| hidden.set(vertex));
                return Ok(());
            }
        };
        let column = |&place: &usize| -> Result<PropertyColumn> {
            let property_type = schema.get(place).map_or(PropertyType::String, |(_, property_type)| property_type);
            let column = properties.column(place)?.unwrap_or_else(|| PropertyColumn::nulls(property_type, bound));
            Ok(column.padded(bound).slice(0..bound))
        };
        let columns = predicate.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let passes = predicate.passes(&columns, bound).map_err(|error| said_of("vertices", error))?;
        (!&passes).set_indices().for_each(|vertex| hidden.set(vertex));
        Ok(())
    }

    /// For each vertex, whether it passes.
    pub(crate) fn passing(&self, lists: &SnapshotView, vertices: &[VertexId]) -> Result<Vec<bool>> {
        let properties = lists.properties();
        let predicate = match self {
            Self::Predicate(predicate) => predicate,
            Self::Set(set) => return Ok(vertices.iter().map(|&vertex| is_in(set, vertex as usize)).collect()),
        };
        let column = |&place: &usize| {
            let property_type = properties.schema().get(place).map(|(_, property_type)| property_type);
            // A few vertices do not justify the read of a whole column.
            let mut column = ColumnBuilder::new(property_type.unwrap_or(PropertyType::String));
            for &vertex in vertices {
                column.push(properties.value(place, vertex)?)?;
            }
            Ok(column.finish())
        };
        let columns = predicate.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let passes = predicate.passes(&columns, vertices.len()).map_err(|error| said_of("vertices", error))?;
        Ok(passes.iter().collect())
    }
}

fn is_in(set: &Bitmap, vertex: usize) -> bool {
    vertex < set.len() && set.get(vertex)
}

/// A predicate over edges. The weight is a column after the properties, unless a property is called `weight`.
#[derive(Debug)]
pub(crate) struct EdgeFilter(Predicate);

impl EdgeFilter {
    fn new(lists: &SnapshotView, text: &str) -> Result<Self> {
        let schema = lists.edge_properties().schema();
        // A property called `weight` takes precedence, as in tables of edges.
        let weight = lists.options().weight_type.filter(|_| schema.find(OWN_WEIGHTS).is_none());
        let weight = weight.map(|weight_type| (OWN_WEIGHTS, type_of_weight(weight_type)));
        let columns = schema.iter().chain(weight).collect();
        Ok(Self(Predicate::parse(text, &PredicateColumns { columns, noun: "property", whose: "edges" })?))
    }

    /// The rows that pass, if scanning all rows in sequence is faster than reading the rows of the view one by one.
    pub(crate) fn passing_rows<'a>(&self, context: &Context<'_>, lists: &'a SnapshotView) -> Option<RowSet<'a>> {
        let columns = &self.0.columns;
        let properties = lists.edge_properties();
        // Weights lie beside the arcs and not in rows, so a scan of rows cannot test them.
        let reads_rows = !columns.is_empty() && columns.iter().all(|&place| place < properties.schema().len());
        // If the view has few arcs, reading only their rows is cheaper than a scan of all rows.
        if !reads_rows || properties.num_stored_rows() / MOST_SCANNED_ROWS > lists.num_arcs() {
            return None;
        }
        let test = |values: &[PropertyColumn]| {
            context.progress.check()?;
            self.0.passes(values, values.first().map_or(0, PropertyColumn::len))
        };
        // The scan also tests rows outside the view, which may be damaged or overflow a calculation. If the fault is in
        // the view, the test by entries reports it.
        properties.passing::<Error>(columns, context.pool, &test).ok()
    }

    /// For each entry, whether the predicate is true.
    pub(crate) fn passing(&self, lists: &SnapshotView, entries: &Entries) -> Result<Vec<bool>> {
        let properties = lists.edge_properties();
        let num_properties = properties.schema().len();
        let places: Vec<usize> = self.0.columns.iter().copied().filter(|&place| place < num_properties).collect();
        // One lookup of the rows serves all properties of the predicate.
        let mut gathered = properties.gather(&places, &entries.rows)?.into_iter();
        let column = |&place: &usize| match place < num_properties {
            true => gathered.next().ok_or_else(|| Error::Internal("a property of edges is gone".into())),
            // Only a graph with weights has this column, so the default type is never used.
            false => weight_column(lists.options().weight_type.unwrap_or(WeightType::U32), &entries.weights),
        };
        let columns = self.0.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let passes = self.0.passes(&columns, entries.len()).map_err(|error| said_of("edges", error))?;
        Ok(passes.iter().collect())
    }
}

/// Weights as a property column.
pub(crate) fn weight_column(weight_type: WeightType, bits: &[u64]) -> Result<PropertyColumn> {
    fn bytes<T: bytemuck::NoUninit>(bits: &[u64], value: impl Fn(u64) -> T) -> Vec<u8> {
        bytemuck::cast_slice(&bits.iter().map(|&bits| value(bits)).collect::<Vec<T>>()).to_vec()
    }
    let values = match weight_type {
        // No property has type u32, and i64 holds every value.
        WeightType::U32 => bytes(bits, |bits| i64::from(u32::of_bits(bits))),
        WeightType::I64 => bytes(bits, i64::of_bits),
        WeightType::F32 => bytes(bits, f32::of_bits),
        WeightType::F64 => bytes(bits, f64::of_bits),
    };
    Ok(PropertyColumn::from_fixed_bytes(type_of_weight(weight_type), &values, None)?)
}

/// The property type of a weight.
pub(crate) fn type_of_weight(weight_type: WeightType) -> PropertyType {
    match weight_type {
        WeightType::U32 | WeightType::I64 => PropertyType::I64,
        WeightType::F32 => PropertyType::F32,
        WeightType::F64 => PropertyType::F64,
    }
}
