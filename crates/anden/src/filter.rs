//! Views of a part of the graph, by predicates over properties.

mod evaluate;
mod expression;
mod part;
mod single;

use base::VertexId;
use base::bitmap::Bitmap;
use graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType};
use graph::{Graph, Weight, WeightType};
use lama::{Entries, RowSet};

use self::expression::Predicate;
pub(crate) use self::part::Part;
pub(crate) use self::single::{SingleLists, TestedLists, on_single};
use crate::weighted::OWN_WEIGHTS;
use crate::{Error, Result, View};

/// All rows are tested in sequence where there are at most this many for each entry of the view.
const MOST_SCANNED_ROWS: u64 = 4;

impl View {
    /// The view of the edges and the vertices for which predicates are true; without a predicate, all stay. Everything
    /// that works on a view works on it: kernels, queries, export.
    ///
    /// Vertex ids and the lengths of results stay as they are. A vertex that is filtered out counts as removed, with its
    /// edges; an edge that is filtered out removes no vertex. As in SQL, only what is *true* passes, not null.
    ///
    /// A predicate is an expression of SQL over the names of properties: comparisons, `AND`, `OR`, `NOT`, `IN`, `BETWEEN`,
    /// `LIKE`, `ILIKE`, `IS NULL`, `+ - * / %`, the bits `& | ^`. Numbers of different types are compared as floating ones
    /// where neither type holds the other's value; text beside a date or a timestamp is read as one. The weight of a
    /// graph with weights is called `weight`. Names that SQL does not take as they are stand in double quotes.
    ///
    /// Cost: nothing is read before something is asked. A question about single vertices or edges tests the edges that it
    /// meets. The first kernel, export or count reads all lists and the columns that the predicates name, and keeps in
    /// memory what is left (4 bytes an entry and side, 4 or 8 more for a weight, 8 for properties; about three times that
    /// while it is made); so does the next question once those before have tested about as many edges as the view has.
    /// After that, everything runs as on a graph that was loaded so. The database keeps the parts of snapshots that were
    /// used last, in an eighth of the free memory; with a budget it keeps none.
    ///
    /// ```no_run
    /// let db = anden::Database::open_read_only("payments.anden")?;
    /// let large = db.view()?.filter(Some("amount > 10000 AND kind = 'wire'"), None)?;
    /// let components = large.wcc()?;
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`], with the character: a predicate that does not parse, names a property that is not there, or
    /// compares types that do not go together. [`Error::InvalidInput`]: a calculation leaves the range of its type or
    /// divides by zero. So that this shows here, a part by a predicate that calculates is laid out at once.
    ///
    /// Methods that read the part fail with [`Error::Memory`], where it is too large for the budget of the session, and on
    /// damage.
    pub fn filter(&self, edges: Option<&str>, vertices: Option<&str>) -> Result<Self> {
        let filter = Filter::new(self, edges, vertices)?;
        let can_fail = filter.can_fail();
        let part = self.with_part(filter, edges, vertices);
        if can_fail {
            part.all_lists()?;
        }
        self.chosen().map_or(Ok(part.clone()), |chosen| part.with_weight(chosen.name()))
    }
}

fn said_of(whose: &str, error: Error) -> Error {
    match error {
        Error::InvalidInput(what) => Error::InvalidInput(format!("the predicate over {whose}, {what}")),
        error => error,
    }
}

/// The predicates over the edges and the vertices of a part.
#[derive(Debug)]
pub(crate) struct Filter {
    edges: Option<EdgeFilter>,
    vertices: Option<VertexFilter>,
}

impl Filter {
    fn new(view: &View, edges: Option<&str>, vertices: Option<&str>) -> Result<Self> {
        let edges = edges.map(|text| EdgeFilter::new(view, text)).transpose().map_err(|e| said_of("edges", e))?;
        let vertices = vertices.map(|text| VertexFilter::new(view, text)).transpose();
        Ok(Self { edges, vertices: vertices.map_err(|e| said_of("vertices", e))? })
    }

    /// Whether a value can make it fail.
    fn can_fail(&self) -> bool {
        let predicates =
            [self.edges.as_ref().map(|edges| &edges.0), self.vertices.as_ref().map(|vertices| &vertices.0)];
        predicates.into_iter().flatten().any(Predicate::can_fail)
    }
}

/// A predicate over vertices.
#[derive(Debug)]
struct VertexFilter(Predicate);

impl VertexFilter {
    fn new(view: &View, text: &str) -> Result<Self> {
        Ok(Self(Predicate::parse(text, view.vertex_schema(), "vertices")?))
    }

    /// Hides all vertices for which the predicate is not true.
    fn hide(&self, view: &View, hidden: &mut Bitmap) -> Result<()> {
        let (schema, bound) = (view.vertex_schema(), view.vertex_bound());
        let name = |place: &usize| schema.get(*place).map_or("", |(name, _)| name);
        let columns = self.0.columns.iter().map(|place| view.vertex_property(name(place)));
        let columns = columns.map(|column| Ok(column?.slice(0..bound))).collect::<Result<Vec<_>>>()?;
        let passes = self.0.passes(&columns, bound).map_err(|error| said_of("vertices", error))?;
        (!&passes).set_indices().for_each(|vertex| hidden.set(vertex));
        Ok(())
    }

    /// For which of some vertices the predicate is true.
    fn passing(&self, lists: &lama::View, vertices: &[VertexId]) -> Result<Vec<bool>> {
        let properties = lists.properties();
        let column = |&place: &usize| {
            let property_type = properties.schema().get(place).map(|(_, property_type)| property_type);
            let mut column = ColumnBuilder::new(property_type.unwrap_or(PropertyType::String));
            for &vertex in vertices {
                column.push(properties.value(place, vertex)?)?;
            }
            Ok(column.finish())
        };
        let columns = self.0.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let passes = self.0.passes(&columns, vertices.len()).map_err(|error| said_of("vertices", error))?;
        Ok(passes.iter().collect())
    }
}

/// A predicate over edges. Behind their properties stands the weight, where there is one and no property has its name.
#[derive(Debug)]
struct EdgeFilter(Predicate);

impl EdgeFilter {
    fn new(view: &View, text: &str) -> Result<Self> {
        let mut schema: PropertySchema = view.edge_schema().clone();
        if let Some(weight_type) = view.stored().options().weight_type
            && schema.find(OWN_WEIGHTS).is_none()
        {
            schema.add(OWN_WEIGHTS.to_owned(), type_of_weight(weight_type))?;
        }
        Ok(Self(Predicate::parse(text, &schema, "edges")?))
    }

    /// The rows for which the predicate is true, where it is faster to test all rows in sequence than those of the view
    /// one by one.
    fn passing_rows<'a>(&self, view: &View, lists: &'a lama::View) -> Option<RowSet<'a>> {
        let columns = &self.0.columns;
        let properties = lists.edge_properties();
        let reads_rows = !columns.is_empty() && columns.iter().all(|&place| place < properties.schema().len());
        if !reads_rows || properties.num_stored_rows() / MOST_SCANNED_ROWS > lists.num_arcs() {
            return None;
        }
        let test = |values: &[PropertyColumn]| {
            view.context().progress.check()?;
            self.0.passes(values, values.first().map_or(0, PropertyColumn::len))
        };
        // Rows that the view does not have may be damaged, or no number for a calculation: such a fault shows again, if it
        // is one of the view.
        properties.passing::<Error>(columns, view.context().pool, &test).ok()
    }

    /// For which of some entries the predicate is true.
    fn passing(&self, lists: &lama::View, entries: &Entries) -> Result<Vec<bool>> {
        let properties = lists.edge_properties();
        let num_properties = properties.schema().len();
        let places: Vec<usize> = self.0.columns.iter().copied().filter(|&place| place < num_properties).collect();
        let mut gathered = properties.gather(&places, &entries.rows)?.into_iter();
        let column = |&place: &usize| match place < num_properties {
            true => gathered.next().ok_or_else(|| Error::NotFound("a property of edges is gone".into())),
            false => weight_column(lists.options().weight_type.unwrap_or(WeightType::U32), &entries.weights),
        };
        let columns = self.0.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let passes = self.0.passes(&columns, entries.len()).map_err(|error| said_of("edges", error))?;
        Ok(passes.iter().collect())
    }
}

/// Weights as a column.
pub(crate) fn weight_column(weight_type: WeightType, bits: &[u64]) -> Result<PropertyColumn> {
    fn bytes<T: bytemuck::NoUninit>(bits: &[u64], value: impl Fn(u64) -> T) -> Vec<u8> {
        bytemuck::cast_slice(&bits.iter().map(|&bits| value(bits)).collect::<Vec<T>>()).to_vec()
    }
    let values = match weight_type {
        WeightType::U32 => bytes(bits, |bits| i64::from(u32::of_bits(bits))),
        WeightType::I64 => bytes(bits, i64::of_bits),
        WeightType::F32 => bytes(bits, f32::of_bits),
        WeightType::F64 => bytes(bits, f64::of_bits),
    };
    Ok(PropertyColumn::from_fixed_bytes(type_of_weight(weight_type), &values, None)?)
}

/// The type of a weight as a column.
pub(crate) fn type_of_weight(weight_type: WeightType) -> PropertyType {
    match weight_type {
        WeightType::U32 | WeightType::I64 => PropertyType::I64,
        WeightType::F32 => PropertyType::F32,
        WeightType::F64 => PropertyType::F64,
    }
}
