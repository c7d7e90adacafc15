//! Edges as lines of blank-separated columns: the inner loop of loading text.
//!
//! Most lines are two numbers with one blank between them. Those are parsed without looking for
//! their ends first; whatever is different (signs, comments, several blanks, long numbers, strings)
//! leaves the fast loop for one line.

use super::blocks::TextBlock;
use super::key::FieldKey;
use super::message::shown;
use super::number::{parse_weight, short_number, short_pair, weight_range, whole_weight};
use super::options::{KeyKind, OnError};
use super::outcome::{Faults, unexpected};
use crate::property::PropertyColumn;
use crate::{Weight, WeightType};

/// The edges of one block.
#[derive(Debug)]
pub(super) struct Parsed<K, W> {
    pub(super) edges: Vec<(K, K)>,
    pub(super) weights: Vec<W>,
    pub(super) vertices: Vec<K>,
    /// By property of the input's edges, with a row for each edge.
    pub(super) properties: Vec<PropertyColumn>,
    /// By property of the input's vertices, with a row for each vertex; or nothing.
    pub(super) vertex_properties: Vec<PropertyColumn>,
    /// Keys that do not stand in the block's text as they are; it follows the block's lines.
    pub(super) extra: Vec<u8>,
    pub(super) num_lines: u64,
    /// Lines among them that are comments.
    pub(super) num_comments: u64,
    /// The most columns of a line without names that has more than those that are read; 0 without such a line.
    pub(super) num_columns: usize,
    /// Zero in sum over an input that must hold each edge at both ends.
    pub(super) balance: u64,
    pub(super) faults: Faults,
}

impl<K, W> Parsed<K, W> {
    pub(super) fn new(num_lines: u64, on_error: OnError) -> Self {
        Self {
            edges: Vec::new(),
            weights: Vec::new(),
            vertices: Vec::new(),
            properties: Vec::new(),
            vertex_properties: Vec::new(),
            extra: Vec::new(),
            num_lines,
            num_comments: 0,
            num_columns: 0,
            balance: 0,
            faults: Faults::new(on_error),
        }
    }

    /// Nothing parsed yet, and how many lines there are.
    pub(super) fn of_block(block: &TextBlock, on_error: OnError) -> Self {
        Self::new(memchr::memchr_iter(b'\n', &block.bytes[..block.end]).count() as u64, on_error)
    }

    /// Takes note of the columns of a line without names, of which `num_read` stand before `rest`.
    #[inline]
    pub(super) fn take_columns(&mut self, num_read: usize, rest: &[u8]) {
        // Two bytes are the least that a column takes: most lines that are no wider than earlier ones end here.
        if num_read + rest.len() / 2 > self.num_columns {
            let num_tokens = num_tokens(rest);
            self.num_columns = self.num_columns.max(if num_tokens > 0 { num_read + num_tokens } else { 0 });
        }
    }

    /// Calls `body` with the ends of each line that is to be parsed, without blanks around it.
    pub(super) fn for_each_line(
        &mut self,
        block: &TextBlock,
        mut body: impl FnMut(&mut Self, usize, usize) -> Result<(), String>,
    ) {
        let mut at = block.start;
        while at < block.end {
            let end = line_end(&block.bytes, at);
            let (first, last) = trimmed(&block.bytes, at, end);
            if let Err(what) = body(self, first, last)
                && self.faults.note(&block.bytes, at, what)
            {
                break;
            }
            at = end + 1;
        }
    }
}

/// Where the line that `at` lies in ends; every block ends in a line end.
#[inline]
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |len| at + len)
}

/// The ends of what is left without blanks at both ends.
#[inline]
pub(super) fn trimmed(bytes: &[u8], mut start: usize, mut end: usize) -> (usize, usize) {
    while start < end && bytes[start].is_ascii_whitespace() {
        start += 1;
    }
    while start < end && bytes[end - 1].is_ascii_whitespace() {
        end -= 1;
    }
    (start, end)
}

/// The ends of the first token at or after `at`.
#[inline]
pub(super) fn next_token(bytes: &[u8], mut at: usize, end: usize) -> Option<(usize, usize)> {
    while at < end && bytes[at].is_ascii_whitespace() {
        at += 1;
    }
    let start = at;
    while at < end && !bytes[at].is_ascii_whitespace() {
        at += 1;
    }
    (start < at).then_some((start, at))
}

