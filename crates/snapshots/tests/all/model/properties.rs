//! Properties of vertices and edges, in memory.

use std::collections::BTreeMap;

use anden_base::VertexId;
use anden_graph::Graph;
use anden_graph::property::{ColumnBuilder, PropertyColumn, PropertySchema, PropertyType, PropertyValue};
use anden_snapshots::{PropertyChanges, Result, SnapshotView, StoreBuilder};
use anden_testkit::Random;

use super::past::below;

/// A value that is not null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Boolean(bool),
    I64(i64),
    /// The floats are stored as bits.
    U64(u64),
    F32(u32),
    F64(u64),
    Date(i32),
    Timestamp(i64),
    String(String),
    Bytes(Vec<u8>),
}

impl Value {
    fn random(property_type: PropertyType, random: &mut Random) -> Self {
        let number = below(random, 7) as i64 - 3;
        let text = "ß\u{1f600}x".repeat(below(random, 4));
        match property_type {
            PropertyType::Boolean => Self::Boolean(number > 0),
            PropertyType::I64 => Self::I64(number << below(random, 60)),
            PropertyType::U64 => Self::U64(number as u64),
            PropertyType::F32 => Self::F32((number as f32 / 3.0).to_bits()),
            PropertyType::F64 => Self::F64((number as f64 / 3.0).to_bits()),
            PropertyType::Date => Self::Date(number as i32 * 10_000),
            PropertyType::Timestamp => Self::Timestamp(number * 86_400_000_000_000),
            PropertyType::String | PropertyType::List(_) => Self::String(text),
            PropertyType::Bytes => Self::Bytes(text.into_bytes()),
        }
    }

    fn get(&self) -> PropertyValue<'_> {
        match self {
            Self::Boolean(value) => PropertyValue::Boolean(*value),
            Self::I64(value) => PropertyValue::I64(*value),
            Self::U64(value) => PropertyValue::U64(*value),
            Self::F32(bits) => PropertyValue::F32(f32::from_bits(*bits)),
            Self::F64(bits) => PropertyValue::F64(f64::from_bits(*bits)),
            Self::Date(value) => PropertyValue::Date(*value),
            Self::Timestamp(value) => PropertyValue::Timestamp(*value),
            Self::String(value) => PropertyValue::String(value),
            Self::Bytes(value) => PropertyValue::Bytes(value),
        }
    }
}

/// A type. Each second column of strings or numbers holds lists.
pub fn random_type(random: &mut Random, place: usize) -> PropertyType {
    let (property_type, _) = PropertyType::ALL[below(random, PropertyType::ALL.len())];
    match property_type {
        PropertyType::String | PropertyType::I64 if place % 2 == 1 => property_type.list().unwrap(),
        _ => property_type,
    }
}

/// The properties of the vertices of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    pub schema: Vec<(String, PropertyType)>,
    values: BTreeMap<(usize, VertexId), Value>,
}

impl Properties {
    /// Adds a property without values.
    pub fn add(&mut self, random: &mut Random) {
        let property_type = random_type(random, self.schema.len());
        self.schema.push((format!("{property_type} {}", self.schema.len()), property_type));
    }

    /// Sets or removes a random value of a vertex.
    pub fn set(&mut self, vertex: VertexId, random: &mut Random) {
        if self.schema.is_empty() {
            return;
        }
        let column = below(random, self.schema.len());
        if below(random, 4) == 0 {
            self.values.remove(&(column, vertex));
        } else {
            self.values.insert((column, vertex), Value::random(self.schema[column].1, random));
        }
    }

    pub fn forget(&mut self, vertex: VertexId) {
        self.values.retain(|&(_, other), _| other != vertex);
    }

    fn get(&self, column: usize, vertex: VertexId) -> PropertyValue<'_> {
        self.values.get(&(column, vertex)).map_or(PropertyValue::Null, Value::get)
    }

    fn column(&self, column: usize, num_rows: usize) -> PropertyColumn {
        let mut values = ColumnBuilder::new(self.schema[column].1);
        (0..num_rows).for_each(|vertex| values.push(self.get(column, vertex as VertexId)).unwrap());
        values.finish()
    }

    /// The changes from `old` to these. Either of the two may have properties that the other lacks.
    pub fn changes_from(&self, old: &Self) -> Vec<PropertyChanges> {
        let num_columns = self.schema.len().max(old.schema.len());
        let mut vertices: Vec<VertexId> = self.values.keys().chain(old.values.keys()).map(|&(_, v)| v).collect();
        vertices.sort_unstable();
        vertices.dedup();
        let changes = (0..num_columns).map(|column| {
            let mut changes = PropertyChanges::new(column as u32);
            vertices.iter().for_each(|&vertex| changes.push(vertex, self.get(column, vertex), old.get(column, vertex)));
            changes
        });
        changes.filter(|changes| !changes.is_empty()).collect()
    }

    pub fn write(&self, builder: &StoreBuilder) -> Result<()> {
        for (column, (name, declared)) in self.schema.iter().enumerate() {
            let num_rows = self.values.keys().filter(|key| key.0 == column).map(|key| key.1 as usize + 1).max();
            builder.add_vertex_property(name, *declared, &self.column(column, num_rows.unwrap_or(0)))?;
        }
        Ok(())
    }

    /// Compares the view with these, by column and by value.
    pub fn compare(&self, view: &SnapshotView) -> Result<()> {
        let found = view.properties();
        let schema: Vec<_> = found.schema().iter().map(|(name, of)| (name.to_owned(), of)).collect();
        assert_eq!(schema, self.schema);
        for column in 0..schema.len() {
            let expected = self.column(column, view.vertex_bound());
            assert_eq!(found.column(column)?, Some(expected));
            for vertex in 0..view.vertex_bound() as VertexId {
                assert_eq!(found.value(column, vertex)?, self.get(column, vertex), "{column} {vertex}");
            }
            self.compare_found(view, column)?;
            assert!(found.value(column, view.vertex_bound() as VertexId)?.is_null());
        }
        assert!(found.column(schema.len())?.is_none());
        Ok(())
    }
}

