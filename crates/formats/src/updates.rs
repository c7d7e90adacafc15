//! Updates of a graph, one per line: `+ u v [weight]`, `- u v`, `= u v weight`, `v+ u`, `v- u`, `p u NAME VALUE`,
//! `p u v NAME VALUE`. After the ends of an edge, `#7` selects one of several parallel edges by its number. Blanks
//! separate columns, which may be quoted. Empty lines and lines that begin with `#`, `%` or `//` are ignored.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anden_base::message::shown;
use anden_base::standard_input::{Deadline, StandardInput};

use crate::InputPath;
use crate::compression::decoded;
use crate::lines::is_comment;
use crate::update_columns::{LineValue, UpdateColumn, UpdateColumns};
use crate::{Error, Result};

/// The longest line in bytes.
const MAX_LINE_BYTES: usize = 1 << 20;
/// Bytes per read: more than a pipe holds.
const READ_BYTES: usize = 128 << 10;

/// One update, as it stands in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateLine<'a> {
    /// Adds an edge.
    AddEdge {
        /// The key of the source.
        source: &'a str,
        /// The key of the target.
        target: &'a str,
        /// The weight.
        weight: Option<&'a str>,
        /// The values of its properties.
        properties: LineProperties<'a>,
    },
    /// Removes an edge.
    RemoveEdge {
        /// The key of the source.
        source: &'a str,
        /// The key of the target.
        target: &'a str,
        /// The number of the edge among parallel edges.
        number: Option<u64>,
    },
    /// Sets the weight of an edge.
    SetWeight {
        /// The key of the source.
        source: &'a str,
        /// The key of the target.
        target: &'a str,
        /// The number of the edge among parallel edges.
        number: Option<u64>,
        /// The new weight.
        weight: &'a str,
    },
    /// Adds a vertex.
    AddVertex(&'a str),
    /// Removes a vertex.
    RemoveVertex(&'a str),
    /// Sets a property of a vertex.
    SetVertexProperty {
        /// The key of the vertex.
        vertex: &'a str,
        /// The name of the property.
        name: &'a str,
        /// The new value.
        value: LineValue<'a>,
    },
    /// Sets a property of an edge.
    SetEdgeProperty {
        /// The key of the source.
        source: &'a str,
        /// The key of the target.
        target: &'a str,
        /// The number of the edge among parallel edges.
        number: Option<u64>,
        /// The name of the property.
        name: &'a str,
        /// The new value.
        value: LineValue<'a>,
    },
}

/// The result of [`Updates::next_update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextUpdate<'a> {
    /// An update.
    Found(UpdateLine<'a>),
    /// No whole line arrived before the [deadline](Updates::set_deadline). The next call continues.
    Late,
    /// The end of the input.
    End,
}

/// The updates of a file, one after the other. Compressed files are decompressed.
///
/// A read from a pipe waits for one whole line only.
pub struct Updates {
    path: PathBuf,
    reader: BufReader<Box<dyn Read + Send>>,
    /// `None` for a regular file, which never blocks.
    deadline: Option<Deadline>,
    /// The last line, or its beginning after [`NextUpdate::Late`].
    line: Vec<u8>,
    is_partial: bool,
    columns: UpdateColumns,
    number: u64,
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").field("path", &self.path).field("number", &self.number).finish_non_exhaustive()
    }
}

impl Updates {
    /// Opens the updates of `input`.
    ///
    /// # Errors
    /// The input cannot be read, or its compressed data is damaged.
    pub fn open(input: &InputPath) -> Result<Self> {
        let path = input.path();
        let bytes = match input {
            InputPath::Stdin => StandardInput::open(path)?,
            InputPath::File(path) => {
                StandardInput::of_file(File::open(path).map_err(|error| anden_base::Error::io("open", path, error))?)
            }
            InputPath::Arrow(_) => {
                let what = "updates are lines of text, found rows in memory".into();
                return Err(Error::Input { path: path.to_owned(), what });
            }
        };
        // A regular file never blocks, so it needs no deadline.
        let deadline = (!bytes.is_regular()).then(|| bytes.deadline());
        Ok(Self { deadline, ..Self::of_bytes(path, bytes)? })
    }

