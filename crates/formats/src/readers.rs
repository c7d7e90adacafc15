//! The registry of input formats.
//!
//! A format is one file or folder here, a `mod` line, and a line in [`READERS`]. The command line, its help and its
//! completions, the detection by name and by content, and messages take the formats from this table.

mod arrow;
mod bulk;
mod bvgraph;
mod csv;
mod dimacs;
mod edge_list;
mod gapbs;
mod gexf;
mod gml;
mod graphalytics;
mod graphar;
mod graphframes;
mod graphml;
mod jsonl;
mod matrix_market;
mod metis;
mod node_link;
mod pajek;
mod parquet;
mod tables;

use std::path::Path;

use crate::Result;
use crate::collector::InputCollector;
use crate::compression::Compression;
use crate::format::Format;
use crate::input_format::{InputFormat, Recognition};

/// All formats, in the order of help texts. Content is tested in the reverse order, so a special case of a format
/// stands behind it.
static READERS: &[&dyn InputFormat] = &[
    &edge_list::EdgeList,
    &csv::Csv,
    &matrix_market::MatrixMarket,
    &metis::Metis,
    &gapbs::Gapbs,
    &dimacs::Dimacs,
    &graphalytics::Graphalytics,
    &parquet::Parquet,
    &arrow::Arrow,
    &graphml::GraphMl,
    &gexf::Gexf,
    &gml::Gml,
    &pajek::Pajek,
    &node_link::NodeLink,
    &jsonl::JsonLines,
    &bulk::NEO4J,
    &bulk::NEPTUNE,
    &bvgraph::BvGraph,
    &graphframes::GraphFrames,
    &graphar::GraphAr,
];

impl Format {
    /// All formats, in the order of help texts.
    pub fn all() -> impl Iterator<Item = Self> {
        READERS.iter().map(|reader| Self::new(reader.name()))
    }

    /// The format with this name.
    ///
    /// ```
    /// # use anden_formats::Format;
    /// assert_eq!(Format::of_name("csv").map(Format::name), Some("csv"));
    /// assert_eq!(Format::of_name("xlsx"), None);
    /// ```
    pub fn of_name(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name() == name)
    }

    /// The format that the name of a file tells, without a suffix of compression. `None`: the content decides.
    pub fn of_path(path: &Path) -> Option<Self> {
        Some(Self::new(of_path(path)?.name()))
    }

    /// Whether all weights of the format are whole numbers.
    pub fn has_whole_weights(self) -> bool {
        reader(self).has_whole_weights()
    }
}

/// The reader of a format.
pub(crate) fn reader(format: Format) -> &'static dyn InputFormat {
    // Handles come from the table, so the first reader is never the wrong one.
    READERS.iter().copied().find(|reader| reader.name() == format.name()).unwrap_or(READERS[0])
}

/// The reader of CSV.
pub(crate) fn csv() -> &'static dyn InputFormat {
    &csv::Csv
}

/// The reader of the format that the name of a file tells, without a suffix of compression.
pub(crate) fn of_path(path: &Path) -> Option<&'static dyn InputFormat> {
    let ending = Compression::of_name(path).1.extension()?.to_str()?.to_lowercase();
    let has_ending = |reader: &&&dyn InputFormat| reader.endings().iter().any(|(known, _)| *known == ending);
    READERS.iter().find(has_ending).copied()
}

/// The reader of the format that the decompressed beginning of an input tells; by default an edge list.
pub(crate) fn of_content(text: &[u8]) -> &'static dyn InputFormat {
    let is_recognised = |reader: &&&dyn InputFormat| reader.recognises(text) != Recognition::No;
    READERS.iter().rev().find(is_recognised).copied().unwrap_or(READERS[0])
}

/// The reader of the only format that has such text at its beginning.
pub(crate) fn surely_of_content(text: &[u8]) -> Option<&'static dyn InputFormat> {
    READERS.iter().rev().find(|reader| reader.recognises(text) == Recognition::Sure).copied()
}

/// The reader of the format that a file has by the files beside it.
pub(crate) fn of_files(path: &Path) -> Option<&'static dyn InputFormat> {
    READERS.iter().find(|reader| reader.claims(path)).copied()
}

/// Opens an input of any format that a path names without being a file.
pub(crate) fn open_missing(path: &Path, to: &mut InputCollector<'_>) -> Option<Result<()>> {
    READERS.iter().find_map(|reader| reader.open_missing(path, to))
}

/// Whether a file or folder of any format says that its keys are text.
pub(crate) fn has_text_keys(path: &Path) -> bool {
    READERS.iter().any(|reader| reader.has_text_keys(path))
}

/// What an ending in lower case stands for, with its article where it has one.
pub(crate) fn name_of_ending(ending: &str) -> Option<&'static str> {
    let mut endings = READERS.iter().flat_map(|reader| reader.endings());
    endings.find(|(known, _)| *known == ending).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_endings_are_unique() {
        let names: Vec<&str> = Format::all().map(Format::name).collect();
        let endings: Vec<&str> =
            READERS.iter().flat_map(|reader| reader.endings()).map(|(ending, _)| *ending).collect();
        for known in [names, endings] {
            let mut distinct = known.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), known.len(), "{known:?}");
        }
    }

    #[test]
    fn names_tell_under_compression() {
        let format = |name: &str| Format::of_path(name.as_ref()).map(Format::name);
        assert_eq!(format("a/b.csv"), Some("csv"));
        assert_eq!(format("b.CSV.zst"), Some("csv"));
        assert_eq!(format("b.wsg"), Some("gapbs"));
        assert_eq!(format("road.gr.gz"), Some("dimacs"));
        assert_eq!(format("x.mtx.xz"), Some("mtx"));
        assert_eq!(format("x.txt.bz2"), None);
        assert_eq!(format("-"), None);
    }

    #[test]
    fn content_tells_where_names_do_not() {
        let format = |text: &str| of_content(text.as_bytes()).name();
        assert_eq!(format("# a,b\n1 2\n"), "edgelist");
        assert_eq!(format("# SNAP\n1,2,3\n"), "csv");
        assert_eq!(format("c road\np sp 2 1\na 1 2 3\n"), "dimacs");
        assert_eq!(format("c d\ne f\n"), "edgelist");
        assert_eq!(format("%%MatrixMarket matrix\n"), "mtx");
        assert_eq!(format("<?xml version='1.0'?>"), "graphml");
        assert_eq!(format("<?xml version='1.0'?>\n<gexf xmlns='x'>"), "gexf");
        assert_eq!(format("# made\nCreator \"x\"\ngraph\n[ directed 1\n"), "gml");
        assert_eq!(format("% made\n*network\n*Vertices 2\n"), "pajek");
        assert_eq!(format("{\"directed\": false, \"nodes\": [{\"id\": 1}"), "json");
        assert_eq!(format("{\"directed\": false, \"multigraph\": true, \"graph\": {\"name\""), "json");
        assert_eq!(format("{\"source\": 1, \"nodes\": [1]}\n{\"source\": 2}"), "jsonl");
        assert_eq!(format("#rust,#go\n#go,#c\n"), "csv");
        assert_eq!(format("# 5 nodes, 3 edges\n# more, words\n"), "edgelist");
        assert_eq!(format(""), "edgelist");
    }
}
