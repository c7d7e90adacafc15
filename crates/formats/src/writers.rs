//! The registry of output formats.
//!
//! A format is one file here, a `mod` line, and a line in the list below. The command line, its help and its
//! completions, the choice by name and by ending, and messages take the formats from this list.

mod arrow;
mod bvgraph;
mod csv;
mod edge_list;
mod gapbs;
mod gexf;
mod gml;
mod graphar;
mod graphframes;
mod graphml;
mod jsonl;
mod mtx;
mod node_link;
mod pajek;
mod parquet;

use std::path::Path;

use crate::Result;
use crate::output_folder::OutputFolder;
use crate::output_format::{
    ExportedGraph, GraphWriter, KeptParts, OutputContent, OutputEnding, OutputFormat, OutputMemory, ValueOfVertex,
};
use crate::readers;
use crate::write::Output;
use crate::write_mtx::{MatrixRows, matrix_rows};
use crate::write_values::ValueColumn;

/// Makes the list of all formats, and that of their writers for a type of graph, which a table cannot hold.
macro_rules! registry {
    ($($format:expr,)*) => {
        static FORMATS: &[&dyn OutputFormat] = &[$(&$format,)*];

        fn writers<'a, G: ExportedGraph + 'a>() -> impl Iterator<Item = &'a dyn GraphWriter<G>> {
            [$(&$format as &dyn GraphWriter<G>,)*].into_iter()
        }
    };
}

// In the order of help texts. The first entry with a name is the default for that name.
registry![
    edge_list::EdgeListOutput,
    csv::PLAIN,
    mtx::MtxOutput,
    parquet::ParquetOutput,
    arrow::ArrowOutput,
    graphml::GraphMlOutput,
    gapbs::SERIALIZED,
    gapbs::WEIGHTED,
    gexf::GexfOutput,
    gml::GmlOutput,
    pajek::PajekOutput,
    node_link::NodeLinkOutput,
    jsonl::JsonLinesOutput,
    csv::NEO4J,
    csv::NEPTUNE,
    bvgraph::BvGraphOutput,
    graphframes::GraphFramesOutput,
    graphar::GraphArOutput,
];

