//! Edges as lines of blank-separated columns: the inner loop of text ingest.
//!
//! Most lines are two numbers with one blank between them. The fast loop parses these without a search for their ends.
//! Signs, comments, several blanks, long numbers and strings leave the fast loop for one line.

use anden_base::message::shown;
use anden_graph::property::PropertyColumn;
use anden_graph::{Weight, WeightType};

use crate::blocks::TextBlock;
use crate::key::FieldKey;
use crate::number::{parse_u64, parse_weight, push_u64, short_number, short_pair, weight_range, whole_weight};
use crate::options::{KeyKind, OnError};
use crate::outcome::{Faults, unexpected};

/// The parsed content of one block.
#[derive(Debug)]
pub(crate) struct ParsedBlock<K, W> {
    pub(crate) edges: Vec<(K, K)>,
    pub(crate) weights: Vec<W>,
    pub(crate) vertices: Vec<K>,
    /// By edge property of the input, with a row for each edge.
    pub(crate) properties: Vec<PropertyColumn>,
    /// By vertex property of the input, with a row for each vertex; or empty.
    pub(crate) vertex_properties: Vec<PropertyColumn>,
    /// Keys that differ from the block's text, such as unquoted ones. They follow the block's lines.
    pub(crate) extra: Vec<u8>,
    pub(crate) num_lines: u64,
    /// Comment lines among them.
    pub(crate) num_comments: u64,
    /// The largest number of columns of a line without names, if some line has unread columns; otherwise 0.
    pub(crate) num_columns: usize,
    /// Vertices that follow from a header, not from the content of the block.
    pub(crate) num_implied: u64,
    /// A hash that sums to zero over an input with each edge at both ends; zero in other inputs.
    pub(crate) balance: u64,
    pub(crate) faults: Faults,
}

impl<K, W> ParsedBlock<K, W> {
    pub(crate) fn new(num_lines: u64, on_error: OnError) -> Self {
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
            num_implied: 0,
            balance: 0,
            faults: Faults::new(on_error),
        }
    }

    /// An empty result with the number of lines of a block.
    pub(crate) fn of_block(block: &TextBlock, on_error: OnError) -> Self {
        Self::new(memchr::memchr_iter(b'\n', &block.bytes[..block.end]).count() as u64, on_error)
    }

    /// Counts the columns of a line without names, of which `num_read` stand before `rest`.
    #[inline]
    pub(crate) fn take_columns(&mut self, num_read: usize, rest: &[u8]) {
        // A column takes at least two bytes, so this cheap bound settles most lines.
        if num_read + rest.len() / 2 > self.num_columns {
            let num_tokens = num_tokens(rest);
            self.num_columns = self.num_columns.max(if num_tokens > 0 { num_read + num_tokens } else { 0 });
        }
    }

    /// Calls `body` with the bounds of each line to parse, without blanks around it.
    pub(crate) fn for_each_line(
        &mut self,
        block: &TextBlock,
        mut body: impl FnMut(&mut Self, usize, usize) -> Result<(), String>,
    ) {
        // The header was read before, and `start` is behind it.
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

/// The end of the line that contains `at`. Every block ends with a line end.
#[inline]
pub(crate) fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |len| at + len)
}

/// The bounds without blanks at both ends.
#[inline]
pub(crate) fn trimmed(bytes: &[u8], mut start: usize, mut end: usize) -> (usize, usize) {
    while start < end && bytes[start].is_ascii_whitespace() {
        start += 1;
    }
    while start < end && bytes[end - 1].is_ascii_whitespace() {
        end -= 1;
    }
    (start, end)
}

/// The bounds of the first token at or after `at`.
#[inline]
pub(crate) fn next_token(bytes: &[u8], mut at: usize, end: usize) -> Option<(usize, usize)> {
    while at < end && bytes[at].is_ascii_whitespace() {
        at += 1;
    }
    let start = at;
    while at < end && !bytes[at].is_ascii_whitespace() {
        at += 1;
    }
    (start < at).then_some((start, at))
}

/// The start of the line after the one that contains `at`; `None` if a CR stands before its end.
#[inline]
fn next_line(bytes: &[u8], at: usize) -> Option<usize> {
    let end = at + memchr::memchr2(b'\n', b'\r', &bytes[at..])?;
    match &bytes[end..] {
        [b'\n', ..] => Some(end + 1),
        [_, b'\n', ..] => Some(end + 2),
        _ => None,
    }
}

