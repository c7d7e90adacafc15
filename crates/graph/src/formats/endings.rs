//! The endings of file names, and the formats that they name: for inputs and for outputs.
//!
//! The names of formats that are neither read nor written are in [`foreign`].

use std::path::Path;

use super::compression::Compression;
use super::foreign;
use super::options::Format;
use crate::{Error, Result};

/// What an output holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputContent {
    /// The edges of a graph.
    Edges,
    /// The vertices of a graph.
    Vertices,
    /// A value for each vertex.
    Values,
    /// The edges of a graph that is made at random.
    RandomEdges,
    /// The numbers of lines that were answered.
    LineNumbers,
}

/// How an output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Lines of values with blanks between them.
    Text,
    /// Comma-separated values under a header.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// A JSON object a line.
    JsonLines,
    /// GraphML.
    GraphMl,
    /// Matrix Market.
    Mtx,
    /// GAP's serialized graph without weights.
    Gapbs,
    /// GAP's serialized graph with weights.
    WeightedGapbs,
}

/// An ending, and what it means.
struct Ending {
    ending: &'static str,
    /// With its article.
    name: &'static str,
    /// How an input is read; `None` where its content tells, or it is not read.
    reads: Option<Format>,
    /// How an output is written, and what it may hold.
    writes: Option<(OutputFormat, &'static [OutputContent])>,
}

use OutputContent::{Edges, LineNumbers, RandomEdges, Values, Vertices};

const EDGES: &[OutputContent] = &[Edges];
const ALL_EDGES: &[OutputContent] = &[Edges, RandomEdges];
const TABLES: &[OutputContent] = &[Edges, Vertices, Values];

/// The endings of formats that are read or written.
static TABLE: &[Ending] = &[
    ending("txt", "text", None, Some((OutputFormat::Text, &[Edges, Vertices, Values, RandomEdges, LineNumbers]))),
    ending("csv", "CSV", Some(Format::Csv), Some((OutputFormat::Csv, TABLES))),
    ending("tsv", "tab-separated values", Some(Format::Csv), None),
    ending("parquet", "Parquet", Some(Format::Parquet), Some((OutputFormat::Parquet, TABLES))),
    ending("jsonl", "JSON lines", None, Some((OutputFormat::JsonLines, &[Values]))),
    ending("ndjson", "JSON lines", None, Some((OutputFormat::JsonLines, &[Values]))),
    ending("graphml", "GraphML", Some(Format::GraphMl), Some((OutputFormat::GraphMl, EDGES))),
    ending("mtx", "Matrix Market", Some(Format::Mtx), Some((OutputFormat::Mtx, EDGES))),
    ending("el", "an edge list", Some(Format::Gapbs), Some((OutputFormat::Text, ALL_EDGES))),
    ending("wel", "a weighted edge list", Some(Format::Gapbs), Some((OutputFormat::Text, ALL_EDGES))),
    ending("sg", "a serialized graph", Some(Format::Gapbs), Some((OutputFormat::Gapbs, ALL_EDGES))),
    ending("wsg", "a weighted serialized graph", Some(Format::Gapbs), Some((OutputFormat::WeightedGapbs, ALL_EDGES))),
    ending("e", "the edges of a Graphalytics graph", Some(Format::Graphalytics), Some((OutputFormat::Text, EDGES))),
    ending(
        "v",
        "the vertices of a Graphalytics graph",
        Some(Format::Graphalytics),
        Some((OutputFormat::Text, &[Vertices])),
    ),
    ending("properties", "the properties of a Graphalytics graph", Some(Format::Graphalytics), None),
    ending("gr", "DIMACS", Some(Format::Dimacs), None),
    ending("metis", "METIS", Some(Format::Metis), None),
    ending("graph", "METIS", Some(Format::Metis), None),
];

const fn ending(
    ending: &'static str,
    name: &'static str,
    reads: Option<Format>,
    writes: Option<(OutputFormat, &'static [OutputContent])>,
) -> Ending {
    Ending { ending, name, reads, writes }
}

impl OutputContent {
    /// For messages.
    fn name(self) -> &'static str {
        match self {
            Self::Edges => "edges",
            Self::Vertices => "vertices",
            Self::Values => "values of vertices",
            Self::RandomEdges => "a random graph",
            Self::LineNumbers => "line numbers",
        }
    }

    /// The endings that name a format in which it is written, as in `.txt, .csv or .parquet`.
    fn written(self) -> String {
        let holds = |ending: &&Ending| ending.writes.is_some_and(|(_, contents)| contents.contains(&self));
        let endings: Vec<_> = TABLE.iter().filter(holds).map(|ending| format!(".{}", ending.ending)).collect();
        match endings.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => endings.concat(),
        }
    }
}

