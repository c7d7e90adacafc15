//! What stands before the nodes: the declared keys, and whether edges have a direction.

use std::collections::HashMap;

use quick_xml::events::BytesStart;

use super::elements::attribute;
use crate::Direction;
use crate::formats::columns::WEIGHT_NAMES;
use crate::formats::options::{SourceOptions, WantedProperties};
use crate::formats::part::PartProperties;
use crate::formats::shown;
use crate::property::{ColumnBuilder, PropertyType};

/// An attribute of ours beside `attr.type`: GraphML has no types for dates, timestamps and bytes.
pub(in crate::formats) const TYPE_ATTRIBUTE: &str = "anden.type";
/// The most keys of a document.
const MAX_KEYS: usize = 10_000;

/// A declared key.
#[derive(Clone, Debug)]
pub(in crate::formats) struct Key {
    id: String,
    pub(super) name: String,
    is_of_nodes: bool,
    is_of_edges: bool,
    /// What its data are; none where it says nothing, as keys of drawings do.
    pub(super) property_type: Option<PropertyType>,
    /// The text of data that are not given.
    pub(super) default: Option<Vec<u8>>,
}

/// What stands before the nodes.
#[derive(Clone, Debug, Default)]
pub(in crate::formats) struct Header {
    pub(super) keys: Vec<Key>,
    /// Their numbers by id: of keys of edges, of nodes, and of neither.
    by_id: [HashMap<String, usize>; 3],
    pub(in crate::formats) direction: Option<Direction>,
}

type Result<T> = std::result::Result<T, String>;

impl Key {
    /// The key that an element declares.
    ///
    /// # Errors
    /// It has no id, or is of a type that there is not.
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
        let wrong = |found: &str| {
            let names = "boolean, int, long, float, double or string";
            format!("expected a key of type {names}, found {}", shown(found.as_bytes()))
        };
        let ours = match attribute(tag, TYPE_ATTRIBUTE)? {
            Some(found) => Some(PropertyType::of_name(&found).ok_or_else(|| wrong(&found))?),
            None => None,
        };
        let property_type = match attribute(tag, "attr.type")?.as_deref() {
            Some(_) if ours.is_some() => ours,
            Some("boolean") => Some(PropertyType::Boolean),
            Some("int" | "long") => Some(PropertyType::I64),
            Some("float" | "double") => Some(PropertyType::F64),
            Some("string") => Some(PropertyType::String),
            Some(found) => return Err(wrong(found)),
            // A name without a type is that of text, as the specification has it.
            None => name.as_ref().map(|_| PropertyType::String),
        };
        Ok(Self {
            name: name.unwrap_or_else(|| id.clone()),
            id,
            is_of_nodes,
            is_of_edges,
            property_type,
            default: None,
        })
    }
}

impl Header {
    pub(super) fn add(&mut self, key: Key) -> Result<()> {
        if let (Some(property_type), Some(default)) = (key.property_type, &key.default) {
            let checked = ColumnBuilder::new(property_type).push_text(value_text(default, property_type));
            checked.map_err(|what| format!("the default of key {}: {what}", shown(key.id.as_bytes())))?;
        }
        if self.keys.len() == MAX_KEYS {
            return Err(format!("expected at most {MAX_KEYS} keys, found more"));
        }
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
        self.direction = Some(match attribute(graph, "edgedefault")?.as_deref() {
            Some("directed") => Direction::Directed,
            Some("undirected") => Direction::Undirected,
            found => {
                let found = found.map_or("none".into(), |found| shown(found.as_bytes()));
                return Err(format!("expected edgedefault directed or undirected, found {found}"));
            }
        });
        Ok(())
    }

    pub(super) fn is_directed(&self) -> bool {
        self.direction == Some(Direction::Directed)
    }

    /// The number of the key of this id: of the element's own keys, or else of others, whose data say nothing here.
    pub(super) fn find(&self, id: &str, is_edge: bool) -> Option<usize> {
        let [of_edges, of_nodes, of_neither] = &self.by_id;
        let (own, other) = if is_edge { (of_edges, of_nodes) } else { (of_nodes, of_edges) };
        [own, other, of_neither].into_iter().find_map(|numbers| numbers.get(id).copied())
    }
}

