//! The keys of all inputs: their type if the caller states none, and the key spaces of headers.

use std::path::Path;

use crate::labeled::{Spaces, check_space};
use crate::opened::OpenedInput;
use crate::options::{KeyKind, SourceOptions};
use crate::parquet::ParquetFile;
use crate::probe::InputProbe;
use crate::table::{LdbcTable, StatedKeys, stated_keys};
use crate::{Error, InputPath, Result, readers};

impl SourceOptions {
    /// The type of keys for these inputs if the caller states none. Keys are text with key spaces, if a header such as
    /// `:ID` or `~id` stands above keys that are not numbers, and if a file or folder such as that of
    /// GraphFrames says so. Other keys are numbers.
    ///
    /// Reads the beginning of each file. Faults of files are left to [`Source::open`](crate::Source::open).
    pub fn usual_keys(&self, inputs: &[InputPath]) -> KeyKind {
        let of_edges = self.edges.iter().any(|input| input.source_space.is_some() || input.target_space.is_some());
        if of_edges || self.vertices.iter().any(|input| input.space.is_some()) {
            return KeyKind::String;
        }
        let has_relations = self.has_relations(inputs);
        let mut spaces: Vec<String> = Vec::new();
        let mut before: Option<StatedKeys> = None;
        for path in self.paths(inputs) {
            let InputPath::File(path) = path else { continue };
            if (path.is_dir() || is_file(path)) && readers::has_text_keys(path) {
                return KeyKind::String;
            }
            let (of_file, has_text) = if let Some(table) = self.parquet_table(path, has_relations) {
                (table.said.spaces, Some(false))
            } else if let Some(stated) = self.stated_keys(path, before.as_ref()) {
                let found = (stated.roles.said.spaces.clone(), stated.has_text);
                // A header without rows also stands above the files behind it.
                before = if stated.has_text.is_none() { Some(stated) } else { before };
                found
            } else {
                before = None;
                continue;
            };
            spaces.extend(of_file.names().map(str::to_owned));
            // Numbers of one space are unique, but those of two may be equal.
            if has_text == Some(true) || spaces.iter().any(|space| *space != spaces[0]) {
                return KeyKind::String;
            }
        }
        KeyKind::Integer
    }

    /// The paths of all inputs, in the order of reading.
    fn paths<'a>(&'a self, inputs: &'a [InputPath]) -> impl Iterator<Item = &'a InputPath> {
        let of_vertices = self.vertices.iter().map(|input| &input.path);
        of_vertices.chain(inputs).chain(self.edges.iter().map(|input| &input.path))
    }

    /// Whether a file has the name of edges between two kinds of LDBC's social network.
    pub(crate) fn has_relations(&self, inputs: &[InputPath]) -> bool {
        self.paths(inputs).any(|input| LdbcTable::is_of_relation(input.path()))
    }

    /// The table in a Parquet file of LDBC's social network.
    fn parquet_table(&self, path: &Path, has_relations: bool) -> Option<LdbcTable> {
        let name = self.format.map(|format| format.name()).or(readers::of_path(path).map(|reader| reader.name()));
        if name != Some("parquet") || !is_file(path) {
            return None;
        }
        let file = std::fs::File::open(path).ok()?;
        LdbcTable::of(&ParquetFile::open(path, file).ok()?.names(), path, has_relations)
    }

    fn stated_keys(&self, path: &Path, before: Option<&StatedKeys>) -> Option<StatedKeys> {
        if !is_file(path) {
            return None;
        }
        let named = readers::of_path(path).map(|reader| reader.name());
        let is_table = |name: &str| ["csv", "edgelist", "neo4j", "neptune"].contains(&name);
        let name = self.format.map(|format| format.name()).or(named);
        if name.is_some_and(|name| !is_table(name)) {
            return None;
        }
        let text = InputProbe::at_file(path).ok()?.text().ok()?;
        let name = name.unwrap_or_else(|| match self.delimiter {
            Some(_) => "csv",
            None => readers::of_content(&text).name(),
        });
        is_table(name).then(|| stated_keys(&text, name == "edgelist", self, path, before)).flatten()
    }
}

/// Whether a path is a file. A pipe can be read once, so its beginning is left to the load.
fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Checks the key spaces that headers state. Numeric keys have no space, so all inputs must then have one space, which
/// is dropped.
///
/// # Errors
/// The name of a space does not fit, or keys are numbers of several spaces.
pub(crate) fn settle_spaces(parts: &mut [OpenedInput], keys: KeyKind) -> Result<()> {
    let mut first: Option<&str> = None;
    for part in &*parts {
        for space in part.said.spaces.names() {
            let bad = |what: String| Error::Input { path: part.path.clone(), what };
            check_space(space).map_err(|error| bad(error.to_string()))?;
            let known = *first.get_or_insert(space);
            if keys != KeyKind::String && known != space {
                return Err(bad(format!(
                    "keys are numbers of the spaces \"{known}\" and \"{space}\", which may be equal: key spaces need \
                     --ids string"
                )));
            }
        }
    }
    if keys != KeyKind::String {
        parts.iter_mut().for_each(|part| part.said.spaces = Spaces::default());
    }
    Ok(())
}
