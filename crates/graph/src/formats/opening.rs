//! Opening inputs: what each is, and what is known of all before they are read.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::standard_input::StandardInput;

use super::InputPath;
use super::compression::{Compression, decoded};
use super::csv_header::{SAMPLE_BYTES, TableHead, TableText, head_of};
use super::detect;
use super::endings::input_format;
use super::foreign;
use super::graphalytics::find_files;
use super::graphml::{ElementReader, GraphMlLayout};
use super::labeled::Said;
use super::lines::has_list_lines;
use super::matrix_market::{Field, Matrix};
use super::metis::MetisHeader;
use super::options::{
    ColumnName, Format, InputColumns, KeyKind, LoneKeys, SourceFacts, SourceOptions, WantedProperties,
};
use super::outcome::{Fatal, LineFault};
use super::parquet::{ParquetFile, RowLayout};
use super::part::{HEAD_BYTES, NameVertices, Part, PartKind, PartProperties, TextKind, read_head};
use super::serialized::SerializedGraph;
use super::spool::spooled;
use super::unnamed_columns::{UnnamedColumns, leave_out, left_out_note};
use crate::{Direction, Error, Result};

/// The inputs, what is known of them, the one that is a serialized graph, and which files list the
/// vertices of which.
type Opened = (Vec<Part>, SourceFacts, Option<Arc<SerializedGraph>>, Vec<(PathBuf, PathBuf)>);

/// Collects the parts and what is known of them.
pub(super) struct Opening<'a> {
    options: &'a SourceOptions,
    parts: Vec<Part>,
    facts: SourceFacts,
    graphs: Vec<Arc<SerializedGraph>>,
    /// Files that list all vertices, and the files of their edges.
    listings: Vec<(PathBuf, PathBuf)>,
    /// Whether the counts and properties of every input of edges so far are known.
    num_texts: usize,
}

impl<'a> Opening<'a> {
    pub(super) fn new(options: &'a SourceOptions) -> Self {
        let facts = SourceFacts { input_bytes: Some(0), ..SourceFacts::default() };
        Self { options, parts: Vec::new(), facts, graphs: Vec::new(), listings: Vec::new(), num_texts: 0 }
    }

    /// Opens an input of edges, of which all are as `said`.
    pub(super) fn input(&mut self, input: &InputPath, said: &Said) -> Result<()> {
        let first = self.parts.len();
        self.edges(input)?;
        self.parts[first..].iter_mut().for_each(|part| part.said = said.clone());
        Ok(())
    }

    fn edges(&mut self, input: &InputPath) -> Result<()> {
        let path = input.path();
        let mut looked = match input {
            InputPath::Stdin => Looked::at_stdin(path)?,
            InputPath::File(path) => {
                let may_be_prefix = self.options.lone_keys == LoneKeys::Refuse
                    && matches!(self.options.format, None | Some(Format::Graphalytics));
                if may_be_prefix && !path.exists() && find_files(path).is_ok() {
                    return self.graphalytics(path);
                }
                Looked::at_file(path)?
            }
        };
        let format = self.format_of(path, &looked)?;
        let (_, name) = Compression::of_name(path);
        let extension = name.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        match format {
            Format::Graphalytics if looked.opened.is_none() => return self.graphalytics(path),
            Format::Gapbs if matches!(&extension[..], "sg" | "wsg") || detect::is_serialized(path, &looked.head) => {
                self.count_bytes(&looked);
                let graph = SerializedGraph::of_file(path, looked.into_file(path)?, extension == "wsg")?;
                return self.serialized(path, graph);
            }
            Format::GraphMl => {
                self.count_bytes(&looked);
                self.num_texts += 1;
                return self.graphml(path, looked);
            }
            Format::Parquet => {
                self.count_bytes(&looked);
                self.num_texts += 1;
                return self.parquet(path, looked);
            }
            _ => {}
        }
        self.count_bytes(&looked);
        self.num_texts += 1;
        let kind = match format {
            Format::Csv => {
                self.direction_known(path, None)?;
                return self.table(path, looked, TextKind::Csv);
            }
            Format::EdgeList => {
                self.direction_known(path, None)?;
                return self.table(path, looked, TextKind::EdgeList);
            }
            Format::Dimacs => TextKind::Dimacs,
            Format::Mtx => self.matrix(path, &looked.head)?,
            Format::Metis => self.metis(path, &looked.head)?,
            _ => TextKind::EdgeList,
        };
        if !matches!(kind, TextKind::MatrixMarket(_) | TextKind::Metis(_)) {
            self.direction_known(path, None)?;
        }
        if extension == "wel" || format == Format::Dimacs {
            self.facts.has_weights = Some(self.facts.has_weights.unwrap_or(true));
            self.note_weights(path);
        }
        let unnamed = match kind {
            TextKind::EdgeList => Some(self.list_columns(path, &looked.head, extension == "wel")?),
            _ => None,
        };
        let opened = looked.opened.take();
        self.push(path, kind, opened, None);
        self.say_unnamed(unnamed);
        Ok(())
    }