/// Where the line begins that follows the one that `at` lies in; none where a CR stands in that, but for its end.
#[inline]
fn next_line(bytes: &[u8], at: usize) -> Option<usize> {
    let end = at + memchr::memchr2(b'\n', b'\r', &bytes[at..])?;
    match &bytes[end..] {
        [b'\n', ..] => Some(end + 1),
        [_, b'\n', ..] => Some(end + 2),
        _ => None,
    }
}

/// Where the line begins that follows the rest of a line, which begins with a blank behind the columns that are read;
/// none where a CR stands in the rest, but for its end. Takes note of the columns of the rest.
#[inline(always)]
fn end_line<K, W, const TAG: usize>(
    bytes: &[u8],
    at: usize,
    num_read: usize,
    parsed: &mut Parsed<K, W>,
) -> Option<usize> {
    // The columns of an arc are those of its format.
    if TAG > 0 {
        return next_line(bytes, at);
    }
    // Nearly all rests are short and have no more columns than those of earlier lines: a few instructions tell.
    if let Some(rest) = bytes.get(at..).and_then(|rest| rest.first_chunk::<32>())
        && let Some((num_bytes, num_tokens)) = short_rest(rest)
        && num_read + num_tokens <= parsed.num_columns
    {
        return Some(at + num_bytes);
    }
    let next = next_line(bytes, at)?;
    parsed.take_columns(num_read, &bytes[at..next]);
    Some(next)
}

/// The length of the rest of a line, and the most tokens in it, if its end is among these bytes and no other CR stands
/// before it. The first byte is a blank.
#[inline(always)]
fn short_rest(rest: &[u8; 32]) -> Option<(usize, usize)> {
    let ends = base::simd::equal_to(rest, b'\n');
    let len = ends.trailing_zeros();
    let before = 1_u32.checked_shl(len)? - 1;
    if base::simd::equal_to(rest, b'\r') & (before >> 1) != 0 {
        return None;
    }
    // Control characters count as blanks here: at worst, the tokens are counted again.
    let blanks = base::simd::at_most(rest, b' ');
    let starts = !blanks & (blanks << 1) & before;
    Some((len as usize + 1, starts.count_ones() as usize))
}

/// Refuses a line, trimmed, with a CR in it: lines that end so would pass for further columns of the first.
fn check_line_ends(line: &[u8]) -> Result<(), String> {
    match memchr::memchr(b'\r', line) {
        None => Ok(()),
        Some(at) => Err(format!(
            "expected lines that end in LF or CR LF, found one with CR alone behind {}",
            shown(&line[..at])
        )),
    }
}

/// Number of tokens in the rest of a line, which begins behind a token.
#[inline]
fn num_tokens(rest: &[u8]) -> usize {
    let is_blank = |byte: u8| byte.is_ascii_whitespace();
    rest.windows(2).filter(|pair| is_blank(pair[0]) && !is_blank(pair[1])).count()
}

/// Whether a text has a line of a list that is no comment.
pub(super) fn has_list_lines(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| !is_comment(line.trim_ascii()))
}

/// Whether a line, trimmed, says nothing.
pub(super) fn is_comment(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'#' || line[0] == b'%' || line.starts_with(b"//")
}

/// Which lines hold edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeLines {
    /// All but comments.
    Plain,
    /// The same, but a line of one key names a vertex.
    OrVertices,
    /// Those that begin with `a`, of vertices from 1 to so many.
    Arcs { num_vertices: u64 },
}

