//! Inputs whose rows are all of one kind: the type of the edges, the labels of the vertices, and the key spaces.
//!
//! A type and labels are properties with built-in names, so that every format, predicate and query knows them. A key
//! in a named space is the text `SPACE:KEY`.

use std::path::PathBuf;

use super::InputPath;
use super::key::FieldKey;
use super::lines::Parsed;
use super::options::{KeyKind, SourceOptions};
use crate::{Error, Result};

/// The property of edges that holds their type.
pub const TYPE_PROPERTY: &str = "type";
/// The property of vertices that holds their labels; `;` separates several.
pub const LABELS_PROPERTY: &str = "labels";
/// Separates labels in [`LABELS_PROPERTY`].
pub const LABEL_SEPARATOR: char = ';';
/// Separates a key space from the key.
pub const SPACE_SEPARATOR: char = ':';

/// A file that names vertices, one a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VertexInput {
    /// The file; `-` for standard input.
    pub path: PathBuf,
    /// Labels of all vertices of the file, separated by `;`; `None`: the file says nothing of labels, unless it has a
    /// column `labels`.
    pub labels: Option<String>,
    /// The space of the keys; `None`: the keys are taken as they are.
    pub space: Option<String>,
}

impl From<PathBuf> for VertexInput {
    fn from(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }
}

/// An input of edges of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeInput {
    /// The input.
    pub path: InputPath,
    /// The type of all its edges.
    pub edge_type: String,
    /// The space of the keys of sources; `None`: the keys are taken as they are.
    pub source_space: Option<String>,
    /// The space of the keys of targets, likewise.
    pub target_space: Option<String>,
}

/// What an input says of all its rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) edge_type: Option<String>,
    pub(super) labels: Option<String>,
    pub(super) spaces: Spaces,
}

impl Said {
    /// The built-in property that all rows have the same value of: of the edges (side 0) or the vertices (1).
    pub(super) fn property(&self, side: usize) -> Option<(&'static str, &str)> {
        let value = [&self.edge_type, &self.labels][side].as_deref();
        value.map(|value| ([TYPE_PROPERTY, LABELS_PROPERTY][side], value))
    }
}

/// The spaces of the keys of sources and targets; keys of vertices are in that of sources.
#[derive(Clone, Debug, Default)]
pub(super) struct Spaces {
    source: Option<String>,
    target: Option<String>,
}

impl From<&VertexInput> for Said {
    fn from(input: &VertexInput) -> Self {
        let spaces = Spaces { source: input.space.clone(), target: input.space.clone() };
        Self { edge_type: None, labels: input.labels.clone(), spaces }
    }
}

impl From<&EdgeInput> for Said {
    fn from(input: &EdgeInput) -> Self {
        let spaces = Spaces { source: input.source_space.clone(), target: input.target_space.clone() };
        Self { edge_type: Some(input.edge_type.clone()), labels: None, spaces }
    }
}

/// Refuses names that are none, and spaces of keys that are numbers.
pub(super) fn check(options: &SourceOptions) -> Result<()> {
    let of_vertices = options.vertices.iter().map(|input| &input.space);
    let of_edges = options.edges.iter().flat_map(|input| [&input.source_space, &input.target_space]);
    for space in of_vertices.chain(of_edges).flatten() {
        if space.is_empty() || space.contains(SPACE_SEPARATOR) {
            return Err(Error::Parameter(format!(
                "a key space is a name without '{SPACE_SEPARATOR}', not \"{space}\""
            )));
        }
        if options.keys != KeyKind::String {
            let what = format!("keys in the space \"{space}\" are text: key spaces need --ids string");
            return Err(Error::Parameter(what));
        }
    }
    let types = options.edges.iter().map(|input| ("an edge type", &*input.edge_type));
    let labels = options.vertices.iter().filter_map(|input| input.labels.as_deref());
    let labels = labels.flat_map(|labels| labels.split(LABEL_SEPARATOR)).map(|label| ("a label", label));
    match types.chain(labels).find(|(_, name)| name.is_empty()) {
        Some((what, _)) => Err(Error::Parameter(format!("{what} has at least one character"))),
        None => Ok(()),
    }
}

impl Spaces {
    /// Puts the keys of a block in their spaces.
    ///
    /// # Errors
    /// A key is too long with its space.
    pub(super) fn apply<K: FieldKey, W>(&self, parsed: &mut Parsed<K, W>, text: &mut Vec<u8>) -> Result<()> {
        if self.source.is_none() && self.target.is_none() {
            return Ok(());
        }
        let mut placed = Vec::with_capacity(2 * text.len());
        let mut full = Vec::new();
        let mut place = |key: &mut K, space: &Option<String>| {
            full.clear();
            if let Some(space) = space {
                full.extend_from_slice(space.as_bytes());
                full.push(SPACE_SEPARATOR as u8);
            }
            full.extend_from_slice(key.as_text(text));
            let too_long = || format!("expected keys that are {} with their space, found a longer one", K::RANGE);
            *key = K::from_owned(&full, 0, &mut placed).ok_or_else(|| Error::Parameter(too_long()))?;
            Ok::<_, Error>(())
        };
        for (source, target) in &mut parsed.edges {
            place(source, &self.source)?;
            place(target, &self.target)?;
        }
        parsed.vertices.iter_mut().try_for_each(|vertex| place(vertex, &self.source))?;
        *text = placed;
        Ok(())
    }
}
