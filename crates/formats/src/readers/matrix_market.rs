//! Matrix Market coordinate files: the banner, the size and the entries.
//!
//! A square matrix is a graph with its rows as vertices, numbered from 1 (ids start at 0). An entry `i j` is an edge
//! from i to j, even if its value is zero. A matrix with other numbers of rows and columns is a bipartite graph: column
//! j is the vertex with the number of rows plus j. The banner decides how entries are read:
//!
//! | symmetry | an entry is |
//! | --- | --- |
//! | general | a directed edge |
//! | symmetric, hermitian | an undirected edge |
//! | skew-symmetric | the edge i → j of its value and j → i of the negated one |
//!
//! The standard puts entries of the last two below the diagonal. Files with the upper triangle are common, so entries on
//! both sides are read. Complex values are no weights: such a matrix is read as a pattern.
//!
//! # Source
//! R. F. Boisvert, R. Pozo, K. A. Remington: The Matrix Market Exchange Formats, NISTIR 5935, 1996.

use anden_base::MAX_VERTICES;
use anden_base::message::shown;
use anden_graph::{GraphKind, Weight};

use crate::blocks::TextBlock;
use crate::chunk::ParseContext;
use crate::collector::InputCollector;
use crate::input_format::{InputFormat, Recognition};
use crate::key::FieldKey;
use crate::lines::{ParsedBlock, count_key, line_end, next_token, vertex_at};
use crate::number::{parse_u64, parse_weight, short_number, weight_range, whole_weight};
use crate::options::OnError;
use crate::outcome::{PromisedTotals, unexpected};
use crate::probe::InputProbe;
use crate::text_reader::{TextInput, TextLines};
use crate::{Error, Result};

/// The format: Matrix Market coordinate matrices.
pub(super) struct MatrixMarket;

impl InputFormat for MatrixMarket {
    fn name(&self) -> &'static str {
        "mtx"
    }

    fn endings(&self) -> &'static [(&'static str, &'static str)] {
        &[("mtx", "Matrix Market")]
    }

    fn recognises(&self, text: &[u8]) -> Recognition {
        Recognition::likely_if(is_banner(text))
    }

    fn open(&self, input: InputProbe, to: &mut InputCollector<'_>) -> Result<()> {
        let text = input.text()?;
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let matrix = Matrix::of_banner(line).map_err(|what| Error::Line { path: input.path.clone(), line: 1, what })?;
        to.direction_known(&input.path, Some(matrix.graph_kind()))?;
        to.weights_known(&input.path, Some(matrix.field.has_weights()))?;
        if matrix.field.has_weights() {
            to.note_weights(&input.path);
        }
        to.push(input, Box::new(TextInput::new(MatrixLines { matrix, size: None })));
        Ok(())
    }
}

/// Whether a text begins with the word of the banner. Files of some collections have one `%` instead of two.
fn is_banner(text: &[u8]) -> bool {
    let begins_with = |word: &[u8]| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    begins_with(b"%%MatrixMarket") || begins_with(b"%MatrixMarket")
}

/// The type of the values of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatrixField {
    /// Entries have no values.
    Pattern,
    Integer,
    Real,
    /// Entries have two values each, which are no weight.
    Complex,
}

impl MatrixField {
    fn has_weights(self) -> bool {
        matches!(self, Self::Integer | Self::Real)
    }
}

/// The rule by which entries imply other entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// The content of the banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Matrix {
    field: MatrixField,
    symmetry: Symmetry,
}

