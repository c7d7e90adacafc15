//! The format that the ending of an output's name selects.
//!
//! [`writers`] holds the endings of outputs, [`readers`] those of inputs, [`foreign`] those of formats that are neither
//! read nor written.

use std::path::Path;

use crate::compression::Compression;
use crate::foreign;
use crate::output_format::OutputContent;
use crate::readers;
use crate::writers::{self, ExportFormat, lower_ending};
use crate::{Error, Result};

impl ExportFormat {
    /// The format for the ending of an output's name. Text if the ending is missing or unknown.
    ///
    /// # Errors
    /// [`Error::Ending`]: the ending belongs to a format that cannot hold `content`, or to a compressed file.
    pub fn of_path(path: &Path, content: OutputContent) -> Result<Self> {
        require_uncompressed(path, content)?;
        let Some(ending) = lower_ending(path) else { return Ok(Self::EDGE_LIST) };
        let name = match writers::of_ending(&ending) {
            Some((format, known)) if known.contents.contains(&content) => return Ok(format),
            Some((_, known)) => known.name,
            // Text under an ending of an input would be read as that format.
            None => match readers::name_of_ending(&ending).or_else(|| foreign::name_of_ending(&ending)) {
                Some(name) => name,
                None => return Ok(Self::EDGE_LIST),
            },
        };
        Err(misfit(path, content, ending, name))
    }

    /// The format of a file of vertices beside edges in this format: this format if both files of a graph have it, as
    /// for Neo4j, otherwise the one that the name tells.
    ///
    /// # Errors
    /// As [`of_path`](Self::of_path).
    pub fn of_vertices_at(self, path: &Path) -> Result<Self> {
        match self.is_pair() {
            true => require_uncompressed(path, OutputContent::Vertices).map(|()| self),
            false => Self::of_path(path, OutputContent::Vertices),
        }
    }
}

/// Refuses a name that promises a compressed file, in any format.
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
    let written = ExportFormat::endings(content);
    Error::Ending { content: content.name(), path: path.to_owned(), ending, format, written }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_format::OutputContent::{Edges, LineNumbers, RandomEdges, Values, Vertices};

    #[test]
    fn endings_name_the_format_of_an_output() {
        let format = |name: &str| ExportFormat::of_path(name.as_ref(), Edges).map_err(|error| error.to_string());
        for name in ["-", "edges", "a.b/edges", "edges.out", "edges.2024", ".hidden", "edges.TXT", "g.el", "g.e"] {
            assert_eq!(format(name), Ok(ExportFormat::EDGE_LIST), "{name}");
        }
        assert_eq!(format("a.CSV"), Ok(ExportFormat::CSV));
        assert_eq!(format("a.wsg"), Ok(ExportFormat::WEIGHTED_GAPBS));
        let expected = "cannot write edges: '.dot' is the ending of a DOT file, which is not written (k.dot); use .txt, \
            .el, .wel, .e, .csv, .mtx, .parquet, .arrow, .feather, .graphml, .sg, .wsg, .gexf, .gml, .net, .json, \
            .jsonl or .ndjson";
        assert_eq!(format("k.dot"), Err(expected.to_owned()));
        assert!(format("k.csv.gz").unwrap_err().contains("'.gz' is the ending of a compressed file"));
        assert!(format("k.xlsx").unwrap_err().contains("'.xlsx' is the ending of an Excel workbook"));
    }

    #[test]
    fn a_name_of_one_format_is_written_or_refused() {
        for ending in ExportFormat::endings(Edges).replace(" or ", ", ").split(", ") {
            for content in [Edges, Vertices, Values, RandomEdges, LineNumbers] {
                let is_written = writers::of_ending(&ending[1..]).unwrap().1.contents.contains(&content);
                assert_eq!(
                    ExportFormat::of_path(format!("x{ending}").as_ref(), content).is_ok(),
                    is_written,
                    "{ending}"
                );
            }
        }
    }
}
