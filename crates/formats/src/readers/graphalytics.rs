//! LDBC Graphalytics: the files `.v`, `.e` and `.properties` beside each other.

use std::path::{Path, PathBuf};

use anden_base::message::shown;
use anden_base::size::{size, size_at_least};
use anden_graph::GraphKind;

use super::gapbs::Gapbs;
use super::tables::{EdgeListLines, open_list, open_vertex_list};
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::number::parse_u64;
use crate::probe::InputProbe;
use crate::text_reader::TextInput;
use crate::{Error, Result};

/// The format.
pub(super) struct Graphalytics;

impl InputFormat for Graphalytics {
    fn name(&self) -> &'static str {
        "graphalytics"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("e", "the edges of a Graphalytics graph"),
            ("v", "the vertices of a Graphalytics graph"),
            ("properties", "the properties of a Graphalytics graph"),
        ]
    }

    fn recognises(&self, _text: &[u8]) -> Recognition {
        // Only the names of the files tell.
        Recognition::No
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        match input.is_file() {
            true => open_graph(&input.path, to),
            // Nothing stands beside a stream.
            false => open_list(input, false, to),
        }
    }

    fn open_vertices(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        open_vertex_list(input, None, to);
        Ok(())
    }

    fn open_removals(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        Gapbs.open_removals(input, to)
    }

    fn open_missing(&self, path: &Path, to: &mut InputCollector<'_>) -> Option<Result<()>> {
        find_files(path).is_ok().then(|| open_graph(path, to))
    }

    fn is_list(&self) -> bool {
        true
    }
}

/// Opens the files of the graph that `path` names.
fn open_graph(path: &Path, to: &mut InputCollector<'_>) -> Result<()> {
    let files = find_files(path)?;
    if to.parts.iter().any(|part| part.path == files.edges) {
        return Ok(()); // The caller named two files of one graph.
    }
    if let Some(vertices) = &files.vertices {
        to.push_listing(vertices.clone(), files.edges.clone());
        open_vertex_list(InputProbe::at_file(vertices)?, files.num_vertices, to);
    }
    to.direction_known(path, files.graph_kind)?;
    to.weights_known(path, files.has_weights)?;
    let input = InputProbe::at_file(&files.edges)?;
    let has_weights = files.has_weights == Some(true);
    if has_weights {
        to.note_weights(path);
    }
    let unnamed = to.list_columns(&input, has_weights)?;
    to.count_edges(files.num_edges);
    let lines = EdgeListLines::new(to.options);
    let part = to.push(input, Box::new(TextInput::new(lines)));
    (part.unnamed, part.num_promised) = (Some(unnamed), files.num_edges);
    Ok(())
}

/// The largest properties file in bytes.
const MAX_PROPERTIES_BYTES: u64 = 1 << 20;
const SUFFIXES: [&str; 5] = ["", ".gz", ".zst", ".bz2", ".xz"];

/// The files of one graph and their facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct GraphalyticsFiles {
    edges: PathBuf,
    vertices: Option<PathBuf>,
    graph_kind: Option<GraphKind>,
    has_weights: Option<bool>,
    num_vertices: Option<u64>,
    num_edges: Option<u64>,
}

/// The common prefix of the files of a graph, if `path` names one of them.
fn prefix_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    // The empty suffix comes last, because it matches every name.
    let name = SUFFIXES.iter().rev().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let stem = [".properties", ".e", ".v"].iter().find_map(|suffix| name.strip_suffix(suffix))?;
    Some(path.with_file_name(stem))
}

/// The existing file `prefix` + `suffix`, possibly compressed.
fn sibling(prefix: &Path, suffix: &str) -> Option<PathBuf> {
    let name = prefix.file_name()?.to_str()?;
    SUFFIXES.iter().map(|packed| prefix.with_file_name(format!("{name}{suffix}{packed}"))).find(|path| path.exists())
}

