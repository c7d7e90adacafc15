//! Recognises formats that Anden neither reads nor writes, so that a message can name them.
//!
//! A magic number identifies content, or a first line that no edge list begins with. A name counts if the content is
//! unknown and does not begin with a number, as most edge lists do.

use std::path::Path;

use crate::compression::{Compression, text_of};
use crate::document::xml_root;
use crate::lines::is_comment;
use crate::{Error, Result};

/// A format that Anden cannot read.
struct ForeignFormat {
    /// The name with its article, as in "this is a DOT file".
    name: &'static str,
    /// The endings of its files, in lower case.
    endings: &'static [&'static str],
    /// Whether the first bytes of a file have this format.
    is_content: fn(&[u8]) -> bool,
    /// A way to convert its graph.
    hint: &'static str,
}

const TO_GRAPHML: &str = "convert it to GraphML, as NetworkX and igraph do";
const TO_PARQUET: &str = "convert it to Parquet, as pyarrow and DuckDB do";
const TO_CSV: &str = "convert its edges to CSV or Parquet";
const UNPACK: &str = "unpack it, and give the files that it holds";
const DECOMPRESS: &str = "decompress it, or compress it with gzip, zstd, bzip2 or xz";
const TRIPLES: &str = "convert its triples to CSV with the columns source and target, and load that with --ids string";

/// Content is tested in this order. A format that is a special case of another one comes first.
static TABLE: &[ForeignFormat] = &[
    foreign("an Excel workbook", &["xlsx", "xls", "ods"], is_workbook, "save the sheet of edges as CSV"),
    foreign(
        "a NumPy archive",
        &["npz"],
        is_numpy_archive,
        "write the edges as text, with numpy.savetxt or scipy.io.mmwrite",
    ),
    foreign("a zip archive", &["zip"], |b| starts(b, &[b"PK\x03\x04", b"PK\x05\x06"]), UNPACK),
    foreign(
        "a tar archive",
        &["tar", "tgz", "tbz2", "txz"],
        |b| b.get(257..262) == Some(b"ustar") && has_nul(b, 257),
        UNPACK,
    ),
    foreign("a 7z archive", &["7z"], |b| starts(b, &[b"7z\xbc\xaf\x27\x1c"]), UNPACK),
    foreign("a RAR archive", &["rar"], |b| starts(b, &[b"Rar!\x1a\x07"]), UNPACK),
    foreign("a file compressed with lz4", &["lz4"], |b| starts(b, &[b"\x04\x22\x4d\x18"]), DECOMPRESS),
    foreign("a file compressed with snappy", &["sz", "snappy"], |b| starts(b, &[b"\xff\x06\0\0sNaPpY"]), DECOMPRESS),
    foreign("a file compressed with compress", &["z"], |b| starts(b, &[b"\x1f\x9d"]), DECOMPRESS),
    foreign("a file compressed with lzma", &["lzma"], |b| starts(b, &[b"\x5d\0\0"]), DECOMPRESS),
    foreign("a file compressed with Brotli", &["br"], |_| false, DECOMPRESS),
    foreign(
        "a Feather file of version 1",
        &[],
        |b| starts(b, &[b"FEA1"]) && has_nul(b, 64),
        "write it again with version 2, as pyarrow does",
    ),
    foreign("an ORC file", &["orc"], |b| starts(b, &[b"ORC"]) && has_nul(b, 4096), TO_PARQUET),
    foreign("an Avro file", &["avro"], |b| starts(b, &[b"Obj\x01"]), TO_PARQUET),
    foreign("an HDF5 file", &["h5", "hdf5", "hdf", "he5"], |b| starts(b, &[b"\x89HDF\r\n\x1a\n"]), TO_CSV),
    foreign("a NumPy array", &["npy"], |b| starts(b, &[b"\x93NUMPY"]), "write the edges as text, with numpy.savetxt"),
    foreign(
        "a MATLAB file",
        &["mat"],
        |b| starts(b, &[b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"]),
        "convert the matrix to Matrix Market, with scipy.io.mmwrite",
    ),
    foreign(
        "an SQLite database",
        &["sqlite", "sqlite3", "db", "db3"],
        |b| starts(b, &[b"SQLite format 3\0"]),
        "export the table of edges as CSV",
    ),
    foreign(
        "a DuckDB database",
        &["duckdb", "ddb"],
        |b| b.get(8..12) == Some(b"DUCK") && has_nul(b, 64),
        "export the table of edges as Parquet",
    ),
    foreign(
        "a Python pickle",
        &["pickle", "pkl"],
        is_pickle,
        "write the graph with networkx.write_edgelist or write_graphml",
    ),
    foreign("an R data file", &["rds", "rdata", "rda"], |b| starts(b, &[b"RDX2\n", b"RDX3\n", b"X\n\0\0\0"]), TO_CSV),
    foreign("a PDF document", &["pdf"], |b| starts(b, &[b"%PDF-"]), "give the file with the data"),
    foreign("a picture", &["png", "jpg", "jpeg", "svg"], is_picture, "give the file with the data"),
    foreign("a web page", &["html", "htm"], is_web_page, "a download may have failed: give the file with the data"),
    foreign("an XGMML file", &["xgmml"], |b| xml_root(b) == Some(b"graph"), TO_GRAPHML),
    foreign("a Pajek project", &["paj"], |_| false, "write its network as a .net file"),
    foreign("a DOT file", &["dot", "gv"], is_dot, TO_GRAPHML),
    foreign("a GDF file", &["gdf"], |b| starts_folded(first_line(b), b"nodedef>"), TO_GRAPHML),
    foreign("a UCINET file", &["dl"], is_ucinet, TO_GRAPHML),
    foreign("a Tulip file", &["tlp"], |b| starts_folded(first_line(b), b"(tlp "), TO_GRAPHML),
    foreign(
        "a graph6 file",
        &["g6", "s6"],
        |b| starts(b, &[b">>graph6<<", b">>sparse6<<", b">>digraph6<<"]),
        TO_GRAPHML,
    ),
    foreign(
        "a DIMACS file of a problem that is not read",
        &[],
        is_dimacs,
        "'p sp', 'p edge', 'p col' and 'p tw' are read; write its edges as 'source target' a line, without the letter before them",
    ),
    foreign(
        "a JSON file of another form",
        &["geojson"],
        is_json,
        "node-link JSON is read: an object with the lists 'nodes' and 'edges' or 'links'; or convert its edges to CSV",
    ),
    foreign("an RDF file", &["nt", "nq", "ttl", "rdf", "owl", "trig"], is_rdf, TRIPLES),
    foreign("a file in UTF-16", &[], is_utf16, "convert it to UTF-8, as with iconv -f UTF-16 -t UTF-8"),
    foreign(
        "a binary file of an unknown format",
        &[],
        is_unknown_binary,
        "give a file of one of the formats that --format lists",
    ),
];

const fn foreign(
    name: &'static str,
    endings: &'static [&'static str],
    is_content: fn(&[u8]) -> bool,
    hint: &'static str,
) -> ForeignFormat {
    ForeignFormat { name, endings, is_content, hint }
}

/// The format with this ending, in lower case.
fn of_ending(ending: &str) -> Option<&'static ForeignFormat> {
    TABLE.iter().find(|format| format.endings.contains(&ending))
}

