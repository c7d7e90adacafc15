//! Which edge has a vertex that is not listed.
//!
//! LDBC Graphalytics lists all vertices of a graph beside its edges. That an edge names another one shows
//! in the number of vertices, once all are read; where it does, the inputs are read again to say which.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use super::blocks::{BlockCutter, CutError};
use super::compression::decoded;
use super::lines::{is_comment, line_end, next_token, trimmed};
use super::message::shown;
use super::number::parse_u64;
use super::options::KeyKind;
use super::part::{HEAD_BYTES, read_head};
use crate::{Error, Result};

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 4 << 20;

/// The error of the first line of `edges` that names a vertex which is none of `vertices`.
pub(super) fn first_unlisted(vertices: &Path, edges: &Path, kind: KeyKind) -> Result<Option<Error>> {
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
                return Err(Stopped);
            }
        }
        Ok(())
    });
    checked.map(|()| found)
}

/// Ends the reading of lines early.
struct Stopped;

/// A key in the form in which it is compared: numbers without leading zeros.
fn canonical(key: &[u8], kind: KeyKind) -> Vec<u8> {
    match (kind, parse_u64(key)) {
        (KeyKind::Integer, Some(number)) => number.to_string().into_bytes(),
        _ => key.to_vec(),
    }
}

/// Calls `body` with the number, from 1, and the text of each line that says something.
fn for_each_line(path: &Path, mut body: impl FnMut(u64, &[u8]) -> Result<(), Stopped>) -> Result<()> {
    let mut file = File::open(path).map_err(|e| base::Error::io("open", path, e))?;
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
