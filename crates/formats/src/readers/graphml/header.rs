//! The header of a document: the declared keys, and whether edges are directed.

use std::collections::HashMap;

use anden_base::message::shown;
use anden_graph::property::{ColumnBuilder, PropertyType};
use anden_graph::{GraphKind, WeightType};
use quick_xml::events::BytesStart;

use crate::document::{DocumentKey, TYPE_ATTRIBUTE, attribute, push_key, value_text, weight_type_of_name};

/// A declared key.
#[derive(Clone, Debug)]
pub(super) struct GraphMlKey {
    id: String,
    pub(super) key: DocumentKey,
    /// Whether the document states the type. Data of other keys may be XML, which is no value.
    has_own_type: bool,
}

/// The content before the nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct GraphMlHeader {
    pub(super) keys: Vec<DocumentKey>,
    /// By key: whether the document states its type.
    pub(super) has_own_type: Vec<bool>,
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
        let ours = attribute(tag, TYPE_ATTRIBUTE)?;
        let weight_type = ours.as_deref().and_then(weight_type_of_name);
        // A weight may have this type, a property not.
        let ours = match ours.filter(|ours| ours != WeightType::U32.name()) {
            Some(found) => Some(PropertyType::of_name(&found).ok_or_else(|| {
                format!("expected a property type as {TYPE_ATTRIBUTE}, found {}", shown(found.as_bytes()))
            })?),
            None => None,
        };
        let stated = attribute(tag, "attr.type")?;
        let known = |stated: &str| match stated {
            "boolean" | "bool" => PropertyType::Boolean,
            "int" | "long" | "short" | "byte" | "integer" => PropertyType::I64,
            "float" | "double" => PropertyType::F64,
            // Tools have types of their own, such as vectors: their text is kept.
            _ => PropertyType::String,
        };
        // Neo4j states the type of the items of a list beside the type string of its JSON.
        let list = attribute(tag, "attr.list")?.and_then(|items| known(&items).list());
        let property_type = match stated.as_deref() {
            Some(_) if ours.is_some() => ours,
            Some(stated) => list.or(Some(known(stated))),
            // By the specification, a named key without a type holds text.
            None => ours.or_else(|| name.as_ref().map(|_| PropertyType::String)),
        };
        let has_own_type = stated.is_some() || ours.is_some();
        let name = name.unwrap_or_else(|| id.clone());
        let key =
            DocumentKey { name, is_of_nodes, is_of_edges, property_type, inference: None, weight_type, default: None };
        Ok(Self { id, key, has_own_type })
    }
}

impl GraphMlHeader {
    pub(super) fn add(&mut self, declared: GraphMlKey) -> Result<()> {
        let GraphMlKey { id, key, has_own_type } = declared;
        // Checked at the declaration, so that the error names its line.
        if let (Some(property_type), Some(default)) = (key.property_type, &key.default) {
            let checked = ColumnBuilder::new(property_type).push_text(value_text(default, property_type));
            checked.map_err(|what| format!("the default of key {}: {what}", shown(id.as_bytes())))?;
        }
        let is_of = [key.is_of_edges, key.is_of_nodes, !key.is_of_edges && !key.is_of_nodes];
        let number = push_key(&mut self.keys, key)?;
        self.has_own_type.push(has_own_type);
        // Keys of other elements are known, too, so that their data are ignored and not refused.
        for (numbers, is_of) in self.by_id.iter_mut().zip(is_of) {
            if is_of && numbers.insert(id.clone(), number).is_some() {
                return Err(format!("the key {} is declared twice", shown(id.as_bytes())));
            }
        }
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
