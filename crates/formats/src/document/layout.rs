//! The keys of data, and which of them are weights and properties.

use std::collections::HashMap;

use anden_base::message::shown;
use anden_graph::WeightType;
use anden_graph::property::{ColumnBuilder, Inference, PropertyType};

use crate::columns::WEIGHT_NAMES;
use crate::options::{SourceOptions, WantedProperties};
use crate::part::PartProperties;

/// An attribute of Anden beside the types of GraphML and GEXF, which lack those for dates, timestamps and bytes.
pub(crate) const TYPE_ATTRIBUTE: &str = "anden.type";

/// The type of weights with this name.
pub(crate) fn weight_type_of_name(name: &str) -> Option<WeightType> {
    WeightType::ALL.iter().find(|(_, known)| *known == name).map(|(weight_type, _)| *weight_type)
}

/// The largest number of keys of a document.
const MAX_KEYS: usize = 10_000;

/// A key of data.
#[derive(Clone, Debug)]
pub(crate) struct DocumentKey {
    pub(crate) name: String,
    pub(crate) is_of_nodes: bool,
    pub(crate) is_of_edges: bool,
    /// The type of its data; `None` for data that are no property, such as drawings.
    pub(crate) property_type: Option<PropertyType>,
    /// The inference behind the type, if the document does not state it.
    pub(crate) inference: Option<Inference>,
    /// The type of weights that the document states for these data.
    pub(crate) weight_type: Option<WeightType>,
    /// The default text for elements without this datum.
    pub(crate) default: Option<Vec<u8>>,
}

impl DocumentKey {
    /// A key of edges, or of nodes.
    pub(crate) fn new(name: &str, is_of_edges: bool) -> Self {
        let (name, is_of_nodes) = (name.to_owned(), !is_of_edges);
        Self { name, is_of_nodes, is_of_edges, property_type: None, inference: None, weight_type: None, default: None }
    }
}

/// The keys of a document, numbered as they occur.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyNames {
    keys: Vec<DocumentKey>,
    /// The numbers by name: of nodes, then of edges.
    by_name: [HashMap<String, usize>; 2],
}

impl KeyNames {
    /// The number of a key of edges, or of nodes. A new name gets a new number.
    ///
    /// # Errors
    /// The document has too many keys.
    pub(crate) fn number(&mut self, name: &str, is_of_edges: bool) -> Result<usize> {
        if let Some(&number) = self.by_name[usize::from(is_of_edges)].get(name) {
            return Ok(number);
        }
        let number = push_key(&mut self.keys, DocumentKey::new(name, is_of_edges))?;
        self.by_name[usize::from(is_of_edges)].insert(name.to_owned(), number);
        Ok(number)
    }

    pub(crate) fn keys(&self) -> &[DocumentKey] {
        &self.keys
    }

    pub(crate) fn keys_mut(&mut self) -> &mut [DocumentKey] {
        &mut self.keys
    }
}

/// Appends a key; returns its number.
///
/// # Errors
/// The document has too many keys.
pub(crate) fn push_key(keys: &mut Vec<DocumentKey>, key: DocumentKey) -> Result<usize> {
    if keys.len() == MAX_KEYS {
        return Err(format!("expected at most {MAX_KEYS} keys, found more"));
    }
    keys.push(key);
    Ok(keys.len() - 1)
}

type Result<T> = std::result::Result<T, String>;

/// A datum as the text of a value. Types other than text lose blanks around the value, and XML's `1` and `0` become
/// true and false.
pub(crate) fn value_text(text: &[u8], property_type: PropertyType) -> &[u8] {
    match (property_type, text.trim_ascii()) {
        (PropertyType::String, _) => text,
        (PropertyType::Boolean, b"1") => b"true",
        (PropertyType::Boolean, b"0") => b"false",
        (_, text) => text,
    }
}

/// The keys that are weights and properties.
#[derive(Clone, Debug)]
pub(crate) struct ElementLayout {
    pub(crate) keys: Vec<DocumentKey>,
    /// The keys of the weight, which share a name; empty without weights.
    pub(crate) weight: Vec<usize>,
    /// By property, of edges and of vertices: its keys. An element has data of at most one of them.
    pub(crate) places: [Vec<Vec<usize>>; 2],
    /// The types of these properties.
    pub(crate) types: [Vec<PropertyType>; 2],
    /// Whether ids without labels count the nodes from 1.
    pub(crate) counts_nodes: bool,
}