/// Counts the columns in the rest of a line, which begins with a blank after the columns that are read. Returns the
/// start of the next line; `None` if a CR stands before the line end.
#[inline(always)]
fn end_line<K, W, const TAG: usize>(
    bytes: &[u8],
    at: usize,
    num_read: usize,
    parsed: &mut ParsedBlock<K, W>,
) -> Option<usize> {
    // The arc format fixes the columns, so nothing is counted.
    if TAG > 0 {
        return next_line(bytes, at);
    }
    // Nearly all rests are short and add no columns. A few instructions find that out.
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

/// The length of the rest of a line and an upper bound of its tokens. `None` unless these bytes contain the line end,
/// without another CR before it. The first byte is a blank.
#[inline(always)]
fn short_rest(rest: &[u8; 32]) -> Option<(usize, usize)> {
    let ends = anden_base::simd::equal_to(rest, b'\n');
    let len = ends.trailing_zeros();
    let before = 1_u32.checked_shl(len)? - 1;
    if anden_base::simd::equal_to(rest, b'\r') & (before >> 1) != 0 {
        return None;
    }
    // This comparison takes control characters as blanks. At worst, the tokens are counted again.
    let blanks = anden_base::simd::at_most(rest, b' ');
    let starts = !blanks & (blanks << 1) & before;
    Some((len as usize + 1, starts.count_ones() as usize))
}

/// Refuses a trimmed line with a CR: lines that end with CR alone would pass for further columns of the first.
fn check_line_ends(line: &[u8]) -> Result<(), String> {
    match memchr::memchr(b'\r', line) {
        None => Ok(()),
        Some(at) => Err(format!(
            "expected lines that end in LF or CR LF, found one with CR alone behind {}",
            shown(&line[..at])
        )),
    }
}

/// The number of tokens in the rest of a line, which begins behind a token.
#[inline]
fn num_tokens(rest: &[u8]) -> usize {
    let is_blank = |byte: u8| byte.is_ascii_whitespace();
    rest.windows(2).filter(|pair| is_blank(pair[0]) && !is_blank(pair[1])).count()
}

/// Whether a text contains a line that is not a comment.
pub(crate) fn has_list_lines(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| !is_comment(line.trim_ascii()))
}

/// The first line of a text that is no comment, without blanks around it; empty if there is none.
pub(crate) fn first_line(text: &[u8]) -> &[u8] {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !is_comment(line)).unwrap_or_default()
}

/// Whether a trimmed line is empty or a comment.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    line.is_empty() || line[0] == b'#' || line[0] == b'%' || line.starts_with(b"//")
}

/// The lines that hold edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgeLines {
    /// All lines but comments.
    Plain,
    /// All lines but comments; a line with one key names a vertex.
    OrVertices,
    /// Lines that begin with a tag, with vertices from 1 to `num_vertices`.
    Numbered { tag: LineTag, num_vertices: u64 },
}

/// The word before the ends of an edge in a DIMACS file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineTag {
    Arc,
    Edge,
    None,
}

