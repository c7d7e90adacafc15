//! BVGraph: the files `NAME.graph` and `NAME.properties` beside each other.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anden_graph::Weight;

use crate::bvgraph::{BitSource, BvProperties, ListDecoder, is_properties};
use crate::chunk::{
    AnyInputChunk, ImpliedVertices, InputChunk, Numbering, ParseContext, ParsedChunk, number_key, rows_at_once,
};
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::lines::ParsedBlock;
use crate::outcome::Fatal;
use crate::part::{InputContent, InputReader, InputStart};
use crate::probe::InputProbe;
use crate::{Error, Result};

/// The largest properties that are read.
const MAX_PROPERTIES_BYTES: u64 = 1 << 20;
/// The largest number of arcs of a chunk.
const MAX_ARCS_AT_ONCE: u64 = 256 << 10;

/// The format.
pub(super) struct BvGraph;

impl InputFormat for BvGraph {
    fn name(&self) -> &'static str {
        "bvgraph"
    }

    fn recognises(&self, _text: &[u8]) -> Recognition {
        // The properties tell, which stand in another file.
        Recognition::No
    }

    fn claims(&self, path: &Path) -> bool {
        let is_named = path.extension().is_some_and(|ending| ending == "graph" || ending == "properties");
        is_named && beginning_of(&path.with_extension("properties")).is_ok_and(|text| is_properties(&text))
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        match input.is_file() {
            true => open_graph(&input.path, to),
            false => Err(input.bad("expected the name of a .graph or .properties file, found a stream")),
        }
    }

    fn open_missing(&self, path: &Path, to: &mut InputCollector<'_>) -> Option<Result<()>> {
        let graph = with_suffix(path, "graph");
        self.claims(&graph).then(|| open_graph(&graph, to))
    }
}

/// The path with a dot and this suffix; a name may have dots of its own, as in `uk-2007-05.hc`.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

/// The text of a file up to one byte beyond the limit of properties.
fn beginning_of(path: &Path) -> Result<Vec<u8>> {
    let io = |operation, e| anden_base::Error::io(operation, path, e);
    let mut text = Vec::new();
    let file = File::open(path).map_err(|e| io("open", e))?;
    file.take(MAX_PROPERTIES_BYTES + 1).read_to_end(&mut text).map_err(|e| io("read", e))?;
    Ok(text)
}

/// The properties in a file.
///
/// # Errors
/// The file cannot be read, is too long, or holds no properties of this format.
fn properties_of(path: &Path) -> Result<BvProperties> {
    let text = beginning_of(path)?;
    if text.len() as u64 > MAX_PROPERTIES_BYTES {
        let what = format!("expected properties of at most {MAX_PROPERTIES_BYTES} bytes, found more");
        return Err(Error::Input { path: path.to_owned(), what });
    }
    BvProperties::parse(path, &text)
}

/// Opens the graph that one of its files names.
fn open_graph(path: &Path, to: &mut InputCollector<'_>) -> Result<()> {
    let (graph, properties) = (path.with_extension("graph"), path.with_extension("properties"));
    if to.parts.iter().any(|part| part.path == graph) {
        return Ok(()); // The caller named both files of one graph.
    }
    let properties = properties_of(&properties)?;
    // The properties do not say whether the lists are those of an undirected graph.
    to.direction_known(&graph, None)?;
    to.weights_known(&graph, Some(false))?;
    to.count_edges(Some(properties.num_arcs));
    let num_promised = properties.num_arcs.saturating_add(properties.num_vertices);
    let part = to.push(InputProbe::at_file(&graph)?, Box::new(BvGraphContent(properties)));
    // Every vertex is listed beside the arcs.
    part.num_promised = Some(num_promised);
    Ok(())
}

/// The lists of a graph as an input.
struct BvGraphContent(BvProperties);

