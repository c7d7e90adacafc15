//! Matrix Market files of coordinates: the banner, the size and the entries.
//!
//! A matrix is a graph whose vertices are its rows, numbered from 1 (as ids, from 0): an entry `i j` is an edge from
//! i to j, whatever its value, a stored zero too. What the banner says decides how entries are read:
//!
//! | symmetry | an entry is | where |
//! | --- | --- | --- |
//! | general | a directed edge | anywhere |
//! | symmetric | an undirected edge | on or below the diagonal |
//! | skew-symmetric | the edge i → j of its value and j → i of the negated one | below the diagonal |
//!
//! # Source
//! R. F. Boisvert, R. Pozo, K. A. Remington: The Matrix Market Exchange Formats, NISTIR 5935, 1996.

use base::MAX_VERTICES;

use super::blocks::TextBlock;
use super::dimacs::Problem;
use super::key::FieldKey;
use super::lines::{Parsed, line_end, next_token};
use super::message::shown;
use super::number::{parse_u64, parse_weight, push_u64, short_number, weight_range, whole_weight};
use super::options::OnError;
use super::outcome::unexpected;
use crate::{Direction, Weight};

/// What the values of the entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// There are none.
    Pattern,
    Integer,
    Real,
}

/// Which entries follow from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// What the banner says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
}

impl Matrix {
    /// The matrix that the first line of a file announces.
    ///
    /// # Errors
    /// It is no banner, or of a kind of matrix that is no graph here.
    pub(super) fn of_banner(line: &[u8]) -> Result<Self, String> {
        let lower = String::from_utf8_lossy(line).to_lowercase();
        let words: Vec<&str> = lower.split_ascii_whitespace().collect();
        let expected = "the banner '%%MatrixMarket matrix coordinate FIELD SYMMETRY'";
        let wrong = || Err(unexpected(expected, Some(line)));
        let ["%%matrixmarket", "matrix", format, field, symmetry] = words[..] else { return wrong() };
        match format {
            "coordinate" => {}
            "array" => return Err("the array format lists every entry of a matrix: only coordinate is read".into()),
            _ => return wrong(),
        }
        let field = match field {
            "pattern" => Field::Pattern,
            "integer" => Field::Integer,
            "real" | "double" => Field::Real,
            "complex" => return Err("complex entries are no weights: pattern, integer or real is read".into()),
            _ => return wrong(),
        };
        let symmetry = match symmetry {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" if field == Field::Pattern => {
                return Err("a skew-symmetric matrix has values: expected integer or real, found pattern".into());
            }
            "skew-symmetric" => Symmetry::Skew,
            "hermitian" => return Err("a hermitian matrix is complex: complex entries are no weights".into()),
            _ => return wrong(),
        };
        Ok(Self { field, symmetry })
    }

    /// Whether its edges have a direction.
    pub(super) fn direction(self) -> Direction {
        if self.symmetry == Symmetry::Symmetric { Direction::Undirected } else { Direction::Directed }
    }

    /// What a line before the entries says: the size, or nothing.
    ///
    /// # Errors
    /// The line is neither a comment nor the size of a square matrix.
    pub(super) fn size_line(self, line: &[u8]) -> Result<Option<Problem>, String> {
        if line.is_empty() || line[0] == b'%' {
            return Ok(None);
        }
        let counts: Vec<Option<u64>> =
            line.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()).map(parse_u64).collect();
        let [Some(rows), Some(columns), Some(entries)] = counts[..] else {
            return Err(unexpected("the size 'rows columns entries'", Some(line)));
        };
        if rows != columns {
            return Err(format!(
                "expected a square matrix, whose rows and columns are the same vertices, found {rows} rows and \
                 {columns} columns"
            ));
        }
        if rows > MAX_VERTICES as u64 {
            return Err(unexpected(&format!("at most {MAX_VERTICES} rows"), Some(line)));
        }
        let edges_each = if self.symmetry == Symmetry::Skew { 2 } else { 1 };
        Ok(Some(Problem { num_vertices: rows, num_arcs: entries, edges_each, noun: "entries" }))
    }

    /// Whether an entry may stand there.
    #[inline(always)]
    fn admits(self, row: u64, column: u64, num_vertices: u64) -> bool {
        row.min(column) != 0
            && row.max(column) <= num_vertices
            && match self.symmetry {
                Symmetry::General => true,
                Symmetry::Symmetric => row >= column,
                Symmetry::Skew => row > column,
            }
    }
}

/// How entries are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatrixLines {
    pub(super) matrix: Matrix,
    pub(super) num_vertices: u64,
}

