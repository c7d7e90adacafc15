//! METIS graph files: the header and the lists.
//!
//! After `vertices edges [fmt [ncon]]`, the line of each vertex lists its neighbors, numbered from 1 (ids start at 0).
//! The digits of `fmt` describe additional numbers. Hundreds: a size of each vertex. Tens: `ncon` weights of each
//! vertex. Units: a weight after each neighbor. Sizes and weights of vertices are skipped. An empty line is a vertex
//! without neighbors; lines that begin with `%` are comments.
//!
//! A line may be longer than a block. A hub's list then comes in pieces of whole entries, so that memory does not
//! depend on its length.
//!
//! Edges are undirected, and each stands in the lists of both ends. The entry at the lower end becomes the edge. A sum
//! over both entries proves that the other one exists with an equal weight.
//!
//! # Source
//! G. Karypis: METIS, a software package for partitioning unstructured graphs, manual 5.1, section 4.1.

use anden_base::MAX_VERTICES;
use anden_base::message::shown;
use anden_graph::{GraphKind, Weight};

use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::lines::{ParsedBlock, count_key, line_end, next_token, vertex_at};
use crate::number::{parse_u64, parse_weight, short_number, weight_range};
use crate::options::OnError;
use crate::outcome::{PromisedTotals, unexpected};
use crate::probe::InputProbe;
use crate::text_reader::{TextInput, TextLines};
use crate::{Error, Result};

/// The longest beginning of a line without a whole entry, in bytes.
const MAX_ENTRY_BYTES: usize = 1 << 20;
/// The largest number of weights of a vertex, far above the needs of partitioners.
const MAX_VERTEX_WEIGHTS: u64 = 1000;

/// The format.
pub(super) struct Metis;

impl InputFormat for Metis {
    fn name(&self) -> &'static str {
        "metis"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("metis", "METIS"), ("graph", "METIS")]
    }

    fn recognises(&self, _text: &[u8]) -> Recognition {
        // Two counts and lists of numbers may also be edges.
        Recognition::No
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let header = header_of(&input)?;
        to.direction_known(&input.path, Some(GraphKind::Undirected))?;
        to.weights_known(&input.path, Some(header.has_weights))?;
        if header.has_weights {
            to.note_weights(&input.path);
        }
        if header.has_vertex_weights() {
            to.note(&input.path, "the sizes and weights of vertices are left out");
        }
        to.push(input, Box::new(TextInput::new(ListLines::new(header))));
        Ok(())
    }
}

fn header_of(input: &InputProbe) -> Result<MetisHeader> {
    for (i, line) in input.text()?.split(|&byte| byte == b'\n').enumerate() {
        let header = MetisHeader::of_line(line);
        let header = header.map_err(|what| Error::Line { path: input.path.clone(), line: i as u64 + 1, what })?;
        if let Some(header) = header {
            return Ok(header);
        }
    }
    Err(input.bad("expected the header 'vertices edges [fmt [ncon]]', found none at the beginning"))
}

/// The content of the header line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MetisHeader {
    num_vertices: u64,
    num_edges: u64,
    /// Numbers in a line before its neighbors.
    num_skipped: u64,
    has_weights: bool,
}

impl MetisHeader {
    /// Whether vertices have sizes or weights, which are skipped.
    fn has_vertex_weights(&self) -> bool {
        self.num_skipped > 0
    }

    /// Parses a line at the beginning: the header, or `None` for a comment.
    ///
    /// # Errors
    /// The line is neither a comment nor a header.
    fn of_line(line: &[u8]) -> Result<Option<Self>, String> {
        let line = line.trim_ascii();
        if line.first() == Some(&b'%') {
            return Ok(None);
        }
        let wrong = || Err(unexpected("the header 'vertices edges [fmt [ncon]]'", Some(line)));
        let tokens: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()).collect();
        let (counts, fmt, ncon) = match tokens[..] {
            [vertices, edges] => ([vertices, edges], &b"0"[..], None),
            [vertices, edges, fmt] => ([vertices, edges], fmt, None),
            [vertices, edges, fmt, ncon] => ([vertices, edges], fmt, Some(ncon)),
            _ => return wrong(),
        };
        let [Some(num_vertices), Some(num_edges)] = counts.map(parse_u64) else { return wrong() };
        if num_vertices > MAX_VERTICES as u64 {
            return Err(unexpected(&format!("at most {MAX_VERTICES} vertices"), Some(line)));
        }
        if fmt.len() > 3 || !fmt.iter().all(|digit| matches!(digit, b'0' | b'1')) {
            return Err(unexpected("a fmt of up to three digits 0 or 1", Some(fmt)));
        }
        let has = |place: usize| fmt.len() > place && fmt[fmt.len() - 1 - place] == b'1';
        let num_weights = match (has(1), ncon) {
            (false, None | Some(b"0" | b"1")) => 0,
            (false, Some(ncon)) => return Err(unexpected("no ncon, as fmt says no weights of vertices", Some(ncon))),
            (true, None) => 1,
            (true, Some(ncon)) => match parse_u64(ncon) {
                Some(num_weights) if num_weights <= MAX_VERTEX_WEIGHTS => num_weights,
                _ => return Err(unexpected(&format!("an ncon of at most {MAX_VERTEX_WEIGHTS}"), Some(ncon))),
            },
        };
        let num_skipped = num_weights + u64::from(has(2));
        Ok(Some(Self { num_vertices, num_edges, num_skipped, has_weights: has(0) }))
    }

    /// The totals that the header promises, with each edge once.
    fn promised(self) -> PromisedTotals {
        PromisedTotals {
            num_vertices: self.num_vertices,
            num_items: Some(self.num_edges),
            edges_each: 1,
            noun: "edges",
        }
    }
}