impl Matrix {
    /// Parses the first line of a file.
    ///
    /// # Errors
    /// The line is not a banner, or announces a matrix that Anden cannot read as a graph.
    fn of_banner(line: &[u8]) -> Result<Self, String> {
        let lower = String::from_utf8_lossy(line).to_lowercase();
        let words: Vec<&str> = lower.split_ascii_whitespace().collect();
        let expected = "the banner '%%MatrixMarket matrix coordinate FIELD SYMMETRY'";
        let wrong = || Err(unexpected(expected, Some(line)));
        let ["%%matrixmarket" | "%matrixmarket", "matrix", format, field, symmetry] = words[..] else { return wrong() };
        match format {
            "coordinate" => {}
            "array" => return Err("the array format lists every entry of a matrix: only coordinate is read".into()),
            _ => return wrong(),
        }
        let field = match field {
            "pattern" => MatrixField::Pattern,
            "integer" => MatrixField::Integer,
            "real" | "double" => MatrixField::Real,
            "complex" => MatrixField::Complex,
            _ => return wrong(),
        };
        let symmetry = match symmetry {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" if field == MatrixField::Pattern => {
                return Err("a skew-symmetric matrix has values: expected integer or real, found pattern".into());
            }
            "skew-symmetric" => Symmetry::Skew,
            // The entry above the diagonal is the conjugate of that below: without values, the two are one edge.
            "hermitian" if field == MatrixField::Complex => Symmetry::Symmetric,
            "hermitian" => return Err("a hermitian matrix is complex: expected complex, found another field".into()),
            _ => return wrong(),
        };
        Ok(Self { field, symmetry })
    }

    /// Whether the graph is directed.
    fn graph_kind(self) -> GraphKind {
        if self.symmetry == Symmetry::Symmetric { GraphKind::Undirected } else { GraphKind::Directed }
    }

    /// Parses a line before the entries: the size, or `None` for a comment.
    ///
    /// # Errors
    /// The line is neither a comment nor the size of a matrix.
    fn size_line(self, line: &[u8]) -> Result<Option<MatrixSize>, String> {
        if line.is_empty() || line[0] == b'%' {
            return Ok(None);
        }
        let counts: Vec<Option<u64>> =
            line.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()).map(parse_u64).collect();
        let [Some(num_rows), Some(num_columns), Some(num_entries)] = counts[..] else {
            return Err(unexpected("the size 'rows columns entries'", Some(line)));
        };
        if num_rows != num_columns && self.symmetry != Symmetry::General {
            return Err(format!(
                "expected as many columns as rows in a symmetric matrix, found {num_rows} rows and {num_columns} columns"
            ));
        }
        let size = MatrixSize { num_rows, num_columns, num_entries };
        if num_rows.checked_add(size.num_columns_apart()).is_none_or(|num_vertices| num_vertices > MAX_VERTICES as u64)
        {
            return Err(unexpected(&format!("at most {MAX_VERTICES} rows and columns"), Some(line)));
        }
        Ok(Some(size))
    }

    /// Whether the matrix may store an entry at this position.
    #[inline(always)]
    fn admits(self, row: u64, column: u64, size: MatrixSize) -> bool {
        row.min(column) != 0
            && row <= size.num_rows
            && column <= size.num_columns
            && (self.symmetry != Symmetry::Skew || row != column)
    }

    /// The number of edges of an entry.
    fn edges_each(self) -> usize {
        if self.symmetry == Symmetry::Skew { 2 } else { 1 }
    }
}

/// The size line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MatrixSize {
    num_rows: u64,
    num_columns: u64,
    num_entries: u64,
}

impl MatrixSize {
    /// The number of columns that are vertices of their own: none in a square matrix.
    fn num_columns_apart(self) -> u64 {
        if self.num_rows == self.num_columns { 0 } else { self.num_columns }
    }

    /// What is added to the number of a column to get that of its vertex.
    #[inline(always)]
    fn first_column(self) -> u64 {
        if self.num_rows == self.num_columns { 0 } else { self.num_rows }
    }
}

/// Lines of entries, behind the size.
#[derive(Clone, Copy, Debug)]
struct MatrixLines {
    matrix: Matrix,
    /// The size, once it is known.
    size: Option<MatrixSize>,
}

impl TextLines for MatrixLines {
    fn is_in_header(&self) -> bool {
        self.size.is_none()
    }

    fn header_line(&mut self, line: &[u8]) -> Result<bool, String> {
        self.size = self.matrix.size_line(line)?;
        // The banner is no comment.
        Ok(self.size.is_none() && !line.is_empty() && !is_banner(line))
    }

    fn parse<K: FieldKey, W: Weight>(&self, block: &TextBlock, context: &ParseContext<'_>) -> ParsedBlock<K, W> {
        let entries = MatrixEntries { matrix: self.matrix, size: self.size.unwrap_or_default() };
        parse_entries(block, entries, context.is_weighted(), context.on_error())
    }

    fn promised(&self) -> Option<PromisedTotals> {
        self.size.map(|size| PromisedTotals {
            num_vertices: size.num_rows + size.num_columns_apart(),
            num_items: Some(size.num_entries),
            edges_each: self.matrix.edges_each() as u64,
            noun: "entries",
        })
    }

    fn check_end(&self, num_bytes: u64) -> Result<(), String> {
        match self.size {
            None if num_bytes > 0 => Err("expected the size 'rows columns entries', found none".into()),
            _ => Ok(()),
        }
    }
}

/// The way to parse entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MatrixEntries {
    matrix: Matrix,
    size: MatrixSize,
}

