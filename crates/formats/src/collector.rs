//! Collects the opened inputs and their facts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_graph::GraphKind;

use crate::lines::has_list_lines;
use crate::opened::OpenedInput;
use crate::options::{ColumnName, InputColumns, KeyKind, LoneKeys, SourceFacts, SourceOptions, WantedProperties};
use crate::part::InputContent;
use crate::probe::InputProbe;
use crate::serialized::SerializedGraph;
use crate::unnamed_columns::{UnnamedColumns, leave_out, left_out_note};
use crate::{Error, Result};

/// The inputs and facts of a source.
pub(crate) struct CollectedInputs {
    pub(crate) parts: Vec<OpenedInput>,
    pub(crate) facts: SourceFacts,
    /// The only input, if it is a serialized graph.
    pub(crate) serialized: Option<Arc<SerializedGraph>>,
    /// Pairs of a file that lists all vertices and the file of their edges.
    pub(crate) listings: Vec<(PathBuf, PathBuf)>,
}

/// Collects inputs. Formats add their parts and facts.
pub(crate) struct InputCollector<'a> {
    pub(crate) options: &'a SourceOptions,
    pub(crate) parts: Vec<OpenedInput>,
    pub(crate) facts: SourceFacts,
    /// Whether a file has the name of edges between two kinds of LDBC's social network.
    pub(crate) has_relations: bool,
    listings: Vec<(PathBuf, PathBuf)>,
}

impl<'a> InputCollector<'a> {
    pub(crate) fn new(options: &'a SourceOptions) -> Self {
        let facts = SourceFacts { input_bytes: Some(0), ..SourceFacts::default() };
        Self { options, parts: Vec::new(), facts, has_relations: false, listings: Vec::new() }
    }

    /// Adds an input of edges. Returns the part, to which the caller adds properties and promises.
    pub(crate) fn push(&mut self, mut input: InputProbe, content: Box<dyn InputContent>) -> &mut OpenedInput {
        self.facts.input_bytes = self.facts.input_bytes.zip(input.num_bytes).map(|(sum, bytes)| sum + bytes);
        let bytes = input.take_bytes();
        self.parts.push(OpenedInput::new(&input.path, bytes, content));
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }

    /// Adds an input of vertices.
    pub(crate) fn push_vertices(&mut self, input: InputProbe, content: Box<dyn InputContent>) -> &mut OpenedInput {
        let part = self.push(input, content);
        part.is_of_vertices = true;
        part
    }

    /// Records that a file lists all vertices of a file of edges.
    pub(crate) fn push_listing(&mut self, vertices: PathBuf, edges: PathBuf) {
        self.listings.push((vertices, edges));
    }

    /// Adds a note for users.
    pub(crate) fn note(&mut self, path: &Path, note: &str) {
        self.facts.notes.push(format!("{}: {note}", path.display()));
    }

