//! Which format an input has: by its name, then by its content.

use std::io::{Cursor, Read};
use std::path::Path;

use super::compression::decoded;
use super::csv_comments::are_marked_rows;
use super::lines::is_comment;
use super::options::Format;
use super::parquet::ParquetFile;
use crate::Result;

/// The beginning of the text behind the first bytes of an input.
///
/// # Errors
/// The name promises a compression that the content is not of.
pub(super) fn text_of(path: &Path, head: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    // The head ends in the middle of what the decoder needs: what came out until then counts.
    let _ = decoded(path, head, Cursor::new(head.to_vec()))?.take(64 << 10).read_to_end(&mut text);
    if text.starts_with(b"\xef\xbb\xbf") {
        text.drain(..3);
    }
    Ok(text)
}

/// Whether the first bytes of an input, before decompression, are those of a serialized graph.
pub(super) fn is_serialized(path: &Path, head: &[u8]) -> bool {
    text_of(path, head).is_ok_and(|text| is_serialized_text(&text))
}

/// A serialized graph says first whether it is directed, which is no character.
fn is_serialized_text(text: &[u8]) -> bool {
    text.len() >= 17 && text[0] <= 1
}

/// The format that the first bytes, before decompression, tell; an edge list where nothing else.
pub(super) fn by_content(path: &Path, head: &[u8]) -> Format {
    let text = &text_of(path, head).unwrap_or_default()[..];
    if ParquetFile::is_likely(text) {
        return Format::Parquet;
    }
    if is_serialized_text(text) {
        return Format::Gapbs;
    }
    if text.get(..14).is_some_and(|start| start.eq_ignore_ascii_case(b"%%MatrixMarket")) {
        return Format::Mtx;
    }
    let lines = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines.filter(|line| !is_comment(line));
    let first = lines.next().unwrap_or_default();
    if first.starts_with(b"<?xml") || first.starts_with(b"<graphml") {
        return Format::GraphMl;
    }
    if first.starts_with(b"p sp ") || (first == b"c" || first.starts_with(b"c ")) && text_has_problem(text) {
        return Format::Dimacs;
    }
    if first.is_empty() && are_marked_rows(text) {
        return Format::Csv;
    }
    if first.contains(&b',') || first.contains(&b';') { Format::Csv } else { Format::EdgeList }
}

fn text_has_problem(text: &[u8]) -> bool {
    text.split(|&b| b == b'\n').any(|line| line.starts_with(b"p sp "))
}

#[cfg(test)]
mod tests {
    use super::super::endings::input_format;
    use super::*;

    #[test]
    fn names_tell_under_compression() {
        let format = |name: &str| input_format(name.as_ref());
        assert_eq!(format("a/b.csv"), Some(Format::Csv));
        assert_eq!(format("b.CSV.zst"), Some(Format::Csv));
        assert_eq!(format("b.wsg"), Some(Format::Gapbs));
        assert_eq!(format("road.gr.gz"), Some(Format::Dimacs));
        assert_eq!(format("x.mtx.xz"), Some(Format::Mtx));
        assert_eq!(format("x.txt.bz2"), None);
        assert_eq!(format("-"), None);
    }

    #[test]
    fn content_tells_where_names_do_not() {
        let format = |text: &str| by_content("x".as_ref(), text.as_bytes());
        assert_eq!(format("# a,b\n1 2\n"), Format::EdgeList);
        assert_eq!(format("# SNAP\n1,2,3\n"), Format::Csv);
        assert_eq!(format("c road\np sp 2 1\na 1 2 3\n"), Format::Dimacs);
        assert_eq!(format("c d\ne f\n"), Format::EdgeList);
        assert_eq!(format("%%MatrixMarket matrix\n"), Format::Mtx);
        assert_eq!(format("<?xml version='1.0'?>"), Format::GraphMl);
        assert_eq!(format("#rust,#go\n#go,#c\n"), Format::Csv);
        assert_eq!(format("# 5 nodes, 3 edges\n# more, words\n"), Format::EdgeList);
        assert_eq!(format(""), Format::EdgeList);
    }
}