    /// Opens a table in text; an edge list is one if it has a header or the caller names its columns.
    fn table(&mut self, path: &Path, mut looked: Looked, kind: TextKind) -> Result<()> {
        let takes_no_mark = kind == TextKind::EdgeList && self.options.lone_keys == LoneKeys::Refuse;
        if let Some(mark) = self.options.comment.filter(|mark| takes_no_mark && !b"#%".contains(mark)) {
            let what = format!(
                "cannot take '{}' as the mark of comments: in a list they begin with #, % or //; --comment is for CSV",
                char::from(mark)
            );
            return Err(bad(path, &what));
        }
        let is_of_vertices = kind.is_of_vertices();
        // The parts of a table are all CSV, or all separated by blanks.
        let is_part = |other: TextKind| other.has_blanks() == kind.has_blanks() && !other.is_of_vertices();
        let is_part = |part: &&Part| matches!(part.kind, PartKind::Text(other) if is_part(other));
        let first = self.parts.iter().filter(is_part).find_map(|part| part.table.as_ref());
        let first = first.filter(|_| !is_of_vertices);
        let text = TableText { path, head: &looked.head, can_reopen: looked.opened.is_none(), kind, first };
        let (found, num_comments) = head_of(text, self.options)?;
        let wanted = if is_of_vertices { &self.options.vertex_properties } else { &self.options.edge_properties };
        let mut hint = self.hint(&InputColumns::default(), wanted);
        if let Some((head, _)) = &found {
            self.facts.notes.extend(head.notes.iter().map(|note| format!("{}: {note}", path.display())));
            let left_out = head.left_out().into_iter().map(|place| head.name(place)).collect();
            let of_edges = |place: Option<usize>| place.filter(|_| !is_of_vertices).map(|place| head.name(place));
            let columns = InputColumns {
                source: of_edges(Some(head.layout.source)),
                target: of_edges(head.layout.target),
                weight: of_edges(head.layout.weight),
                left_out,
            };
            hint = self.hint(&columns, wanted);
            self.describe(path, columns, !is_of_vertices, hint);
        }
        let num_read = if is_of_vertices { 1 } else { 2 + usize::from(self.options.weights.is_some()) };
        let unnamed = UnnamedColumns { num_read, hint, note_place: self.facts.notes.len(), is_third_noted: false };
        let is_table = |head: &TableHead| !kind.is_list() || head.has_names();
        let (table, properties) = found.filter(|(head, _)| is_table(head)).unzip();
        let kind = match (kind, &table) {
            (TextKind::EdgeList, Some(_)) => TextKind::BlankColumns,
            (TextKind::VertexList, Some(_)) => TextKind::VertexColumns,
            _ => kind,
        };
        let opened = looked.opened.take();
        self.push(path, kind, opened, None);
        if let Some(part) = self.parts.last_mut() {
            part.properties[usize::from(is_of_vertices)] = properties.unwrap_or_default();
            // Lists count their comments as they are read.
            part.num_comments = if kind.is_list() { 0 } else { num_comments };
            part.unnamed = Some(unnamed).filter(|_| table.as_ref().is_none_or(|table| !table.has_names()));
            part.table = table;
        }
        Ok(())
    }

