//! Where rows of columns end.
//!
//! A quoted field may hold line ends (RFC 4180), so whether a line end ends a row depends on what stands before it.
//! Blocks are cut, and rows are told apart in them, by one rule, which looks at no more than the row: whatever the
//! size of blocks, the rows are the same. Quotes that make no sense cost one line: the next one begins a row again.

use super::csv::{BLANKS, CsvLayout};
use super::lines::line_end;

/// How far from the beginning of a row a closing quote is looked for.
pub(super) const MAX_ROW_BYTES: usize = 16 << 20;

/// Where a row ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// At this line end.
    Line(usize),
    /// Nowhere: the quote at this place is not closed.
    Unclosed(usize),
    /// Nowhere: behind a closing quote, something that is no delimiter stands at this place.
    Stray(usize),
}

/// Where the row that begins at `start` ends. `bytes[..end]` are whole lines, of which at least one is
/// behind `start`. Blanks delimit only within a line.
pub(super) fn row_end(bytes: &[u8], start: usize, end: usize, delimiter: u8) -> RowEnd {
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

/// The first quote from `at` on that is not doubled, unless nothing before `end` is behind it.
pub(super) fn closing_quote(bytes: &[u8], mut at: usize, end: usize) -> Option<usize> {
    loop {
        at += memchr::memchr(b'"', bytes.get(at..end)?)?;
        match bytes[at + 1..end].first()? {
            b'"' => at += 2,
            _ => return Some(at),
        }
    }
}

/// Where the last row ends that is known to be whole: `start` if none is, `end` if all are. More may follow
/// behind the lines `start..end`.
pub(super) fn whole_rows(bytes: &[u8], start: usize, end: usize, layout: &CsvLayout) -> usize {
    let delimiter = layout.delimiter;
    if delimiter == BLANKS {
        return end;
    }
    let (mut at, mut whole) = (start, start);
    // Whoever parses the rows must see what is wrong with them.
    let mut needed = start;
    while at < end {
        let Some(quote) = memchr::memchr(b'"', &bytes[at..end]) else { return end };
        let quote = at + quote;
        let row = memchr::memrchr(b'\n', &bytes[at..quote]).map_or(at, |len| at + len + 1);
        if row > needed {
            whole = row;
        }
        at = match row_end(bytes, row, end, delimiter) {
            // Quotes in a comment hold no line ends.
            _ if layout.is_comment(&bytes[row..end]) => line_end(bytes, row) + 1,
            RowEnd::Line(end) => end + 1,
            RowEnd::Unclosed(_) if end - row < MAX_ROW_BYTES => return whole,
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
    use crate::formats::options::LoneKeys;

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
            // Else the quote at its end is the first of the row there, and open.
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
        // The second line begins a row because of what stands in the third.
        assert_eq!(whole("\"a\nb,c\n\"d,e\"\nf,g\n"), 17);
        assert_eq!(whole("\"a\nb,c\n\"d,e\"\n\"f\n"), 13);
        assert_eq!(whole("\"a\nb,c\n\"d,e\n"), 0);
        let text = "a,b\n;,\"x\nc,d\n";
        assert_eq!(whole(text), 4);
        assert_eq!(whole_rows(text.as_bytes(), 0, text.len(), &layout(Some(b';'))), text.len());
    }
}