/// The name of the format with this ending, in lower case, with its article.
pub(crate) fn name_of_ending(ending: &str) -> Option<&'static str> {
    of_ending(ending).map(|format| format.name)
}

/// Refuses an input in an unsupported format; `head` are its first bytes, before decompression.
///
/// # Errors
/// [`Error::Foreign`], with the name of the format and a remedy.
pub(crate) fn refuse(path: &Path, head: &[u8]) -> Result<()> {
    let text = text_of(path, head).unwrap_or_default();
    let refused = |found: String, hint: String| Err(Error::Foreign { path: path.to_owned(), found, hint });
    // If the content lacks the compression that its name promises, only the raw bytes tell.
    let is_content = |format: &&ForeignFormat| (format.is_content)(&text) || (format.is_content)(head);
    if let Some(format) = TABLE.iter().find(is_content) {
        return refused(format!("this is {}", format.name), format.hint.to_owned());
    }
    let name = Compression::of_name(path).1;
    let ending = name.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    match of_ending(&ending) {
        // Numbers at the start indicate an edge list under any name.
        Some(format) if !first_line(&text).first().is_some_and(u8::is_ascii_digit) => {
            let hint = format!("{}, or say with --format what it is", format.hint);
            refused(format!("the ending '.{ending}' is that of {}", format.name), hint)
        }
        _ => Ok(()),
    }
}

fn starts(bytes: &[u8], magics: &[&[u8]]) -> bool {
    magics.iter().any(|magic| bytes.starts_with(magic))
}

fn starts_folded(bytes: &[u8], start: &[u8]) -> bool {
    bytes.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
}

fn has_nul(bytes: &[u8], within: usize) -> bool {
    bytes.iter().take(within).any(|&byte| byte == 0)
}

/// The trimmed lines of a text, without blank lines and comments.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let trimmed = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    trimmed.filter(|line| !is_comment(line) && !starts(line, &[b"/*"]))
}

fn first_line(bytes: &[u8]) -> &[u8] {
    lines(bytes).next().unwrap_or_default()
}

/// Matches a zip archive with the first entry of an office document, or the old format of Excel.
fn is_workbook(bytes: &[u8]) -> bool {
    let is_zip = bytes.starts_with(b"PK\x03\x04");
    let entry = bytes.get(30..).unwrap_or_default();
    let is_office =
        starts(entry, &[b"[Content_Types].xml", b"xl/", b"_rels/", b"docProps/", b"mimetypeapplication/vnd.oasis"]);
    is_zip && is_office || bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
}

/// Matches a zip archive with an array as its first entry.
fn is_numpy_archive(bytes: &[u8]) -> bool {
    let name_len = bytes.get(26..28).and_then(|len| len.try_into().ok()).map_or(0, u16::from_le_bytes);
    let name = bytes.get(30..30 + usize::from(name_len)).unwrap_or_default();
    bytes.starts_with(b"PK\x03\x04") && name.ends_with(b".npy")
}

