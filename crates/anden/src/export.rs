//! Writing a graph, or anything else, to a file that appears whole or not at all.

use std::path::Path;

use graph::formats::{self, Output, SerializedWeights};

use crate::{Error, Key, Result, View};

/// The formats that a graph can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// `source target [weight]` a line.
    EdgeList,
    /// The same with commas, under a header.
    Csv,
    /// GAP's serialized graph without weights; vertices by their ids.
    Gapbs,
    /// GAP's serialized graph with weights, which must be whole numbers of 31 bits.
    WeightedGapbs,
}

/// Lets `body` write a file: under a temporary name first, which becomes `path` once all is on disk.
/// A device or a pipe that is at `path` is written to as it is.
///
/// # Errors
/// Those of `body` and of the file system; nothing is left behind then, and a file that was at
/// `path` stays as it was.
pub fn write_file<T, E: From<Error>>(path: &Path, body: impl FnOnce(&mut Output<'_>) -> Result<T, E>) -> Result<T, E> {
    formats::write_file(path, |output| body(output).map_err(Wrapped)).map_err(|Wrapped(error)| error)
}

/// Lets an error of the writers below stand for the caller's.
struct Wrapped<E>(E);

impl<E: From<Error>> From<graph::Error> for Wrapped<E> {
    fn from(error: graph::Error) -> Self {
        Self(Error::from(error).into())
    }
}

impl View {
    /// Writes the graph; an undirected edge once. Returns how many edges.
    ///
    /// # Errors
    /// The output's; a graph that the format cannot hold; damage met on the way; cancellation.
    pub fn export(&self, format: ExportFormat, output: &mut Output<'_>) -> Result<u64> {
        let graph = self.lists();
        let progress = self.context().progress;
        let key = |vertex, line: &mut Vec<u8>| -> Result<()> {
            progress.check()?;
            match self.key(vertex)? {
                Key::Integer(key) => line.extend_from_slice(key.to_string().as_bytes()),
                Key::String(key) => line.extend_from_slice(key.as_bytes()),
            }
            Ok(())
        };
        let num_edges = match format {
            ExportFormat::EdgeList => formats::write_edge_list(graph, key, output)?,
            ExportFormat::Csv => formats::write_csv(graph, key, output)?,
            ExportFormat::Gapbs => {
                formats::write_gapbs(graph, SerializedWeights::Leave, output)?;
                self.num_edges()
            }
            ExportFormat::WeightedGapbs => {
                formats::write_gapbs(graph, SerializedWeights::Write, output)?;
                self.num_edges()
            }
        };
        Ok(num_edges)
    }
}
