//! Comments before the first row of a table in text.
//!
//! In CSV, `#` and `%` mark comments only before the header or the first row. Further on they are data, such as the key
//! `#rust`. Before the first row, a marked line may also be a row, or the header itself. The first line without a mark,
//! the *reference*, decides:
//!
//! | marked line | meaning |
//! | --- | --- |
//! | another number of columns than the reference, or a blank after the mark | a comment |
//! | the last marked line, with the names of a known pair and as many columns as the reference | the header |
//! | before a header, or with numeric keys | a comment |
//! | any other | refused: `--comment` makes it a comment, `--header none` makes it a row |
//!
//! If every line is marked, all are rows if they have equally many columns and no blank after the mark.
//! `--comment CHAR` replaces the rule: exactly the lines that begin with this character are comments.

use anden_base::message::shown;

use super::head::{TableKind, columns_of, delimiter_of, fields_of, first_row_end};
use crate::lines::{is_comment, line_end, trimmed};
use crate::options::{HeaderRule, KeyKind, SourceOptions};

/// The position of the first row, or of the header, of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FirstRow {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The start of its fields: after `start` if the header stands in a comment.
    pub(crate) fields_start: usize,
}

/// Finds the first row of a text, and counts the comments before it.
///
/// # Errors
/// The position of a line that may be a comment or a row, and a message with the remedy.
pub(crate) fn first_row(
    text: &[u8],
    kind: TableKind,
    options: &SourceOptions,
) -> Result<(Option<FirstRow>, u64), (usize, String)> {
    let (mut at, mut num_comments) = (0, 0);
    let mut marked = Vec::new();
    let mut reference = None;
    while at < text.len() {
        let end = line_end(text, at);
        let (first, last) = trimmed(text, at, end);
        let line = &text[first..last];
        match options.comment {
            _ if line.is_empty() => {}
            // Blank-separated text has fixed marks, so a marked line is never a row.
            _ if kind.has_blanks && is_comment(line) => num_comments += 1,
            _ if kind.has_blanks => reference = Some(at),
            Some(mark) if text[at] == mark => num_comments += 1,
            None if matches!(line[0], b'#' | b'%') => marked.push((first, last)),
            _ => reference = Some(at),
        }
        if reference.is_some() {
            break;
        }
        at = end + 1;
    }
    if marked.is_empty() {
        let row = reference.map(|start| row_at(text, start, kind, options.delimiter));
        return Ok((row, num_comments));
    }
    Marked { text, kind, options, lines: &marked }.first_row(reference)
}

/// The number of lines that decide whether a text is CSV.
const TELLING_LINES: usize = 100;

/// Whether every line at the beginning of a text is a CSV row that begins with `#`.
pub(crate) fn are_marked_rows(text: &[u8]) -> bool {
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let lines: Vec<&[u8]> = lines.take(TELLING_LINES).collect();
    let [first, second, ..] = lines[..] else { return false };
    let delimiter = delimiter_of(first, None);
    let num_columns = |line: &[u8]| fields_of(line, delimiter).map_or(0, |fields| fields.len());
    let is_row = |line: &&[u8]| line.starts_with(b"#") && line.get(1).is_some_and(|byte| !byte.is_ascii_whitespace());
    let has_columns = num_columns(first) > 1 && num_columns(first) == num_columns(second);
    has_columns && delimiter != b'\t' && lines.iter().all(is_row)
}

fn row_at(text: &[u8], start: usize, kind: TableKind, given: Option<u8>) -> FirstRow {
    FirstRow { start, end: first_row_end(text, start, kind, given), fields_start: start }
}

/// The marked lines at the beginning of a delimited table.
struct Marked<'a> {
    text: &'a [u8],
    kind: TableKind,
    options: &'a SourceOptions,
    /// The range of each line, without blanks around it.
    lines: &'a [(usize, usize)],
}

