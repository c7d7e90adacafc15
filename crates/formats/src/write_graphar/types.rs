//! The types of vertices, and the numbers of vertices within their types.

use std::collections::{HashMap, HashSet};

use anden_base::VertexId;
use anden_graph::Graph;
use anden_graph::property::{PropertySchema, PropertyType, PropertyValue};

use crate::edge_rows::WrittenProperties;
use crate::options::LABELS_PROPERTY;
use crate::output_folder::OutputFolder;
use crate::output_format::ExportedGraph;
use crate::write_parquet::GROUP_ROWS;
use crate::{Error, Result};

/// The largest number of types, each of which has files of its own.
const MAX_TYPES: usize = 1 << 12;
/// The type of vertices without labels.
const NO_LABELS: &str = "vertex";
/// The type, the number and the place of a vertex.
pub(super) const BYTES_PER_VERTEX: u64 = 12;

/// The vertices by type.
pub(super) struct VertexTypes {
    /// The labels of each type.
    pub(super) names: Vec<String>,
    /// By id: the type, and the number within it.
    types: Vec<u32>,
    numbers: Vec<u32>,
    /// The vertices, by type and then by id.
    order: Vec<VertexId>,
    /// The places in the order where the types begin, and its end.
    starts: Vec<usize>,
}

impl VertexTypes {
    pub(super) fn new<G: ExportedGraph>(graph: &G, folder: &OutputFolder<'_>) -> Result<Self, G::Error> {
        let (lists, bound) = (graph.graph(), graph.graph().vertex_bound());
        let mut names = TypeNames::new(graph.properties().vertex_schema(), LABELS_PROPERTY, NO_LABELS);
        let (mut types, mut numbers, mut sizes) = (vec![0; bound], vec![0; bound], Vec::new());
        for first in (0..bound).step_by(GROUP_ROWS) {
            let ids = first as VertexId..bound.min(first + GROUP_ROWS) as VertexId;
            let ids: Vec<VertexId> = ids.filter(|&vertex| lists.is_live(vertex)).collect();
            let column = match names.column {
                Some(column) => Some(graph.properties().vertex_columns(&ids)?.swap_remove(column)),
                None => None,
            };
            for (row, &vertex) in ids.iter().enumerate() {
                let value = column.as_ref().map_or(PropertyValue::Null, |column| column.get(row));
                let place = names.place(value, folder)?;
                sizes.resize(sizes.len().max(place + 1), 0_usize);
                types[vertex as usize] = place as u32;
                numbers[vertex as usize] = sizes[place] as u32;
                sizes[place] += 1;
            }
        }
        let mut starts = vec![0];
        sizes.iter().for_each(|size| starts.push(starts[starts.len() - 1] + size));
        let mut order = vec![0; starts[starts.len() - 1]];
        for vertex in (0..bound as VertexId).filter(|&vertex| lists.is_live(vertex)) {
            let (place, number) = (types[vertex as usize], numbers[vertex as usize]);
            order[starts[place as usize] + number as usize] = vertex;
        }
        Ok(Self { names: names.names, types, numbers, order, starts })
    }

    /// The vertices of a type in the order of their numbers.
    pub(super) fn vertices(&self, place: usize) -> &[VertexId] {
        &self.order[self.starts[place]..self.starts[place + 1]]
    }

    pub(super) fn type_of(&self, vertex: VertexId) -> usize {
        self.types[vertex as usize] as usize
    }

    pub(super) fn number_of(&self, vertex: VertexId) -> u32 {
        self.numbers[vertex as usize]
    }
}

/// The distinct values of a property that tells types.
pub(super) struct TypeNames {
    /// The property; `None` if the graph has none.
    pub(super) column: Option<usize>,
    pub(super) names: Vec<String>,
    places: HashMap<String, usize>,
    without: &'static str,
}

impl TypeNames {
    pub(super) fn new(schema: &PropertySchema, property: &str, without: &'static str) -> Self {
        let column = schema.iter().position(|(name, found)| name == property && found == PropertyType::String);
        Self { column, names: Vec::new(), places: HashMap::new(), without }
    }

    /// The place of a name.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn place(&mut self, value: PropertyValue<'_>, folder: &OutputFolder<'_>) -> Result<usize> {
        let name = match value {
            PropertyValue::String(name) if !name.is_empty() => name,
            _ => self.without,
        };
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        if self.names.len() == MAX_TYPES {
            let what = format!("more than {MAX_TYPES} types, each of which would have files of its own: write Parquet");
            return Err(Error::Input { path: folder.path_of(""), what });
        }
        self.places.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        Ok(self.names.len() - 1)
    }
}

/// A name for files that no other has, without characters that have a meaning in paths.
pub(super) fn safe_name(name: &str, taken: &mut HashSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let plain: String = name.chars().take(64).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let numbered = |count: usize| if count == 1 { plain.clone() } else { format!("{plain}_{count}") };
    // TypeNames of files may be compared without case.
    (1..).map(numbered).find(|name| taken.insert(name.to_lowercase())).unwrap_or_default()
}