/// A format of exports. [`ExportFormat::names`] lists the formats.
#[derive(Clone, Copy)]
pub struct ExportFormat(&'static dyn OutputFormat);

impl ExportFormat {
    /// One line per edge: `source target [weight]`; one per vertex: its key.
    pub const EDGE_LIST: Self = Self(&edge_list::EdgeListOutput);
    /// Comma-separated values with a header: source, target, weight, properties.
    pub const CSV: Self = Self(&csv::PLAIN);
    /// Matrix Market; a vertex is a row number, from 1.
    pub const MTX: Self = Self(&mtx::MtxOutput);
    /// Parquet with columns `source`, `target`, `weight` and properties.
    pub const PARQUET: Self = Self(&parquet::ParquetOutput);
    /// A CSR in an Arrow IPC file: the key, the properties and the arcs of each vertex.
    pub const ARROW: Self = Self(&arrow::ArrowOutput);
    /// GraphML.
    pub const GRAPHML: Self = Self(&graphml::GraphMlOutput);
    /// The serialized graph of the GAP Benchmark Suite, without weights; a vertex is its id.
    pub const GAPBS: Self = Self(&gapbs::SERIALIZED);
    /// The serialized graph of the GAP Benchmark Suite with integer weights below 2^31.
    pub const WEIGHTED_GAPBS: Self = Self(&gapbs::WEIGHTED);
    /// BVGraph of WebGraph, three files; a vertex is a number from 0.
    pub const BVGRAPH: Self = Self(&bvgraph::BvGraphOutput);
    /// GEXF.
    pub const GEXF: Self = Self(&gexf::GexfOutput);
    /// GML.
    pub const GML: Self = Self(&gml::GmlOutput);
    /// A Pajek network, with keys as labels.
    pub const PAJEK: Self = Self(&pajek::PajekOutput);
    /// Node-link JSON, as NetworkX and D3 read it.
    pub const NODE_LINK: Self = Self(&node_link::NodeLinkOutput);
    /// A folder with the Parquet tables `vertices` and `edges` of GraphFrames.
    pub const GRAPHFRAMES: Self = Self(&graphframes::GraphFramesOutput);
    /// A folder of GraphAr: vertices by their labels and edges by their types, in chunks of Parquet.
    pub const GRAPHAR: Self = Self(&graphar::GraphArOutput);
    /// One JSON object per line: an edge, a vertex, or a value of a vertex.
    pub const JSON_LINES: Self = Self(&jsonl::JsonLinesOutput);

    /// The names of the formats that hold edges, in the order of help texts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = FORMATS.iter().enumerate().filter(|(place, format)| {
            // Several forms of a format have one name.
            !FORMATS[..*place].iter().any(|other| other.name() == format.name())
                && holds(**format, OutputContent::Edges)
        });
        names.map(|(_, format)| format.name())
    }

    /// The format with this name.
    ///
    /// ```
    /// # use anden_formats::ExportFormat;
    /// assert_eq!(ExportFormat::of_name("csv"), Some(ExportFormat::CSV));
    /// assert_eq!(ExportFormat::of_name("xlsx"), None);
    /// ```
    pub fn of_name(name: &str) -> Option<Self> {
        FORMATS.iter().find(|format| format.name() == name).copied().map(Self)
    }

    /// The endings of the formats for a content, as in `.txt, .csv or .parquet`.
    pub fn endings(content: OutputContent) -> String {
        let fitting = endings().filter(|(_, ending)| ending.contents.contains(&content));
        let endings: Vec<_> = fitting.map(|(_, ending)| format!(".{}", ending.ending)).collect();
        match endings.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => endings.concat(),
        }
    }

    /// The form of this format that fits the name of a file: `gapbs` has one each for `.sg`, `.wsg` and `.el`.
    #[must_use]
    pub fn for_path(self, path: &Path) -> Self {
        // The reader of this format takes the ending as a form, so the writer does, too.
        let is_form = readers::of_path(path).is_some_and(|reader| reader.name() == self.name());
        let form = lower_ending(path).and_then(|ending| of_ending(&ending));
        form.filter(|_| is_form).map_or(self, |(form, _)| form)
    }

    /// Whether a graph is a file of edges and one of vertices, both in this format.
    pub fn is_pair(self) -> bool {
        self.0.is_pair()
    }

    /// Whether a graph is a folder of files, which [`write_folder`](Self::write_folder) writes.
    pub fn is_folder(self) -> bool {
        self.0.is_folder()
    }

    /// The name that users type.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The parts of a graph that the format keeps.
    pub fn kept(self) -> KeptParts {
        self.0.kept()
    }

    /// Whether files name vertices by the numbers of matrix rows.
    pub fn has_matrix_rows(self) -> bool {
        self.0.has_matrix_rows()
    }

    /// The memory for an export of the edges. Cost: reads every degree for some formats.
    pub fn memory<G: ExportedGraph>(self, graph: &G) -> OutputMemory {
        self.writer::<G>().memory(graph)
    }

    /// Writes the edges, an undirected edge once. Returns their number.
    ///
    /// # Errors
    /// Those of keys, properties and output; damage of the graph. The format cannot hold the graph.
    pub fn write<G: ExportedGraph>(self, graph: &G, output: &mut Output<'_>) -> Result<u64, G::Error> {
        self.writer::<G>().write(graph, output)
    }

    /// Writes edges and vertices to a folder. Returns the number of edges.
    ///
    /// # Errors
    /// As [`write`](Self::write). The format is one file.
    pub fn write_folder<G: ExportedGraph>(self, graph: &G, folder: &OutputFolder<'_>) -> Result<u64, G::Error> {
        self.writer::<G>().write_folder(graph, folder)
    }

    /// Writes the vertices in the order of matrix rows, with their properties if the format keeps these.
    ///
    /// # Errors
    /// As [`write`](Self::write). The format holds no list of vertices.
    pub fn write_vertices<G: ExportedGraph>(self, graph: &G, output: &mut Output<'_>) -> Result<(), G::Error> {
        self.writer::<G>().write_vertices(graph, output)
    }

    /// Writes a table with the key and the value of vertices.
    ///
    /// # Errors
    /// As [`write`](Self::write). The format holds no values.
    pub fn write_values<G: ExportedGraph>(
        self,
        graph: &G,
        column: &ValueColumn<'_, &ValueOfVertex<'_>>,
        output: &mut Output<'_>,
    ) -> Result<(), G::Error> {
        self.writer::<G>().write_values(graph, column, output)
    }

    fn writer<'a, G: ExportedGraph + 'a>(self) -> &'a dyn GraphWriter<G> {
        let fallback: &dyn GraphWriter<G> = &edge_list::EdgeListOutput;
        // Handles come from the registry, so the fallback is never used.
        writers::<G>().find(|writer| identity(*writer) == identity(self.0)).unwrap_or(fallback)
    }
}