    /// The hint after a note on left-out columns; `None` if the caller selected columns by name.
    pub(crate) fn hint(&self, columns: &InputColumns, wanted: &WantedProperties) -> Option<&'static str> {
        let are_unnamed = columns.left_out.iter().all(|column| matches!(column, ColumnName::Number(_)));
        Some(match (&columns.source, wanted, self.options.weights) {
            (_, WantedProperties::Named(_), _) => return None,
            _ if self.options.lone_keys == LoneKeys::Vertices => "; removals name edges by source and target",
            (None, ..) => "",
            (Some(ColumnName::Number(_)), _, None) => {
                "; --columns names them to keep them, --weights takes the third as the weight"
            }
            (Some(ColumnName::Number(_)), _, Some(_)) => "; --columns names them to keep them",
            (Some(ColumnName::Name(_)), WantedProperties::None, _) => "; --properties names columns to keep",
            (Some(ColumnName::Name(_)), WantedProperties::All, _) if are_unnamed => "; a property needs a name",
            _ => "",
        })
    }

    /// Records the columns of an input. With a `hint`, adds a note on left-out columns.
    pub(crate) fn describe(&mut self, path: &Path, columns: InputColumns, is_of_edges: bool, hint: Option<&str>) {
        if let Some(hint) = hint.filter(|_| !columns.left_out.is_empty()) {
            let what = left_out_note(&columns.left_out);
            self.facts.notes.push(format!("{}: {what}{hint}", path.display()));
        }
        let known = &mut self.facts.columns;
        if columns.source.is_some() {
            let ends = |columns: &InputColumns| (columns.source.clone(), columns.target.clone());
            if self.options.lone_keys == LoneKeys::Refuse
                && known.source.is_some()
                && ends(known) != ends(&columns)
                && let (Some(source), Some(target)) = ends(&columns)
            {
                let note = format!("the source is column {source} and the target column {target}");
                self.facts.notes.push(format!("{}: {note}", path.display()));
            }
            known.source = known.source.take().or(columns.source);
            known.target = known.target.take().or(columns.target);
            known.weight = known.weight.take().or(columns.weight);
        }
        if is_of_edges {
            leave_out(&mut self.facts, columns.left_out);
        }
    }

    /// Adds a note that the weights of an input are not read.
    pub(crate) fn note_weights(&mut self, path: &Path) {
        if self.options.weights.is_none() {
            self.facts.notes.push(format!("{}: the weights are left out; --weights reads them", path.display()));
        }
    }

    /// Describes the columns of a list without a header. `are_weights_noted`: a note already covers the third column.
    ///
    /// # Errors
    /// The content lacks the compression that the name promises.
    pub(crate) fn list_columns(&mut self, input: &InputProbe, are_weights_noted: bool) -> Result<UnnamedColumns> {
        let has_weights = self.options.weights.is_some();
        if has_list_lines(&input.text()?) {
            let [source, target, weight] = [1, 2, 3].map(|place| Some(ColumnName::Number(place)));
            let weight = weight.filter(|_| has_weights);
            let columns = InputColumns { source, target, weight, left_out: Vec::new() };
            self.describe(&input.path, columns, true, None);
        }
        Ok(UnnamedColumns {
            num_read: 2 + usize::from(has_weights),
            hint: Some(match are_weights_noted || has_weights {
                true => "",
                false => "; --weights takes the third as the weight",
            }),
            note_place: self.facts.notes.len(),
            // The note on weights already covers a column of weights.
            is_third_noted: are_weights_noted,
        })
    }

    /// Records whether an input is directed; `None` if it does not say.
    ///
    /// # Errors
    /// An input before contradicts.
    pub(crate) fn direction_known(&mut self, path: &Path, graph_kind: Option<GraphKind>) -> Result<()> {
        match (self.facts.graph_kind, graph_kind) {
            (Some(old), Some(new)) if old != new => {
                let what = format!("expected a graph that is {}, as the inputs before, found {}", word(old), word(new));
                return Err(bad(path, &what));
            }
            (None, Some(_)) => self.facts.graph_kind = graph_kind,
            (_, None) if self.facts.undecided.is_none() => self.facts.undecided = Some(path.to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Records whether an input has weights; `None` if it does not say.
    ///
    /// # Errors
    /// Weights are requested, and the input has none.
    pub(crate) fn weights_known(&mut self, path: &Path, has_weights: Option<bool>) -> Result<()> {
        if has_weights == Some(false) && self.options.weights.is_some() {
            return Err(bad(
                path,
                "weights are asked for, but the graph has none: leave out --weights and --weight-type",
            ));
        }
        if let Some(has_weights) = has_weights {
            // One input without weights decides for all of them.
            self.facts.has_weights = Some(self.facts.has_weights.unwrap_or(true) && has_weights);
        }
        Ok(())
    }

    /// Records that an input has weights as its format always has, unless an input before has none.
    pub(crate) fn weights_given(&mut self, path: &Path) {
        self.facts.has_weights = Some(self.facts.has_weights.unwrap_or(true));
        self.note_weights(path);
    }

    /// Adds to the number of edges that the inputs state.
    pub(crate) fn count_edges(&mut self, num_edges: Option<u64>) {
        let sum = self.facts.num_edges.unwrap_or(0);
        self.facts.num_edges = num_edges.map(|more| sum.saturating_add(more));
    }

    /// Returns the result.
    pub(crate) fn finish(mut self) -> CollectedInputs {
        let graphs: Vec<Arc<SerializedGraph>> =
            self.parts.iter().filter_map(|part| part.content.serialized().cloned()).collect();
        // If all inputs are serialized graphs, ids are the keys.
        let only_graphs = self.parts.len() == graphs.len() && !graphs.is_empty();
        if only_graphs && self.options.keys == KeyKind::Integer {
            // The ids of the largest graph include those of the others.
            self.facts.num_vertices = graphs.iter().map(|graph| graph.num_vertices()).max();
            self.parts.iter_mut().for_each(|part| part.content.leave_out_vertices());
        }
        let is_other = |part: &OpenedInput| !part.is_of_vertices && part.content.serialized().is_none();
        // The sum is known only if every input states its number.
        if self.parts.iter().any(is_other) && self.parts.iter().any(|part| part.num_promised.is_none()) {
            self.facts.num_edges = None;
        }
        let mut types = self.parts.iter().filter(|part| !part.is_of_vertices).map(|part| part.weight_type);
        let first = types.next().flatten();
        // Inputs of unlike types have no type in common that each would state.
        self.facts.weight_type = first.filter(|_| types.all(|other| other == first));
        let serialized = if only_graphs && graphs.len() == 1 { graphs.into_iter().next() } else { None };
        // Other inputs list no vertices, so beside them any vertex may occur.
        let listings = if self.parts.len() == 2 * self.listings.len() { self.listings } else { Vec::new() };
        CollectedInputs { parts: self.parts, facts: self.facts, serialized, listings }
    }
}

fn word(graph_kind: GraphKind) -> &'static str {
    match graph_kind {
        GraphKind::Directed => "directed",
        GraphKind::Undirected => "undirected",
    }
}

fn bad(path: &Path, what: &str) -> Error {
    Error::Input { path: path.to_owned(), what: what.to_owned() }
}
