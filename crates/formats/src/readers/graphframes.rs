//! The Parquet tables of GraphFrames, as Spark writes them: `vertices` with `id`, and `edges` with `src` and `dst`.
//!
//! Each table is a file such as `edges.parquet`, or a folder `edges` or `edges.parquet` with parts. Names that begin
//! with `_` or `.` belong to Spark. Without `vertices`, edges name all vertices.

use std::path::{Path, PathBuf};

use super::parquet::{has_text_column, open_edge_table, open_vertex_table};
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::probe::InputProbe;
use crate::{Error, Result};

/// The format.
pub(super) struct GraphFrames;

/// The columns of keys.
const VERTEX_KEY: &str = "id";
const EDGE_KEYS: [&str; 2] = ["src", "dst"];

impl InputFormat for GraphFrames {
    fn name(&self) -> &'static str {
        "graphframes"
    }

    fn recognises(&self, _text: &[u8]) -> Recognition {
        // The format is a folder, and its files are Parquet.
        Recognition::No
    }

    fn open(&self, input: InputProbe, _to: &mut InputCollector<'_>) -> Result<()> {
        Err(input.bad("expected a folder with 'edges' and 'vertices', as --format graphframes says, found a file"))
    }

    fn open_missing(&self, path: &Path, to: &mut InputCollector<'_>) -> Option<Result<()>> {
        has_tables(path).then(|| open_folder(path, to))
    }

    fn has_text_keys(&self, folder: &Path) -> bool {
        let first = |name| parts_of(&table(folder, name).ok()??).ok()?.into_iter().next();
        let is_text = |name, column| first(name).is_some_and(|part: PathBuf| has_text_column(&part, column));
        has_tables(folder) && (is_text("edges", EDGE_KEYS[0]) || is_text("vertices", VERTEX_KEY))
    }
}

fn bad(path: &Path, what: String) -> Error {
    Error::Input { path: path.to_owned(), what }
}

fn has_tables(folder: &Path) -> bool {
    ["edges", "vertices"].iter().any(|name| !matches!(table(folder, name), Ok(None)))
}

/// The file or folder of a table; `None` without one.
///
/// # Errors
/// Two have the name of this table.
fn table(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let found = [name.to_owned(), format!("{name}.parquet")]
        .map(|name| folder.join(name))
        .map(|path| path.exists().then_some(path));
    match found {
        [Some(_), Some(_)] => Err(bad(folder, format!("expected one of '{name}' and '{name}.parquet', found both"))),
        [plain, named] => Ok(plain.or(named)),
    }
}

fn open_folder(folder: &Path, to: &mut InputCollector<'_>) -> Result<()> {
    let vertices = table(folder, "vertices")?;
    let Some(edges) = table(folder, "edges")? else {
        return Err(bad(folder, "expected 'edges' or 'edges.parquet' beside the vertices, found neither".into()));
    };
    if let Some(vertices) = vertices {
        parts_of(&vertices)?.iter().try_for_each(|part| open_vertex_table(part, VERTEX_KEY, to))?;
    }
    parts_of(&edges)?.iter().try_for_each(|part| open_edge_table(part, EDGE_KEYS, to))
}

/// The files of a table, in the order of their names.
///
/// # Errors
/// A folder cannot be read, has no parts, or holds other files or folders.
fn parts_of(table: &Path) -> Result<Vec<PathBuf>> {
    if !table.is_dir() {
        return Ok(vec![table.to_owned()]);
    }
    let io = |e| anden_base::Error::io("read", table, e);
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(table).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // `_SUCCESS`, and checksums such as `.part-0.crc`.
        if name.starts_with(['_', '.']) {
            continue;
        }
        if path.is_dir() {
            return Err(bad(
                &path,
                "expected a part in Parquet, found a folder: partitions by column are not read".into(),
            ));
        }
        if !name.ends_with(".parquet") {
            return Err(bad(&path, "expected parts that end in .parquet, found another file".into()));
        }
        parts.push(path);
    }
    // The order of a directory is arbitrary.
    parts.sort_unstable();
    match parts.is_empty() {
        true => Err(bad(table, "expected parts that end in .parquet, found none".into())),
        false => Ok(parts),
    }
}