    /// Takes note of the columns of a list without a header.
    fn list_columns(&mut self, path: &Path, head: &[u8], are_weights_noted: bool) -> Result<UnnamedColumns> {
        let has_weights = self.options.weights.is_some();
        if has_list_lines(&detect::text_of(path, head)?) {
            let [source, target, weight] = [1, 2, 3].map(|place| Some(ColumnName::Number(place)));
            let weight = weight.filter(|_| has_weights);
            let columns = InputColumns { source, target, weight, left_out: Vec::new() };
            self.describe(path, columns, true, None);
        }
        Ok(UnnamedColumns {
            num_read: 2 + usize::from(has_weights),
            hint: Some(match are_weights_noted || has_weights {
                true => "",
                false => "; --weights takes the third as the weight",
            }),
            note_place: self.facts.notes.len(),
            // The note on weights says all of a column of weights.
            is_third_noted: are_weights_noted,
        })
    }

    /// What to say of columns that are left out, or nothing if the caller chose the others.
    fn hint(&self, columns: &InputColumns, wanted: &WantedProperties) -> Option<&'static str> {
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

    /// Takes note of the columns of an input, for the report if they are of edges; with a `hint`, tells those that are
    /// left out.
    fn describe(&mut self, path: &Path, columns: InputColumns, is_of_edges: bool, hint: Option<&str>) {
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

    /// Tells that an input has weights which are not read.
    fn note_weights(&mut self, path: &Path) {
        if self.options.weights.is_none() {
            self.facts.notes.push(format!("{}: the weights are left out; --weights reads them", path.display()));
        }
    }

    /// The format that is given, or that name or content tell.
    fn format_of(&self, path: &Path, looked: &Looked) -> Result<Format> {
        if self.options.format.is_none() {
            foreign::refuse(path, &looked.head)?;
        }
        let format = self.options.format.or_else(|| input_format(path));
        let format = format.unwrap_or_else(|| detect::by_content(path, &looked.head));
        match self.options.lone_keys {
            LoneKeys::Refuse => Ok(format),
            LoneKeys::Vertices => list_format(path, &looked.head, format),
        }
    }

    fn matrix(&mut self, path: &Path, head: &[u8]) -> Result<TextKind> {
        let text = detect::text_of(path, head)?;
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let matrix = Matrix::of_banner(line).map_err(|what| Error::Line { path: path.to_owned(), line: 1, what })?;
        self.direction_known(path, Some(matrix.direction()))?;
        self.weights_known(path, Some(matrix.field != Field::Pattern))?;
        if matrix.field != Field::Pattern {
            self.note_weights(path);
        }
        Ok(TextKind::MatrixMarket(matrix))
    }

    /// Reads the header, of an input that is read once as far as its first bytes go.
    fn graphml(&mut self, path: &Path, looked: Looked) -> Result<()> {
        let reader = match &looked.opened {
            Some(_) => decoded(path, &looked.head, Cursor::new(looked.head.clone()))?,
            None => decoded(path, &looked.head, File::open(path).map_err(|e| base::Error::io("open", path, e))?)?,
        };
        let mut elements = ElementReader::new(reader);
        let header = elements.header().map_err(|fault| match fault.into_fatal(path) {
            Fatal::Whole(error) => error,
            Fatal::Line(LineFault { line, what }) => Error::Line { path: path.to_owned(), line: line + 1, what },
        })?;
        self.direction_known(path, header.direction)?;
        let (layout, properties) = GraphMlLayout::new(header, self.options).map_err(|what| bad(path, &what))?;
        for (side, wanted) in [&self.options.edge_properties, &self.options.vertex_properties].into_iter().enumerate() {
            let left_out = layout.left_out(side).map(|name| ColumnName::Name(name.to_owned())).collect();
            let columns = InputColumns { left_out, ..InputColumns::default() };
            let hint = self.hint(&columns, wanted);
            self.describe(path, columns, side == 0, hint);
        }
        self.push_part(path, PartKind::GraphMl(Arc::new(layout)), looked.opened, None);
        if let Some(part) = self.parts.last_mut() {
            part.properties = properties;
        }
        Ok(())
    }

    fn parquet(&mut self, path: &Path, looked: Looked) -> Result<()> {
        let file = Arc::new(ParquetFile::open(path, looked.into_file(path)?)?);
        let (layout, properties) = RowLayout::of_edges(&file, self.options)?;
        self.direction_known(path, None)?;
        self.parquet_columns(path, &file, &layout, true);
        self.push_rows(path, file, layout);
        self.say_properties(0, properties);
        Ok(())
    }

    /// Takes note of the columns of a Parquet file, of edges or of vertices.
    fn parquet_columns(&mut self, path: &Path, file: &ParquetFile, layout: &RowLayout, is_of_edges: bool) {
        self.facts.notes.extend(layout.notes(file));
        let wanted = if is_of_edges { &self.options.edge_properties } else { &self.options.vertex_properties };
        let columns = layout.columns(file);
        let hint = self.hint(&columns, wanted);
        self.describe(path, columns, is_of_edges, hint);
        if is_of_edges {
            // Each has a note of its own, which says why.
            leave_out(&mut self.facts, RowLayout::unread(file).map(|column| ColumnName::Name(column.to_owned())));
        }
    }

    fn metis(&mut self, path: &Path, head: &[u8]) -> Result<TextKind> {
        let text = detect::text_of(path, head)?;
        for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let header = MetisHeader::of_line(line);
            let header = header.map_err(|what| Error::Line { path: path.to_owned(), line: i as u64 + 1, what })?;
            if let Some(header) = header {
                self.direction_known(path, Some(Direction::Undirected))?;
                self.weights_known(path, Some(header.has_weights))?;
                if header.has_weights {
                    self.note_weights(path);
                }
                if header.has_vertex_weights() {
                    let note = "the sizes and weights of vertices are left out";
                    self.facts.notes.push(format!("{}: {note}", path.display()));
                }
                return Ok(TextKind::Metis(header));
            }
        }
        Err(bad(path, "expected the header 'vertices edges [fmt [ncon]]', found none at the beginning"))
    }

