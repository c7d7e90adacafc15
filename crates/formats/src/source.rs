//! Reading all inputs of a graph in parallel.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anden_base::parallel::Pool;
use anden_graph::{Weight, WeightType};
use parking_lot::Mutex;

use crate::chunk::{ParseContext, ParsedChunk, parse_chunk};
use crate::collector::{CollectedInputs, InputCollector};
use crate::input_keys::settle_spaces;
use crate::key::FieldKey;
use crate::labeled::{Said, Spaces, check};
use crate::lines::ParsedBlock;
use crate::opened::{OpenedInput, describe};
use crate::opening::{open_edges, open_vertices};
use crate::options::{SourceFacts, SourceOptions, SourceSummary};
use crate::outcome::{BlockOutcome, Fatal, LineFault, Outcomes, PartCounts};
use crate::serialized::SerializedGraph;
use crate::stream::{InputStream, PlacedChunk};
use crate::times::{first_null, no_time};
use crate::union::{Union, unions_of, unite};
use crate::unlisted::first_unlisted;
use crate::{EdgeBlock, InputPath};
use crate::{Error, Result};

/// The opened inputs of one graph, with known formats, before they are read.
pub struct Source {
    parts: Vec<OpenedInput>,
    options: SourceOptions,
    facts: SourceFacts,
    serialized: Option<Arc<SerializedGraph>>,
    bytes_read: Arc<AtomicU64>,
    /// Pairs of a file that lists all vertices and the file of their edges.
    listings: Vec<(PathBuf, PathBuf)>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("num_inputs", &self.parts.len()).field("facts", &self.facts).finish()
    }
}

impl Source {
    /// Opens the inputs and detects their formats. Reads only the beginning of each; all of a document that does not
    /// declare the types of its data, such as GML.
    ///
    /// # Errors
    /// An input is missing, cannot be read, or has an unsupported format. The compression differs from the one that the
    /// name promises. Weights are requested and missing, or two inputs contradict each other.
    pub fn open(inputs: &[InputPath], options: SourceOptions) -> Result<Self> {
        let mut collector = InputCollector::new(&options);
        collector.has_relations = options.has_relations(inputs);
        check(&options)?;
        for input in &options.vertices {
            open_vertices(&input.path, &input.into(), &mut collector)?;
        }
        for input in inputs {
            open_edges(input, &Said::default(), &mut collector)?;
        }
        for input in &options.edges {
            open_edges(&input.path, &input.into(), &mut collector)?;
        }
        let CollectedInputs { mut parts, mut facts, serialized, listings } = collector.finish();
        settle_spaces(&mut parts, options.keys)?;
        unite(&mut parts, &mut facts, &options)?;
        Ok(Self { parts, options, facts, serialized, bytes_read: Arc::default(), listings })
    }

    /// Facts that the inputs state. Left-out columns without names are added once the inputs are read.
    pub fn facts(&self) -> &SourceFacts {
        &self.facts
    }

    /// Reads weights of this type, such as the one that the inputs state.
    pub fn set_weight_type(&mut self, weight_type: WeightType) {
        self.options.weights = Some(weight_type);
    }

    /// The only input, if it is a serialized graph. The caller can take its lists as they are.
    pub fn serialized(&self) -> Option<&SerializedGraph> {
        self.serialized.as_deref()
    }

    /// The first edge with a vertex that the inputs do not list, although they list all vertices. Reads the inputs
    /// again and holds their vertices in memory.
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

    /// The number of bytes read from disk. Grows while [`for_each_block`](Self::for_each_block) works.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    /// Calls `body(worker, block)` with each block, from several threads at once, in any order.
    ///
    /// `K` and `W` must match the options; without weights, any `W` is allowed. Sequence numbers start at 0 and have no
    /// gaps, because blocks without edges count too.
    ///
    /// # Errors
    /// The first fault of the input, in input order; or the first error that `body` returned, after which no block
    /// starts.
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
        let run = SourceRead {
            context: ParseContext::new(&self.options, &self.bytes_read),
            outcomes: Mutex::new(Outcomes::new(paths.len())),
            stop: AtomicBool::new(false),
            paths: &paths,
            facts: &self.facts,
            unions: self.parts.iter().map(|part| unions_of(part, &self.facts)).collect(),
            spaces: self.parts.iter().map(|part| part.said.spaces.clone()).collect(),
            stream: Mutex::new(InputStream::new(&mut self.parts, &self.options, &self.bytes_read)),
        };
        let failed: Mutex<Option<E>> = Mutex::new(None);
        pool.on_each_worker(|worker| {
            while let Some(block) = run.next_block() {
                if let Err(error) = body(worker, block) {
                    // Several workers may fail before all stop. The first error is kept.
                    failed.lock().get_or_insert(error);
                    run.stop.store(true, Ordering::Relaxed);
                }
            }
        });
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        let (summary, counts) = run.finish(&paths, &promised, !self.listings.is_empty())?;
        describe(&self.parts, &counts, &mut self.facts);
        Ok(summary)
    }
}

/// The state of one read of all inputs.
struct SourceRead<'a> {
    context: ParseContext<'a>,
    /// By input.
    paths: &'a [PathBuf],
    stream: Mutex<InputStream<'a>>,
    outcomes: Mutex<Outcomes>,
    stop: AtomicBool,
    facts: &'a SourceFacts,
    /// By input: the map from its columns to those of all inputs, for edges and vertices.
    unions: Vec<[Union; 2]>,
    /// By input: the key spaces.
    spaces: Vec<Spaces>,
}

