//! Nodes and edges as vertices and edges with properties.

use super::elements::{Batch, Place};
use super::header::{GraphMlLayout, value_text};
use crate::Weight;
use crate::formats::key::FieldKey;
use crate::formats::lines::Parsed;
use crate::formats::number::{parse_weight, weight_range};
use crate::formats::options::OnError;
use crate::formats::outcome::unexpected;
use crate::property::{PropertyColumn, PropertyType, PropertyValue};

/// Makes keys, weights and properties of elements; string keys lie in the text of the batch.
pub(in crate::formats) fn read_elements<K: FieldKey, W: Weight>(
    batch: &Batch,
    layout: &GraphMlLayout,
    on_error: OnError,
) -> Parsed<K, W> {
    let mut parsed = Parsed::new(batch.num_lines, on_error);
    parsed.properties = layout.columns(0);
    parsed.vertex_properties = layout.columns(1);
    let mut slots = Slots { layout, text: &batch.text, data: vec![None; layout.header.keys.len()] };
    let mut start = 0;
    for element in &batch.elements {
        let data = &batch.data[start..element.data_end];
        start = element.data_end;
        let read = slots.fill(data).and_then(|()| match &element.second {
            Some(second) => slots.edge(&element.first, second, &mut parsed),
            None => slots.node(&element.first, &mut parsed),
        });
        slots.clear(data);
        if let Err(what) = read
            && parsed.faults.note_at(element.line, what)
        {
            break;
        }
    }
    parsed
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

    /// The text of a key's datum, or of its default.
    fn text_of(&self, key: usize, property_type: PropertyType) -> Option<&[u8]> {
        let text = match &self.data[key] {
            Some(place) => Some(&self.text[place.clone()]),
            None => self.layout.header.keys[key].default.as_deref(),
        };
        text.map(|text| value_text(text, property_type))
    }

    fn key<K: FieldKey>(&self, place: &Place, name: &str) -> Result<K> {
        let key = K::from_text(self.text, place.start, place.len());
        key.ok_or_else(|| unexpected(&format!("a {name}, {}", K::RANGE), Some(&self.text[place.clone()])))
    }

    fn node<K: FieldKey, W: Weight>(&self, id: &Place, parsed: &mut Parsed<K, W>) -> Result<()> {
        let vertex = self.key(id, "node")?;
        self.push(1, parsed.vertices.len(), &mut parsed.vertex_properties)?;
        parsed.vertices.push(vertex);
        Ok(())
    }

    fn edge<K: FieldKey, W: Weight>(&self, source: &Place, target: &Place, parsed: &mut Parsed<K, W>) -> Result<()> {
        let edge = (self.key(source, "source")?, self.key(target, "target")?);
        let mut weight = None;
        if let Some(key) = self.layout.weight {
            let text = self.text_of(key, PropertyType::F64);
            let found = text.and_then(parse_weight::<W>);
            weight = Some(found.ok_or_else(|| match text {
                None => format!("expected {}, found none", weight_range(W::TYPE)),
                Some(text) => unexpected(weight_range(W::TYPE), Some(text)),
            })?);
        }
        self.push(0, parsed.edges.len(), &mut parsed.properties)?;
        parsed.edges.push(edge);
        parsed.weights.extend(weight);
        Ok(())
    }

    /// Appends a row of properties; none at all where one is wrong.
    fn push(&self, side: usize, num_rows: usize, columns: &mut [PropertyColumn]) -> Result<()> {
        let layout = self.layout;
        let mut pushed = Ok(());
        for ((column, &key), &property_type) in columns.iter_mut().zip(&layout.places[side]).zip(&layout.types[side]) {
            pushed = match self.text_of(key, property_type) {
                Some(text) => column.push_text(text),
                None => column.push(PropertyValue::Null).map_err(|error| error.to_string()),
            };
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