/// A datum as the text of a value: without blanks around it where it is of another type than text, and XML's other
/// words for true and false.
pub(super) fn value_text(text: &[u8], property_type: PropertyType) -> &[u8] {
    match (property_type, text.trim_ascii()) {
        (PropertyType::String, _) => text,
        (PropertyType::Boolean, b"1") => b"true",
        (PropertyType::Boolean, b"0") => b"false",
        (_, text) => text,
    }
}

/// Which keys are weights and properties.
#[derive(Clone, Debug)]
pub(in crate::formats) struct GraphMlLayout {
    pub(super) header: Header,
    /// The keys of the weight: those of one name; none where there are no weights.
    pub(super) weight: Vec<usize>,
    /// By property of edges, and of vertices: its keys, of which an element has data of one.
    pub(super) places: [Vec<Vec<usize>>; 2],
    /// Their types.
    pub(super) types: [Vec<PropertyType>; 2],
}

impl GraphMlLayout {
    /// The keys that are wanted, and the properties of edges and of vertices. Keys of one name are one property:
    /// NetworkX declares a key for each type that it meets.
    ///
    /// # Errors
    /// No key can be the weight, or two of one name have types that do not go together.
    pub(in crate::formats) fn new(header: &Header, options: &SourceOptions) -> Result<(Self, [PartProperties; 2])> {
        let keys = &header.keys;
        let weight = weight_keys(keys, options)?;
        let mut layout = Self { header: header.clone(), weight, places: Default::default(), types: Default::default() };
        let mut properties: [PartProperties; 2] = Default::default();
        let wanted = [&options.edge_properties, &options.vertex_properties];
        for (place, key) in keys.iter().enumerate() {
            let Some(property_type) = key.property_type else { continue };
            let is_of_sides = [key.is_of_edges && !layout.weight.contains(&place), key.is_of_nodes];
            for (side, is_of_side) in is_of_sides.into_iter().enumerate() {
                if !is_of_side || !WantedProperties::wants(wanted[side], &key.name) {
                    continue;
                }
                let (own, types) = (&mut properties[side].own, &mut layout.types[side]);
                match own.find(&key.name) {
                    Some(column) => {
                        types[column] = types[column].joined(property_type).ok_or_else(|| {
                            let (name, before) = (shown(key.name.as_bytes()), types[column]);
                            let types = format!("of type {before} and of type {property_type}");
                            format!("there are two properties with the name {name}, {types}: rename one of them")
                        })?;
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

    /// Names of the keys with data of edges, or of vertices, that are not read.
    pub(in crate::formats) fn left_out(&self, side: usize) -> impl Iterator<Item = &str> {
        let is_of_side = move |key: &Key| if side == 0 { key.is_of_edges } else { key.is_of_nodes };
        let is_weight = move |place: &usize| side == 0 && self.weight.contains(place);
        let keys =
            self.header.keys.iter().enumerate().filter(move |(_, key)| key.property_type.is_some() && is_of_side(key));
        let is_read =
            move |place: &usize| self.places[side].iter().flatten().any(|read| read == place) || is_weight(place);
        keys.filter(move |(place, _)| !is_read(place)).map(|(_, key)| &key.name[..])
    }

    /// Columns without rows: of edges, or of vertices.
    pub(super) fn columns(&self, side: usize) -> Vec<ColumnBuilder> {
        self.types[side].iter().map(|&property_type| ColumnBuilder::new(property_type)).collect()
    }
}

/// The keys of edges that are numbers and have the name of the weight; none where nobody wants weights.
fn weight_keys(keys: &[Key], options: &SourceOptions) -> Result<Vec<usize>> {
    if options.weights.is_none() {
        return Ok(Vec::new());
    }
    let is_numeric = |key: &&Key| key.is_of_edges && key.property_type.is_some_and(PropertyType::is_numeric);
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