/// Parses the entries of a block.
fn parse_entries<K: FieldKey, W: Weight>(
    block: &TextBlock,
    lines: MatrixEntries,
    is_weighted: bool,
    on_error: OnError,
) -> ParsedBlock<K, W> {
    let mut parsed = ParsedBlock::of_block(block, on_error);
    let edges_each = lines.matrix.edges_each();
    // A line is at most one entry, so these vectors never grow.
    parsed.edges.reserve_exact(edges_each * parsed.num_lines as usize);
    parsed.weights.reserve_exact(if is_weighted { edges_each * parsed.num_lines as usize } else { 0 });
    let bytes = &block.bytes[..];
    let mut at = block.start;
    while at < block.end {
        at = match is_weighted {
            true => entry_lines::<K, W, true>(bytes, at, lines, &mut parsed),
            false => entry_lines::<K, W, false>(bytes, at, lines, &mut parsed),
        };
        if at >= block.end {
            break;
        }
        let end = line_end(bytes, at);
        if let Err(what) = entry_line(bytes, (at, end, block.end), lines, is_weighted, &mut parsed)
            && parsed.faults.note(bytes, at, what)
        {
            break;
        }
        at = end + 1;
    }
    parsed
}

/// The fast loop: parses lines of two short numbers, and of a value if the field has values. Returns the start of the
/// first other line.
#[inline(always)]
fn entry_lines<K: FieldKey, W: Weight, const WEIGHTED: bool>(
    bytes: &[u8],
    mut at: usize,
    lines: MatrixEntries,
    parsed: &mut ParsedBlock<K, W>,
) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b'\n');
    let MatrixEntries { matrix, size } = lines;
    // The slow path makes two edges of an entry, and passes over two values.
    if matrix.symmetry == Symmetry::Skew || matrix.field == MatrixField::Complex {
        return at;
    }
    loop {
        let line = at;
        let (row, num_digits) = short_number(bytes, at);
        at += num_digits;
        if num_digits == 0 || byte(at) != b' ' && byte(at) != b'\t' {
            return line;
        }
        let (column, num_digits) = short_number(bytes, at + 1);
        at += 1 + num_digits;
        if num_digits == 0 || !matrix.admits(row, column, size) {
            return line;
        }
        let mut weight: Option<W> = None;
        if matrix.field != MatrixField::Pattern {
            if byte(at) != b' ' && byte(at) != b'\t' {
                return line;
            }
            let start = at + 1;
            let (value, num_digits) = short_number(bytes, start);
            at = start + num_digits;
            if byte(at) > b' ' {
                // The digits of a real value may be only its beginning.
                if matrix.field == MatrixField::Integer {
                    return line;
                }
                while byte(at) > b' ' {
                    at += 1;
                }
            }
            if at == start {
                return line;
            }
            if WEIGHTED {
                // A short integer needs no second parse.
                let is_whole = at == start + num_digits;
                weight = if is_whole { whole_weight(value) } else { None };
                weight = weight.or_else(|| parse_weight(&bytes[start..at]));
                if weight.is_none() {
                    return line;
                }
            }
        }
        at = match byte(at) {
            b'\n' => at + 1,
            b'\r' if byte(at + 1) == b'\n' => at + 2,
            _ => return line,
        };
        let column = column + size.first_column();
        let (Some(source), Some(target)) = (K::from_count(row), K::from_count(column)) else { return line };
        parsed.edges.push((source, target));
        parsed.weights.extend(weight);
    }
}

/// Parses any line `bytes[start..end]` after the size. The block's own lines have `base` bytes.
fn entry_line<K: FieldKey, W: Weight>(
    bytes: &[u8],
    (start, end, base): (usize, usize, usize),
    lines: MatrixEntries,
    is_weighted: bool,
    parsed: &mut ParsedBlock<K, W>,
) -> Result<(), String> {
    let MatrixEntries { matrix, size } = lines;
    let first = next_token(bytes, start, end).map(|(first, _)| bytes[first]);
    if matches!(first, None | Some(b'%')) {
        parsed.num_comments += u64::from(first.is_some());
        return Ok(());
    }
    let (row, at) = vertex_at(bytes, start, end, "row", size.num_rows)?;
    let (column, at) = vertex_at(bytes, at, end, "column", size.num_columns)?;
    if !matrix.admits(row, column, size) {
        return Err(format!(
            "expected no entry on the diagonal of a skew-symmetric matrix, found row {row}, column {column}"
        ));
    }
    let weight: Option<W> = value_at(bytes, at, end, matrix.field, is_weighted)?;
    let opposite = match (matrix.symmetry, weight) {
        (Symmetry::Skew, Some(weight)) => Some(negated(weight)?),
        _ => None,
    };
    let (source, target) = (count_key(row, base, parsed)?, count_key(column + size.first_column(), base, parsed)?);
    parsed.edges.push((source, target));
    parsed.weights.extend(weight);
    if matrix.symmetry == Symmetry::Skew {
        parsed.edges.push((target, source));
        parsed.weights.extend(opposite);
    }
    Ok(())
}

