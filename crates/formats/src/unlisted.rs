//! Finds an edge with an unlisted vertex.
//!
//! LDBC Graphalytics lists all vertices of a graph beside its edges. After a read, the number of vertices shows whether
//! an edge names another one. Only then the inputs are read again to find that edge.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use anden_base::message::shown;

use crate::blocks::{BlockCutter, CutError};
use crate::compression::{HEAD_BYTES, decoded, read_head};
use crate::lines::{is_comment, line_end, next_token, trimmed};
use crate::number::parse_u64;
use crate::options::KeyKind;
use crate::{Error, Result};

/// Bytes per read.
const BLOCK_BYTES: usize = 4 << 20;

/// The error of the first line of `edges` that names a vertex outside `vertices`.
pub(crate) fn first_unlisted(vertices: &Path, edges: &Path, kind: KeyKind) -> Result<Option<Error>> {
    let mut listed: HashSet<Vec<u8>> = HashSet::new();
    for_each_line(vertices, |_, line| {
        if let Some((first, last)) = next_token(line, 0, line.len()) {
            listed.insert(canonical(&line[first..last], kind));
        }
        Ok(())
    })?;
    let mut found = None;
    let checked = for_each_line(edges, |number, line| {
        let mut at = 0;
        for name in ["source", "target"] {
            let Some((first, last)) = next_token(line, at, line.len()) else { break };
            at = last;
            let key = &line[first..last];
            if !listed.contains(&canonical(key, kind)) {
                let what = format!("expected a {name} that {} lists, found {}", vertices.display(), shown(key));
                found = Some(Error::Line { path: edges.to_owned(), line: number, what });
                return Err(LineScanStopped);
            }
        }
        Ok(())
    });
    checked.map(|()| found)
}

/// Ends the loop over lines early.
struct LineScanStopped;

/// The form of a key for comparison: numbers have no leading zeros.
fn canonical(key: &[u8], kind: KeyKind) -> Vec<u8> {
    match (kind, parse_u64(key)) {
        (KeyKind::Integer, Some(number)) => number.to_string().into_bytes(),
        _ => key.to_vec(),
    }
}

/// Calls `body` with the number, from 1, and the text of each line that is not a comment.
fn for_each_line(path: &Path, mut body: impl FnMut(u64, &[u8]) -> Result<(), LineScanStopped>) -> Result<()> {
    let mut file = File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?;
    let head = read_head(path, &mut file, HEAD_BYTES)?;
    let mut cutter = BlockCutter::new(decoded(path, &head, Cursor::new(head.clone()).chain(file))?);
    let (mut buffer, mut number) = (Vec::new(), 0);
    loop {
        let block = cutter.next(path, buffer, BLOCK_BYTES).map_err(|error| match error {
            CutError::Read(error) => error,
            CutError::LongLine(_) => Error::Input { path: path.to_owned(), what: "a line is too long".into() },
        })?;
        let Some(block) = block else { return Ok(()) };
        let mut at = block.start;
        while at < block.end {
            let end = line_end(&block.bytes, at);
            let (first, last) = trimmed(&block.bytes, at, end);
            // Comments count as well, because the message names a line of the file.
            number += 1;
            let line = &block.bytes[first..last];
            if !is_comment(line) && body(number, line).is_err() {
                return Ok(());
            }
            at = end + 1;
        }
        buffer = block.bytes;
    }
}
