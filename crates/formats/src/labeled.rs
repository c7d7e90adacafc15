//! Inputs with one edge type, one set of labels, or one key space for all rows.
//!
//! Types and labels are properties with built-in names, so every format, predicate and query supports them. A key in a
//! named space is the text `SPACE:KEY`.

use anden_graph::SPACE_SEPARATOR;

use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::options::{EdgeInput, KeyKind, LABEL_SEPARATOR, LABELS_PROPERTY, SourceOptions, TYPE_PROPERTY, VertexInput};
use crate::{Error, Result};

/// The properties and key spaces that apply to all rows of an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) edge_type: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) spaces: Spaces,
}

impl Said {
    /// The built-in property with one value for all rows: of edges (side 0) or vertices (1).
    pub(crate) fn property(&self, side: usize) -> Option<(&'static str, &str)> {
        let value = [&self.edge_type, &self.labels][side].as_deref();
        value.map(|value| ([TYPE_PROPERTY, LABELS_PROPERTY][side], value))
    }

    /// The facts among these whose properties the options ask for. Without an option for the file, types
    /// and labels are properties like others.
    pub(crate) fn wanted(mut self, options: &SourceOptions) -> Self {
        self.edge_type = self.edge_type.filter(|_| options.edge_properties.wants(TYPE_PROPERTY));
        self.labels = self.labels.filter(|_| options.vertex_properties.wants(LABELS_PROPERTY));
        self
    }

    /// These facts, and where they are silent those of a header.
    pub(crate) fn or(&self, header: &Self) -> Self {
        let or = |said: &Option<String>, header: &Option<String>| said.clone().or_else(|| header.clone());
        Self {
            edge_type: or(&self.edge_type, &header.edge_type),
            labels: or(&self.labels, &header.labels),
            spaces: Spaces {
                source: or(&self.spaces.source, &header.spaces.source),
                target: or(&self.spaces.target, &header.spaces.target),
            },
        }
    }
}

/// The key spaces of sources and targets. Keys of vertices use the space of sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spaces {
    source: Option<String>,
    target: Option<String>,
}

impl Spaces {
    pub(crate) fn new(source: Option<String>, target: Option<String>) -> Self {
        Self { source, target }
    }

    /// The names of the spaces.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.source, &self.target].into_iter().flatten().map(String::as_str)
    }
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

/// Refuses empty names, and key spaces and empty keys where keys are numbers.
pub(crate) fn check(options: &SourceOptions) -> Result<()> {
    if options.empty_ids && options.keys != KeyKind::String {
        return Err(Error::Parameter("--empty-ids takes empty text as a key: it needs --ids string".into()));
    }
    let of_vertices = options.vertices.iter().map(|input| &input.space);
    let of_edges = options.edges.iter().flat_map(|input| [&input.source_space, &input.target_space]);
    for space in of_vertices.chain(of_edges).flatten() {
        check_space(space)?;
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

/// Refuses a name that is not one of a key space.
pub(crate) fn check_space(space: &str) -> Result<()> {
    match space.is_empty() || space.contains(SPACE_SEPARATOR) {
        true => Err(Error::Parameter(format!("a key space is a name without '{SPACE_SEPARATOR}', not \"{space}\""))),
        false => Ok(()),
    }
}

impl Spaces {
    /// Prefixes the keys of a block with their spaces.
    ///
    /// # Errors
    /// A key with its space is too long.
    pub(crate) fn apply<K: FieldKey, W>(&self, parsed: &mut ParsedBlock<K, W>, text: &mut Vec<u8>) -> Result<()> {
        // Without spaces, keys need no copy.
        if self.source.is_none() && self.target.is_none() {
            return Ok(());
        }
        // The new text replaces the old one, so keys without a space are copied, too.
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