    /// Opens a file of vertices, of which all are as `said`.
    pub(super) fn vertices(&mut self, path: &Path, said: &Said) -> Result<()> {
        let first = self.parts.len();
        self.listed_vertices(path)?;
        self.parts[first..].iter_mut().for_each(|part| part.said = said.clone());
        Ok(())
    }

    fn listed_vertices(&mut self, path: &Path) -> Result<()> {
        let looked = match path == InputPath::Stdin.path() {
            true => Looked::at_stdin(path)?,
            false => Looked::at_file(path)?,
        };
        foreign::refuse(path, &looked.head)?;
        let format = input_format(path).unwrap_or_else(|| detect::by_content(path, &looked.head));
        let kind = match format {
            Format::Csv => TextKind::VertexCsv,
            Format::Parquet => {
                self.count_bytes(&looked);
                let file = Arc::new(ParquetFile::open(path, looked.into_file(path)?)?);
                let (layout, properties) = RowLayout::of_vertices(&file, self.options)?;
                self.parquet_columns(path, &file, &layout, false);
                self.push_rows(path, file, layout);
                self.say_properties(1, properties);
                return Ok(());
            }
            Format::EdgeList | Format::Graphalytics | Format::Gapbs => TextKind::VertexList,
            other => {
                let what = format!("vertices are read from lists, CSV and Parquet, found the format {}", other.name());
                return Err(bad(path, &what));
            }
        };
        self.count_bytes(&looked);
        match format {
            // Their lists have no header.
            Format::Graphalytics | Format::Gapbs => {
                self.push(path, kind, looked.opened, None);
                self.say_unnamed(Some(UnnamedColumns::of_vertices(&self.facts)));
            }
            _ => self.table(path, looked, kind)?,
        }
        Ok(())
    }

    /// Says the properties of the edges (0) or vertices (1) of the input that came last.
    fn say_properties(&mut self, side: usize, properties: PartProperties) {
        if let Some(part) = self.parts.last_mut() {
            part.properties[side] = properties;
        }
    }

