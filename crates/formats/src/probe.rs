//! The beginning of an input, before its format is known.

use std::fs::File;
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::standard_input::StandardInput;

use crate::compression::{Compression, HEAD_BYTES, decoded, read_head, text_of};
use crate::part::InputBytes;
use crate::spool::{CopyLimit, CountedReader, spooled};
use crate::{Error, InputPath, Result};

/// Bytes of text from which columns and their types are inferred.
pub(crate) const SAMPLE_BYTES: u64 = 1 << 20;

/// An input and its first bytes.
pub(crate) struct InputProbe {
    /// The input; `-` is standard input.
    pub(crate) path: PathBuf,
    /// The first bytes, before decompression.
    pub(crate) head: Vec<u8>,
    /// The input with its head, if it cannot be opened again.
    opened: Option<Box<dyn Read + Send>>,
    /// The length of a file; `None` for a stream.
    pub(crate) num_bytes: Option<u64>,
}

impl InputProbe {
    /// Reads the beginning of an input.
    ///
    /// # Errors
    /// The input cannot be read, is a directory, or is a terminal.
    pub(crate) fn new(input: &InputPath) -> Result<Self> {
        match input {
            InputPath::Stdin => Self::at_stdin(input.path()),
            InputPath::File(path) => Self::at_file(path),
            InputPath::Arrow(rows) => Ok(Self::in_memory(rows.name(), rows.num_bytes())),
        }
    }

    /// Rows in memory or of a file that is open, which have no bytes to recognise.
    pub(crate) fn in_memory(name: &Path, num_bytes: u64) -> Self {
        Self { path: name.to_owned(), head: Vec::new(), opened: None, num_bytes: Some(num_bytes) }
    }

    fn at_stdin(path: &Path) -> Result<Self> {
        let stdin = StandardInput::open(path)?;
        match stdin.is_terminal() {
            true => Err(bad(path, "expected a pipe or a file on standard input, found a terminal")),
            false => Self::at_stream(path, Box::new(stdin)),
        }
    }

    fn at_stream(path: &Path, mut reader: Box<dyn Read + Send>) -> Result<Self> {
        // A stream cannot be sampled again later, so this reads a whole sample now.
        let head = read_head(path, &mut reader, SAMPLE_BYTES as usize)?;
        let opened = Cursor::new(head.clone()).chain(reader);
        Ok(Self { path: path.to_owned(), head, opened: Some(Box::new(opened)), num_bytes: None })
    }

    /// Reads the beginning of a file, a device or a named pipe.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn at_file(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| anden_base::Error::io("open", path, e))?;
        if metadata.is_dir() {
            return Err(bad(path, "expected a file, found a directory"));
        }
        let mut file = File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?;
        if !metadata.is_file() {
            return Self::at_stream(path, Box::new(file));
        }
        let head = read_head(path, &mut file, HEAD_BYTES)?;
        Ok(Self { path: path.to_owned(), head, opened: None, num_bytes: Some(metadata.len()) })
    }

    /// Whether the input is a regular file, with other files beside it.
    pub(crate) fn is_file(&self) -> bool {
        self.opened.is_none()
    }

    /// The ending of the name in lower case, without a suffix of compression.
    pub(crate) fn ending(&self) -> String {
        let (_, name) = Compression::of_name(&self.path);
        name.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase()
    }

    /// The beginning of the decompressed text.
    ///
    /// # Errors
    /// The content lacks the compression that the name promises.
    pub(crate) fn text(&self) -> Result<Vec<u8>> {
        text_of(&self.path, &self.head)
    }

    /// Reads whole lines of about `limit` bytes at the beginning, or a part of a longer first line. Also returns whether
    /// more text follows.
    ///
    /// # Errors
    /// The input cannot be opened, or lacks the compression that its name promises.
    pub(crate) fn sample(&self, limit: u64) -> Result<(Vec<u8>, bool)> {
        let mut text = Vec::new();
        let decoder = match self.is_file() {
            true => {
                let mut file = open(&self.path)?;
                let head = read_head(&self.path, &mut file, HEAD_BYTES)?;
                decoded(&self.path, &head, Cursor::new(head.clone()).chain(file))?
            }
            false => decoded(&self.path, &self.head, Cursor::new(self.head.clone()))?,
        };
        // A decoder may fail within the sample. The later full read reports the error.
        let _ = decoder.take(limit).read_to_end(&mut text);
        if text.starts_with(b"\xef\xbb\xbf") {
            text.drain(..3);
        }
        // A removed byte order mark shortens the text by three bytes.
        let is_cut = text.len() as u64 + 3 >= limit || (!self.is_file() && self.head.len() as u64 >= SAMPLE_BYTES);
        // A partial last line could look like a row with fewer columns.
        if is_cut && let Some(last) = memchr::memrchr(b'\n', &text) {
            text.truncate(last);
        }
        text.push(b'\n');
        Ok((text, is_cut))
    }

    /// The decompressed content from the beginning, for a look at a header. A stream ends with its first bytes.
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    pub(crate) fn beginning(&self) -> Result<Box<dyn Read + Send>> {
        match self.is_file() {
            true => decoded(&self.path, &self.head, open(&self.path)?),
            false => decoded(&self.path, &self.head, Cursor::new(self.head.clone())),
        }
    }

    /// The decompressed content from the beginning to the end, which is read again later. A stream is copied first.
    ///
    /// # Errors
    /// The input cannot be read, lacks the compression that its name promises, or the copy cannot be written.
    pub(crate) fn whole(&mut self) -> Result<Box<dyn Read + Send>> {
        let Some(opened) = self.opened.take() else { return self.beginning() };
        // Copied as it is, because later reads decompress it again.
        let (opened, num_read) = CountedReader::new(opened);
        let file = Arc::new(spooled(&self.path, opened, &num_read, CopyLimit::default())?);
        self.opened = Some(Box::new(ScratchReader { file: Arc::clone(&file), at: 0 }));
        decoded(&self.path, &self.head, ScratchReader { file, at: 0 })
    }

    /// The input as a file with random access. A pipe or a compressed file is copied first.
    ///
    /// # Errors
    /// The input cannot be read, its copy would exceed the limit, or the copy cannot be written.
    pub(crate) fn take_file(&mut self, limit: CopyLimit) -> Result<File> {
        let path = &self.path;
        // A name that promises compression counts as well, so that `decoded` checks the promise.
        let is_packed = Compression::of_content(&self.head).is_some() || Compression::of_name(path).0.is_some();
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None if is_packed => Box::new(open(path)?),
            None => return open(path),
        };
        let (opened, num_read) = CountedReader::new(opened);
        spooled(path, decoded(path, &self.head, opened)?, &num_read, limit)
    }

    /// The bytes of the input, for the reads of its content.
    pub(crate) fn take_bytes(&mut self) -> InputBytes {
        InputBytes::new(self.opened.take())
    }

    /// The error for an input that violates its format as a whole.
    pub(crate) fn bad(&self, what: &str) -> Error {
        bad(&self.path, what)
    }
}

/// Reads a scratch file with a position of its own.
struct ScratchReader {
    file: Arc<File>,
    at: u64,
}

impl Read for ScratchReader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let num_bytes = self.file.read_at(into, self.at)?;
        self.at += num_bytes as u64;
        Ok(num_bytes)
    }
}

fn open(path: &Path) -> Result<File> {
    Ok(File::open(path).map_err(|e| anden_base::Error::io("open", path, e))?)
}

fn bad(path: &Path, what: &str) -> Error {
    Error::Input { path: path.to_owned(), what: what.to_owned() }
}