/// The format that a name tells, under a suffix of compression.
pub(super) fn input_format(path: &Path) -> Option<Format> {
    let ending = lower_ending(Compression::of_name(path).1)?;
    TABLE.iter().find(|known| known.ending == ending)?.reads
}

/// The format that the ending of an output's name asks for; text where there is no ending, or none that is known.
///
/// # Errors
/// [`Error::Ending`]: the ending is that of a format that `content` is not written in, or of a compressed file.
pub fn output_format(path: &Path, content: OutputContent) -> Result<OutputFormat> {
    require_uncompressed(path, content)?;
    let Some(ending) = lower_ending(path) else { return Ok(OutputFormat::Text) };
    let known = TABLE.iter().find(|known| known.ending == ending);
    let name = match known {
        Some(Ending { writes: Some((format, contents)), .. }) if contents.contains(&content) => return Ok(*format),
        Some(known) => known.name,
        None => match foreign::of_ending(&ending) {
            Some(format) => format.name,
            None => return Ok(OutputFormat::Text),
        },
    };
    Err(misfit(path, content, ending, name))
}

/// Refuses a name that promises a compressed file, whatever format is asked for.
///
/// # Errors
/// [`Error::Ending`].
pub fn require_uncompressed(path: &Path, content: OutputContent) -> Result<()> {
    match (Compression::of_name(path), lower_ending(path)) {
        ((Some(_), _), Some(ending)) => Err(misfit(path, content, ending, "a compressed file")),
        _ => Ok(()),
    }
}

fn misfit(path: &Path, content: OutputContent, ending: String, format: &'static str) -> Error {
    Error::Ending { content: content.name(), path: path.to_owned(), ending, format, written: content.written() }
}

fn lower_ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_name_the_format_of_an_output() {
        let format = |name: &str| output_format(name.as_ref(), Edges).map_err(|error| error.to_string());
        for name in ["-", "edges", "a.b/edges", "edges.out", "edges.2024", ".hidden", "edges.TXT", "g.el", "g.e"] {
            assert_eq!(format(name), Ok(OutputFormat::Text), "{name}");
        }
        assert_eq!(format("a.CSV"), Ok(OutputFormat::Csv));
        assert_eq!(format("a.wsg"), Ok(OutputFormat::WeightedGapbs));
        let expected = "cannot write edges: '.gexf' is the ending of a GEXF file, which is not written (k.gexf); \
            use .txt, .csv, .parquet, .graphml, .mtx, .el, .wel, .sg, .wsg or .e";
        assert_eq!(format("k.gexf"), Err(expected.to_owned()));
        assert!(format("k.csv.gz").unwrap_err().contains("'.gz' is the ending of a compressed file"));
        assert!(format("k.jsonl").unwrap_err().contains("'.jsonl' is the ending of JSON lines"));
    }

    #[test]
    fn a_name_of_one_format_is_written_or_refused() {
        let contents = [Edges, Vertices, Values, RandomEdges, LineNumbers];
        for known in TABLE {
            for content in contents {
                let is_written = known.writes.is_some_and(|(_, contents)| contents.contains(&content));
                let found = output_format(format!("x.{}", known.ending).as_ref(), content);
                assert_eq!(found.is_ok(), is_written, "{} {content:?}", known.ending);
            }
        }
    }
}