/// Parses the entries of a block.
pub(super) fn parse_entries<K: FieldKey, W: Weight>(
    block: &TextBlock,
    lines: MatrixLines,
    is_weighted: bool,
    on_error: OnError,
) -> Parsed<K, W> {
    let mut parsed = Parsed::of_block(block, on_error);
    let edges_each = if lines.matrix.symmetry == Symmetry::Skew { 2 } else { 1 };
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

/// Parses lines that are as most are: two short numbers, and a value where there are values;
/// returns where the first line begins that is something else.
#[inline(always)]
fn entry_lines<K: FieldKey, W: Weight, const WEIGHTED: bool>(
    bytes: &[u8],
    mut at: usize,
    lines: MatrixLines,
    parsed: &mut Parsed<K, W>,
) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(b'\n');
    let MatrixLines { matrix, num_vertices } = lines;
    loop {
        let line = at;
        let (row, num_digits) = short_number(bytes, at);
        at += num_digits;
        if num_digits == 0 || byte(at) != b' ' && byte(at) != b'\t' {
            return line;
        }
        let (column, num_digits) = short_number(bytes, at + 1);
        at += 1 + num_digits;
        if num_digits == 0 || !matrix.admits(row, column, num_vertices) || matrix.symmetry == Symmetry::Skew {
            return line;
        }
        let mut weight: Option<W> = None;
        if matrix.field != Field::Pattern {
            if byte(at) != b' ' && byte(at) != b'\t' {
                return line;
            }
            let start = at + 1;
            let (value, num_digits) = short_number(bytes, start);
            at = start + num_digits;
            if byte(at) > b' ' {
                if matrix.field == Field::Integer {
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
        let (Some(source), Some(target)) = (K::from_count(row), K::from_count(column)) else { return line };
        parsed.edges.push((source, target));
        parsed.weights.extend(weight);
    }
}

/// Any line `bytes[start..end]` after the size. The block's own lines are `base` bytes.
fn entry_line<K: FieldKey, W: Weight>(
    bytes: &[u8],
    (start, end, base): (usize, usize, usize),
    lines: MatrixLines,
    is_weighted: bool,
    parsed: &mut Parsed<K, W>,
) -> Result<(), String> {
    let MatrixLines { matrix, num_vertices } = lines;
    let first = next_token(bytes, start, end).map(|(first, _)| bytes[first]);
    if matches!(first, None | Some(b'%')) {
        parsed.num_comments += u64::from(first.is_some());
        return Ok(());
    }
    let (row, at) = vertex_at(bytes, start, end, "row", num_vertices)?;
    let (column, at) = vertex_at(bytes, at, end, "column", num_vertices)?;
    if !matrix.admits(row, column, num_vertices) {
        let place = if matrix.symmetry == Symmetry::Skew { "below" } else { "on or below" };
        let name = if matrix.symmetry == Symmetry::Skew { "skew-symmetric" } else { "symmetric" };
        return Err(format!(
            "expected an entry {place} the diagonal of a {name} matrix, found row {row}, column {column}"
        ));
    }
    let weight: Option<W> = value_at(bytes, at, end, matrix.field, is_weighted)?;
    let opposite = match (matrix.symmetry, weight) {
        (Symmetry::Skew, Some(weight)) => Some(negated(weight)?),
        _ => None,
    };
    let (source, target) = (number_key(row, base, parsed)?, number_key(column, base, parsed)?);
    parsed.edges.push((source, target));
    parsed.weights.extend(weight);
    if matrix.symmetry == Symmetry::Skew {
        parsed.edges.push((target, source));
        parsed.weights.extend(opposite);
    }
    Ok(())
}

/// The number of a vertex at or after `at`, from 1 to `num_vertices`, and where it ends.
pub(super) fn vertex_at(
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

/// The vertex of a number, which counts from 1, as a key of a block with `base` bytes of lines.
pub(super) fn number_key<K: FieldKey, W>(number: u64, base: usize, parsed: &mut Parsed<K, W>) -> Result<K, String> {
    if let Some(key) = K::from_count(number) {
        return Ok(key);
    }
    let mut digits = Vec::with_capacity(20);
    push_u64(&mut digits, number);
    K::from_owned(&digits, base, &mut parsed.extra).ok_or_else(|| unexpected(K::RANGE, Some(&digits)))
}

/// The value of an entry, which begins at or after `at` and ends its line; none where it is not asked for.
fn value_at<W: Weight>(
    bytes: &[u8],
    at: usize,
    end: usize,
    field: Field,
    is_weighted: bool,
) -> Result<Option<W>, String> {
    let token = next_token(bytes, at, end);
    let found = token.map(|(start, stop)| &bytes[start..stop]);
    if field == Field::Pattern {
        return match found {
            Some(token) => {
                Err(format!("expected a row and a column, as the banner says pattern, found a value {}", shown(token)))
            }
            None => Ok(None),
        };
    }
    let is_integer = |token: &&[u8]| parse_weight::<i64>(token).is_some() || parse_u64(token).is_some();
    if field == Field::Integer && !found.as_ref().is_some_and(is_integer) {
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

/// The value of the mirrored entry of a skew-symmetric matrix.
fn negated<W: Weight>(weight: W) -> Result<W, String> {
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
        let general = Matrix { field: Field::Pattern, symmetry: Symmetry::General };
        assert_eq!(matrix("%%MatrixMarket matrix coordinate pattern general"), Ok(general));
        let skew = Matrix { field: Field::Real, symmetry: Symmetry::Skew };
        assert_eq!(matrix("%%matrixmarket MATRIX Coordinate Real Skew-Symmetric\r"), Ok(skew));
        let refused = [
            ("%%MatrixMarket matrix array real general", "only coordinate is read"),
            ("%%MatrixMarket matrix coordinate complex general", "complex entries are no weights"),
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
