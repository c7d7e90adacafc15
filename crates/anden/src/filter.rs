//! Views of a part of the graph, by predicates over properties.

mod evaluate;
mod expression;

use base::bitmap::Bitmap;
use graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use graph::{Weight, WeightType};
use lama::Entries;

use self::expression::Predicate;
use crate::parts::PartName;
use crate::weighted::OWN_WEIGHTS;
use crate::{Error, Result, View};

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
    /// that, kernels run as on a graph that was loaded so. The database keeps the parts that were made last, of snapshots
    /// and of what is committed, in an eighth of the free memory; with a budget it keeps none.
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
        let keeps = |entries: &Entries| -> Result<Vec<bool>> {
            context.progress.check()?;
            match &edges {
                Some(filter) => filter.keeps(entries).map_err(|error| said_of("edges", error)),
                None => Ok(vec![true; entries.len()]),
            }
        };
        let lists = self.all_lists().filtered(&hidden, &keeps, context.pool, context.memory);
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
        passes.iter().enumerate().filter(|(_, passes)| !**passes).for_each(|(vertex, _)| hidden.set(vertex));
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

    fn keeps(&self, entries: &Entries) -> Result<Vec<bool>> {
        let column = |&place: &usize| match place < self.num_properties {
            true => {
                let column = self.view.lists().edge_properties().gather(place, &entries.rows)?;
                column.ok_or_else(|| Error::NotFound("a property of edges is gone".into()))
            }
            false => self.weights(entries),
        };
        let columns = self.predicate.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        self.predicate.passes(&columns, entries.len())
    }

    fn weights(&self, entries: &Entries) -> Result<PropertyColumn> {
        let weight_type = self.view.lists().options().weight_type.unwrap_or(WeightType::U32);
        let mut column = ColumnBuilder::new(type_of_weight(weight_type));
        for &bits in &entries.weights {
            column.push(match weight_type {
                WeightType::U32 => PropertyValue::I64(u32::of_bits(bits).into()),
                WeightType::I64 => PropertyValue::I64(i64::of_bits(bits)),
                WeightType::F32 => PropertyValue::F32(f32::of_bits(bits)),
                WeightType::F64 => PropertyValue::F64(f64::of_bits(bits)),
            })?;
        }
        Ok(column.finish())
    }
}

fn type_of_weight(weight_type: WeightType) -> PropertyType {
    match weight_type {
        WeightType::U32 | WeightType::I64 => PropertyType::I64,
        WeightType::F32 => PropertyType::F32,
        WeightType::F64 => PropertyType::F64,
    }
}