impl InputContent for BvGraphContent {
    fn begin(&self, input: InputStart<'_>) -> Result<Box<dyn InputReader>> {
        let path = input.path;
        let file = File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?;
        let BvProperties { num_vertices, num_arcs, layout } = self.0;
        // Opened as it is: bits may look like the beginning of a compressed file.
        let bits = BitSource::new(Box::new(CountedFile(file, Arc::clone(input.bytes_read))));
        Ok(Box::new(BvGraphReader {
            path: path.to_owned(),
            lists: ListDecoder::new(bits, num_vertices, layout),
            vertices: ImpliedVertices::new(0..num_vertices, Numbering::Ids, input.options),
            arcs_at_once: rows_at_once(input.options).min(MAX_ARCS_AT_ONCE) as usize,
            left: None,
            num_promised: num_arcs,
            num_found: 0,
        }))
    }
}

/// A file that counts the bytes that are read.
struct CountedFile(File, Arc<AtomicU64>);

impl Read for CountedFile {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let num_bytes = self.0.read(into)?;
        self.1.fetch_add(num_bytes as u64, Ordering::Relaxed);
        Ok(num_bytes)
    }
}

/// Decodes the lists, one after the other because each may copy from those before, and then names the vertices.
struct BvGraphReader {
    path: PathBuf,
    lists: ListDecoder,
    vertices: ImpliedVertices,
    arcs_at_once: usize,
    /// The vertex with the last list that did not fit in a chunk, and the number of its arcs in chunks before.
    left: Option<(u32, usize)>,
    /// The number of arcs that the properties state.
    num_promised: u64,
    /// The number of arcs in the lists until now.
    num_found: u64,
}

impl BvGraphReader {
    fn bad(&self, what: String) -> Fatal {
        Error::Input { path: self.path.clone(), what }.into()
    }

    /// Refuses more arcs than promised at once, because a few damaged bits can state long lists.
    fn require_promised(&self, is_complete: bool) -> Result<(), Fatal> {
        let Self { num_promised, num_found, .. } = self;
        if num_found > num_promised {
            return Err(self.bad(format!("the properties promise {num_promised} arcs, found more")));
        }
        match is_complete && num_found < num_promised {
            true => Err(self.bad(format!("the properties promise {num_promised} arcs, found {num_found}"))),
            false => Ok(()),
        }
    }
}

impl InputReader for BvGraphReader {
    fn next(&mut self, _spare: &mut Vec<Vec<u8>>) -> Result<Option<Box<dyn AnyInputChunk>>, Fatal> {
        let mut chunk = ListChunk::default();
        while chunk.targets.len() < self.arcs_at_once {
            let (vertex, list, start) = match self.left.take() {
                Some((vertex, start)) => (vertex, self.lists.last(), start),
                None => match self.lists.next() {
                    Ok(Some((vertex, list))) => {
                        self.num_found += list.len() as u64;
                        self.require_promised(false)?;
                        (vertex, self.lists.last(), 0)
                    }
                    Ok(None) => {
                        self.require_promised(true)?;
                        break;
                    }
                    Err(what) => return Err(self.bad(what)),
                },
            };
            let end = list.len().min(start + self.arcs_at_once - chunk.targets.len());
            chunk.targets.extend_from_slice(&list[start..end]);
            chunk.ends.push((vertex, chunk.targets.len()));
            self.left = (end < list.len()).then_some((vertex, end));
        }
        match chunk.targets.is_empty() {
            true => Ok(self.vertices.next()),
            false => Ok(Some(Box::new(chunk))),
        }
    }
}

/// Lists of consecutive vertices.
#[derive(Default)]
struct ListChunk {
    targets: Vec<u32>,
    /// Each vertex, and the end of its list in `targets`.
    ends: Vec<(u32, usize)>,
}

impl InputChunk for ListChunk {
    fn parse<K: FieldKey, W: Weight>(self, context: &ParseContext<'_>) -> Result<ParsedChunk<K, W>> {
        let mut block = ParsedBlock::new(0, context.on_error());
        block.edges.reserve_exact(self.targets.len());
        let mut start = 0;
        for (vertex, end) in self.ends {
            for &target in &self.targets[start..end] {
                let source = number_key(u64::from(vertex), &mut block.extra)?;
                let target = number_key(u64::from(target), &mut block.extra)?;
                block.edges.push((source, target));
            }
            start = end;
        }
        Ok(ParsedChunk::of_extra(block))
    }
}