/// The way to parse the lines of a block. The first line belongs to `first_vertex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListLines {
    header: MetisHeader,
    /// Whether the header has been passed.
    is_behind_header: bool,
    first_vertex: u64,
    begun: Begun,
}

impl TextLines for ListLines {
    const CUTS_LINES: bool = true;

    fn is_in_header(&self) -> bool {
        !self.is_behind_header
    }

    fn header_line(&mut self, line: &[u8]) -> Result<bool, String> {
        self.is_behind_header = line.first() != Some(&b'%');
        Ok(!self.is_behind_header && !line.starts_with(b"%%"))
    }

    fn whole_rows(&self, block: &TextBlock) -> usize {
        self.whole_entries(block)
    }

    fn pass(&mut self, block: &TextBlock) {
        if self.is_behind_header {
            self.pass_lists(block);
        }
    }

    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        parse_lists(block, *self, context.is_weighted())
    }

    fn promised(&self) -> Option<PromisedTotals> {
        self.is_behind_header.then(|| self.header.promised())
    }

    fn check_end(&self, _num_bytes: u64) -> Result<(), String> {
        let num_vertices = self.header.num_vertices;
        match self.is_behind_header && self.first_vertex <= num_vertices {
            true => {
                let num_lists = self.first_vertex - 1;
                Err(format!("the header promises {num_vertices} vertices, found the lists of {num_lists}"))
            }
            false => Ok(()),
        }
    }
}

/// The item that the first line of a block continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Nothing,
    Comment,
    /// A list, at the start of an entry.
    List,
}

impl ListLines {
    /// The state before the header.
    fn new(header: MetisHeader) -> Self {
        Self { header, is_behind_header: false, first_vertex: 1, begun: Begun::Nothing }
    }

    /// The end of the last whole entry of a block. Returns the block's end if it is a line end, and the block's start
    /// if no entry is whole. The numbers before the neighbors count as one entry.
    fn whole_entries(&self, block: &TextBlock) -> usize {
        let TextBlock { ref bytes, start, end } = *block;
        // A whole line, or a part of a comment, has no entry that the cut could split.
        if bytes[start..end].ends_with(b"\n") || self.is_in_comment(&bytes[start..end]) {
            return end;
        }
        let entry_tokens = 1 + u64::from(self.header.has_weights);
        let begins_list = self.begun == Begun::Nothing && self.header.num_skipped > 0;
        let mut needed = if begins_list { self.header.num_skipped } else { entry_tokens };
        let (mut at, mut whole, mut num_tokens) = (start, start, 0);
        while let Some((_, stop)) = next_token(bytes, at, end) {
            (at, num_tokens) = (stop, num_tokens + 1);
            if num_tokens >= needed {
                whole = stop;
                needed = num_tokens + entry_tokens;
            }
        }
        let is_blank = num_tokens == 0 && !begins_list;
        // Blanks hold no entry. An incomplete entry at the limit is handed out, so that its parser reports a fault.
        if is_blank || (whole == start && end - start >= MAX_ENTRY_BYTES) { end } else { whole }
    }

    /// Advances the state past a block of lists.
    fn pass_lists(&mut self, block: &TextBlock) {
        let text = &block.bytes[block.start..block.end];
        let num_lines = memchr::memchr_iter(b'\n', text).count();
        // A part of a long line: the next block continues its list or its comment.
        if num_lines == 0 {
            if !text.is_empty() {
                self.begun = if self.is_in_comment(text) { Begun::Comment } else { Begun::List };
            }
            return;
        }
        // A `%` marks a comment only at the start of a line.
        let starts_line = |&at: &usize| if at == 0 { self.begun == Begun::Nothing } else { text[at - 1] == b'\n' };
        let num_comments = memchr::memchr_iter(b'%', text).filter(starts_line).count();
        let num_comments = num_comments + usize::from(self.begun == Begun::Comment);
        self.first_vertex += (num_lines - num_comments) as u64;
        self.begun = Begun::Nothing;
    }

    fn is_in_comment(&self, text: &[u8]) -> bool {
        match self.begun {
            Begun::Nothing => text.first() == Some(&b'%'),
            Begun::Comment => true,
            Begun::List => false,
        }
    }
}

