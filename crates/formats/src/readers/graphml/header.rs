//! The header of a document: the declared keys, and whether edges are directed.

use std::collections::HashMap;

use anden_base::message::shown;
use anden_graph::GraphKind;
use anden_graph::property::{ColumnBuilder, PropertyType};
use quick_xml::events::BytesStart;

use super::elements::attribute;
use crate::columns::WEIGHT_NAMES;
use crate::options::{SourceOptions, WantedProperties};
use crate::part::PartProperties;

/// An attribute of Anden beside `attr.type`, because GraphML lacks types for dates, timestamps and bytes.
pub(crate) const TYPE_ATTRIBUTE: &str = "anden.type";
/// The largest number of keys of a document.
const MAX_KEYS: usize = 10_000;

/// A declared key.
#[derive(Clone, Debug)]
pub(super) struct GraphMlKey {
    id: String,
    pub(super) name: String,
    is_of_nodes: bool,
    is_of_edges: bool,
    /// The type of its data; `None` without a type or name, as for keys of drawings.
    pub(super) property_type: Option<PropertyType>,
    /// Whether the document states the type. Data of other keys may be XML, which is no value.
    pub(super) has_own_type: bool,
    /// The default text for elements without this datum.
    pub(super) default: Option<Vec<u8>>,
}

/// The content before the nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct GraphMlHeader {
    pub(super) keys: Vec<GraphMlKey>,
    /// The position of each key by id: keys of edges, of nodes, and of neither.
    by_id: [HashMap<String, usize>; 3],
    pub(super) graph_kind: Option<GraphKind>,
}

type Result<T> = std::result::Result<T, String>;

impl GraphMlKey {
    /// Parses the element that declares a key.
    ///
    /// # Errors
    /// The element has no id, or an unknown type.
    pub(super) fn of(tag: &BytesStart<'_>) -> Result<Self> {
        let Some(id) = attribute(tag, "id")? else {
            return Err("expected an attribute 'id' of the key, found none".into());
        };
        let name = attribute(tag, "attr.name")?;
        let (is_of_nodes, is_of_edges) = match attribute(tag, "for")?.as_deref() {
            None | Some("all") => (true, true),
            Some("node") => (true, false),
            Some("edge") => (false, true),
            Some(_) => (false, false),
        };
        let ours = match attribute(tag, TYPE_ATTRIBUTE)? {
            Some(found) => Some(PropertyType::of_name(&found).ok_or_else(|| {
                format!("expected a property type as {TYPE_ATTRIBUTE}, found {}", shown(found.as_bytes()))
            })?),
            None => None,
        };
        let stated = attribute(tag, "attr.type")?;
        let property_type = match stated.as_deref() {
            Some(_) if ours.is_some() => ours,
            Some("boolean" | "bool") => Some(PropertyType::Boolean),
            Some("int" | "long" | "short" | "byte" | "integer") => Some(PropertyType::I64),
            Some("float" | "double") => Some(PropertyType::F64),
            // Tools have types of their own, such as vectors: their text is kept.
            Some(_) => Some(PropertyType::String),
            // By the specification, a named key without a type holds text.
            None => ours.or_else(|| name.as_ref().map(|_| PropertyType::String)),
        };
        let has_own_type = stated.is_some() || ours.is_some();
        Ok(Self {
            name: name.unwrap_or_else(|| id.clone()),
            id,
            is_of_nodes,
            is_of_edges,
            property_type,
            has_own_type,
            default: None,
        })
    }
}

impl GraphMlHeader {
    pub(super) fn add(&mut self, key: GraphMlKey) -> Result<()> {
        // Checked at the declaration, so that the error names its line.
        if let (Some(property_type), Some(default)) = (key.property_type, &key.default) {
            let checked = ColumnBuilder::new(property_type).push_text(value_text(default, property_type));
            checked.map_err(|what| format!("the default of key {}: {what}", shown(key.id.as_bytes())))?;
        }
        if self.keys.len() == MAX_KEYS {
            return Err(format!("expected at most {MAX_KEYS} keys, found more"));
        }
        // Keys of other elements are known, too, so that their data are ignored and not refused.
        let is_of_neither = !key.is_of_edges && !key.is_of_nodes;
        for (numbers, is_of) in self.by_id.iter_mut().zip([key.is_of_edges, key.is_of_nodes, is_of_neither]) {
            if is_of && numbers.insert(key.id.clone(), self.keys.len()).is_some() {
                return Err(format!("the key {} is declared twice", shown(key.id.as_bytes())));
            }
        }
        self.keys.push(key);
        Ok(())
    }

