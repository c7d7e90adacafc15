//! Turns nodes and edges into vertices and edges with properties.

use anden_base::message::shown;
use anden_graph::Weight;
use anden_graph::property::{ColumnBuilder, PropertyType, PropertyValue};

use super::batch::{Datum, ElementBatch, TextRange};
use super::labels::NodeLabels;
use super::layout::{ElementLayout, value_text};
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::number::{parse_u64, parse_weight, weight_range};
use crate::options::SourceOptions;
use crate::outcome::unexpected;

/// Makes keys, weights and properties of elements. String keys refer to the text of the batch.
pub(crate) fn read_elements<K: FieldKey, W: Weight>(
    batch: &ElementBatch,
    layout: &ElementLayout,
    labels: Option<&NodeLabels>,
    options: &SourceOptions,
) -> ParsedBlock<K, W> {
    let mut parsed = ParsedBlock::new(batch.num_lines, options.on_error);
    let mut columns = [layout.columns(0), layout.columns(1)];
    let mut slots = ElementData { layout, labels, options, text: &batch.text, data: vec![None; layout.keys.len()] };
    for (element, data) in batch.with_data() {
        let read = slots.fill(data).and_then(|()| match &element.second {
            Some(second) => slots.edge((&element.first, second), element.is_doubled, &mut parsed, &mut columns[0]),
            None => slots.node(&element.first, &mut parsed, &mut columns[1]),
        });
        // Clears only the used slots, because a document may declare thousands of keys.
        slots.clear(data);
        if let Err(what) = read
            && parsed.faults.note_at(element.line, what)
        {
            break;
        }
    }
    let [properties, vertex_properties] = columns.map(|of| of.into_iter().map(ColumnBuilder::finish).collect());
    ParsedBlock { properties, vertex_properties, ..parsed }
}

/// The data of one element, by key.
struct ElementData<'a> {
    layout: &'a ElementLayout,
    labels: Option<&'a NodeLabels>,
    options: &'a SourceOptions,
    text: &'a [u8],
    data: Vec<Option<TextRange>>,
}

type Result<T> = std::result::Result<T, String>;

impl ElementData<'_> {
    fn fill(&mut self, data: &[Datum]) -> Result<()> {
        for datum in data {
            // A document that changed after its scan may have keys that no property holds.
            let Some(slot) = self.data.get_mut(datum.key()) else { continue };
            if slot.replace(datum.text.clone()).is_some() {
                return Err("data of one key are there twice".into());
            }
        }
        Ok(())
    }

    fn clear(&mut self, data: &[Datum]) {
        data.iter().for_each(|datum| {
            if let Some(slot) = self.data.get_mut(datum.key()) {
                *slot = None;
            }
        });
    }

    /// The type and text of the datum of one of these keys, which share a name, or of a default.
    fn text_of(&self, keys: &[usize]) -> Result<Option<(PropertyType, &[u8])>> {
        let known = &self.layout.keys;
        // A datum of one key hides the defaults of the other keys with its name.
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

    fn key<K: FieldKey>(&self, place: &TextRange, name: &str, extra: &mut Vec<u8>) -> Result<K> {
        let id = &self.text[place.clone()];
        let (key, found) = match self.labels {
            Some(labels) => {
                let label = labels.of(id).ok_or_else(|| unexpected(&format!("a declared {name}"), Some(id)))?;
                (K::from_owned(label, self.text.len(), extra), label)
            }
            None => {
                // Dense ids begin with 0, also where the document counts from 1.
                let number = if self.layout.counts_nodes { parse_u64(id) } else { None };
                (number.and_then(K::from_count).or_else(|| K::from_text(self.text, place.start, place.len())), id)
            }
        };
        let key = key.filter(|_| self.options.may_be_key(found));
        key.ok_or_else(|| unexpected(&format!("a {name}, {}", K::RANGE), Some(found)))
    }

    fn node<K: FieldKey, W: Weight>(
        &self,
        id: &TextRange,
        parsed: &mut ParsedBlock<K, W>,
        columns: &mut [ColumnBuilder],
    ) -> Result<()> {
        let vertex = self.key(id, "node", &mut parsed.extra)?;
        // Values come first: if one is faulty, `push` takes them back and no vertex remains.
        self.push(1, parsed.vertices.len(), columns)?;
        parsed.vertices.push(vertex);
        Ok(())
    }

    fn edge<K: FieldKey, W: Weight>(
        &self,
        (source, target): (&TextRange, &TextRange),
        is_doubled: bool,
        parsed: &mut ParsedBlock<K, W>,
        columns: &mut [ColumnBuilder],
    ) -> Result<()> {
        let source_key = self.key(source, "source", &mut parsed.extra)?;
        let edge = (source_key, self.key(target, "target", &mut parsed.extra)?);
        let mut weight = None;
        if !self.layout.weight.is_empty() {
            let text = self.text_of(&self.layout.weight)?.map(|(_, text)| text);
            let found = text.and_then(parse_weight::<W>);
            weight = Some(found.ok_or_else(|| match text {
                None => format!("expected {}, found none", weight_range(W::TYPE)),
                Some(text) => unexpected(weight_range(W::TYPE), Some(text)),
            })?);
        }
        // Values come first: if one is faulty, `push` takes them back and no edge remains.
        self.push(0, parsed.edges.len(), columns)?;
        parsed.edges.push(edge);
        parsed.weights.extend(weight);
        // A loop leads both ways already.
        if is_doubled && self.text[source.clone()] != self.text[target.clone()] {
            self.push(0, parsed.edges.len(), columns)?;
            parsed.edges.push((edge.1, edge.0));
            parsed.weights.extend(weight);
        }
        Ok(())
    }

    /// Appends a row of properties. Appends nothing if a value is faulty.
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

/// Appends a text of a given type to a column that may have a wider type.
fn push_text(text: &[u8], property_type: PropertyType, column: &mut ColumnBuilder) -> Result<()> {
    if property_type == column.property_type() || column.property_type() == PropertyType::String {
        return column.push_text(text);
    }
    let mut value = ColumnBuilder::new(property_type);
    value.push_text(text)?;
    let value = value.finish().converted(column.property_type()).map_err(|error| error.to_string())?;
    column.push(value.get(0)).map_err(|error| error.to_string())
}