impl Marked<'_> {
    fn first_row(&self, reference: Option<usize>) -> Result<(Option<FirstRow>, u64), (usize, String)> {
        let num_marked = self.lines.len() as u64;
        let Some(reference) = reference else {
            // Every line is marked, so the first one is the reference.
            let (start, end) = self.lines[0];
            let (delimiter, num_columns) = self.shape(&self.text[start..end]);
            let are_rows =
                num_columns > 1 && self.lines.iter().all(|line| self.is_like_row(*line, delimiter, num_columns));
            return Ok(match are_rows {
                true => (Some(row_at(self.text, start, self.kind, self.options.delimiter)), 0),
                false => (None, num_marked),
            });
        };
        let row = row_at(self.text, reference, self.kind, self.options.delimiter);
        let line = &self.text[row.start..row.end];
        let (delimiter, num_columns) = self.shape(line);
        if let Some(header) = self.header_in_comment(line, delimiter, num_columns) {
            return Ok((Some(header), num_marked - 1));
        }
        let like_row = self.lines.iter().position(|line| self.is_like_row(*line, delimiter, num_columns));
        // A number cannot begin with a mark, and a known header leaves no doubt.
        let Some(first) = like_row.filter(|_| self.options.keys == KeyKind::String && !self.is_header(line, delimiter))
        else {
            return Ok((Some(row), num_marked));
        };
        let (start, end) = self.lines[first];
        if self.options.header == HeaderRule::None || self.options.columns.is_some() {
            return Ok((Some(row_at(self.text, start, self.kind, self.options.delimiter)), first as u64));
        }
        let mark = char::from(self.text[start]);
        let what = format!(
            "cannot tell a comment from a row: {} may be either; --comment '{mark}' makes lines with this mark \
             comments, --header none makes it a row",
            shown(&self.text[start..end])
        );
        Err((start, what))
    }

    /// The delimiter of a line and its number of columns.
    fn shape(&self, line: &[u8]) -> (u8, usize) {
        let delimiter = delimiter_of(line, self.options.delimiter);
        (delimiter, fields_of(line, delimiter).map_or(0, |fields| fields.len()))
    }

    fn is_like_row(&self, (start, end): (usize, usize), delimiter: u8, num_columns: usize) -> bool {
        let line = &self.text[start..end];
        let is_words = line.get(1).is_none_or(u8::is_ascii_whitespace);
        !is_words && fields_of(line, delimiter).is_ok_and(|fields| fields.len() == num_columns)
    }

    /// Whether a line is known to be a header.
    fn is_header(&self, line: &[u8], delimiter: u8) -> bool {
        let SourceOptions { header, source_column, target_column, vertex_column, .. } = self.options;
        let is_named = match self.kind.is_of_vertices {
            true => vertex_column.is_some(),
            false => *header == HeaderRule::First || source_column.is_some() || target_column.is_some(),
        };
        is_named || fields_of(line, delimiter).is_ok_and(|fields| self.are_known(&fields))
    }

    fn are_known(&self, fields: &[String]) -> bool {
        let columns = columns_of(fields);
        match self.kind.is_of_vertices {
            true => columns.known_vertex() == Some(0),
            // Several known pairs also make a header, which is refused later.
            false => columns.known_ends().map_or(true, |ends| ends.is_some_and(|ends| !ends.is_weak)),
        }
    }

    /// The header, if the last marked line is one: `# source,target`.
    fn header_in_comment(&self, row: &[u8], delimiter: u8, num_columns: usize) -> Option<FirstRow> {
        // With given columns or a header rule, there is nothing to guess.
        let is_told = self.options.header == HeaderRule::Auto && self.options.columns.is_none();
        let &(start, end) = self.lines.last().filter(|_| is_told && !self.kind.is_of_vertices)?;
        let line = &self.text[start..end];
        let num_marks = line.iter().take_while(|byte| matches!(byte, b'#' | b'%' | b' ' | b'\t')).count();
        let fields = fields_of(&line[num_marks..], delimiter).ok().filter(|fields| fields.len() == num_columns)?;
        let is_header = self.are_known(&fields) && !self.is_header(row, delimiter);
        is_header.then_some(FirstRow { start, end, fields_start: start + num_marks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(keys: KeyKind) -> SourceOptions {
        SourceOptions { keys, ..SourceOptions::default() }
    }

    /// The first row and the number of comments, or the message.
    fn first(text: &str, options: &SourceOptions) -> (String, u64) {
        match first_row(text.as_bytes(), TableKind { has_blanks: false, is_of_vertices: false }, options) {
            Ok((row, num_comments)) => {
                (row.map_or(String::new(), |row| text[row.fields_start..row.end].to_owned()), num_comments)
            }
            Err((_, what)) => (what, 0),
        }
    }

    #[test]
    fn marked_lines_are_told_apart() {
        let (integers, strings) = (options(KeyKind::Integer), options(KeyKind::String));
        for (text, options, row, num_comments) in [
            ("# by me, in June\n% more\n\na,b\n1,2\n", &strings, "a,b", 2),
            ("#by me\nsource,target\n#a,#b\n", &strings, "source,target", 1),
            ("#a,b\nsource,target\nc,d\n", &strings, "source,target", 1),
            ("#a,#b\n#b,#c\n", &strings, "#a,#b", 0),
            ("#a,#b\n# all\n", &strings, "", 2),
            ("# only words\n", &strings, "", 1),
            ("# source,target\na,b\n", &strings, "source,target", 0),
            ("# made\n#from,to,w\n1,2,3\n", &integers, "from,to,w", 1),
            ("# source,target\nsource,target\n1,2\n", &integers, "source,target", 1),
            ("#x,y\n1,2\n", &integers, "1,2", 1),
            ("", &integers, "", 0),
        ] {
            assert_eq!(first(text, options), (row.to_owned(), num_comments), "{text:?}");
        }
        let (message, _) = first("#a,#b\nb,c\n", &strings);
        assert!(message.contains("'#a,#b' may be either; --comment '#'"), "{message}");
        let rows = SourceOptions { header: HeaderRule::None, ..strings.clone() };
        assert_eq!(first("# words\n#a,#b\nb,c\n", &rows), ("#a,#b".to_owned(), 1));
        let marked = SourceOptions { comment: Some(b';'), ..strings };
        assert_eq!(first(";a,b\n#c,d\ne,f\n", &marked), ("#c,d".to_owned(), 1));
    }
}