    /// Reads updates from bytes that never block; errors call them `path`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_bytes(path: &Path, bytes: impl Read + Send + 'static) -> Result<Self> {
        let mut bytes = BufReader::new(bytes);
        // Looks at the first bytes without consuming them, to detect compression.
        let head = bytes.fill_buf().map_err(|error| anden_base::Error::io("read", path, error))?.to_vec();
        let reader = BufReader::with_capacity(READ_BYTES, decoded(path, &head, bytes)?);
        let (path, line, columns) = (path.to_owned(), Vec::new(), UpdateColumns::default());
        Ok(Self { path, reader, deadline: None, line, is_partial: false, columns, number: 0 })
    }

    /// Whether the next line may block, because it is not buffered yet.
    pub fn may_wait(&self) -> bool {
        self.deadline.is_some() && !self.reader.buffer().contains(&b'\n')
    }

    /// Limits the waiting time of [`next_update`](Self::next_update). `None`, the default, waits without limit.
    pub fn set_deadline(&self, until: Option<Instant>) {
        if let Some(deadline) = &self.deadline {
            deadline.set(until);
        }
    }

    /// The number of the last line, from 1; 0 before the first line.
    pub fn line_number(&self) -> u64 {
        self.number
    }

    /// The length of the last line in bytes.
    pub fn line_bytes(&self) -> usize {
        self.line.len()
    }

    /// Reads the next update.
    ///
    /// # Errors
    /// The line is not an update (with file and line), or the input cannot be read.
    pub fn next_update(&mut self) -> Result<NextUpdate<'_>> {
        loop {
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => return Ok(NextUpdate::End),
                Err(error) if StandardInput::has_timed_out(&error) => return Ok(NextUpdate::Late),
                Err(error) => return Err(anden_base::Error::io("read", &self.path, error).into()),
            }
            if self.line.len() > MAX_LINE_BYTES {
                let most = anden_base::size::size(MAX_LINE_BYTES as u64);
                return Err(self.error(format!("expected a line of at most {most}, found a longer one")));
            }
            let line = self.line.trim_ascii();
            if !line.is_empty() && !is_comment(line) {
                break;
            }
        }
        let found = match std::str::from_utf8(&self.line) {
            Ok(line) => self.columns.find(line).and_then(|()| parsed(line, &self.columns)),
            Err(_) => Err("UTF-8"),
        };
        found
            .map(NextUpdate::Found)
            .map_err(|expected| self.error(format!("expected {expected}, found {}", shown(self.line.trim_ascii()))))
    }

    /// Reads a line, or the rest of one; `false` at the end of the input.
    fn read_line(&mut self) -> std::io::Result<bool> {
        if !self.is_partial {
            self.line.clear();
        }
        // Set while the line is incomplete: an error keeps the bytes that were read.
        self.is_partial = true;
        // Bounds the memory that a line without end takes.
        let most = (MAX_LINE_BYTES + 1).saturating_sub(self.line.len());
        (&mut self.reader).take(most as u64).read_until(b'\n', &mut self.line)?;
        self.is_partial = false;
        let is_line = !self.line.is_empty();
        self.number += u64::from(is_line);
        // Some editors write a byte order mark at the start of a file.
        if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        Ok(is_line)
    }

    /// Makes an error about the last line.
    pub fn error(&self, what: String) -> Error {
        Error::Line { path: self.path.clone(), line: self.number, what }
    }
}

/// The properties of an edge in an update line.
#[derive(Clone, Copy)]
pub struct LineProperties<'a> {
    line: &'a str,
    columns: &'a UpdateColumns,
    /// Names and values, alternating.
    pairs: &'a [UpdateColumn],
}

impl<'a> LineProperties<'a> {
    /// Iterates over names and values.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (&'a str, LineValue<'a>)> {
        let Self { line, columns, pairs } = self;
        pairs.as_chunks().0.iter().map(move |[name, value]| {
            (columns.text(line, name), LineValue::of(columns.text(line, value), value.is_quoted))
        })
    }
}

