//! One opened input: its content, its properties and the facts that apply to all its rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anden_graph::WeightType;

use crate::Result;
use crate::labeled::Said;
use crate::options::{ColumnName, InputColumns, SourceFacts, SourceOptions};
use crate::outcome::PartCounts;
use crate::part::{InputBytes, InputContent, InputReader, InputStart, PartProperties};
use crate::table::TableHead;
use crate::unnamed_columns::{UnnamedColumns, leave_out, left_out_note};

/// The largest number of columns that a report names, as for the first line of a table.
const MAX_REPORTED: usize = 10_000;

/// One input.
pub(crate) struct OpenedInput {
    pub(crate) path: PathBuf,
    pub(crate) content: Box<dyn InputContent>,
    pub(crate) bytes: InputBytes,
    /// Whether each row is a vertex.
    pub(crate) is_of_vertices: bool,
    /// The number of edges, or of vertices in a file of vertices, that another file promises.
    pub(crate) num_promised: Option<u64>,
    /// The type of the weights, if weights are read and the input states it.
    pub(crate) weight_type: Option<WeightType>,
    /// The properties of edges, then of vertices. Blocks have a column for each.
    pub(crate) properties: [PartProperties; 2],
    /// The columns of a table in text; `None` for other inputs and for a table without rows.
    pub(crate) table: Option<TableHead>,
    /// Comments before the first row of a table.
    pub(crate) num_comments: u64,
    /// Set for text with columns that have no names.
    pub(crate) unnamed: Option<UnnamedColumns>,
    /// The facts that apply to all rows.
    pub(crate) said: Said,
}

impl OpenedInput {
    /// An input of edges without properties.
    pub(crate) fn new(path: &Path, bytes: InputBytes, content: Box<dyn InputContent>) -> Self {
        Self {
            path: path.to_owned(),
            content,
            bytes,
            is_of_vertices: false,
            num_promised: None,
            weight_type: None,
            properties: Default::default(),
            table: None,
            num_comments: 0,
            unnamed: None,
            said: Said::default(),
        }
    }

    /// Begins to read the input.
    ///
    /// # Errors
    /// The input cannot be opened again.
    pub(crate) fn begin(
        &mut self,
        options: &SourceOptions,
        bytes_read: &Arc<AtomicU64>,
    ) -> Result<Box<dyn InputReader>> {
        let Self { path, properties, bytes, .. } = self;
        self.content.begin(InputStart { path, options, properties, bytes, bytes_read })
    }
}

/// Records the unread columns of all inputs after a read.
pub(crate) fn describe(parts: &[OpenedInput], counts: &[PartCounts], facts: &mut SourceFacts) {
    let mut notes = Vec::new();
    for (part, counts) in parts.iter().zip(counts) {
        let Some(unnamed) = part.unnamed else { continue };
        let is_of_edges = !part.is_of_vertices;
        if is_of_edges && counts.num_edges > 0 && facts.columns.source.is_none() {
            // The sampled beginning of the input held only comments.
            let [source, target, weight] = [1, 2, 3].map(|place| Some(ColumnName::Number(place)));
            let weight = weight.filter(|_| unnamed.num_read > 2);
            facts.columns =
                InputColumns { source, target, weight, left_out: std::mem::take(&mut facts.columns.left_out) };
        }
        // Bounds the report of a line with a huge number of columns.
        let last = counts.num_columns.min(MAX_REPORTED);
        let columns: Vec<ColumnName> = (unnamed.num_read + 1..=last).map(ColumnName::Number).collect();
        if columns.is_empty() {
            continue;
        }
        let is_noted = unnamed.is_third_noted && columns == [ColumnName::Number(3)];
        if let Some(hint) = unnamed.hint.filter(|_| !is_noted) {
            let note = format!("{}: {}{hint}", part.path.display(), left_out_note(&columns));
            notes.push((unnamed.note_place, note));
        }
        if is_of_edges {
            leave_out(facts, columns);
        }
    }
    // In reverse order, because positions count the notes that existed before.
    for (place, note) in notes.into_iter().rev() {
        facts.notes.insert(place, note);
    }
}