    /// Says that the columns of the input that came last have no names.
    fn say_unnamed(&mut self, unnamed: Option<UnnamedColumns>) {
        if let Some(part) = self.parts.last_mut() {
            part.unnamed = unnamed;
        }
    }

    fn graphalytics(&mut self, path: &Path) -> Result<()> {
        let files = find_files(path)?;
        if self.parts.iter().any(|part| part.path == files.edges) {
            return Ok(()); // Two files of one graph were named.
        }
        if let Some(path) = &files.vertices {
            self.listings.push((path.clone(), files.edges.clone()));
        }
        if let Some(path) = files.vertices {
            let looked = Looked::at_file(&path)?;
            self.count_bytes(&looked);
            self.push(&path, TextKind::VertexList, looked.opened, files.num_vertices);
            self.say_unnamed(Some(UnnamedColumns::of_vertices(&self.facts)));
        }
        self.direction_known(path, files.direction)?;
        self.weights_known(path, files.has_weights)?;
        let looked = Looked::at_file(&files.edges)?;
        if files.has_weights == Some(true) {
            self.note_weights(path);
        }
        let unnamed = self.list_columns(&files.edges, &looked.head, files.has_weights == Some(true))?;
        self.count_bytes(&looked);
        self.num_texts += 1;
        self.facts.num_edges = add(self.facts.num_edges, files.num_edges);
        self.push(&files.edges, TextKind::EdgeList, looked.opened, files.num_edges);
        self.say_unnamed(Some(unnamed));
        Ok(())
    }

    fn serialized(&mut self, path: &Path, graph: SerializedGraph) -> Result<()> {
        let graph = Arc::new(graph);
        self.direction_known(path, Some(graph.direction()))?;
        self.weights_known(path, Some(graph.is_weighted()))?;
        if graph.is_weighted() {
            self.note_weights(path);
        }
        self.facts.num_edges = add(self.facts.num_edges, Some(graph.num_arcs()));
        self.graphs.push(Arc::clone(&graph));
        let kind = PartKind::Serialized(graph, NameVertices::Yes);
        self.push_part(path, kind, None, None);
        Ok(())
    }

