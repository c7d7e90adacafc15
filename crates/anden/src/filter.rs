//! Views of a part of the graph, by predicates over properties.

mod evaluate;
mod expression;

use base::bitmap::Bitmap;
use graph::property::{PropertyColumn, PropertySchema, PropertyType};
use graph::{Weight, WeightType};
use lama::{Entries, EntryFilter, KeepEntries, RowSet};

use self::expression::Predicate;
use crate::parts::PartName;
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
    /// Cost: reads all lists and the columns that the predicates name, once, and keeps in memory what is left (4 bytes
    /// an entry and side, 4 or 8 more for a weight, 8 for properties; about three times that while it is made). After
    /// that, kernels run as on a graph that was loaded so. The database keeps the parts of snapshots that were used
    /// last, in an eighth of the free memory; with a budget it keeps none.
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
    /// compares types that do not go together; a calculation that leaves the range of its type or divides by zero.
    /// [`Error::Memory`]: the part is too large for the budget of the session. Damage met on the way.
    pub fn filter(&self, edges: Option<&str>, vertices: Option<&str>) -> Result<Self> {
        let part_name = self.part_name().map(|name| name.part(edges, vertices));
        let lists = match part_name.as_ref().and_then(PartName::find) {
            Some(lists) => lists,
            None => {
                let lists = self.filtered(edges, vertices)?;
                part_name.iter().for_each(|name| name.keep(&lists, self.session()));
                lists
            }
        };
        let part = self.with_lists(lists, format!("a part of {}", self.name()), part_name);
        self.chosen().map_or(Ok(part.clone()), |chosen| part.with_weight(chosen.name()))
    }

    /// The lists of a part.
    fn filtered(&self, edges: Option<&str>, vertices: Option<&str>) -> Result<lama::View> {
        let edges = edges.map(|text| EdgeFilter::new(self, text)).transpose().map_err(|e| said_of("edges", e))?;
        let hidden = match vertices {
            Some(text) => self.hidden_vertices(text).map_err(|e| said_of("vertices", e))?,
            None => Bitmap::new(self.vertex_bound()),
        };
        let context = self.context();
        context.progress.stage("filter", None);
        let keeps = edges
            .as_ref()
            .map(|filter| move |entries: &Entries| filter.keeps(entries).map_err(|error| said_of("edges", error)));
        let rows = edges.as_ref().and_then(EdgeFilter::passing_rows);
        context.progress.check()?;
        let keeps = keeps.as_ref().map(|keeps| keeps as &KeepEntries<'_, Error>);
        let filter = EntryFilter { rows: rows.as_ref(), keeps };
        let lists = self.all_lists().filtered(&hidden, &filter, context.pool, context.memory, context.progress);
        lists.map_err(|error| self.session().in_all(error, || self.beside()))
    }

    /// The ids for which a predicate is not true.
    fn hidden_vertices(&self, text: &str) -> Result<Bitmap> {
        let schema = self.vertex_schema();
        let predicate = Predicate::parse(text, schema, "vertices")?;
        let name = |place: &usize| schema.get(*place).map_or("", |(name, _)| name);
        let columns = predicate.columns.iter().map(|place| self.vertex_property(name(place)));
        let bound = self.vertex_bound();
        let columns = columns.map(|column| Ok(column?.slice(0..bound))).collect::<Result<Vec<_>>>()?;
        let passes = predicate.passes(&columns, bound)?;
        let mut hidden = Bitmap::new(bound);
        (!&passes).set_indices().for_each(|vertex| hidden.set(vertex));
        Ok(hidden)
    }
}

fn said_of(whose: &str, error: Error) -> Error {
    match error {
        Error::InvalidInput(what) => Error::InvalidInput(format!("the predicate over {whose}, {what}")),
        error => error,
    }
}

/// A predicate over the edges of a view.
struct EdgeFilter<'a> {
    view: &'a View,
    predicate: Predicate,
    /// The number of properties; behind them stands the weight, where there is one and no property has its name.
    num_properties: usize,
}

impl<'a> EdgeFilter<'a> {
    fn new(view: &'a View, text: &str) -> Result<Self> {
        let known = view.edge_schema();
        let mut schema: PropertySchema = known.clone();
        if let Some(weight_type) = view.lists().options().weight_type
            && known.find(OWN_WEIGHTS).is_none()
        {
            schema.add(OWN_WEIGHTS.to_owned(), type_of_weight(weight_type))?;
        }
        Ok(Self { view, predicate: Predicate::parse(text, &schema, "edges")?, num_properties: known.len() })
    }

    /// The rows for which the predicate is true, where it is faster to test all rows in sequence than those of the view
    /// one by one.
    fn passing_rows(&self) -> Option<RowSet<'_>> {
        let properties = self.view.lists().edge_properties();
        let columns = &self.predicate.columns;
        let reads_rows = !columns.is_empty() && columns.iter().all(|&place| place < self.num_properties);
        if !reads_rows || properties.num_stored_rows() / MOST_SCANNED_ROWS > self.view.num_arcs() {
            return None;
        }
        let test = |values: &[PropertyColumn]| {
            self.view.context().progress.check()?;
            self.predicate.passes(values, values.first().map_or(0, PropertyColumn::len))
        };
        // Rows that the view does not have may be damaged, or no number for a calculation: such a fault shows again, if it
        // is one of the view.
        properties.passing::<Error>(columns, self.view.context().pool, &test).ok()
    }

    fn keeps(&self, entries: &Entries) -> Result<Vec<bool>> {
        let properties = self.view.lists().edge_properties();
        let places: Vec<usize> =
            self.predicate.columns.iter().copied().filter(|&place| place < self.num_properties).collect();
        let mut gathered = properties.gather(&places, &entries.rows)?.into_iter();
        let column = |&place: &usize| match place < self.num_properties {
            true => gathered.next().ok_or_else(|| Error::NotFound("a property of edges is gone".into())),
            false => self.weights(entries),
        };
        let columns = self.predicate.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(self.predicate.passes(&columns, entries.len())?.iter().collect())
    }

    fn weights(&self, entries: &Entries) -> Result<PropertyColumn> {
        weight_column(self.view.lists().options().weight_type.unwrap_or(WeightType::U32), &entries.weights)
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