/// Parses the edges of a block.
pub(super) fn parse_edges<K: FieldKey, W: Weight>(
    block: &TextBlock,
    kind: EdgeLines,
    is_weighted: bool,
    on_error: OnError,
) -> Parsed<K, W> {
    let mut parsed = Parsed::of_block(block, on_error);
    parsed.edges.reserve_exact(parsed.num_lines as usize);
    parsed.weights.reserve_exact(if is_weighted { parsed.num_lines as usize } else { 0 });
    let bytes = &block.bytes[..];
    let mut at = block.start;
    while at < block.end {
        if K::KIND == KeyKind::Integer {
            if kind == EdgeLines::Plain && !is_weighted {
                at = pair_lines(bytes, at, &mut parsed);
            }
            at = match (kind, is_weighted) {
                (EdgeLines::Plain | EdgeLines::OrVertices, false) => {
                    integer_lines::<K, W, 0, false>(bytes, at, &mut parsed, u64::MAX)
                }
                (EdgeLines::Plain | EdgeLines::OrVertices, true) => {
                    integer_lines::<K, W, 0, true>(bytes, at, &mut parsed, u64::MAX)
                }
                (EdgeLines::Arcs { num_vertices }, false) => {
                    integer_lines::<K, W, 2, false>(bytes, at, &mut parsed, num_vertices)
                }
                (EdgeLines::Arcs { num_vertices }, true) => {
                    integer_lines::<K, W, 2, true>(bytes, at, &mut parsed, num_vertices)
                }
            };
            if at >= block.end {
                break;
            }
        }
        let end = line_end(bytes, at);
        let (first, last) = trimmed(bytes, at, end);
        let is_vertex = kind == EdgeLines::OrVertices && is_lone(bytes, first, last);
        let edge: Result<Edge<K, W>, String> = match kind {
            _ if is_vertex => key_at(bytes, first, last, "vertex").map(|(vertex, _)| {
                parsed.vertices.push(vertex);
                None
            }),
            EdgeLines::Plain | EdgeLines::OrVertices => {
                edge_line(bytes, first, last, is_weighted).map(|(edge, rest)| {
                    parsed.take_columns(2 + usize::from(is_weighted), &bytes[rest..last]);
                    edge
                })
            }
            EdgeLines::Arcs { num_vertices } => arc_line(bytes, first, last, is_weighted, num_vertices),
        };
        match edge {
            // Neither an edge nor a vertex: an empty line, or a comment.
            Ok(None) => parsed.num_comments += u64::from(first < last && !is_vertex),
            Ok(Some((source, target, weight))) => {
                parsed.edges.push((source, target));
                parsed.weights.extend(weight);
            }
            Err(what) => {
                if parsed.faults.note(bytes, at, what) {
                    break;
                }
            }
        }
        at = end + 1;
    }
    parsed
}

/// Parses lines of two very short numbers; returns where the first line begins that is something else.
#[inline(always)]
fn pair_lines<K: FieldKey, W: Weight>(bytes: &[u8], mut at: usize, parsed: &mut Parsed<K, W>) -> usize {
    while let Some(line) = bytes.get(at..).and_then(|rest| rest.first_chunk())
        && let Some((source, target, num_bytes)) = short_pair(line)
        && let (Some(source), Some(target)) = (K::from_digits(source), K::from_digits(target))
    {
        parsed.edges.push((source, target));
        at += num_bytes;
    }
    at
}

/// Parses lines of `TAG` bytes and two or three short numbers; returns where the first line begins
/// that is something else. The padding after a block is no such line.
#[inline(always)]
fn integer_lines<K: FieldKey, W: Weight, const TAG: usize, const WEIGHTED: bool>(
    bytes: &[u8],
    mut at: usize,
    parsed: &mut Parsed<K, W>,
    num_vertices: u64,
) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b'\n');
    loop {
        let line = at;
        if TAG > 0 && (byte(at) != b'a' || byte(at + 1) != b' ') {
            return line;
        }
        let (source, num_digits) = short_number(bytes, at + TAG);
        at += TAG + num_digits;
        if num_digits == 0 || !matches!(byte(at), b' ' | b'\t') {
            return line;
        }
        let (target, num_digits) = short_number(bytes, at + 1);
        at += 1 + num_digits;
        if num_digits == 0 || (TAG > 0 && (source.min(target) == 0 || source.max(target) > num_vertices)) {
            return line;
        }
        let mut weight: Option<W> = None;
        if WEIGHTED {
            if !matches!(byte(at), b' ' | b'\t') {
                return line;
            }
            at += 1;
            match W::TYPE {
                WeightType::U32 | WeightType::I64 => {
                    let (value, num_digits) = short_number(bytes, at);
                    weight = if num_digits == 0 { None } else { whole_weight(value) };
                    at += num_digits;
                }
                WeightType::F32 | WeightType::F64 => {
                    let start = at;
                    while byte(at) > b' ' {
                        at += 1;
                    }
                    weight = bytes.get(start..at).and_then(parse_weight);
                }
            }
            if weight.is_none() {
                return line;
            }
        }
        at = match byte(at) {
            b'\n' => at + 1,
            b'\r' if byte(at + 1) == b'\n' => at + 2,
            b' ' | b'\t' => match end_line::<K, W, TAG>(bytes, at, 2 + usize::from(WEIGHTED), parsed) {
                Some(next) => next,
                None => return line,
            },
            _ => return line,
        };
        let key = |number| if TAG > 0 { K::from_count(number) } else { K::from_digits(number) };
        let (Some(source), Some(target)) = (key(source), key(target)) else { return line };
        parsed.edges.push((source, target));
        parsed.weights.extend(weight);
    }
}