impl PartialEq for ExportFormat {
    fn eq(&self, other: &Self) -> bool {
        identity(self.0) == identity(other.0)
    }
}

impl Eq for ExportFormat {}

impl std::fmt::Debug for ExportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, ending) = identity(self.0);
        write!(f, "ExportFormat({name}, .{ending})")
    }
}

/// Entries of the registry differ in their name or in their first ending.
fn identity<F: OutputFormat + ?Sized>(format: &F) -> (&'static str, &'static str) {
    (format.name(), format.endings().first().map_or("", |ending| ending.ending))
}

fn holds(format: &dyn OutputFormat, content: OutputContent) -> bool {
    format.contents().contains(&content)
}

/// The endings of all formats, in the order of the registry.
fn endings() -> impl Iterator<Item = (ExportFormat, &'static OutputEnding)> {
    FORMATS.iter().flat_map(|format| format.endings().iter().map(|ending| (ExportFormat(*format), ending)))
}

/// The format with this ending in lower case.
pub(crate) fn of_ending(ending: &str) -> Option<(ExportFormat, &'static OutputEnding)> {
    endings().find(|(_, known)| known.ending == ending)
}

/// The ending of a path, in lower case.
pub(crate) fn lower_ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_lowercase())
}

/// The matrix rows of a graph's vertices.
fn rows_of<G: ExportedGraph>(graph: &G) -> Result<MatrixRows, G::Error> {
    matrix_rows(graph.graph(), graph.first_row_key(), |vertex, text| graph.push_key(vertex, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    #[test]
    fn endings_are_unique_and_names_have_readers() {
        let all: Vec<&str> = endings().map(|(_, ending)| ending.ending).collect();
        let mut distinct = all.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        for format in FORMATS {
            assert!(Format::of_name(format.name()).is_some(), "{}", format.name());
        }
    }

    #[test]
    fn ending_selects_the_form_of_a_format() {
        let form = |name: &str, path: &str| ExportFormat::of_name(name).unwrap().for_path(path.as_ref());
        for (name, path, expected) in [
            ("gapbs", "-", ExportFormat::GAPBS),
            ("gapbs", "x.txt", ExportFormat::GAPBS),
            ("gapbs", "x.WSG", ExportFormat::WEIGHTED_GAPBS),
            ("gapbs", "x.el", ExportFormat::EDGE_LIST),
            ("csv", "x.wsg", ExportFormat::CSV),
            ("csv", "x.tsv", ExportFormat::CSV),
            ("edgelist", "x.parquet", ExportFormat::EDGE_LIST),
        ] {
            assert_eq!(form(name, path), expected, "{name} {path}");
        }
    }
}