impl ElementLayout {
    /// Selects the wanted keys. Also returns the properties of edges and of vertices. Keys of one name become one
    /// property, because NetworkX declares a key for each type that it meets; text if the types have no other in common.
    ///
    /// # Errors
    /// No key can be the weight.
    pub(crate) fn new(keys: &[DocumentKey], options: &SourceOptions) -> Result<(Self, [PartProperties; 2])> {
        let mut layout = Self {
            keys: keys.to_vec(),
            weight: weight_keys(keys, options)?,
            places: Default::default(),
            types: Default::default(),
            counts_nodes: false,
        };
        let mut properties: [PartProperties; 2] = Default::default();
        let wanted = [&options.edge_properties, &options.vertex_properties];
        for (place, key) in keys.iter().enumerate() {
            // A key without a type belongs to a drawing, so its data are no property.
            let Some(property_type) = key.property_type else { continue };
            // The weight is no property of edges, but its key may also stand for nodes.
            let applies_to = [key.is_of_edges && !layout.weight.contains(&place), key.is_of_nodes];
            for (side, applies) in applies_to.into_iter().enumerate() {
                if !applies || !WantedProperties::wants(wanted[side], &key.name) {
                    continue;
                }
                let (own, types) = (&mut properties[side].own, &mut layout.types[side]);
                match own.find(&key.name) {
                    Some(column) => {
                        types[column] = types[column].joined(property_type).unwrap_or(PropertyType::String);
                        own.set_type(column, types[column]);
                        layout.places[side][column].push(place);
                    }
                    None => {
                        own.add(key.name.clone(), property_type).map_err(|error| error.to_string())?;
                        properties[side].inferred.push(key.inference);
                        layout.places[side].push(vec![place]);
                        types.push(property_type);
                    }
                }
            }
        }
        Ok((layout, properties))
    }

    /// Takes the final types of the properties of edges and of vertices.
    pub(crate) fn set_types(&mut self, properties: &[PartProperties; 2]) {
        for (side, properties) in properties.iter().enumerate() {
            for (place, (_, property_type)) in properties.own.iter().enumerate() {
                self.types[side][place] = property_type;
                for &key in &self.places[side][place] {
                    let key = &mut self.keys[key];
                    if key.inference.is_some() {
                        key.property_type = Some(property_type);
                    }
                }
            }
        }
    }

    /// The type that the document states for the weights.
    pub(crate) fn weight_type(&self) -> Option<WeightType> {
        match self.weight[..] {
            [key] => self.keys[key].weight_type,
            _ => None,
        }
    }

    /// The names of unread keys with data of edges (side 0) or vertices (1).
    pub(crate) fn left_out(&self, side: usize) -> impl Iterator<Item = &str> {
        let applies = move |key: &DocumentKey| if side == 0 { key.is_of_edges } else { key.is_of_nodes };
        let is_weight = move |place: &usize| side == 0 && self.weight.contains(place);
        let keys = self.keys.iter().enumerate().filter(move |(_, key)| key.property_type.is_some() && applies(key));
        let is_read =
            move |place: &usize| self.places[side].iter().flatten().any(|read| read == place) || is_weight(place);
        keys.filter(move |(place, _)| !is_read(place)).map(|(_, key)| &key.name[..])
    }

    /// Empty columns for edges (side 0) or vertices (1).
    pub(crate) fn columns(&self, side: usize) -> Vec<ColumnBuilder> {
        self.types[side].iter().map(|&property_type| ColumnBuilder::new(property_type)).collect()
    }
}

/// The numeric edge keys with the name of the weight; empty if weights are not wanted.
fn weight_keys(keys: &[DocumentKey], options: &SourceOptions) -> Result<Vec<usize>> {
    if options.weights.is_none() {
        return Ok(Vec::new());
    }
    let is_numeric = |key: &&DocumentKey| key.is_of_edges && key.property_type.is_some_and(PropertyType::is_numeric);
    let numeric = || keys.iter().filter(is_numeric);
    let named = |name: &str| numeric().find(|key| key.name.eq_ignore_ascii_case(name));
    // A text with the usual name is meant as the weight, and another number would be a wrong guess.
    let usual = WEIGHT_NAMES[0];
    let is_usual = |key: &DocumentKey| key.is_of_edges && key.property_type.is_some() && key.name == usual;
    let wanted = options.weight_column.as_deref().or_else(|| keys.iter().any(is_usual).then_some(usual));
    let found = match wanted {
        Some(name) => named(name),
        None => WEIGHT_NAMES.iter().find_map(|name| named(name)).or_else(|| numeric().next()),
    };
    let Some(found) = found else {
        let name = wanted.map(|name| format!(" with the name {}", shown(name.as_bytes()))).unwrap_or_default();
        return Err(format!("weights are asked for, but no key of edges{name} is a number"));
    };
    Ok((0..keys.len()).filter(|&place| is_numeric(&&keys[place]) && keys[place].name == found.name).collect())
}
