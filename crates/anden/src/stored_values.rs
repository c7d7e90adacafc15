//! Results of kernels as vertex properties.

use anden_base::VertexId;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertyType, PropertyValue};

use crate::changes::AppendReport;
use crate::job::Values;
use crate::load::{ArrowInput, InputPath, SourceOptions, WantedProperties};
use crate::property::KeyRef;
use crate::tables::keyed_batch;
use crate::{AppendOptions, Database, Error, KeyScheme, Result, View};

/// Bytes of a vertex while its value is stored: its key, the value, and the place in the order.
const BYTES_EACH: u64 = 24;

impl Database {
    /// Stores a value of each vertex of a view as a vertex property, in a new snapshot. `view` is the view that the
    /// values belong to, of this database.
    ///
    /// Whole numbers become `i64`, or `u64` if one needs all 64 bits; components, communities and parents are keys. A
    /// vertex without a value, for example one that a search does not reach, has null afterwards. Vertices that the view
    /// lacks keep their value; vertices of the view that were removed since get none.
    ///
    /// ```
    /// use anden::{Database, Job, Options, Parameters, Update};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// db.apply(&[Update::add_edge(1, 2), Update::AddVertex(3.into())])?;
    /// let view = db.view()?;
    /// let output = view.run(&Job::new("wcc", Parameters::default())?)?;
    /// db.store_values(&view, "component", &output.values_by_key(&view)?.unwrap())?;
    /// assert_eq!(db.view()?.find_vertices("component", 1_i64)?, [0, 1]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: the name is not valid, the property has another type, or the view is of another
    /// database. The database is open for reading only; the memory budget is too small; errors of the disk;
    /// cancellation. The database is then unchanged.
    pub fn store_values(&self, view: &View, name: &str, values: &Values<'_>) -> Result<AppendReport> {
        let present = self.vertices_in_both(view)?;
        self.session().require_writer("storing values", BYTES_EACH * present.len() as u64)?;
        let column = value_column(view, values, &present)?;
        let known = self.view()?.vertex_schema().iter().find(|(known, _)| *known == name).map(|(_, known)| known);
        if let Some(known) = known.filter(|&known| known != column.property_type()) {
            let found = column.property_type();
            let what = format!(
                "cannot store values of type {found}: the property {name:?} is of type {known}; choose another name"
            );
            return Err(Error::InvalidInput(what.into()));
        }
        // The key column must not have the name of the property.
        let key = if name == "key" { "vertex" } else { "key" };
        let batch = keyed_batch(view, key, &present, (name, &column))?;
        let rows = ArrowInput::new(format!("the values of {name}"), batch.schema(), vec![batch])?;
        let source = SourceOptions {
            vertices: vec![InputPath::Arrow(rows).into()],
            // A graph with string keys may have an empty one.
            empty_ids: self.options().keys == KeyScheme::String,
            vertex_column: Some(key.to_owned()),
            vertex_properties: WantedProperties::Named(vec![name.to_owned()]),
            ..SourceOptions::default()
        };
        self.append_files(&[], &AppendOptions { source, ..AppendOptions::default() })
    }

    /// The vertices of a view that still exist, in ascending order of keys.
    fn vertices_in_both(&self, view: &View) -> Result<Vec<VertexId>> {
        let now = self.view()?;
        let mut present = view.vertices_by_key()?;
        present.retain(|&vertex| (vertex as usize) < now.vertex_bound() && now.is_live(vertex));
        for &vertex in &present {
            // Ids never change, so another key means another database.
            if view.key_ref(vertex)? != now.key_ref(vertex)? {
                return Err(Error::InvalidInput("cannot store values: the view belongs to another database".into()));
            }
        }
        Ok(present)
    }
}

/// The values of vertices as a column.
fn value_column(view: &View, values: &Values<'_>, vertices: &[VertexId]) -> Result<PropertyColumn> {
    // `u32::MAX` and `u64::MAX` are the markers of vertices without a value.
    let short = |number: u32| Some(number).filter(|&number| number != u32::MAX).map(u64::from);
    let numbers: Vec<Option<u64>> = match values {
        Values::Hops(hops) => vertices.iter().map(|&vertex| short(hops[vertex as usize])).collect(),
        Values::Numbers(numbers) => vertices.iter().map(|&vertex| Some(numbers[vertex as usize].into())).collect(),
        Values::Counts(counts) => vertices.iter().map(|&vertex| Some(counts[vertex as usize])).collect(),
        Values::Distances(sums) => {
            vertices.iter().map(|&vertex| Some(sums[vertex as usize]).filter(|&sum| sum != u64::MAX)).collect()
        }
        Values::Reals(reals) => {
            // Infinity marks a vertex that a search does not reach.
            let value = |&vertex: &VertexId| Some(reals[vertex as usize]).filter(|&real| real != f64::INFINITY);
            return column(PropertyType::F64, vertices.iter().map(|vertex| value(vertex).map(PropertyValue::F64)));
        }
        Values::Vertices(names) => {
            let key = |&vertex: &VertexId| match names[vertex as usize] {
                u32::MAX => Ok(None),
                name => view.key_ref(name).map(Some),
            };
            let keys = vertices.iter().map(key).collect::<Result<Vec<_>>>()?;
            if view.options().keys == KeyScheme::String {
                let texts = keys.iter().map(|key| match *key {
                    Some(KeyRef::String(text)) => Some(PropertyValue::String(text)),
                    _ => None,
                });
                return column(PropertyType::String, texts);
            }
            let number = |key: Option<KeyRef<'_>>| match key {
                Some(KeyRef::Integer(number)) => Some(number),
                _ => None,
            };
            keys.into_iter().map(number).collect()
        }
    };
    match numbers.iter().flatten().any(|&number| i64::try_from(number).is_err()) {
        true => column(PropertyType::U64, numbers.iter().map(|number| number.map(PropertyValue::U64))),
        false => column(PropertyType::I64, numbers.iter().map(|number| number.map(|n| PropertyValue::I64(n as i64)))),
    }
}

fn column<'a>(
    property_type: PropertyType,
    values: impl Iterator<Item = Option<PropertyValue<'a>>>,
) -> Result<PropertyColumn> {
    let mut column = ColumnBuilder::new(property_type);
    for value in values {
        column.push(value.unwrap_or(PropertyValue::Null))?;
    }
    Ok(column.finish())
}
