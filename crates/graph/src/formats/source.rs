//! Reading all inputs of a graph in parallel.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::parallel::Pool;

use super::compression::Compression;
use super::csv::{CsvProperties, parse_columns};
use super::csv_header::properties_of;
use super::detect;
use super::graphalytics::find_files;
use super::key::FieldKey;
use super::lines::{Parsed, parse_edges, parse_vertices};
use super::matrix_market::{Field, Matrix, parse_entries};
use super::metis::{MetisHeader, parse_lists};
use super::options::{Format, KeyKind, SourceFacts, SourceOptions, SourceSummary};
use super::outcome::{BlockOutcome, Fatal, Outcomes};
use super::part::{
    HEAD_BYTES, Layout, NameVertices, Part, PartKind, PartProperties, Piece, Stream, TextKind, Work, agreed, read_head,
};
use super::serialized::SerializedGraph;
use super::serialized_arcs::read_arcs;
use super::union::{Union, unions_of, unite};
use super::{EdgeBlock, InputPath};
use crate::{Direction, Error, Result, Weight};

/// Inputs that are to become one graph: opened, their formats known, not read yet.
pub struct Source {
    parts: Vec<Part>,
    options: SourceOptions,
    facts: SourceFacts,
    serialized: Option<Arc<SerializedGraph>>,
    bytes_read: Arc<AtomicU64>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("num_inputs", &self.parts.len()).field("facts", &self.facts).finish()
    }
}

/// Collects the parts and what is known of them.
struct Opening<'a> {
    options: &'a SourceOptions,
    parts: Vec<Part>,
    facts: SourceFacts,
    graphs: Vec<Arc<SerializedGraph>>,
    /// Whether the counts and properties of every input of edges so far are known.
    num_texts: usize,
}

impl Source {
    /// Opens the inputs and tells their formats; reads no more than the beginning of each.
    ///
    /// # Errors
    /// An input is missing or cannot be read, is of a format that is not read yet, is not
    /// compressed as its name says, has no weights although they are asked for, or says something
    /// of the graph that another denies.
    pub fn open(inputs: &[InputPath], options: SourceOptions) -> Result<Self> {
        let facts = SourceFacts { input_bytes: Some(0), ..SourceFacts::default() };
        let mut opening = Opening { options: &options, parts: Vec::new(), facts, graphs: Vec::new(), num_texts: 0 };
        if let Some(path) = &options.vertices {
            opening.vertices(path)?;
        }
        for input in inputs {
            opening.input(input)?;
        }
        let (mut parts, mut facts, serialized) = opening.finish();
        unite(&mut parts, &mut facts, &options)?;
        Ok(Self { parts, options, facts, serialized, bytes_read: Arc::default() })
    }

    /// What the inputs say of themselves.
    pub fn facts(&self) -> &SourceFacts {
        &self.facts
    }

    /// The one input, if it is a serialized graph: its lists can be taken as they are.
    pub fn serialized(&self) -> Option<&SerializedGraph> {
        self.serialized.as_deref()
    }

