//! Nodes and edges as vertices and edges with properties.

use super::elements::{Batch, Place};
use super::header::{GraphMlLayout, value_text};
use crate::Weight;
use crate::formats::key::FieldKey;
use crate::formats::lines::Parsed;
use crate::formats::number::{parse_weight, weight_range};
use crate::formats::options::OnError;
use crate::formats::outcome::unexpected;
use crate::formats::shown;
use crate::property::{ColumnBuilder, PropertyType, PropertyValue};

/// Makes keys, weights and properties of elements; string keys lie in the text of the batch.
pub(in crate::formats) fn read_elements<K: FieldKey, W: Weight>(
    batch: &Batch,
    layout: &GraphMlLayout,
    on_error: OnError,
) -> Parsed<K, W> {
    let mut parsed = Parsed::new(batch.num_lines, on_error);
    let mut columns = [layout.columns(0), layout.columns(1)];
    let mut slots = Slots { layout, text: &batch.text, data: vec![None; layout.header.keys.len()] };
    let mut start = 0;
    for element in &batch.elements {
        let data = &batch.data[start..element.data_end];
        start = element.data_end;
        let read = slots.fill(data).and_then(|()| match &element.second {
            Some(second) => slots.edge(&element.first, second, &mut parsed, &mut columns[0]),
            None => slots.node(&element.first, &mut parsed, &mut columns[1]),
        });
        slots.clear(data);
        if let Err(what) = read
            && parsed.faults.note_at(element.line, what)
        {
            break;
        }
    }
    let [properties, vertex_properties] = columns.map(|of| of.into_iter().map(ColumnBuilder::finish).collect());
    Parsed { properties, vertex_properties, ..parsed }
}

/// The data of one element by key.
struct Slots<'a> {
    layout: &'a GraphMlLayout,
    text: &'a [u8],
    data: Vec<Option<Place>>,
}

type Result<T> = std::result::Result<T, String>;

impl Slots<'_> {
    fn fill(&mut self, data: &[(usize, Place)]) -> Result<()> {
        for (key, place) in data {
            if self.data[*key].replace(place.clone()).is_some() {
                return Err("data of one key are there twice".into());
            }
        }
        Ok(())
    }

    fn clear(&mut self, data: &[(usize, Place)]) {
        data.iter().for_each(|(key, _)| self.data[*key] = None);
    }

    /// The type and the text of the datum of one of these keys, which have one name, or of a default.
    fn text_of(&self, keys: &[usize]) -> Result<Option<(PropertyType, &[u8])>> {
        let known = &self.layout.header.keys;
        let is_given = keys.iter().any(|&key| self.data[key].is_some());
        let mut texts = keys.iter().filter_map(|&key| {
            let text = match &self.data[key] {
                Some(place) => &self.text[place.clone()],
                None if is_given => return None,
                None => known[key].default.as_deref()?,
            };
            let property_type = known[key].property_type?;
            Some((property_type, value_text(text, property_type)))
        });
        let text = texts.next();
        match texts.next() {
            None => Ok(text),
            Some(_) => {
                Err(format!("data of two keys with the name {} are there", shown(known[keys[0]].name.as_bytes())))
            }
        }
    }

    fn key<K: FieldKey>(&self, place: &Place, name: &str) -> Result<K> {
        let key = K::from_text(self.text, place.start, place.len());
        key.ok_or_else(|| unexpected(&format!("a {name}, {}", K::RANGE), Some(&self.text[place.clone()])))
    }

    fn node<K: FieldKey, W: Weight>(
        &self,
        id: &Place,
        parsed: &mut Parsed<K, W>,
        columns: &mut [ColumnBuilder],
    ) -> Result<()> {
        let vertex = self.key(id, "node")?;
        self.push(1, parsed.vertices.len(), columns)?;
        parsed.vertices.push(vertex);
        Ok(())
    }

    fn edge<K: FieldKey, W: Weight>(
        &self,
        source: &Place,
        target: &Place,
        parsed: &mut Parsed<K, W>,
        columns: &mut [ColumnBuilder],
    ) -> Result<()> {
        let edge = (self.key(source, "source")?, self.key(target, "target")?);
        let mut weight = None;
        if !self.layout.weight.is_empty() {
            let text = self.text_of(&self.layout.weight)?.map(|(_, text)| text);
            let found = text.and_then(parse_weight::<W>);
            weight = Some(found.ok_or_else(|| match text {
                None => format!("expected {}, found none", weight_range(W::TYPE)),
                Some(text) => unexpected(weight_range(W::TYPE), Some(text)),
            })?);
        }
        self.push(0, parsed.edges.len(), columns)?;
        parsed.edges.push(edge);
        parsed.weights.extend(weight);
        Ok(())
    }

    /// Appends a row of properties; none at all where one is wrong.
    fn push(&self, side: usize, num_rows: usize, columns: &mut [ColumnBuilder]) -> Result<()> {
        let mut pushed = Ok(());
        for (column, keys) in columns.iter_mut().zip(&self.layout.places[side]) {
            pushed = self.text_of(keys).and_then(|text| match text {
                Some((property_type, text)) => push_text(text, property_type, column),
                None => column.push(PropertyValue::Null).map_err(|error| error.to_string()),
            });
            if pushed.is_err() {
                break;
            }
        }
        if pushed.is_err() {
            columns.iter_mut().for_each(|column| column.truncate(num_rows));
        }
        pushed
    }
}

/// Appends a value that is given as text of a type to a column, whose type may be a wider one.
fn push_text(text: &[u8], property_type: PropertyType, column: &mut ColumnBuilder) -> Result<()> {
    if property_type == column.property_type() {
        return column.push_text(text);
    }
    let mut value = ColumnBuilder::new(property_type);
    value.push_text(text)?;
    let value = value.finish().converted(column.property_type()).map_err(|error| error.to_string())?;
    column.push(value.get(0)).map_err(|error| error.to_string())
}
