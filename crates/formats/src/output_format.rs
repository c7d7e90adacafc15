//! The traits of an output format.
//!
//! A format is one file below `writers`, and one line in the registry. [`OutputFormat`] states facts that do not depend
//! on a graph. [`GraphWriter`] writes any [`ExportedGraph`]: the compiler makes one writer for each type of graph, so
//! loops over edges call no trait object.

use std::panic::RefUnwindSafe;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::{Graph, WeightedEdges};

use crate::edge_rows::WrittenProperties;
use crate::options::KeyKind;
use crate::output_folder::OutputFolder;
use crate::write::Output;
use crate::write_values::{ValueColumn, VertexValue};
use crate::{Error, Result};

/// Memory of output buffers and of one step of the walk over all lists.
pub(crate) const OUTPUT_BYTES: u64 = 8 << 20;

/// The content of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputContent {
    /// The edges of a graph.
    Edges,
    /// The vertices of a graph.
    Vertices,
    /// A value for each vertex.
    Values,
    /// The edges of a random graph.
    RandomEdges,
    /// The numbers of answered lines.
    LineNumbers,
}

impl OutputContent {
    /// The name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Edges => "edges",
            Self::Vertices => "vertices",
            Self::Values => "values of vertices",
            Self::RandomEdges => "a random graph",
            Self::LineNumbers => "line numbers",
        }
    }
}

/// An ending of file names and its meaning.
pub(crate) struct OutputEnding {
    /// In lower case, without the dot.
    pub(crate) ending: &'static str,
    /// The name of the format, with its article, as in `an edge list`.
    pub(crate) name: &'static str,
    /// The contents that a file with this ending may hold.
    pub(crate) contents: &'static [OutputContent],
}

impl OutputEnding {
    pub(crate) const fn new(ending: &'static str, name: &'static str, contents: &'static [OutputContent]) -> Self {
        Self { ending, name, contents }
    }
}

/// The parts of a graph that files of a format hold beside its edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptParts {
    /// The weights of edges.
    pub weights: bool,
    /// The properties of edges.
    pub edge_properties: bool,
    /// The properties of vertices, in the file of the edges.
    pub vertex_properties: bool,
    /// The properties of vertices, in a file of vertices.
    pub properties_of_vertex_files: bool,
}

/// The bytes that an export needs beside the pages of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputMemory {
    /// The bytes that do not depend on the number of workers.
    pub shared: u64,
    /// The bytes for each worker.
    pub per_worker: u64,
}

/// A graph with its keys and properties, as writers see it.
pub trait ExportedGraph: Sync {
    /// The lists.
    type Graph: WeightedEdges;
    /// The properties.
    type Properties: WrittenProperties<Self::Error>;
    /// Errors of keys and properties.
    type Error: From<Error> + Send;

    /// The lists.
    fn graph(&self) -> &Self::Graph;

    /// The properties.
    fn properties(&self) -> &Self::Properties;

    /// The threads that write.
    fn pool(&self) -> &Pool;

    /// The type of all keys.
    ///
    /// # Errors
    /// A key cannot be read.
    fn key_kind(&self) -> Result<KeyKind, Self::Error>;

    /// Appends the key of a vertex as text.
    ///
    /// # Errors
    /// The key cannot be read.
    fn push_key(&self, vertex: VertexId, text: &mut Vec<u8>) -> Result<(), Self::Error>;

    /// The bytes of the stored keys; 0 if ids are the keys.
    fn key_bytes(&self) -> u64;

    /// The key of matrix row 1 in a graph that was read from a matrix; `None` if keys are not numbers.
    fn first_row_key(&self) -> Option<u64>;
}

/// A format of outputs.
///
/// A format with several forms, such as `.sg` and `.wsg`, has one entry in the registry for each. All of them have one
/// name, and the ending of the file selects the entry.
pub(crate) trait OutputFormat: Sync + RefUnwindSafe {
    /// The name that users type. The reader of this name reads the output.
    fn name(&self) -> &'static str;

    /// The endings of names that select the format. Without any, only its name selects it.
    fn endings(&self) -> &'static [OutputEnding];

    /// The contents that the format holds under one of its endings.
    fn contents(&self) -> Vec<OutputContent> {
        self.endings().iter().flat_map(|ending| ending.contents).copied().collect()
    }

    /// Whether a graph is a file of edges and one of vertices, both in this format.
    fn is_pair(&self) -> bool {
        false
    }

    /// Whether a graph is a folder of files.
    fn is_folder(&self) -> bool {
        false
    }

    /// The parts of a graph that the format keeps.
    fn kept(&self) -> KeptParts;

    /// Whether files name vertices by the numbers of matrix rows.
    fn has_matrix_rows(&self) -> bool {
        false
    }
}

/// A function that gives the value of a vertex.
pub type ValueOfVertex<'a> = dyn Fn(VertexId) -> VertexValue + Sync + 'a;

/// The writer of a format for one type of graph. By default, a format holds no content.
pub(crate) trait GraphWriter<G: ExportedGraph>: OutputFormat {
    /// The memory for an export of the edges. By default, keys of targets are read in random order, so all their pages
    /// stay in memory.
    fn memory(&self, graph: &G) -> OutputMemory {
        OutputMemory { shared: OUTPUT_BYTES + graph.key_bytes(), per_worker: 0 }
    }

    /// Writes the edges, an undirected edge once. Returns their number.
    ///
    /// # Errors
    /// Those of keys, properties and output; damage of the graph. The format cannot hold the graph.
    fn write(&self, _graph: &G, _output: &mut Output<'_>) -> Result<u64, G::Error> {
        match self.is_folder() {
            true => {
                Err(Error::Parameter(format!("cannot write one file: the format {} is a folder", self.name())).into())
            }
            false => Err(misfit(self.name(), OutputContent::Edges).into()),
        }
    }

    /// Writes edges and vertices to a folder. Returns the number of edges.
    ///
    /// # Errors
    /// As [`write`](Self::write). The format is no folder.
    fn write_folder(&self, _graph: &G, _folder: &OutputFolder<'_>) -> Result<u64, G::Error> {
        Err(Error::Parameter(format!("cannot write a folder: the format {} is one file", self.name())).into())
    }

    /// Writes the vertices in the order of matrix rows, with their properties if the format keeps these.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_vertices(&self, _graph: &G, _output: &mut Output<'_>) -> Result<(), G::Error> {
        Err(misfit(self.name(), OutputContent::Vertices).into())
    }

    /// Writes a table with the key and the value of vertices.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn write_values(
        &self,
        _graph: &G,
        _column: &ValueColumn<'_, &ValueOfVertex<'_>>,
        _output: &mut Output<'_>,
    ) -> Result<(), G::Error> {
        Err(misfit(self.name(), OutputContent::Values).into())
    }
}

fn misfit(name: &str, content: OutputContent) -> Error {
    Error::Parameter(format!("cannot write {}: the format {name} does not hold them", content.name()))
}

/// The bytes of a table with an entry for each vertex.
pub(crate) fn vertex_table_bytes<G: ExportedGraph>(graph: &G, entry_bytes: u64) -> u64 {
    entry_bytes * graph.graph().vertex_bound() as u64
}