impl Properties {
    /// Requires that a search for each value, and for an absent one, finds the right vertices.
    fn compare_found(&self, view: &SnapshotView, column: usize) -> Result<()> {
        let values = self.values.iter().filter(|((of, _), _)| *of == column).map(|(_, value)| value);
        let absent = Value::Bytes(b"no vertex has this".to_vec());
        for value in values.chain([&absent]) {
            let has_it = (0..view.vertex_bound() as VertexId).filter(|&vertex| self.get(column, vertex) == value.get());
            let expected: Vec<VertexId> = has_it.collect();
            assert_eq!(view.properties().find(column, value.get())?, expected, "column {column}: {value:?}");
        }
        assert!(view.properties().find(column, PropertyValue::Null)?.is_empty());
        Ok(())
    }
}

/// The properties of all edges that a graph ever had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub schema: Vec<(String, PropertyType)>,
    /// The values by row, then by property. Younger properties of older rows are null.
    rows: Vec<Vec<Option<Value>>>,
    /// The first row of the edge of a row, if that is another row.
    firsts: BTreeMap<u64, u64>,
}

impl Rows {
    pub fn add_column(&mut self, property_type: PropertyType) {
        self.schema.push((format!("edge {property_type} {}", self.schema.len()), property_type));
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row with values that `number` determines. Returns the row.
    pub fn push(&mut self, number: u32) -> u64 {
        let random = &mut Random::new(number.into());
        let value = |(_, property_type): &(String, PropertyType)| {
            (below(random, 4) > 0).then(|| Value::random(*property_type, random))
        };
        let row = self.schema.iter().map(value).collect();
        self.rows.push(row);
        self.rows.len() as u64 - 1
    }

    /// Adds a new row of the edge with row `old`. Returns the row.
    pub fn replace(&mut self, old: u64, number: u32) -> u64 {
        let (row, first) = (self.push(number), self.first(old));
        self.firsts.insert(row, first);
        row
    }

    /// The first row of the edge that has or had a row.
    pub fn first(&self, row: u64) -> u64 {
        self.firsts.get(&row).copied().unwrap_or(row)
    }

    /// Makes all rows first rows, as a load does.
    pub fn forget_firsts(&mut self) {
        self.firsts.clear();
    }

    /// The first rows of the edges with these rows; `None` if all are first rows.
    pub fn firsts_of(&self, numbers: &[u64]) -> Option<PropertyColumn> {
        let mut column = ColumnBuilder::new(PropertyType::I64);
        for row in numbers {
            let first = self.firsts.get(row).map_or(PropertyValue::Null, |first| PropertyValue::I64(*first as i64));
            column.push(first).unwrap();
        }
        numbers.iter().any(|row| self.firsts.contains_key(row)).then(|| column.finish())
    }

    fn get(&self, column: usize, row: usize) -> PropertyValue<'_> {
        self.rows[row].get(column).and_then(Option::as_ref).map_or(PropertyValue::Null, Value::get)
    }

    /// The values of these rows, one column a property.
    pub fn columns_of(&self, numbers: &[u64]) -> Vec<PropertyColumn> {
        let column = |(place, (_, property_type)): (usize, &(String, PropertyType))| {
            let mut column = ColumnBuilder::new(*property_type);
            numbers.iter().for_each(|&row| column.push(self.get(place, row as usize)).unwrap());
            column.finish()
        };
        self.schema.iter().enumerate().map(column).collect()
    }

    pub fn write(&self, builder: &StoreBuilder) -> Result<()> {
        if self.schema.is_empty() && self.rows.is_empty() {
            return Ok(());
        }
        assert!(self.firsts.is_empty(), "a load knows no former rows");
        let num_rows = self.rows.len() as u64;
        let schema = PropertySchema::new(self.schema.iter().cloned())?;
        let columns = self.columns_of(&(0..num_rows).collect::<Vec<_>>());
        // In two parts, because rows may arrive in parts.
        let (first, second): (Vec<u32>, Vec<u32>) =
            (0..self.rows.len() as u32).partition(|row| row % 64 < 40 && *row < 70);
        let is_whole = first.iter().chain(&second).is_sorted();
        builder.write_edge_rows(&schema, num_rows, &|place, take| match is_whole {
            true => [&first, &second].into_iter().try_for_each(|rows| take(&columns[place].gather(rows))),
            false => take(&columns[place]),
        })
    }

    /// Compares the view with the values of these rows, one by one and together.
    pub fn compare(&self, view: &SnapshotView, rows: impl Iterator<Item = u64>) -> Result<()> {
        let found = view.edge_properties();
        let schema: Vec<_> = found.schema().iter().map(|(name, of)| (name.to_owned(), of)).collect();
        assert_eq!(schema, self.schema);
        let rows: Vec<u64> = rows.collect();
        let places: Vec<usize> = (0..schema.len()).collect();
        for (column, gathered) in found.gather(&places, &rows)?.iter().enumerate() {
            for (place, &row) in rows.iter().enumerate() {
                assert_eq!(gathered.get(place), self.get(column, row as usize), "{column} {row}");
            }
        }
        for row in rows {
            assert_eq!(found.number(row)?, self.first(row), "{row}");
        }
        assert!(schema.is_empty() || found.value(0, self.rows.len() as u64 + (1 << 40)).is_err());
        Ok(())
    }
}
