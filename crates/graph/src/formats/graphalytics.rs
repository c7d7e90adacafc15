//! The files of a Graphalytics graph: which belong together, and what their properties say.

use std::path::{Path, PathBuf};

use base::size::{size, size_at_least};

use super::message::shown;
use super::number::parse_u64;
use crate::{Direction, Error, Result};

/// The most bytes of a file of properties.
const MAX_PROPERTIES_BYTES: u64 = 1 << 20;
const SUFFIXES: [&str; 5] = ["", ".gz", ".zst", ".bz2", ".xz"];

/// The files of one graph and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GraphalyticsFiles {
    pub(super) edges: PathBuf,
    pub(super) vertices: Option<PathBuf>,
    pub(super) direction: Option<Direction>,
    pub(super) has_weights: Option<bool>,
    pub(super) num_vertices: Option<u64>,
    pub(super) num_edges: Option<u64>,
}

/// The prefix that the files of a graph share, if `path` names one of them.
pub(super) fn prefix_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let name = SUFFIXES.iter().rev().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let stem = [".properties", ".e", ".v"].iter().find_map(|suffix| name.strip_suffix(suffix))?;
    Some(path.with_file_name(stem))
}

/// The file `prefix` + `suffix`, perhaps compressed.
fn sibling(prefix: &Path, suffix: &str) -> Option<PathBuf> {
    let name = prefix.file_name()?.to_str()?;
    SUFFIXES.iter().map(|packed| prefix.with_file_name(format!("{name}{suffix}{packed}"))).find(|path| path.exists())
}

/// Finds the files of the graph that `path` names: one of its files, or what their names share.
///
/// # Errors
/// There is no file of edges, or the properties cannot be read.
pub(super) fn find_files(path: &Path) -> Result<GraphalyticsFiles> {
    let prefix = prefix_of(path).unwrap_or_else(|| path.to_owned());
    let mut files = GraphalyticsFiles::default();
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
    let edges = given(".e").or_else(|| existing(edges)).or_else(|| sibling(&prefix, ".e"));
    files.vertices = given(".v").or_else(|| existing(vertices)).or_else(|| sibling(&prefix, ".v"));
    files.edges = edges.ok_or_else(|| Error::Input {
        path: path.to_owned(),
        what: format!("expected a file of edges, {}.e, beside it, found none", prefix.display()),
    })?;
    Ok(files)
}

type Names = (Option<PathBuf>, Option<PathBuf>);

fn read_properties(path: &Path, files: &mut GraphalyticsFiles) -> Result<Names> {
    let num_bytes = std::fs::metadata(path).map_err(|e| base::Error::io("look at", path, e))?.len();
    if num_bytes > MAX_PROPERTIES_BYTES {
        let (most, found) = (size(MAX_PROPERTIES_BYTES), size_at_least(num_bytes));
        let what = format!("expected at most {most} of properties, found {found}");
        return Err(Error::Input { path: path.to_owned(), what });
    }
    let text = std::fs::read(path).map_err(|e| base::Error::io("read", path, e))?;
    parse_properties(path, &text, files)
}

/// Reads the lines `graph.NAME.key = value`; gives the files of edges and of vertices that it names.
pub(super) fn parse_properties(path: &Path, text: &[u8], files: &mut GraphalyticsFiles) -> Result<Names> {
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
        // Only the names count: a graph does not reach into other folders.
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
            files.direction = match value {
                "true" => Some(Direction::Directed),
                "false" => Some(Direction::Undirected),
                other => return Err(bad("true or false", other.as_bytes())),
            };
        }
    }
    // Properties of edges are named where there are any.
    files.has_weights.get_or_insert(false);
    Ok((edges, vertices))
}