    /// The bytes read so far, as they are on disk; grows while [`for_each_block`](Self::for_each_block) runs.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    /// Calls `body(worker, block)` with each block, from several threads at once and in no order.
    ///
    /// `K` and `W` must be what the options ask for; where they ask for no weights, any `W` will do.
    /// Sequences count every block from 0 without gaps, blocks without edges included.
    ///
    /// # Errors
    /// The first in the input of what is wrong in it; or the first error that `body` returned,
    /// after which no further block is begun.
    pub fn for_each_block<K: FieldKey, W: Weight, E: From<Error> + Send>(
        &mut self,
        pool: &Pool,
        body: impl Fn(usize, EdgeBlock<K, W>) -> Result<(), E> + Sync,
    ) -> Result<SourceSummary, E> {
        if K::KIND != self.options.keys {
            return Err(Error::Parameter(format!("keys are {:?}, not {:?}", self.options.keys, K::KIND)).into());
        }
        if let Some(wanted) = self.options.weights
            && wanted != W::TYPE
        {
            let what = format!("weights are {}, not {}", wanted.name(), W::TYPE.name());
            return Err(Error::Parameter(what).into());
        }
        let paths: Vec<PathBuf> = self.parts.iter().map(|part| part.path.clone()).collect();
        let promised: Vec<Option<u64>> = self.parts.iter().map(|part| part.num_promised).collect();
        let run = Run {
            options: &self.options,
            bytes_read: &self.bytes_read,
            outcomes: Mutex::new(Outcomes::new(paths.len())),
            balances: paths.iter().map(|_| AtomicU64::new(0)).collect(),
            stop: AtomicBool::new(false),
            facts: &self.facts,
            columns: self.parts.iter().map(csv_properties_of).collect(),
            unions: self.parts.iter().map(|part| unions_of(part, &self.facts)).collect(),
            stream: Mutex::new(Stream::new(&mut self.parts, &self.options, &self.bytes_read)),
        };
        let failed: Mutex<Option<E>> = Mutex::new(None);
        pool.on_each_worker(|worker| {
            while let Some(block) = run.next_block() {
                if let Err(error) = body(worker, block) {
                    lock(&failed).get_or_insert(error);
                    run.stop.store(true, Ordering::Relaxed);
                }
            }
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(error);
        }
        Ok(run.finish(&paths, &promised)?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere ends the whole run; nothing here is left half changed.
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// One reading of all inputs.
struct Run<'a> {
    options: &'a SourceOptions,
    bytes_read: &'a AtomicU64,
    stream: Mutex<Stream<'a>>,
    outcomes: Mutex<Outcomes>,
    /// By input: see [`ArcEdges`](super::serialized_arcs::ArcEdges).
    balances: Vec<AtomicU64>,
    stop: AtomicBool,
    facts: &'a SourceFacts,
    /// By input: which columns of text are properties.
    columns: Vec<CsvProperties>,
    /// By input: its columns among those of all, for edges and vertices.
    unions: Vec<[Union; 2]>,
}

impl Run<'_> {
    /// Takes a piece and parses it; none once there are no more, or something ended everything.
    fn next_block<K: FieldKey, W: Weight>(&self) -> Option<EdgeBlock<K, W>> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let piece = {
            let mut stream = lock(&self.stream);
            match stream.next() {
                Ok(piece) => piece?,
                Err(fault) => {
                    let (sequence, part) = stream.place();
                    stream.finish();
                    drop(stream);
                    self.fail(sequence, part, fault);
                    return None;
                }
            }
        };
        let (sequence, part) = (piece.sequence, piece.part);
        let (parsed, text) = match self.parse(piece) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.fail(sequence, part, Fatal::Whole(error));
                return None;
            }
        };
        let parsed = match self.united(part, parsed) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.fail(sequence, part, Fatal::Whole(error));
                return None;
            }
        };
        let outcome = BlockOutcome {
            sequence,
            part,
            num_lines: parsed.num_lines,
            num_edges: parsed.edges.len() as u64,
            num_vertices: parsed.vertices.len() as u64,
            faults: parsed.faults,
        };
        if lock(&self.outcomes).add(outcome) {
            self.stop.store(true, Ordering::Relaxed);
            return None;
        }
        Some(EdgeBlock {
            sequence,
            edges: parsed.edges,
            weights: parsed.weights,
            vertices: parsed.vertices,
            properties: parsed.properties,
            vertex_properties: parsed.vertex_properties,
            text,
        })
    }

    /// Gives a block the columns that all inputs have together.
    fn united<K, W>(&self, part: usize, mut parsed: Parsed<K, W>) -> Result<Parsed<K, W>> {
        let unions = &self.unions[part];
        let (properties, num_edges) = (std::mem::take(&mut parsed.properties), parsed.edges.len());
        parsed.properties = unions[0].apply(properties, num_edges, &self.facts.edge_properties)?;
        let (properties, num_vertices) = (std::mem::take(&mut parsed.vertex_properties), parsed.vertices.len());
        if !properties.is_empty() {
            parsed.vertex_properties = unions[1].apply(properties, num_vertices, &self.facts.vertex_properties)?;
        }
        Ok(parsed)
    }

    fn fail(&self, sequence: u64, part: usize, fault: Fatal) {
        lock(&self.outcomes).fail(sequence, part, fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The edges of a piece, and the text that their keys lie in.
    fn parse<K: FieldKey, W: Weight>(&self, piece: Piece) -> Result<(Parsed<K, W>, Vec<u8>)> {
        let on_error = self.options.on_error;
        let is_weighted = self.options.weights.is_some();
        let (block, layout) = match piece.work {
            Work::Text(block, layout) => (block, layout),
            Work::Arcs(graph, arcs) => {
                let read = read_arcs::<W>(&graph, &arcs, is_weighted)?;
                self.bytes_read.fetch_add(read.num_bytes, Ordering::Relaxed);
                self.balances[piece.part].fetch_add(read.balance, Ordering::Relaxed);
                let mut parsed = Parsed::new(0, on_error);
                parsed.weights = read.weights;
                parsed.edges.reserve_exact(read.edges.len());
                for (source, target) in read.edges {
                    let source = number_key(u64::from(source), &mut parsed.extra)?;
                    let target = number_key(u64::from(target), &mut parsed.extra)?;
                    parsed.edges.push((source, target));
                }
                let text = std::mem::take(&mut parsed.extra);
                return Ok((parsed, text));
            }
            Work::Vertices(vertices) => {
                let mut parsed = Parsed::new(0, on_error);
                for vertex in vertices {
                    let key = number_key(vertex, &mut parsed.extra)?;
                    parsed.vertices.push(key);
                }
                let text = std::mem::take(&mut parsed.extra);
                return Ok((parsed, text));
            }
        };
        let mut parsed = match layout {
            Layout::Nothing => Parsed::of_block(&block, on_error),
            Layout::Edges(kind) => parse_edges(&block, kind, is_weighted, on_error),
            Layout::Columns(layout) => parse_columns(&block, &layout, &self.columns[piece.part], on_error),
            Layout::Entries(lines) => parse_entries(&block, lines, is_weighted, on_error),
            Layout::Lists(lines) => parse_lists(&block, lines, is_weighted),
            Layout::Vertices => parse_vertices(&block, on_error),
        };
        self.balances[piece.part].fetch_add(parsed.balance, Ordering::Relaxed);
        let mut text = block.bytes;
        if K::KIND == KeyKind::Integer {
            lock(&self.stream).recycle(text);
            return Ok((parsed, Vec::new()));
        }
        text.truncate(block.end);
        text.append(&mut parsed.extra);
        text.shrink_to_fit();
        Ok((parsed, text))
    }

    /// Holds what was read against what was promised.
    fn finish(self, paths: &[PathBuf], promised: &[Option<u64>]) -> Result<SourceSummary> {
        let mut outcomes = self.outcomes.into_inner().unwrap_or_else(|e| e.into_inner());
        if let Some(error) = outcomes.take_error(|part| paths[part].clone()) {
            return Err(error);
        }
        let stream = self.stream.into_inner().unwrap_or_else(|e| e.into_inner());
        for (part, path) in paths.iter().enumerate() {
            let bad = |what: String| Err(Error::Input { path: path.clone(), what });
            let counts = outcomes.counts(part);
            if let Some(problem) = stream.problems()[part]
                && problem.num_arcs != counts.num_edges / problem.edges_each + counts.num_skipped
            {
                let found = counts.num_edges / problem.edges_each + counts.num_skipped;
                return bad(format!("the header promises {} {}, found {found}", problem.num_arcs, problem.noun));
            }
            if let Some(promised) = promised[part] {
                let found = counts.num_edges + counts.num_vertices + counts.num_skipped;
                if promised != found {
                    return bad(format!("the properties promise {promised} lines, found {found}"));
                }
            }
            if self.balances[part].load(Ordering::Relaxed) != 0 && stream.is_undirected(part) {
                return bad("the graph is undirected, but not every edge stands in the lists of both its ends".into());
            }
        }
        Ok(outcomes.summary(|part| paths[part].clone()))
    }
}

fn csv_properties_of(part: &Part) -> CsvProperties {
    let side = usize::from(matches!(part.kind, PartKind::Text(TextKind::VertexCsv)));
    CsvProperties::new(&part.properties[side])
}

fn number_key<K: FieldKey>(number: u64, text: &mut Vec<u8>) -> Result<K> {
    if let Some(key) = K::from_digits(number) {
        return Ok(key);
    }
    let mut digits = Vec::with_capacity(20);
    super::push_u64(&mut digits, number);
    K::from_owned(&digits, 0, text).ok_or_else(|| Error::Parameter("a block of text is larger than 4 GB".into()))
}

impl Opening<'_> {
    fn input(&mut self, input: &InputPath) -> Result<()> {
        let path = input.path();
        let mut looked = match input {
            InputPath::Stdin => {
                let stdin = std::io::stdin();
                if stdin.is_terminal() {
                    return Err(bad(path, "expected a pipe or a file on standard input, found a terminal"));
                }
                Looked::at_stream(path, Box::new(stdin))?
            }
            InputPath::File(path) => {
                let may_be_prefix = matches!(self.options.format, None | Some(Format::Graphalytics));
                if may_be_prefix && !path.exists() && find_files(path).is_ok() {
                    return self.graphalytics(path);
                }
                Looked::at_file(path)?
            }
        };
        let format = self.options.format.or_else(|| detect::by_name(path));
        let format = format.unwrap_or_else(|| detect::by_content(path, &looked.head));
        if !format.is_readable() {
            let name = format.name();
            return Err(bad(path, &format!("the format {name} is not read yet: convert it to an edge list or CSV")));
        }
        let (compression, name) = Compression::of_name(path);
        let extension = name.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        match format {
            Format::Graphalytics if looked.opened.is_none() => return self.graphalytics(path),
            Format::Gapbs if matches!(&extension[..], "sg" | "wsg") => {
                if compression.is_some() || looked.opened.is_some() {
                    return Err(bad(path, "a serialized graph is read from a plain file only: decompress it first"));
                }
                self.count_bytes(&looked);
                return self.serialized(path);
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
            Format::EdgeList if self.options.columns.is_some() => TextKind::BlankColumns,
            _ => TextKind::EdgeList,
        };
        let properties = match kind {
            TextKind::Csv | TextKind::BlankColumns => self.properties(path, &looked, kind)?,
            _ => PartProperties::default(),
        };
        let opened = looked.opened.take();
        self.push(path, kind, opened, None);
        self.say_properties(0, properties);
        Ok(())
    }

    fn matrix(&mut self, path: &Path, head: &[u8]) -> Result<TextKind> {
        let text = detect::text_of(path, head)?;
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let matrix = Matrix::of_banner(line).map_err(|what| Error::Line { path: path.to_owned(), line: 1, what })?;
        self.facts.direction = agreed(self.facts.direction, Some(matrix.direction()), path)?;
        self.weights_known(path, Some(matrix.field != Field::Pattern))?;
        Ok(TextKind::MatrixMarket(matrix))
    }

    fn metis(&mut self, path: &Path, head: &[u8]) -> Result<TextKind> {
        let text = detect::text_of(path, head)?;
        for (i, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let header = MetisHeader::of_line(line);
            let header = header.map_err(|what| Error::Line { path: path.to_owned(), line: i as u64 + 1, what })?;
            if let Some(header) = header {
                self.facts.direction = agreed(self.facts.direction, Some(Direction::Undirected), path)?;
                self.weights_known(path, Some(header.has_weights))?;
                return Ok(TextKind::Metis(header));
            }
        }
        Err(bad(path, "expected the header 'vertices edges [fmt [ncon]]', found none at the beginning"))
    }

    fn vertices(&mut self, path: &Path) -> Result<()> {
        let mut looked = Looked::at_file(path)?;
        let format = detect::by_name(path).unwrap_or_else(|| detect::by_content(path, &looked.head));
        let kind = match format {
            Format::Csv => TextKind::VertexCsv,
            Format::EdgeList | Format::Graphalytics | Format::Gapbs => TextKind::VertexList,
            other => {
                let what = format!("vertices are read from lists and CSV, found the format {}", other.name());
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
        if let Some(path) = files.vertices {
            let looked = Looked::at_file(&path)?;
            self.count_bytes(&looked);
            self.push(&path, TextKind::VertexList, looked.opened, files.num_vertices);
        }
        self.facts.direction = agreed(self.facts.direction, files.direction, path)?;
        self.weights_known(path, files.has_weights)?;
        let looked = Looked::at_file(&files.edges)?;
        self.count_bytes(&looked);
        self.num_texts += 1;
        self.facts.num_edges = add(self.facts.num_edges, files.num_edges);
        self.push(&files.edges, TextKind::EdgeList, looked.opened, files.num_edges);
        Ok(())
    }

    fn serialized(&mut self, path: &Path) -> Result<()> {
        let graph = Arc::new(SerializedGraph::open(path)?);
        self.facts.direction = agreed(self.facts.direction, Some(graph.direction()), path)?;
        self.weights_known(path, Some(graph.is_weighted()))?;
        self.facts.num_edges = add(self.facts.num_edges, Some(graph.num_arcs()));
        self.graphs.push(Arc::clone(&graph));
        let kind = PartKind::Serialized(graph, NameVertices::Yes);
        let properties = Default::default();
        let path = path.to_owned();
        self.parts.push(Part { path, kind, opened: None, can_reopen: true, num_promised: None, properties });
        Ok(())
    }

    fn weights_known(&mut self, path: &Path, has_weights: Option<bool>) -> Result<()> {
        if has_weights == Some(false) && self.options.weights.is_some() {
            return Err(bad(path, "weights are asked for, but the graph has none"));
        }
        if let Some(has_weights) = has_weights {
            self.facts.has_weights = Some(self.facts.has_weights.unwrap_or(true) && has_weights);
        }
        Ok(())
    }

    fn count_bytes(&mut self, looked: &Looked) {
        self.facts.input_bytes = self.facts.input_bytes.zip(looked.num_bytes).map(|(sum, bytes)| sum + bytes);
    }

    fn push(&mut self, path: &Path, kind: TextKind, opened: Option<Box<dyn Read + Send>>, num_promised: Option<u64>) {
        let can_reopen = opened.is_none();
        let (path, kind, properties) = (path.to_owned(), PartKind::Text(kind), Default::default());
        self.parts.push(Part { path, kind, opened, can_reopen, num_promised, properties });
    }

    fn finish(mut self) -> (Vec<Part>, SourceFacts, Option<Arc<SerializedGraph>>) {
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
        (self.parts, self.facts, serialized)
    }
}

fn add(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    more.map(|more| sum.unwrap_or(0).saturating_add(more))
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
    fn at_stream(path: &Path, mut reader: Box<dyn Read + Send>) -> Result<Self> {
        let head = read_head(path, &mut reader, HEAD_BYTES)?;
        let opened = std::io::Cursor::new(head.clone()).chain(reader);
        Ok(Self { head, opened: Some(Box::new(opened)), num_bytes: None })
    }

    fn at_file(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| base::Error::io("open", path, e))?;
        if metadata.is_dir() {
            return Err(bad(path, "expected a file, found a directory"));
        }
        let mut file = std::fs::File::open(path).map_err(|e| base::Error::io("open", path, e))?;
        if !metadata.is_file() {
            return Self::at_stream(path, Box::new(file));
        }
        let head = read_head(path, &mut file, HEAD_BYTES)?;
        Ok(Self { head, opened: None, num_bytes: Some(metadata.len()) })
    }
}