/// Finds the files of the graph that `path` names: one of its files, or their common prefix.
///
/// # Errors
/// No file of edges exists, or the properties cannot be read.
fn find_files(path: &Path) -> Result<GraphalyticsFiles> {
    let prefix = prefix_of(path).unwrap_or_else(|| path.to_owned());
    let mut files = GraphalyticsFiles::default();
    // A compressed properties file is ignored.
    let properties = sibling(&prefix, ".properties").filter(|p| p.extension().is_some_and(|e| e == "properties"));
    let (mut edges, mut vertices) = (None, None);
    if let Some(path) = &properties {
        (edges, vertices) = read_properties(path, &mut files)?;
    }
    let existing = |named: Option<PathBuf>| named.filter(|path| path.exists());
    let given = |suffix: &str| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let bare = SUFFIXES.iter().rev().find_map(|packed| name.strip_suffix(packed)).unwrap_or(name);
        bare.ends_with(suffix).then(|| path.to_owned())
    };
    // A file that the caller names wins over the properties, and those win over the usual name.
    let edges = given(".e").or_else(|| existing(edges)).or_else(|| sibling(&prefix, ".e"));
    files.vertices = given(".v").or_else(|| existing(vertices)).or_else(|| sibling(&prefix, ".v"));
    files.edges = edges.ok_or_else(|| Error::Input {
        path: path.to_owned(),
        what: format!("expected a file of edges, {}.e, beside it, found none", prefix.display()),
    })?;
    Ok(files)
}

type GraphalyticsFileNames = (Option<PathBuf>, Option<PathBuf>);

fn read_properties(path: &Path, files: &mut GraphalyticsFiles) -> Result<GraphalyticsFileNames> {
    let num_bytes = std::fs::metadata(path).map_err(|e| anden_base::Error::io("look at", path, e))?.len();
    // The file is read as a whole, so its size is limited.
    if num_bytes > MAX_PROPERTIES_BYTES {
        let (most, found) = (size(MAX_PROPERTIES_BYTES), size_at_least(num_bytes));
        let what = format!("expected at most {most} of properties, found {found}");
        return Err(Error::Input { path: path.to_owned(), what });
    }
    let text = std::fs::read(path).map_err(|e| anden_base::Error::io("read", path, e))?;
    parse_properties(path, &text, files)
}

/// Parses the lines `graph.NAME.key = value`. Returns the named files of edges and of vertices.
fn parse_properties(path: &Path, text: &[u8], files: &mut GraphalyticsFiles) -> Result<GraphalyticsFileNames> {
    let (mut edges, mut vertices) = (None, None);
    for (i, line) in text.split(|&b| b == b'\n').enumerate() {
        let bad = |expected: &str, found: &[u8]| Error::Line {
            path: path.to_owned(),
            line: i as u64 + 1,
            what: format!("expected {expected}, found {}", shown(found)),
        };
        let Ok(line) = std::str::from_utf8(line) else { return Err(bad("text in UTF-8", line)) };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let Some((key, value)) = line.split_once(['=', ':']) else {
            return Err(bad("'key = value'", line.as_bytes()));
        };
        let (key, value) = (key.trim(), value.trim());
        let Some(key) = key.strip_prefix("graph.") else { continue };
        // Only file names count, so that a graph cannot refer to other directories.
        let beside = |value: &str| Path::new(value).file_name().map(|name| path.with_file_name(name));
        let is = |suffix: &str| key.strip_suffix(suffix).is_some_and(|name| name.ends_with('.'));
        let count = || parse_u64(value.as_bytes()).map(Some).ok_or_else(|| bad("a count", value.as_bytes()));
        if is("meta.vertices") {
            files.num_vertices = count()?;
        } else if is("meta.edges") {
            files.num_edges = count()?;
        } else if is("edge-properties.names") {
            files.has_weights = Some(!value.is_empty());
        } else if is("edge-file") {
            edges = beside(value);
        } else if is("vertex-file") {
            vertices = beside(value);
        } else if is("directed") {
            files.graph_kind = match value {
                "true" => Some(GraphKind::Directed),
                "false" => Some(GraphKind::Undirected),
                other => return Err(bad("true or false", other.as_bytes())),
            };
        }
    }
    // The properties file names edge properties only if edges have some.
    files.has_weights.get_or_insert(false);
    Ok((edges, vertices))
}