    pub(super) fn set_direction(&mut self, graph: &BytesStart<'_>) -> Result<()> {
        self.graph_kind = Some(match attribute(graph, "edgedefault")?.as_deref() {
            Some("directed") => GraphKind::Directed,
            Some("undirected") => GraphKind::Undirected,
            found => {
                let found = found.map_or("none".into(), |found| shown(found.as_bytes()));
                return Err(format!("expected edgedefault directed or undirected, found {found}"));
            }
        });
        Ok(())
    }

    pub(super) fn is_directed(&self) -> bool {
        self.graph_kind == Some(GraphKind::Directed)
    }

    /// The position of the key with this id: one of the element's own keys, or else another key, with data that are
    /// ignored.
    pub(super) fn find(&self, id: &str, is_edge: bool) -> Option<usize> {
        let [of_edges, of_nodes, of_neither] = &self.by_id;
        let (own, other) = if is_edge { (of_edges, of_nodes) } else { (of_nodes, of_edges) };
        [own, other, of_neither].into_iter().find_map(|numbers| numbers.get(id).copied())
    }
}

/// A datum as the text of a value. Types other than text lose blanks around the value, and XML's `1` and `0` become
/// true and false.
pub(super) fn value_text(text: &[u8], property_type: PropertyType) -> &[u8] {
    match (property_type, text.trim_ascii()) {
        (PropertyType::String, _) => text,
        (PropertyType::Boolean, b"1") => b"true",
        (PropertyType::Boolean, b"0") => b"false",
        (_, text) => text,
    }
}

/// The keys that are weights and properties.
#[derive(Clone, Debug)]
pub(super) struct GraphMlLayout {
    pub(super) header: GraphMlHeader,
    /// The keys of the weight, which share a name; empty without weights.
    pub(super) weight: Vec<usize>,
    /// By property, of edges and of vertices: its keys. An element has data of at most one of them.
    pub(super) places: [Vec<Vec<usize>>; 2],
    /// The types of these properties.
    pub(super) types: [Vec<PropertyType>; 2],
}

impl GraphMlLayout {
    /// Selects the wanted keys. Also returns the properties of edges and of vertices. Keys of one name become one
    /// property, because NetworkX declares a key for each type that it meets; text if the types have no other in common.
    ///
    /// # Errors
    /// No key can be the weight.
    pub(super) fn new(header: &GraphMlHeader, options: &SourceOptions) -> Result<(Self, [PartProperties; 2])> {
        let keys = &header.keys;
        let weight = weight_keys(keys, options)?;
        let mut layout = Self { header: header.clone(), weight, places: Default::default(), types: Default::default() };
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
                        layout.places[side].push(vec![place]);
                        types.push(property_type);
                    }
                }
            }
        }
        Ok((layout, properties))
    }

    /// The names of unread keys with data of edges (side 0) or vertices (1).
    pub(super) fn left_out(&self, side: usize) -> impl Iterator<Item = &str> {
        let applies = move |key: &GraphMlKey| if side == 0 { key.is_of_edges } else { key.is_of_nodes };
        let is_weight = move |place: &usize| side == 0 && self.weight.contains(place);
        let keys =
            self.header.keys.iter().enumerate().filter(move |(_, key)| key.property_type.is_some() && applies(key));
        let is_read =
            move |place: &usize| self.places[side].iter().flatten().any(|read| read == place) || is_weight(place);
        keys.filter(move |(place, _)| !is_read(place)).map(|(_, key)| &key.name[..])
    }

    /// Empty columns for edges (side 0) or vertices (1).
    pub(super) fn columns(&self, side: usize) -> Vec<ColumnBuilder> {
        self.types[side].iter().map(|&property_type| ColumnBuilder::new(property_type)).collect()
    }
}

/// The numeric edge keys with the name of the weight; empty if weights are not wanted.
fn weight_keys(keys: &[GraphMlKey], options: &SourceOptions) -> Result<Vec<usize>> {
    if options.weights.is_none() {
        return Ok(Vec::new());
    }
    let is_numeric = |key: &&GraphMlKey| key.is_of_edges && key.property_type.is_some_and(PropertyType::is_numeric);
    let numeric = || keys.iter().filter(is_numeric);
    let named = |name: &str| numeric().find(|key| key.name.eq_ignore_ascii_case(name));
    let found = match &options.weight_column {
        Some(name) => named(name),
        None => WEIGHT_NAMES.iter().find_map(|name| named(name)).or_else(|| numeric().next()),
    };
    let Some(found) = found else {
        let name = options.weight_column.as_ref().map(|name| format!(" with the name {}", shown(name.as_bytes())));
        return Err(format!("weights are asked for, but no key of edges{} is a number", name.unwrap_or_default()));
    };
    Ok((0..keys.len()).filter(|&place| is_numeric(&&keys[place]) && keys[place].name == found.name).collect())
}