/// Parses the edges of a block.
pub(crate) fn parse_edges<K: FieldKey, W: Weight>(
    block: &TextBlock,
    kind: EdgeLines,
    is_weighted: bool,
    on_error: OnError,
) -> ParsedBlock<K, W> {
    let mut parsed = ParsedBlock::of_block(block, on_error);
    // A line is at most one edge, so these vectors never grow.
    parsed.edges.reserve_exact(parsed.num_lines as usize);
    parsed.weights.reserve_exact(if is_weighted { parsed.num_lines as usize } else { 0 });
    let bytes = &block.bytes[..];
    let mut at = block.start;
    while at < block.end {
        if K::KIND == KeyKind::Integer {
            at = fast_lines(bytes, at, kind, is_weighted, &mut parsed);
            if at >= block.end {
                break;
            }
        }
        // A line that leaves the fast loops is parsed in full, so that its fault gets a message.
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
            EdgeLines::Numbered { tag, num_vertices } => {
                numbered_line(bytes, first, last, tag, is_weighted, num_vertices)
            }
        };
        match edge {
            // A vertex, an empty line or a comment.
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

/// Parses lines of short whole numbers. Returns the start of the first other line.
#[inline(always)]
fn fast_lines<K: FieldKey, W: Weight>(
    bytes: &[u8],
    mut at: usize,
    kind: EdgeLines,
    is_weighted: bool,
    parsed: &mut ParsedBlock<K, W>,
) -> usize {
    // The fastest loop first: it takes most lines of unweighted lists.
    if kind == EdgeLines::Plain && !is_weighted {
        at = pair_lines(bytes, at, parsed);
    }
    match (kind, is_weighted) {
        (EdgeLines::Plain | EdgeLines::OrVertices, false) => {
            integer_lines::<K, W, 0, false>(bytes, at, parsed, u64::MAX)
        }
        (EdgeLines::Plain | EdgeLines::OrVertices, true) => integer_lines::<K, W, 0, true>(bytes, at, parsed, u64::MAX),
        (EdgeLines::Numbered { tag: LineTag::Arc, num_vertices }, false) => {
            integer_lines::<K, W, 2, false>(bytes, at, parsed, num_vertices)
        }
        (EdgeLines::Numbered { tag: LineTag::Arc, num_vertices }, true) => {
            integer_lines::<K, W, 2, true>(bytes, at, parsed, num_vertices)
        }
        // Files with other tags are small.
        (EdgeLines::Numbered { .. }, _) => at,
    }
}

/// Parses lines of two numbers with at most eight digits. Returns the start of the first other line.
#[inline(always)]
fn pair_lines<K: FieldKey, W: Weight>(bytes: &[u8], mut at: usize, parsed: &mut ParsedBlock<K, W>) -> usize {
    // Near the end of the buffer, fewer than 32 bytes remain, and the next loop parses those lines.
    while let Some(line) = bytes.get(at..).and_then(|rest| rest.first_chunk())
        && let Some((source, target, num_bytes)) = short_pair(line)
        && let (Some(source), Some(target)) = (K::from_digits(source), K::from_digits(target))
    {
        parsed.edges.push((source, target));
        at += num_bytes;
    }
    at
}

/// Parses lines of `TAG` bytes and two or three short numbers. Returns the start of the first other line; the padding
/// after a block is one.
#[inline(always)]
fn integer_lines<K: FieldKey, W: Weight, const TAG: usize, const WEIGHTED: bool>(
    bytes: &[u8],
    mut at: usize,
    parsed: &mut ParsedBlock<K, W>,
    num_vertices: u64,
) -> usize {
    // Past the end, a line end stops every token.
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
        // The slow path reports numbers outside the range of the header.
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
                // A short whole number needs no general parser.
                WeightType::U32 | WeightType::I64 => {
                    let (value, num_digits) = short_number(bytes, at);
                    weight = if num_digits == 0 { None } else { whole_weight(value) };
                    at += num_digits;
                }
                WeightType::F32 | WeightType::F64 => {
                    // A float may have a sign, a point and an exponent, so its token is found first.
                    let start = at;
                    while byte(at) > b' ' {
                        at += 1;
                    }
                    weight = bytes.get(start..at).and_then(parse_weight);
                }
            }
            // The slow path parses longer numbers, and reports tokens that are no weight.
            if weight.is_none() {
                return line;
            }
        }
        at = match byte(at) {
            b'\n' => at + 1,
            b'\r' if byte(at + 1) == b'\n' => at + 2,
            b' ' | b'\t' => match end_line::<K, W, TAG>(bytes, at, 2 + usize::from(WEIGHTED), parsed) {
                Some(next) => next,
                // The rest of the line has a CR, which the slow path reports.
                None => return line,
            },
            _ => return line,
        };
        let key = |number| if TAG > 0 { K::from_count(number) } else { K::from_digits(number) };
        // A number may exceed the range of dense ids, which the slow path reports.
        let (Some(source), Some(target)) = (key(source), key(target)) else { return line };
        parsed.edges.push((source, target));
        parsed.weights.extend(weight);
    }
}

type Edge<K, W> = Option<(K, K, Option<W>)>;

