//! Finds the ends of rows in delimited text.
//!
//! A quoted field may hold line ends (RFC 4180), so the text before a line end decides whether it ends a row. One rule
//! cuts blocks and separates rows, and it reads no more than the row itself. So rows do not depend on the size of
//! blocks. Faulty quotes cost one line: the next line begins a row again.

use super::fields::{BLANKS, CsvLayout};
use crate::lines::line_end;

/// The largest distance of a closing quote from the start of its row, in bytes.
pub(crate) const MAX_ROW_BYTES: usize = 16 << 20;

/// The end of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowEnd {
    /// At this line end.
    Line(usize),
    /// No end: the quote at this position is not closed.
    Unclosed(usize),
    /// No end: the byte at this position follows a closing quote and is not a delimiter.
    Stray(usize),
}

/// Finds the end of the row that begins at `start`. `bytes[..end]` are whole lines, at least one of them after `start`.
/// Blank-separated rows end with their line.
pub(crate) fn row_end(bytes: &[u8], start: usize, end: usize, delimiter: u8) -> RowEnd {
    if delimiter == BLANKS {
        return RowEnd::Line(line_end(bytes, start));
    }
    let is_blank = |byte: u8| (byte == b' ' || byte == b'\t' || byte == b'\r') && byte != delimiter;
    let blanks_end = |mut at: usize| {
        while at < end && is_blank(bytes[at]) {
            at += 1;
        }
        at
    };
    let mut at = start;
    loop {
        at = blanks_end(at);
        if at < end && bytes[at] == b'"' {
            // The limit keeps an open quote from swallowing the rest of a large input.
            let Some(close) = closing_quote(bytes, at + 1, end.min(start + MAX_ROW_BYTES)) else {
                return RowEnd::Unclosed(at);
            };
            at = blanks_end(close + 1);
            if at < end && bytes[at] != delimiter && bytes[at] != b'\n' {
                return RowEnd::Stray(at);
            }
        } else {
            at = memchr::memchr2(delimiter, b'\n', &bytes[at..end]).map_or(end, |len| at + len);
        }
        if at >= end || bytes[at] == b'\n' {
            return RowEnd::Line(at);
        }
        at += 1;
    }
}

/// The first quote from `at` on that is not doubled. `None` if it is the last byte before `end`, because a quote may
/// follow.
pub(crate) fn closing_quote(bytes: &[u8], mut at: usize, end: usize) -> Option<usize> {
    loop {
        at += memchr::memchr(b'"', bytes.get(at..end)?)?;
        match bytes[at + 1..end].first()? {
            b'"' => at += 2,
            _ => return Some(at),
        }
    }
}

/// The end of the last complete row of the lines `start..end`, behind which more text may follow. Returns `start` if no
/// row is complete, `end` if all rows are.
pub(crate) fn whole_rows(bytes: &[u8], start: usize, end: usize, layout: &CsvLayout) -> usize {
    let delimiter = layout.delimiter;
    if delimiter == BLANKS {
        return end;
    }
    let (mut at, mut whole) = (start, start);
    // The block must reach up to a fault, so that the row parser sees and reports it.
    let mut needed = start;
    while at < end {
        // Without quotes, every line end ends a row.
        let Some(quote) = memchr::memchr(b'"', &bytes[at..end]) else { return end };
        let quote = at + quote;
        // Rows before the quote need no scan of their fields.
        let row = memchr::memrchr(b'\n', &bytes[at..quote]).map_or(at, |len| at + len + 1);
        if row > needed {
            whole = row;
        }
        at = match row_end(bytes, row, end, delimiter) {
            // Quotes in a comment do not hide line ends.
            _ if layout.is_comment(&bytes[row..end]) => line_end(bytes, row) + 1,
            RowEnd::Line(end) => end + 1,
            // More text may close the quote.
            RowEnd::Unclosed(_) if end - row < MAX_ROW_BYTES => return whole,
            // A row of this length is a fault, so the row parser goes on behind its first line.
            RowEnd::Unclosed(_) => line_end(bytes, row) + 1,
            RowEnd::Stray(place) => {
                needed = needed.max(place);
                line_end(bytes, row) + 1
            }
        };
        if at > needed {
            whole = at;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::LoneKeys;

    fn layout(comment: Option<u8>) -> CsvLayout {
        CsvLayout {
            delimiter: b',',
            source: 0,
            target: Some(1),
            weight: None,
            lone_keys: LoneKeys::Refuse,
            comment,
            trim: false,
            num_columns: None,
        }
    }

    fn end_of(text: &str) -> RowEnd {
        row_end(text.as_bytes(), 0, text.len(), b',')
    }

    #[test]
    fn quotes_hold_line_ends() {
        assert_eq!(end_of("a,b\nc\n"), RowEnd::Line(3));
        assert_eq!(end_of("a,\"b\nc\"\nd\n"), RowEnd::Line(7));
        assert_eq!(end_of(" \"a\n\"\"\n\" , \"\n\"\r\nx\n"), RowEnd::Line(15));
        assert_eq!(end_of("a\"b,c\n\"\n"), RowEnd::Line(5), "a quote within a field is none");
        assert_eq!(end_of("a,\"b\n\"\"\nc\n"), RowEnd::Unclosed(2));
        assert_eq!(end_of("a,\"b\n\"c\n"), RowEnd::Stray(6));
        let blanks = b"a \"b\nc\" d\n";
        assert_eq!(row_end(blanks, 0, blanks.len(), BLANKS), RowEnd::Line(4));
        let tabs = b"a\t\"b\n\"\tc\nd\n";
        assert_eq!(row_end(tabs, 0, tabs.len(), b'\t'), RowEnd::Line(8));
    }

    #[test]
    fn a_quote_is_looked_for_so_far() {
        for (num_bytes, is_closed) in [(MAX_ROW_BYTES - 3, true), (MAX_ROW_BYTES - 2, false)] {
            let text = format!("\"{}\"\nb,c\n", "x\n".repeat(num_bytes).split_at(num_bytes).0);
            let expected = if is_closed { RowEnd::Line(num_bytes + 2) } else { RowEnd::Unclosed(0) };
            assert_eq!(end_of(&text), expected);
            // Otherwise the last quote opens a row there, which is not closed.
            let whole = if is_closed { text.len() } else { num_bytes + 1 };
            assert_eq!(whole_rows(text.as_bytes(), 0, text.len(), &layout(None)), whole);
        }
    }

    #[test]
    fn only_whole_rows_are_cut_off() {
        let whole = |text: &str| whole_rows(text.as_bytes(), 0, text.len(), &layout(None));
        assert_eq!(whole("a,b\nc,d\n"), 8);
        assert_eq!(whole("a,b\n\"c\",d\n"), 10);
        assert_eq!(whole("a,b\n\"c\n,d\n"), 4);
        assert_eq!(whole("\"c\n,d\n"), 0);
        // The third line decides that the second begins a row.
        assert_eq!(whole("\"a\nb,c\n\"d,e\"\nf,g\n"), 17);
        assert_eq!(whole("\"a\nb,c\n\"d,e\"\n\"f\n"), 13);
        assert_eq!(whole("\"a\nb,c\n\"d,e\n"), 0);
        let text = "a,b\n;,\"x\nc,d\n";
        assert_eq!(whole(text), 4);
        assert_eq!(whole_rows(text.as_bytes(), 0, text.len(), &layout(Some(b';'))), text.len());
    }
}