impl SourceRead<'_> {
    /// Takes a chunk and parses it; `None` after the last chunk, or after a fatal error.
    fn next_block<K: FieldKey, W: Weight>(&self) -> Option<EdgeBlock<K, W>> {
        // Relaxed: a worker that misses the store parses one more block, which does no harm.
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        // The lock covers only the choice of a chunk. All workers parse at once.
        let PlacedChunk { sequence, part, chunk } = {
            let mut stream = self.stream.lock();
            match stream.next() {
                Ok(placed) => placed?,
                Err(fault) => {
                    let (sequence, part) = stream.place();
                    stream.finish();
                    // Releases the stream before the outcomes are locked.
                    drop(stream);
                    self.fail(sequence, part, fault);
                    return None;
                }
            }
        };
        let parsed =
            parse_chunk(chunk, &self.context).map_err(Fatal::from).and_then(|parsed| self.placed(part, parsed));
        let (parsed, text) = match parsed {
            Ok(parsed) => parsed,
            Err(fault) => {
                self.fail(sequence, part, fault);
                return None;
            }
        };
        let outcome = BlockOutcome {
            sequence,
            part,
            num_lines: parsed.num_lines,
            num_edges: parsed.edges.len() as u64,
            num_vertices: parsed.vertices.len() as u64,
            num_implied: parsed.num_implied,
            num_comments: parsed.num_comments,
            num_columns: parsed.num_columns,
            balance: parsed.balance,
            faults: parsed.faults,
        };
        if self.outcomes.lock().add(outcome) {
            // No worker begins another block.
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

    /// Gives a block the columns of all inputs, and its keys their spaces. Returns it with the text of its keys.
    fn placed<K: FieldKey, W>(
        &self,
        part: usize,
        parsed: ParsedChunk<K, W>,
    ) -> Result<(ParsedBlock<K, W>, Vec<u8>), Fatal> {
        let ParsedChunk { block: mut parsed, mut text, spare } = parsed;
        // The stream is locked only for a moment, and not while the block is converted.
        if let Some(spare) = spare {
            self.stream.lock().recycle(spare);
        }
        self.spaces[part].apply(&mut parsed, &mut text)?;
        let unions = &self.unions[part];
        let (properties, num_edges) = (std::mem::take(&mut parsed.properties), parsed.edges.len());
        parsed.properties = unions[0].apply(properties, num_edges, &self.facts.edge_properties)?;
        let time = self.context.options.time_column.as_ref().and_then(|name| self.facts.edge_properties.find(name));
        if let Some((name, _)) = time.and_then(|place| self.facts.edge_properties.get(place))
            && let Some(row) = time.and_then(|place| first_null(parsed.properties.get(place)?))
        {
            return Err(match parsed.num_lines == num_edges as u64 {
                // Each row of the block is an edge, as in Parquet.
                true => Fatal::Line(LineFault { line: row as u64, what: no_time(name) }),
                false => Fatal::Whole(Error::Input { path: self.paths[part].clone(), what: no_time(name) }),
            });
        }
        let (properties, num_vertices) = (std::mem::take(&mut parsed.vertex_properties), parsed.vertices.len());
        if !properties.is_empty() || unions[1].has_value() {
            parsed.vertex_properties = unions[1].apply(properties, num_vertices, &self.facts.vertex_properties)?;
        }
        Ok((parsed, text))
    }

    fn fail(&self, sequence: u64, part: usize, fault: Fatal) {
        self.outcomes.lock().fail(sequence, part, fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Checks the totals against the promised ones.
    fn finish(
        self,
        paths: &[PathBuf],
        promised: &[Option<u64>],
        lists_all: bool,
    ) -> Result<(SourceSummary, Vec<PartCounts>)> {
        let mut outcomes = self.outcomes.into_inner();
        // A fault of a line explains wrong totals, so the fault is reported first.
        if let Some(error) = outcomes.take_error(|part| paths[part].clone()) {
            return Err(error);
        }
        let stream = self.stream.into_inner();
        for (part, path) in paths.iter().enumerate() {
            let bad = |what: String| Err(Error::Input { path: path.clone(), what });
            let counts = outcomes.counts(part);
            if let Some(header) = stream.promised()[part] {
                let found = counts.num_edges / header.edges_each + counts.num_skipped;
                if let Some(num_items) = header.num_items.filter(|&num_items| num_items != found) {
                    return bad(format!("the header promises {num_items} {}, found {found}", header.noun));
                }
            }
            if let Some(promised) = promised[part] {
                // The promise counts lines, so skipped lines count too.
                let found = counts.num_edges + counts.num_vertices + counts.num_skipped;
                if promised != found {
                    return bad(format!("the properties promise {promised} lines, found {found}"));
                }
            }
            // The hashes of both entries of an edge cancel out, so a nonzero sum shows that an entry is missing.
            if counts.balance != 0 {
                return bad("the graph is undirected, but not every edge stands in the lists of both its ends".into());
            }
        }
        // Under `--on-error skip`, an input of faulty lines only is not an empty input.
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