    fn direction_known(&mut self, path: &Path, direction: Option<Direction>) -> Result<()> {
        match (self.facts.direction, direction) {
            (Some(old), Some(new)) if old != new => {
                let what = format!("expected a graph that is {}, as the inputs before, found {}", word(old), word(new));
                return Err(bad(path, &what));
            }
            (None, Some(_)) => self.facts.direction = direction,
            (_, None) if self.facts.undecided.is_none() => self.facts.undecided = Some(path.to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn weights_known(&mut self, path: &Path, has_weights: Option<bool>) -> Result<()> {
        if has_weights == Some(false) && self.options.weights.is_some() {
            return Err(bad(
                path,
                "weights are asked for, but the graph has none: leave out --weights and --weight-type",
            ));
        }
        if let Some(has_weights) = has_weights {
            self.facts.has_weights = Some(self.facts.has_weights.unwrap_or(true) && has_weights);
        }
        Ok(())
    }

    fn count_bytes(&mut self, looked: &Looked) {
        self.facts.input_bytes = self.facts.input_bytes.zip(looked.num_bytes).map(|(sum, bytes)| sum + bytes);
    }

    fn push_rows(&mut self, path: &Path, file: Arc<ParquetFile>, layout: RowLayout) {
        self.push_part(path, PartKind::Parquet(file, Arc::new(layout)), None, None);
    }

    fn push(&mut self, path: &Path, kind: TextKind, opened: Option<Box<dyn Read + Send>>, num_promised: Option<u64>) {
        self.push_part(path, PartKind::Text(kind), opened, num_promised);
    }

    fn push_part(
        &mut self,
        path: &Path,
        kind: PartKind,
        opened: Option<Box<dyn Read + Send>>,
        num_promised: Option<u64>,
    ) {
        let (path, can_reopen) = (path.to_owned(), opened.is_none());
        let (properties, table, num_comments, unnamed) = (Default::default(), None, 0, None);
        let said = Said::default();
        self.parts.push(Part {
            path,
            kind,
            opened,
            can_reopen,
            num_promised,
            properties,
            table,
            num_comments,
            unnamed,
            said,
        });
    }

    /// Everything that was opened; and the one input, if it is a serialized graph.
    pub(super) fn finish(mut self) -> Opened {
        // Ids are keys where nothing but serialized graphs gives any.
        let only_graphs = self.parts.len() == self.graphs.len() && !self.graphs.is_empty();
        if only_graphs && self.options.keys == KeyKind::Integer {
            self.facts.num_vertices = self.graphs.iter().map(|graph| graph.num_vertices()).max();
            for part in &mut self.parts {
                if let PartKind::Serialized(_, name_vertices) = &mut part.kind {
                    *name_vertices = NameVertices::No;
                }
            }
        }
        if self.num_texts > 0 && self.parts.iter().any(|part| part.num_promised.is_none()) {
            self.facts.num_edges = None;
        }
        let serialized = if only_graphs && self.graphs.len() == 1 { self.graphs.pop() } else { None };
        // Beside other inputs, which list nothing, any vertex may be.
        let listings = if self.parts.len() == 2 * self.listings.len() { self.listings } else { Vec::new() };
        (self.parts, self.facts, serialized, listings)
    }
}

/// The format of an input whose lines may be vertices.
fn list_format(path: &Path, head: &[u8], format: Format) -> Result<Format> {
    match format {
        Format::Csv => Ok(Format::Csv),
        Format::EdgeList | Format::Gapbs | Format::Graphalytics if !detect::is_serialized(path, head) => {
            Ok(Format::EdgeList)
        }
        other => {
            let what = format!("what is to be removed is read from lists and CSV, found the format {}", other.name());
            Err(bad(path, &what))
        }
    }
}

fn add(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    more.map(|more| sum.unwrap_or(0).saturating_add(more))
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Directed => "directed",
        Direction::Undirected => "undirected",
    }
}

fn bad(path: &Path, what: &str) -> Error {
    Error::Input { path: path.to_owned(), what: what.to_owned() }
}

/// The beginning of an input.
struct Looked {
    head: Vec<u8>,
    /// What is left of an input that cannot be opened again, with its head.
    opened: Option<Box<dyn Read + Send>>,
    num_bytes: Option<u64>,
}

impl Looked {
    /// The input as a file that can be read from any place: itself, or a copy of what comes through a
    /// pipe or is compressed.
    fn into_file(self, path: &Path) -> Result<File> {
        let open = || File::open(path).map_err(|e| base::Error::io("open", path, e));
        let is_packed = Compression::of_content(&self.head).is_some() || Compression::of_name(path).0.is_some();
        match self.opened {
            Some(opened) => spooled(path, decoded(path, &self.head, opened)?),
            None if is_packed => spooled(path, decoded(path, &self.head, open()?)?),
            None => Ok(open()?),
        }
    }

    fn at_stdin(path: &Path) -> Result<Self> {
        let stdin = StandardInput::open(path)?;
        match stdin.is_terminal() {
            true => Err(bad(path, "expected a pipe or a file on standard input, found a terminal")),
            false => Self::at_stream(path, Box::new(stdin)),
        }
    }

    fn at_stream(path: &Path, mut reader: Box<dyn Read + Send>) -> Result<Self> {
        // Nothing more can be looked at later.
        let head = read_head(path, &mut reader, SAMPLE_BYTES as usize)?;
        let opened = Cursor::new(head.clone()).chain(reader);
        Ok(Self { head, opened: Some(Box::new(opened)), num_bytes: None })
    }

    fn at_file(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| base::Error::io("open", path, e))?;
        if metadata.is_dir() {
            return Err(bad(path, "expected a file, found a directory"));
        }
        let mut file = File::open(path).map_err(|e| base::Error::io("open", path, e))?;
        if !metadata.is_file() {
            return Self::at_stream(path, Box::new(file));
        }
        let head = read_head(path, &mut file, HEAD_BYTES)?;
        Ok(Self { head, opened: None, num_bytes: Some(metadata.len()) })
    }
}
