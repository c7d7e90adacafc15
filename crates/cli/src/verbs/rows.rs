//! Rows of selected columns, as tab-separated text and as JSON objects.

use anden::property::{PropertyColumn, PropertyType, PropertyValue};
use anden::tables::RecordBatch;
use anden_formats::push_update_column;
use serde_json::{Map, Value};

use crate::console::Console;
use crate::failure::{CommandFailure, Result};
use crate::text::property_json;

/// A table of named columns.
pub struct AnswerRows {
    names: Vec<String>,
    types: Vec<Option<PropertyType>>,
    columns: Vec<PropertyColumn>,
    num_rows: usize,
}

impl AnswerRows {
    /// Converts a record batch.
    pub fn new(batch: &RecordBatch) -> Result<Self> {
        let columns = batch.columns().iter().map(|array| PropertyColumn::from_array(array.clone()));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>();
        let names = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        let columns = columns.map_err(|error| CommandFailure::failed(format!("cannot show rows: {error}")))?;
        // A column of lists has their texts.
        let types = batch.columns().iter().map(|array| PropertyType::of_arrow_type(array.data_type())).collect();
        Ok(Self { names, types, columns, num_rows: batch.num_rows() })
    }

    /// A table without columns.
    pub fn without_columns(num_rows: usize) -> Self {
        Self { names: Vec::new(), types: Vec::new(), columns: Vec::new(), num_rows }
    }

    /// Inserts a column of numbers at each of these places, which ascend.
    pub fn with_numbers(mut self, places: impl Iterator<Item = usize>, name: &str, numbers: &[u64]) -> Result<Self> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let column = PropertyColumn::from_fixed_bytes(PropertyType::U64, &bytes, None);
        let column = column.map_err(|error| CommandFailure::failed(format!("cannot show rows: {error}")))?;
        for place in places {
            self.names.insert(place, name.to_owned());
            self.types.insert(place, Some(PropertyType::U64));
            self.columns.insert(place, column.clone());
        }
        Ok(self)
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// One JSON object for each row.
    pub fn json(&self) -> Vec<Value> {
        let object = |row: usize| {
            let values = self.columns.iter().zip(&self.types).map(|(column, of)| property_json(&column.get(row), *of));
            Value::Object(self.names.iter().cloned().zip(values).collect::<Map<_, _>>())
        };
        (0..self.num_rows).map(object).collect()
    }

    /// Prints a header, then one line for each row.
    pub fn print(&self, console: &mut Console) -> Result {
        // One buffer for all rows: a listing may have millions.
        let mut line = String::new();
        self.names.iter().for_each(|name| push_cell(&mut line, PropertyValue::String(name)));
        // Every cell begins with a tab, so the first tab of a line goes.
        console.line(&line[1..])?;
        for row in 0..self.num_rows {
            line.clear();
            self.columns.iter().for_each(|column| push_cell(&mut line, column.get(row)));
            console.line(&line[1..])?;
        }
        Ok(())
    }
}

/// Appends a tab and a value. Null is empty; text is quoted if it would not be one cell.
fn push_cell(line: &mut String, value: PropertyValue<'_>) {
    line.push('\t');
    match value {
        PropertyValue::Null => {}
        // An empty string gets quotes, because an empty cell means null.
        PropertyValue::String(text) if text.is_empty() || text.contains(['\t', '\n', '\r', '"']) => {
            push_update_column(line, text);
        }
        value => line.push_str(&value.to_string()),
    }
}