/// Parses the lists of a block. A line holds many edges, so faults are never skipped.
fn parse_lists<K: FieldKey, W: Weight>(block: &TextBlock, lines: ListLines, is_weighted: bool) -> ParsedBlock<K, W> {
    let mut parsed = ParsedBlock::of_block(block, OnError::Stop);
    let bytes = &block.bytes[..];
    let (mut at, mut lines) = (block.start, lines);
    while at < block.end {
        let end = line_end(bytes, at);
        if lines.is_in_comment(&bytes[at..end]) {
            // The block in which a comment begins has counted it.
            parsed.num_comments += u64::from(lines.begun == Begun::Nothing);
        } else {
            if let Err(what) = list((bytes, block.end), at, end, lines, is_weighted, &mut parsed) {
                parsed.faults.note(bytes, at, what);
                break;
            }
            lines.first_vertex += 1;
        }
        lines.begun = Begun::Nothing;
        at = end + 1;
    }
    parsed
}

/// Parses one list, or the rest of it, in `bytes[at..end]`. The block's own lines have `base` bytes.
fn list<K: FieldKey, W: Weight>(
    (bytes, base): (&[u8], usize),
    mut at: usize,
    end: usize,
    lines: ListLines,
    is_weighted: bool,
    parsed: &mut ParsedBlock<K, W>,
) -> Result<(), String> {
    let ListLines { header, first_vertex: vertex, begun, .. } = lines;
    let MetisHeader { num_vertices, num_skipped, has_weights, .. } = header;
    if vertex > num_vertices {
        let another = |(first, last): (usize, usize)| {
            let found = shown(&bytes[first..last]);
            Err(format!("expected the lists of {num_vertices} vertices, found another {found}"))
        };
        return next_token(bytes, at, end).map_or(Ok(()), another);
    }
    let num_skipped = if begun == Begun::List { 0 } else { num_skipped };
    for _ in 0..num_skipped {
        let token = next_token(bytes, at, end);
        let Some((_, stop)) = token.filter(|&(first, last)| parse_u64(&bytes[first..last]).is_some()) else {
            let found = token.map(|(first, last)| &bytes[first..last]);
            return Err(unexpected("a size or a weight of the vertex, as fmt says", found));
        };
        at = stop;
    }
    let mut source = None;
    loop {
        while at < end && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        if at >= end {
            return Ok(());
        }
        let (mut target, num_digits) = short_number(bytes, at); // Most neighbors are short numbers.
        if num_digits == 0 || target == 0 || target > num_vertices || !bytes[at + num_digits].is_ascii_whitespace() {
            (target, at) = vertex_at(bytes, at, end, "neighbor", num_vertices)?;
        } else {
            at += num_digits;
        }
        if target == vertex {
            return Err(format!("expected neighbors other than the vertex itself, found {target} in its own list"));
        }
        let (mut weight, mut weight_bits) = (None, 0);
        if has_weights {
            let Some((first, last)) = next_token(bytes, at, end) else {
                return Err(unexpected("a weight after each neighbor, as fmt says", None));
            };
            at = last;
            if is_weighted {
                let token = &bytes[first..last];
                let value = parse_weight::<W>(token).ok_or_else(|| unexpected(weight_range(W::TYPE), Some(token)))?;
                (weight, weight_bits) = (Some(value), value.bits());
            }
        }
        // Each entry at the upper end cancels the entry at the lower end in the sum.
        if vertex > target {
            parsed.balance = parsed.balance.wrapping_sub(edge_hash(target, vertex, weight_bits));
            continue;
        }
        parsed.balance = parsed.balance.wrapping_add(edge_hash(vertex, target, weight_bits));
        let source = match source {
            Some(source) => source,
            None => *source.insert(count_key(vertex, base, parsed)?), // Made once for the list.
        };
        let target = count_key(target, base, parsed)?;
        parsed.edges.push((source, target));
        parsed.weights.extend(weight);
    }
}

/// A hash of an edge and its weight.
fn edge_hash(low: u64, high: u64, weight_bits: u64) -> u64 {
    let mut hash = (low << 32 ^ high).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Includes the weight, so that both ends must state the same one.
    hash ^= hash >> 29 ^ weight_bits;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^= hash >> 32;
    hash.wrapping_mul(0x94d0_49bb_1331_11eb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_stands_in_a_line() {
        let header = |line: &str| MetisHeader::of_line(line.as_bytes());
        let plain = MetisHeader { num_vertices: 7, num_edges: 11, num_skipped: 0, has_weights: false };
        assert_eq!(header("7 11"), Ok(Some(plain)));
        assert_eq!(header(" 7 11 000\r"), Ok(Some(plain)));
        assert_eq!(header("% a comment"), Ok(None));
        assert_eq!(header("7 11 1"), Ok(Some(MetisHeader { has_weights: true, ..plain })));
        assert_eq!(header("7 11 011"), Ok(Some(MetisHeader { has_weights: true, num_skipped: 1, ..plain })));
        assert_eq!(header("7 11 110 3"), Ok(Some(MetisHeader { num_skipped: 4, ..plain })));
        for wrong in ["", "7", "7 x", "7 11 2", "7 11 0001", "7 11 1 3", "7 11 10 4096", "1 2 11 1 5", "-1 2"] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
        assert!(header("4294967295 0").unwrap_err().contains("at most 4294967294 vertices"));
    }
}
