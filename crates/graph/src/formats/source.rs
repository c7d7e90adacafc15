//! Reading all inputs of a graph in parallel.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base::parallel::Pool;

use super::csv::{CsvProperties, parse_columns};
use super::graphml::read_elements;
use super::key::FieldKey;
use super::labeled::{Said, Spaces, check};
use super::lines::{Parsed, parse_edges, parse_vertices};
use super::matrix_market::parse_entries;
use super::metis::parse_lists;
use super::opening::Opening;
use super::options::{KeyKind, SourceFacts, SourceOptions, SourceSummary};
use super::outcome::{BlockOutcome, Fatal, Outcomes, PartCounts};
use super::parquet::{bytes_of, read_rows};
use super::part::{Layout, Numbering, Part, Piece, Stream, Work};
use super::serialized::SerializedGraph;
use super::serialized_arcs::read_arcs;
use super::union::{Union, unions_of, unite};
use super::unlisted::first_unlisted;
use super::unnamed_columns::describe;
use super::{EdgeBlock, InputPath};
use crate::{Error, Result, Weight};

/// Inputs that are to become one graph: opened, their formats known, not read yet.
pub struct Source {
    parts: Vec<Part>,
    options: SourceOptions,
    facts: SourceFacts,
    serialized: Option<Arc<SerializedGraph>>,
    bytes_read: Arc<AtomicU64>,
    /// The files of vertices and edges, where each of the latter has one that lists all.
    listings: Vec<(PathBuf, PathBuf)>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("num_inputs", &self.parts.len()).field("facts", &self.facts).finish()
    }
}

impl Source {
    /// Opens the inputs and tells their formats; reads no more than the beginning of each.
    ///
    /// # Errors
    /// An input is missing or cannot be read, is of a format that is not read yet, is not
    /// compressed as its name says, has no weights although they are asked for, or says something
    /// of the graph that another denies.
    pub fn open(inputs: &[InputPath], options: SourceOptions) -> Result<Self> {
        let mut opening = Opening::new(&options);
        check(&options)?;
        for input in &options.vertices {
            opening.vertices(&input.path, &input.into())?;
        }
        for input in inputs {
            opening.input(input, &Said::default())?;
        }
        for input in &options.edges {
            opening.input(&input.path, &input.into())?;
        }
        let (mut parts, mut facts, serialized, listings) = opening.finish();
        unite(&mut parts, &mut facts, &options)?;
        Ok(Self { parts, options, facts, serialized, bytes_read: Arc::default(), listings })
    }

    /// What the inputs say of themselves; which columns without names are left out, once they are read.
    pub fn facts(&self) -> &SourceFacts {
        &self.facts
    }

    /// The one input, if it is a serialized graph: its lists can be taken as they are.
    pub fn serialized(&self) -> Option<&SerializedGraph> {
        self.serialized.as_deref()
    }

    /// The first edge that has a vertex which the inputs do not list, although they list all; reads the
    /// inputs again, and holds their vertices in memory.
    ///
    /// # Errors
    /// The inputs cannot be read.
    pub fn unlisted(&self) -> Result<Option<Error>> {
        for (vertices, edges) in &self.listings {
            let found = first_unlisted(vertices, edges, self.options.keys)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
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
            spaces: self.parts.iter().map(|part| part.said.spaces.clone()).collect(),
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
        let (summary, counts) = run.finish(&paths, &promised, !self.listings.is_empty())?;
        describe(&self.parts, &counts, &mut self.facts);
        Ok(summary)
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
    /// By input: the spaces of its keys.
    spaces: Vec<Spaces>,
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
        let is_implied = matches!(piece.work, Work::Vertices(..));
        let parsed = self.parse(piece).and_then(|(parsed, text)| self.placed(part, parsed, text));
        let (parsed, text) = match parsed {
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
            num_implied: if is_implied { parsed.vertices.len() as u64 } else { 0 },
            num_comments: parsed.num_comments,
            num_columns: parsed.num_columns,
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

    /// Gives a block the columns that all inputs have together, and its keys their spaces.
    fn placed<K: FieldKey, W>(
        &self,
        part: usize,
        mut parsed: Parsed<K, W>,
        mut text: Vec<u8>,
    ) -> Result<(Parsed<K, W>, Vec<u8>)> {
        self.spaces[part].apply(&mut parsed, &mut text)?;
        let unions = &self.unions[part];
        let (properties, num_edges) = (std::mem::take(&mut parsed.properties), parsed.edges.len());
        parsed.properties = unions[0].apply(properties, num_edges, &self.facts.edge_properties)?;
        let (properties, num_vertices) = (std::mem::take(&mut parsed.vertex_properties), parsed.vertices.len());
        if !properties.is_empty() || unions[1].has_value() {
            parsed.vertex_properties = unions[1].apply(properties, num_vertices, &self.facts.vertex_properties)?;
        }
        Ok((parsed, text))
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
            Work::Elements(mut batch, layout) => {
                let parsed = read_elements(&batch, &layout, on_error);
                let text = if K::KIND == KeyKind::Integer { Vec::new() } else { std::mem::take(&mut batch.text) };
                return Ok((parsed, text));
            }
            Work::Rows(file, layout, rows) => {
                let mut parsed = read_rows::<K, W>(&file, &layout, &rows, on_error)?;
                self.bytes_read.fetch_add(bytes_of(&file, &layout, &rows), Ordering::Relaxed);
                let text = std::mem::take(&mut parsed.extra);
                return Ok((parsed, text));
            }
            Work::Vertices(vertices, numbering) => {
                let mut parsed = Parsed::new(0, on_error);
                for vertex in vertices {
                    let counted = if numbering == Numbering::FromOne { K::from_count(vertex) } else { None };
                    let key = counted.map_or_else(|| number_key(vertex, &mut parsed.extra), Ok)?;
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
    fn finish(
        self,
        paths: &[PathBuf],
        promised: &[Option<u64>],
        lists_all: bool,
    ) -> Result<(SourceSummary, Vec<PartCounts>)> {
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
        if let Some(error) = outcomes.all_skipped(|part| paths[part].clone()) {
            return Err(error);
        }
        let mut summary = outcomes.summary(|part| paths[part].clone());
        summary.num_comments += stream.num_comments();
        if lists_all {
            summary.num_listed = Some((0..paths.len()).map(|part| outcomes.counts(part).num_vertices).sum());
        }
        Ok((summary, (0..paths.len()).map(|part| outcomes.counts(part)).collect()))
    }
}

fn csv_properties_of(part: &Part) -> CsvProperties {
    CsvProperties::new(&part.properties[usize::from(part.is_of_vertices())])
}

fn number_key<K: FieldKey>(number: u64, text: &mut Vec<u8>) -> Result<K> {
    if let Some(key) = K::from_digits(number) {
        return Ok(key);
    }
    let mut digits = Vec::with_capacity(20);
    super::push_u64(&mut digits, number);
    K::from_owned(&digits, 0, text).ok_or_else(|| Error::Parameter("a block of text is larger than 4 GB".into()))
}