type Edge<K, W> = Option<(K, K, Option<W>)>;

/// Any line of an edge list, and where the columns end that are read; none where it says nothing.
fn edge_line<K: FieldKey, W: Weight>(
    bytes: &[u8],
    start: usize,
    end: usize,
    is_weighted: bool,
) -> Result<(Edge<K, W>, usize), String> {
    check_line_ends(&bytes[start..end])?;
    if is_comment(&bytes[start..end]) {
        return Ok((None, end));
    }
    let (source, at) = key_at(bytes, start, end, "source")?;
    let (target, at) = key_at(bytes, at, end, "target")?;
    let (weight, at) = match is_weighted {
        true => weight_at(bytes, at, end).map(|(weight, at)| (Some(weight), at))?,
        false => (None, at),
    };
    Ok((Some((source, target, weight)), at))
}

/// Whether a line, trimmed, is one token and no comment.
fn is_lone(bytes: &[u8], start: usize, end: usize) -> bool {
    !is_comment(&bytes[start..end]) && !bytes[start..end].iter().any(u8::is_ascii_whitespace)
}

/// Any line of a DIMACS file after its header.
fn arc_line<K: FieldKey, W: Weight>(
    bytes: &[u8],
    start: usize,
    end: usize,
    is_weighted: bool,
    num_vertices: u64,
) -> Result<Edge<K, W>, String> {
    let line = &bytes[start..end];
    check_line_ends(line)?;
    match next_token(bytes, start, end) {
        None => return Ok(None),
        Some((first, last)) if &bytes[first..last] == b"c" => return Ok(None),
        Some((first, last)) if &bytes[first..last] == b"a" => {}
        _ => return Err(unexpected("an arc 'a source target weight' or a comment 'c'", Some(line))),
    }
    let mut at = start + 1;
    let mut ends = [None; 2];
    for (name, key) in ["source", "target"].into_iter().zip(&mut ends) {
        let (vertex, next) = key_at::<u64>(bytes, at, end, name)?;
        if vertex == 0 || vertex > num_vertices {
            return Err(format!("expected a {name} from 1 to {num_vertices}, as the header says, found {vertex}"));
        }
        (*key, at) = (K::from_count(vertex), next);
    }
    Ok(match (edge_line(bytes, start + 1, end, is_weighted)?.0, ends) {
        (Some((_, _, weight)), [Some(source), Some(target)]) => Some((source, target, weight)),
        (edge, _) => edge,
    })
}

/// The key at or after `at` and where it ends.
pub(super) fn key_at<K: FieldKey>(bytes: &[u8], at: usize, end: usize, name: &str) -> Result<(K, usize), String> {
    let wrong = |token| Err(unexpected(&format!("a {name}, {}", K::RANGE), token));
    let Some((start, stop)) = next_token(bytes, at, end) else { return wrong(None) };
    match K::from_text(bytes, start, stop - start) {
        Some(key) => Ok((key, stop)),
        None => wrong(Some(&bytes[start..stop])),
    }
}

/// The weight at or after `at` and where it ends.
fn weight_at<W: Weight>(bytes: &[u8], at: usize, end: usize) -> Result<(W, usize), String> {
    let wrong = |token| Err(unexpected(weight_range(W::TYPE), token));
    let Some((start, stop)) = next_token(bytes, at, end) else { return wrong(None) };
    let token = &bytes[start..stop];
    parse_weight(token).map_or_else(|| wrong(Some(token)), |weight| Ok((weight, stop)))
}

/// Parses the first column of each line as a vertex.
pub(super) fn parse_vertices<K: FieldKey, W: Weight>(block: &TextBlock, on_error: OnError) -> Parsed<K, W> {
    let mut parsed = Parsed::of_block(block, on_error);
    parsed.for_each_line(block, |parsed, start, end| {
        check_line_ends(&block.bytes[start..end])?;
        match is_comment(&block.bytes[start..end]) {
            true => parsed.num_comments += u64::from(start < end),
            false => {
                let (vertex, rest) = key_at(&block.bytes, start, end, "vertex")?;
                parsed.vertices.push(vertex);
                parsed.take_columns(1, &block.bytes[rest..end]);
            }
        }
        Ok(())
    });
    parsed
}