impl fmt::Debug for LineProperties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for LineProperties<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for LineProperties<'_> {}

/// The edge that a line adds; `columns` start with the sign.
fn added_edge<'a>(line: &'a str, columns: &'a UpdateColumns) -> Option<UpdateLine<'a>> {
    let text = |column: &UpdateColumn| columns.text(line, column);
    let [source, target, rest @ ..] = columns.all().get(1..)? else { return None };
    // A diff gives the number that an edge has in its own database. Here, the edge gets a new number.
    let rest = match rest {
        [number, rest @ ..] if !number.is_name && number_of(line, columns, number).is_some() => rest,
        rest => rest,
    };
    let (weight, pairs) = match rest {
        [weight, pairs @ ..] if !weight.is_name => (Some(text(weight)), pairs),
        pairs => (None, pairs),
    };
    // A name in the place of a value means that a property lacks its value.
    let is_pair = |pair: &[UpdateColumn]| pair.len() == 2 && pair[0].is_name;
    pairs.chunks(2).all(is_pair).then(|| UpdateLine::AddEdge {
        source: text(source),
        target: text(target),
        weight,
        properties: LineProperties { line, columns, pairs },
    })
}

/// The number of an edge in a column, `#7`.
fn number_of(line: &str, columns: &UpdateColumns, column: &UpdateColumn) -> Option<u64> {
    let digits = columns.text(line, column).strip_prefix('#').filter(|_| !column.is_quoted)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Parses the update in a line with known columns, or returns a description of the expected form.
fn parsed<'a>(line: &'a str, columns: &'a UpdateColumns) -> Result<UpdateLine<'a>, &'static str> {
    // One more than any update has, so that a longer line fails to match.
    let mut found = [""; 6];
    let mut all = columns.all().iter();
    let sign = all.next().map_or("", |sign| columns.text(line, sign));
    // The number follows the ends of an edge. Vertices have no number.
    let number = columns.all().get(3).and_then(|column| number_of(line, columns, column));
    let number = number.filter(|_| matches!(sign, "-" | "=") || sign == "p" && columns.all().len() == 6);
    let rest = all.enumerate().filter(|(place, _)| number.is_none() || *place != 2);
    let mut num_found = 0;
    for (found, (_, column)) in found.iter_mut().zip(rest) {
        *found = columns.text(line, column);
        num_found += 1;
    }
    let value = |text| LineValue::of(text, columns.all().last().is_some_and(|last| last.is_quoted));
    match (sign, &found[..num_found]) {
        ("+", _) => added_edge(line, columns).ok_or("`+ SOURCE TARGET [WEIGHT] [NAME=VALUE ...]`"),
        // A diff may state the weight of a removed edge, which is not needed here.
        ("-", &[source, target]) => Ok(UpdateLine::RemoveEdge { source, target, number }),
        ("-", &[source, target, weight]) if weight.parse::<f64>().is_ok() => {
            Ok(UpdateLine::RemoveEdge { source, target, number })
        }
        ("-", _) => Err("`- SOURCE TARGET [#NUMBER] [WEIGHT]`"),
        ("=", &[source, target, weight]) => Ok(UpdateLine::SetWeight { source, target, number, weight }),
        ("=", _) => Err("`= SOURCE TARGET [#NUMBER] WEIGHT`"),
        ("v+", &[vertex]) => Ok(UpdateLine::AddVertex(vertex)),
        ("v+", _) => Err("`v+ VERTEX`"),
        ("v-", &[vertex]) => Ok(UpdateLine::RemoveVertex(vertex)),
        ("v-", _) => Err("`v- VERTEX`"),
        ("p", &[vertex, name, text]) => Ok(UpdateLine::SetVertexProperty { vertex, name, value: value(text) }),
        ("p", &[source, target, name, text]) => {
            Ok(UpdateLine::SetEdgeProperty { source, target, number, name, value: value(text) })
        }
        ("p", _) => Err("`p VERTEX NAME VALUE` or `p SOURCE TARGET [#NUMBER] NAME VALUE`"),
        _ => Err("one of + - = v+ v- p at the beginning"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(text: &[u8]) -> std::result::Result<Vec<(u64, String)>, String> {
        let mut updates = Updates::of_bytes("u.txt".as_ref(), std::io::Cursor::new(text.to_vec())).unwrap();
        let mut found = Vec::new();
        loop {
            match updates.next_update() {
                Ok(NextUpdate::Found(update)) => {
                    let update = format!("{update:?}");
                    found.push((updates.line_number(), update));
                }
                Ok(NextUpdate::Late) => panic!("bytes in memory are never late"),
                Ok(NextUpdate::End) => return Ok(found),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    const TEXT: &str = "+ a b\n# nothing\n\n+ a b 1.5\r\n- a b\n= a b 2\n v+ x \nv- x\np x size 3\np a b kind y\np x size null\np \"x y\" size \"null\"";

    #[test]
    fn lines_are_updates() {
        let found = all(TEXT.as_bytes()).unwrap();
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(found[1].1, "AddEdge { source: \"a\", target: \"b\", weight: Some(\"1.5\"), properties: {} }");
        assert_eq!(found[4].1, "AddVertex(\"x\")");
        assert_eq!(
            found[6].1,
            "SetVertexProperty { vertex: \"x\", name: \"size\", value: Text { text: \"3\", is_quoted: false } }"
        );
        assert_eq!(found[8].1, "SetVertexProperty { vertex: \"x\", name: \"size\", value: Null }");
        let quoted =
            "SetVertexProperty { vertex: \"x y\", name: \"size\", value: Text { text: \"null\", is_quoted: true } }";
        assert_eq!(found[9].1, quoted);
        assert_eq!(all(&gzip(TEXT)).unwrap(), found);
        let marked = [b"\xef\xbb\xbf", TEXT.as_bytes()].concat();
        assert_eq!(all(&marked).unwrap(), found, "a byte order mark is no part of the first line");
        assert!(all(b"+ a b\n\xef\xbb\xbf+ a b\n").is_err(), "further on it is");
        assert_eq!(all(b""), Ok(Vec::new()));
    }

    #[test]
    fn parallel_edges_are_named_by_their_numbers() {
        let text =
            "- a #7 #7\n- a b #18446744073709551615 2.5\n= a b #0 3\np a b #7 size #8\n+ a b #7 2 x=1\np x #7 2\n";
        let found: Vec<_> = all(text.as_bytes()).unwrap().into_iter().map(|(_, update)| update).collect();
        let value = |text: &str| format!("Text {{ text: \"{text}\", is_quoted: false }}");
        assert_eq!(
            found,
            [
                "RemoveEdge { source: \"a\", target: \"#7\", number: Some(7) }".to_owned(),
                "RemoveEdge { source: \"a\", target: \"b\", number: Some(18446744073709551615) }".to_owned(),
                "SetWeight { source: \"a\", target: \"b\", number: Some(0), weight: \"3\" }".to_owned(),
                format!(
                    "SetEdgeProperty {{ source: \"a\", target: \"b\", number: Some(7), name: \"size\", value: {} }}",
                    value("#8")
                ),
                format!(
                    "AddEdge {{ source: \"a\", target: \"b\", weight: Some(\"2\"), properties: {{\"x\": {}}} }}",
                    value("1")
                ),
                format!("SetVertexProperty {{ vertex: \"x\", name: \"#7\", value: {} }}", value("2")),
            ]
        );
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    fn bzip2(text: &str) -> Vec<u8> {
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    fn xz(text: &str) -> Vec<u8> {
        let mut packed = liblzma::write::XzEncoder::new(Vec::new(), 0);
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    /// A pipe stalls inside a line, inside a compressed block and between two members. No byte is lost.
    #[test]
    fn stalled_input_is_read_on() {
        type Pack = fn(&str) -> Vec<u8>;
        let kinds: [(&str, Pack); 5] = [
            ("plain", |text| text.as_bytes().to_vec()),
            ("gzip", gzip),
            ("zstd", |text| zstd::encode_all(text.as_bytes(), 1).unwrap()),
            ("bzip2", bzip2),
            ("xz", xz),
        ];
        for (kind, packed) in kinds {
            // The members end inside lines.
            let bytes: Vec<u8> =
                ["+ a b\n+ a", " c\n# not", "hing\n+ a d\n+ a e"].into_iter().flat_map(packed).collect();
            let (reader, mut writer) = std::io::pipe().unwrap();
            let input = StandardInput::of_file(File::from(std::os::fd::OwnedFd::from(reader)));
            let deadline = Some(input.deadline());
            // The first read decides the compression.
            writer.write_all(&bytes[..12]).unwrap();
            let mut updates = Updates { deadline, ..Updates::of_bytes("u".as_ref(), input).unwrap() };
            assert!(updates.may_wait());
            updates.set_deadline(Some(Instant::now()));
            let (mut found, mut num_late, mut rest) = (Vec::new(), 0, bytes[12..].iter());
            let mut writer = Some(writer);
            loop {
                match updates.next_update().unwrap() {
                    NextUpdate::Found(update) => {
                        let update = format!("{update:?}");
                        found.push((updates.line_number(), update));
                    }
                    NextUpdate::End => break,
                    NextUpdate::Late => {
                        num_late += 1;
                        match (rest.next(), &mut writer) {
                            (Some(&byte), Some(writer)) => writer.write_all(&[byte]).unwrap(),
                            _ => drop(writer.take()),
                        }
                    }
                }
            }
            let expected: Vec<_> = [(1, "b"), (2, "c"), (4, "d"), (5, "e")]
                .map(|(line, target)| {
                    (line, format!("AddEdge {{ source: \"a\", target: {target:?}, weight: None, properties: {{}} }}"))
                })
                .into();
            assert_eq!(found, expected, "{kind}");
            assert_eq!(num_late, bytes.len() - 12 + 1, "{kind}");
        }
    }

    #[test]
    fn bad_update_is_refused_with_its_line() {
        for (line, expected) in [
            ("a b", "u.txt:2: expected one of + - = v+ v- p at the beginning, found 'a b'"),
            ("+ a", "u.txt:2: expected `+ SOURCE TARGET [WEIGHT] [NAME=VALUE ...]`, found '+ a'"),
            ("+ a b x=1 2", "u.txt:2: expected `+ SOURCE TARGET [WEIGHT] [NAME=VALUE ...]`, found '+ a b x=1 2'"),
            ("- a", "u.txt:2: expected `- SOURCE TARGET [#NUMBER] [WEIGHT]`, found '- a'"),
            ("- a b #x", "u.txt:2: expected `- SOURCE TARGET [#NUMBER] [WEIGHT]`, found '- a b #x'"),
            ("- a b \"#7\"", "u.txt:2: expected `- SOURCE TARGET [#NUMBER] [WEIGHT]`, found '- a b \"#7\"'"),
            ("= a b #7", "u.txt:2: expected `= SOURCE TARGET [#NUMBER] WEIGHT`, found '= a b #7'"),
            ("v+ a b", "u.txt:2: expected `v+ VERTEX`, found 'v+ a b'"),
            (
                "p a b",
                "u.txt:2: expected `p VERTEX NAME VALUE` or `p SOURCE TARGET [#NUMBER] NAME VALUE`, found 'p a b'",
            ),
            (
                "p a b c d e",
                "u.txt:2: expected `p VERTEX NAME VALUE` or `p SOURCE TARGET [#NUMBER] NAME VALUE`, found 'p a b c d e'",
            ),
            ("p a b \"c", "u.txt:2: expected a closing quote, found 'p a b \"c'"),
        ] {
            assert_eq!(all(format!("+ a b\n{line}\n").as_bytes()), Err(expected.to_owned()));
        }
        assert!(all(b"+ a \xff\n").unwrap_err().contains("expected UTF-8"));
        let long = [b"+ a ".to_vec(), vec![b'b'; MAX_LINE_BYTES]].concat();
        assert!(all(&long).unwrap_err().contains("longer one"));
    }
}