/// Matches protocols 2 to 5. Older ones are text that an edge list may begin with.
fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

fn is_picture(bytes: &[u8]) -> bool {
    starts(bytes, &[b"\x89PNG\r\n", b"\xff\xd8\xff"]) || xml_root(bytes) == Some(b"svg")
}

fn is_web_page(bytes: &[u8]) -> bool {
    let line = first_line(bytes);
    starts_folded(line, b"<!doctype html") || starts_folded(line, b"<html") || xml_root(bytes) == Some(b"html")
}

/// Matches `graph {`, `digraph NAME {` or `strict …`, also with the bracket on the next line.
fn is_dot(bytes: &[u8]) -> bool {
    let is_word = |word: &[u8]| [&b"graph"[..], b"digraph", b"strict"].iter().any(|w| word.eq_ignore_ascii_case(w));
    is_block(&mut lines(bytes), is_word, b'{')
}

/// Whether a line begins with a word, and an opening bracket ends this line or begins the next.
fn is_block<'a>(lines: &mut impl Iterator<Item = &'a [u8]>, is_word: impl Fn(&[u8]) -> bool, bracket: u8) -> bool {
    let line = lines.next().unwrap_or_default();
    let end = line.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(line.len());
    let opens_here = line[end..].contains(&bracket);
    is_word(&line[..end]) && (opens_here || lines.next().is_some_and(|line| line.first() == Some(&bracket)))
}

/// Matches `dl n=4`, `dl n = 4` or `dl nr=4`.
fn is_ucinet(bytes: &[u8]) -> bool {
    let line = first_line(bytes).to_ascii_lowercase();
    let Some(size) = line.strip_prefix(b"dl ") else { return false };
    let size = size.trim_ascii_start();
    let Some(size) = size.strip_prefix(b"nr").or_else(|| size.strip_prefix(b"n")) else { return false };
    size.trim_ascii_start()
        .strip_prefix(b"=")
        .is_some_and(|count| count.trim_ascii_start().first().is_some_and(u8::is_ascii_digit))
}

/// The problems of DIMACS files that are not read.
const PROBLEMS: [&[u8]; 10] = [b"max", b"min", b"asn", b"cnf", b"td", b"cep", b"ds", b"vc", b"mat", b"aux"];

/// Matches a line of such a problem, after comments that begin with `c`. Requires a known problem and two
/// counts, because two words and a number may also be a weighted edge.
fn is_dimacs(bytes: &[u8]) -> bool {
    let is_remark = |line: &&[u8]| *line == b"c" || line.starts_with(b"c ");
    let Some(line) = lines(bytes).find(|line| !is_remark(line)) else { return false };
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let [b"p", problem, counts @ ..] = &words[..] else { return false };
    let num_counts = counts.iter().filter(|word| word.iter().all(u8::is_ascii_digit)).count();
    PROBLEMS.contains(problem) && num_counts >= 2
}

/// Matches an object with a key, or a list of objects, lists or strings.
fn is_json(bytes: &[u8]) -> bool {
    match bytes.trim_ascii_start() {
        [b'{', rest @ ..] => matches!(rest.trim_ascii_start(), [b'"', ..]),
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [b'{' | b'[' | b'"', ..]),
        _ => false,
    }
}

/// Matches a triple of names in angle brackets with a full stop, a Turtle prefix, or RDF in XML.
fn is_rdf(bytes: &[u8]) -> bool {
    let line = first_line(bytes);
    let is_triple = line.starts_with(b"<") && memchr::memmem::find(line, b"://").is_some() && line.ends_with(b".");
    let is_prefix =
        starts_folded(line, b"@prefix ") || starts_folded(line, b"@base <") || starts_folded(line, b"prefix ");
    let has_name = memchr::memmem::find(line, b"<").is_some() && memchr::memmem::find(line, b">").is_some();
    is_triple && memchr::memmem::find(line, b"> <").is_some()
        || is_prefix && has_name
        || xml_root(bytes) == Some(b"RDF")
}

/// Matches a byte order mark, or letters with zero bytes between them.
fn is_utf16(bytes: &[u8]) -> bool {
    let is_zero_behind = |pair: &[u8]| pair[0].is_ascii() && pair[0] > 1 && pair[1] == 0;
    starts(bytes, &[b"\xff\xfe", b"\xfe\xff"]) || bytes.len() >= 8 && bytes[..8].chunks(2).all(is_zero_behind)
}

/// Matches a zero byte near the start. Text has none, and Parquet and serialized graphs are excluded.
fn is_unknown_binary(bytes: &[u8]) -> bool {
    let is_compressed = Compression::of_content(bytes).is_some();
    // These formats contain zero bytes as well, and Anden reads them.
    let is_known = is_compressed
        || bytes.starts_with(crate::parquet::MAGIC)
        || crate::arrow_file::is_likely(bytes)
        || bytes.first().is_some_and(|&b| b <= 1);
    !is_known && has_nul(bytes, 16)
}

#[cfg(test)]
mod tests;