/// Parses the value of an entry, which begins at or after `at` and ends its line; `None` if values are not wanted.
fn value_at<W: Weight>(
    bytes: &[u8],
    at: usize,
    end: usize,
    field: MatrixField,
    is_weighted: bool,
) -> Result<Option<W>, String> {
    let token = next_token(bytes, at, end);
    let found = token.map(|(start, stop)| &bytes[start..stop]);
    if field == MatrixField::Pattern {
        return match found {
            Some(token) => {
                Err(format!("expected a row and a column, as the banner says pattern, found a value {}", shown(token)))
            }
            None => Ok(None),
        };
    }
    if field == MatrixField::Complex {
        return complex_value(bytes, token, end).map(|()| None);
    }
    let is_integer = |token: &&[u8]| parse_weight::<i64>(token).is_some() || parse_u64(token).is_some();
    if field == MatrixField::Integer && !found.as_ref().is_some_and(is_integer) {
        return Err(unexpected("an integer value, as the banner says", found));
    }
    let Some((start, stop)) = token else { return Err(unexpected("a real value, as the banner says", None)) };
    if let Some((start, stop)) = next_token(bytes, stop, end) {
        return Err(format!("expected the end of the line after the value, found {}", shown(&bytes[start..stop])));
    }
    if !is_weighted {
        return Ok(None);
    }
    let token = &bytes[start..stop];
    parse_weight(token).map(Some).ok_or_else(|| unexpected(weight_range(W::TYPE), Some(token)))
}

/// Passes over the two parts of a complex value, which end the line.
fn complex_value(bytes: &[u8], real: Option<(usize, usize)>, end: usize) -> Result<(), String> {
    let imaginary = real.and_then(|(_, stop)| next_token(bytes, stop, end));
    for token in [real, imaginary] {
        let found = token.map(|(start, stop)| &bytes[start..stop]);
        if found.is_none_or(|token| parse_weight::<f64>(token).is_none()) {
            return Err(unexpected("two numbers, the parts of a complex value", found));
        }
    }
    match imaginary.and_then(|(_, stop)| next_token(bytes, stop, end)) {
        Some((start, stop)) => {
            Err(format!("expected the end of the line after the value, found {}", shown(&bytes[start..stop])))
        }
        None => Ok(()),
    }
}

/// The value of the mirrored entry in a skew-symmetric matrix.
fn negated<W: Weight>(weight: W) -> Result<W, String> {
    // Through text, because `u32` has no negative values and the check of the range is in the parser.
    let text = weight.to_string();
    let negated = match text.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None if text == "0" => return Ok(weight),
        None => format!("-{text}"),
    };
    parse_weight(negated.as_bytes()).ok_or_else(|| {
        format!(
            "the mirrored entry of a skew-symmetric matrix has the value {negated}: expected {}",
            weight_range(W::TYPE)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banners_say_what_is_read() {
        let matrix = |banner: &str| Matrix::of_banner(banner.as_bytes());
        let general = Matrix { field: MatrixField::Pattern, symmetry: Symmetry::General };
        assert_eq!(matrix("%%MatrixMarket matrix coordinate pattern general"), Ok(general));
        let skew = Matrix { field: MatrixField::Real, symmetry: Symmetry::Skew };
        assert_eq!(matrix("%%matrixmarket MATRIX Coordinate Real Skew-Symmetric\r"), Ok(skew));
        assert_eq!(matrix("%MatrixMarket matrix coordinate pattern general"), Ok(general));
        let hermitian = Matrix { field: MatrixField::Complex, symmetry: Symmetry::Symmetric };
        assert_eq!(matrix("%%MatrixMarket matrix coordinate complex hermitian"), Ok(hermitian));
        let refused = [
            ("%%MatrixMarket matrix array real general", "only coordinate is read"),
            ("%%MatrixMarket matrix coordinate pattern skew-symmetric", "found pattern"),
            ("%%MatrixMarket matrix coordinate real hermitian", "hermitian"),
            ("%%MatrixMarket vector coordinate real general", "expected the banner"),
            ("%%MatrixMarket", "expected the banner"),
            ("1 2 3", "expected the banner"),
        ];
        for (banner, expected) in refused {
            let message = matrix(banner).unwrap_err();
            assert!(message.contains(expected), "{banner}: {message}");
        }
    }

    #[test]
    fn mirrored_values_are_negated() {
        assert_eq!(negated(5_i64), Ok(-5));
        assert_eq!(negated(-5_i64), Ok(5));
        assert_eq!(negated(1.5_f64), Ok(-1.5));
        assert_eq!(negated(0_u32), Ok(0));
        assert!(negated(7_u32).unwrap_err().contains("the value -7: expected a weight of type u32"));
    }
}
