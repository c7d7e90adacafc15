//! Opening inputs: what each is, and what is known of all before they are read.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::standard_input::StandardInput;

use super::InputPath;
use super::compression::{Compression, decoded};
use super::csv_header::properties_of;
use super::detect;
use super::endings::input_format;
use super::foreign;
use super::graphalytics::find_files;
use super::graphml::{ElementReader, GraphMlLayout};
use super::matrix_market::{Field, Matrix};
use super::metis::MetisHeader;
use super::options::{Format, KeyKind, LoneKeys, SourceFacts, SourceOptions};
use super::outcome::{Fatal, LineFault};
use super::parquet::{ParquetFile, RowLayout};
use super::part::{HEAD_BYTES, NameVertices, Part, PartKind, PartProperties, TextKind, read_head};
use super::serialized::SerializedGraph;
use super::spool::spooled;
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

    /// Opens an input of edges.
    pub(super) fn input(&mut self, input: &InputPath) -> Result<()> {
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
        if extension == "wel" || format == Format::Dimacs {
            self.facts.has_weights = Some(self.facts.has_weights.unwrap_or(true));
        }
        let kind = match format {
            Format::Csv => TextKind::Csv,
            Format::Dimacs => TextKind::Dimacs,
            Format::Mtx => self.matrix(path, &looked.head)?,
            Format::Metis => self.metis(path, &looked.head)?,
            Format::EdgeList => self.list(path)?,
            _ => TextKind::EdgeList,
        };
        if !matches!(kind, TextKind::MatrixMarket(_) | TextKind::Metis(_)) {
            self.direction_known(path, None)?;
        }
        let properties = match kind {
            TextKind::Csv | TextKind::BlankColumns => self.properties(path, &looked, kind)?,
            _ => PartProperties::default(),
        };
        let opened = looked.opened.take();
        self.push(path, kind, opened, None);
        self.say_properties(0, properties);
        Ok(())
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

    /// What the lines of an edge list are.
    fn list(&self, path: &Path) -> Result<TextKind> {
        let SourceOptions { columns, source_column, target_column, weight_column, lone_keys, .. } = self.options;
        if columns.is_some() {
            return Ok(TextKind::BlankColumns);
        }
        let named = [source_column, target_column, weight_column].into_iter().flatten().next();
        match named.filter(|_| *lone_keys == LoneKeys::Refuse) {
            Some(name) => Err(bad(path, &format!("the column {name:?} is asked for, but an edge list has no names"))),
            None => Ok(TextKind::EdgeList),
        }
    }

    fn matrix(&mut self, path: &Path, head: &[u8]) -> Result<TextKind> {
        let text = detect::text_of(path, head)?;
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let matrix = Matrix::of_banner(line).map_err(|what| Error::Line { path: path.to_owned(), line: 1, what })?;
        self.direction_known(path, Some(matrix.direction()))?;
        self.weights_known(path, Some(matrix.field != Field::Pattern))?;
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
        let (path, kind) = (path.to_owned(), PartKind::GraphMl(Arc::new(layout)));
        let can_reopen = looked.opened.is_none();
        let opened = looked.opened;
        self.parts.push(Part { path, kind, opened, can_reopen, num_promised: None, properties });
        Ok(())
    }

    fn parquet(&mut self, path: &Path, looked: Looked) -> Result<()> {
        let file = Arc::new(ParquetFile::open(path, looked.into_file(path)?)?);
        let (layout, properties) = RowLayout::of_edges(&file, self.options)?;
        self.facts.notes.extend(layout.notes(&file));
        self.direction_known(path, None)?;
        self.push_rows(path, file, layout);
        self.say_properties(0, properties);
        Ok(())
    }

    fn metis(&mut self, path: &Path, head: &[u8]) -> Result<TextKind> {
        let text = detect::text_of(path, head)?;
        for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let header = MetisHeader::of_line(line);
            let header = header.map_err(|what| Error::Line { path: path.to_owned(), line: i as u64 + 1, what })?;
            if let Some(header) = header {
                self.direction_known(path, Some(Direction::Undirected))?;
                self.weights_known(path, Some(header.has_weights))?;
                return Ok(TextKind::Metis(header));
            }
        }
        Err(bad(path, "expected the header 'vertices edges [fmt [ncon]]', found none at the beginning"))
    }

    /// Opens a file of vertices.
    pub(super) fn vertices(&mut self, path: &Path) -> Result<()> {
        let mut looked = match path == InputPath::Stdin.path() {
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
                self.facts.notes.extend(layout.notes(&file));
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
        let properties = match kind {
            TextKind::VertexCsv => self.properties(path, &looked, kind)?,
            _ => PartProperties::default(),
        };
        let opened = looked.opened.take();
        self.push(path, kind, opened, None);
        self.say_properties(1, properties);
        Ok(())
    }

    fn properties(&self, path: &Path, looked: &Looked, kind: TextKind) -> Result<PartProperties> {
        properties_of(path, &looked.head, looked.opened.is_none(), self.options, kind)
    }

    /// Says the properties of the edges (0) or vertices (1) of the input that came last.
    fn say_properties(&mut self, side: usize, properties: PartProperties) {
        if let Some(part) = self.parts.last_mut() {
            part.properties[side] = properties;
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
        }
        self.direction_known(path, files.direction)?;
        self.weights_known(path, files.has_weights)?;
        let looked = Looked::at_file(&files.edges)?;
        self.count_bytes(&looked);
        self.num_texts += 1;
        self.facts.num_edges = add(self.facts.num_edges, files.num_edges);
        self.push(&files.edges, TextKind::EdgeList, looked.opened, files.num_edges);
        Ok(())
    }

    fn serialized(&mut self, path: &Path, graph: SerializedGraph) -> Result<()> {
        let graph = Arc::new(graph);
        self.direction_known(path, Some(graph.direction()))?;
        self.weights_known(path, Some(graph.is_weighted()))?;
        self.facts.num_edges = add(self.facts.num_edges, Some(graph.num_arcs()));
        self.graphs.push(Arc::clone(&graph));
        let kind = PartKind::Serialized(graph, NameVertices::Yes);
        let properties = Default::default();
        let path = path.to_owned();
        self.parts.push(Part { path, kind, opened: None, can_reopen: true, num_promised: None, properties });
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
        let (path, kind, properties) = (path.to_owned(), PartKind::Parquet(file, Arc::new(layout)), Default::default());
        self.parts.push(Part { path, kind, opened: None, can_reopen: true, num_promised: None, properties });
    }

    fn push(&mut self, path: &Path, kind: TextKind, opened: Option<Box<dyn Read + Send>>, num_promised: Option<u64>) {
        let can_reopen = opened.is_none();
        let (path, kind, properties) = (path.to_owned(), PartKind::Text(kind), Default::default());
        self.parts.push(Part { path, kind, opened, can_reopen, num_promised, properties });
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
        let head = read_head(path, &mut reader, HEAD_BYTES)?;
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