/// Parses any line of an edge list. Returns the edge, if any, and the end of the columns that are read.
fn edge_line<K: FieldKey, W: Weight>(
    bytes: &[u8],
    start: usize,
    end: usize,
    is_weighted: bool,
) -> Result<(Edge<K, W>, usize), String> {
    // Checked before comments: a comment that ends with CR alone would hide the lines behind the CR.
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

/// Whether a trimmed line is one token and not a comment.
fn is_lone(bytes: &[u8], start: usize, end: usize) -> bool {
    !is_comment(&bytes[start..end]) && !bytes[start..end].iter().any(u8::is_ascii_whitespace)
}

impl LineTag {
    /// The number of bytes of the tag of a line that begins with `word`; `None` if such a line has no edge.
    ///
    /// # Errors
    /// The format has no such line.
    fn len(self, word: &[u8], line: &[u8]) -> Result<Option<usize>, String> {
        match (self, word) {
            (_, b"c") => Ok(None),
            (Self::Arc, b"a") | (Self::Edge, b"e") => Ok(Some(1)),
            // Values, places and descriptions of vertices and of the graph.
            (Self::Edge, b"n" | b"d" | b"v" | b"x") => Ok(None),
            (Self::None, _) => Ok(Some(0)),
            (Self::Arc, _) => Err(unexpected("an arc 'a source target weight' or a comment 'c'", Some(line))),
            (Self::Edge, _) => Err(unexpected("an edge 'e source target' or a comment 'c'", Some(line))),
        }
    }
}

/// Parses any line of a DIMACS file after its header.
fn numbered_line<K: FieldKey, W: Weight>(
    bytes: &[u8],
    start: usize,
    end: usize,
    tag: LineTag,
    is_weighted: bool,
    num_vertices: u64,
) -> Result<Edge<K, W>, String> {
    let line = &bytes[start..end];
    check_line_ends(line)?;
    let Some((first, last)) = next_token(bytes, start, end) else { return Ok(None) };
    let Some(tag_len) = tag.len(&bytes[first..last], line)? else { return Ok(None) };
    let start = start + tag_len;
    let mut at = start;
    let mut ends = [None; 2];
    // The range of numbers is checked for every key type. String keys are parsed again below.
    for (name, key) in ["source", "target"].into_iter().zip(&mut ends) {
        let (vertex, next) = key_at::<u64>(bytes, at, end, name)?;
        if vertex == 0 || vertex > num_vertices {
            return Err(format!("expected a {name} from 1 to {num_vertices}, as the header says, found {vertex}"));
        }
        (*key, at) = (K::from_count(vertex), next);
    }
    Ok(match (edge_line(bytes, start, end, is_weighted)?.0, ends) {
        (Some((_, _, weight)), [Some(source), Some(target)]) => Some((source, target, weight)),
        (edge, _) => edge,
    })
}

/// The key at or after `at`, and its end.
pub(crate) fn key_at<K: FieldKey>(bytes: &[u8], at: usize, end: usize, name: &str) -> Result<(K, usize), String> {
    let wrong = |token| Err(unexpected(&format!("a {name}, {}", K::RANGE), token));
    let Some((start, stop)) = next_token(bytes, at, end) else { return wrong(None) };
    match K::from_text(bytes, start, stop - start) {
        Some(key) => Ok((key, stop)),
        None => wrong(Some(&bytes[start..stop])),
    }
}

/// The weight at or after `at`, and its end.
fn weight_at<W: Weight>(bytes: &[u8], at: usize, end: usize) -> Result<(W, usize), String> {
    let wrong = |token| Err(unexpected(weight_range(W::TYPE), token));
    let Some((start, stop)) = next_token(bytes, at, end) else { return wrong(None) };
    let token = &bytes[start..stop];
    parse_weight(token).map_or_else(|| wrong(Some(token)), |weight| Ok((weight, stop)))
}

/// Parses the number of a vertex at or after `at`, from 1 to `num_vertices`. Also returns its end.
pub(crate) fn vertex_at(
    bytes: &[u8],
    at: usize,
    end: usize,
    name: &str,
    num_vertices: u64,
) -> Result<(u64, usize), String> {
    let token = next_token(bytes, at, end);
    let found = token.map(|(start, stop)| &bytes[start..stop]);
    match (token, found.and_then(parse_u64)) {
        (Some((_, stop)), Some(number)) if (1..=num_vertices).contains(&number) => Ok((number, stop)),
        _ => Err(unexpected(&format!("a {name} from 1 to {num_vertices}, as the header says"), found)),
    }
}

/// The key of the vertex with this number, which counts from 1. The block's lines have `base` bytes.
pub(crate) fn count_key<K: FieldKey, W>(number: u64, base: usize, parsed: &mut ParsedBlock<K, W>) -> Result<K, String> {
    if let Some(key) = K::from_count(number) {
        return Ok(key);
    }
    // A `u64` has at most 20 digits.
    let mut digits = Vec::with_capacity(20);
    push_u64(&mut digits, number);
    K::from_owned(&digits, base, &mut parsed.extra).ok_or_else(|| unexpected(K::RANGE, Some(&digits)))
}

/// Parses the first column of each line as a vertex.
pub(crate) fn parse_vertices<K: FieldKey, W: Weight>(block: &TextBlock, on_error: OnError) -> ParsedBlock<K, W> {
    let mut parsed = ParsedBlock::of_block(block, on_error);
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
