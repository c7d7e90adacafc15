//! A document byte by byte, with its lines counted.

use std::io::{BufRead, BufReader, Read};

use anden_base::size::size;

use super::MAX_ELEMENT_BYTES;
use super::batch::DocumentFault;

/// Reads the bytes of a document.
pub(crate) struct Characters {
    reader: BufReader<Box<dyn Read + Send>>,
    num_lines: u64,
    /// The line of the present element, for faults.
    pub(crate) line: u64,
    is_begun: bool,
}

type Result<T> = std::result::Result<T, DocumentFault>;

impl Characters {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Self {
        let reader = BufReader::with_capacity(256 << 10, reader);
        Self { reader, num_lines: 0, line: 0, is_begun: false }
    }

    /// The number of lines that are read.
    pub(crate) fn num_lines(&self) -> u64 {
        self.num_lines
    }

    /// The next byte; `None` at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Option<u8>> {
        if self.reader.buffer().is_empty() || !self.is_begun {
            self.fill()?;
        }
        Ok(self.reader.buffer().first().copied())
    }

    fn fill(&mut self) -> Result<()> {
        let bytes = self.reader.fill_buf().map_err(DocumentFault::Read)?;
        if !self.is_begun && bytes.starts_with(b"\xef\xbb\xbf") {
            // A byte order mark is no part of the text.
            self.reader.consume(3);
            self.reader.fill_buf().map_err(DocumentFault::Read)?;
        }
        self.is_begun = true;
        Ok(())
    }

    /// Passes the byte that [`peek`](Self::peek) returned.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.num_lines += u64::from(self.reader.buffer().first() == Some(&b'\n'));
        self.reader.consume(1);
    }

    /// Passes blanks, and returns the next byte.
    pub(crate) fn peek_visible(&mut self) -> Result<Option<u8>> {
        loop {
            match self.peek()? {
                Some(byte) if byte.is_ascii_whitespace() => self.pass(),
                byte => return Ok(byte),
            }
        }
    }

    /// Appends the bytes up to one that `is_end` accepts, which is not passed.
    pub(crate) fn take_until(&mut self, is_end: impl Fn(u8) -> bool, into: &mut Vec<u8>) -> Result<()> {
        loop {
            self.peek()?;
            let bytes = self.reader.buffer();
            let len = bytes.iter().position(|&byte| is_end(byte)).unwrap_or(bytes.len());
            into.extend_from_slice(&bytes[..len]);
            self.num_lines += memchr::memchr_iter(b'\n', &bytes[..len]).count() as u64;
            let is_done = bytes.len() != len || bytes.is_empty();
            self.reader.consume(len);
            self.check(into.len())?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Takes the next line without its end; returns whether there is one.
    pub(crate) fn take_line(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        into.clear();
        self.line = self.num_lines;
        if self.peek()?.is_none() {
            return Ok(false);
        }
        self.take_until(|byte| byte == b'\n', into)?;
        if self.peek()?.is_some() {
            self.pass();
        }
        Ok(true)
    }

    /// Refuses an element of this size, because it must be held in memory.
    pub(crate) fn check(&self, num_bytes: usize) -> Result<()> {
        if num_bytes > MAX_ELEMENT_BYTES {
            return Err(self.wrong(format!("an element is longer than {}", size(MAX_ELEMENT_BYTES as u64))));
        }
        Ok(())
    }

    /// A fault on the line of the present element.
    pub(crate) fn wrong(&self, what: String) -> DocumentFault {
        DocumentFault::Line(self.line, what)
    }

    /// A fault on the present line.
    pub(crate) fn wrong_here(&mut self, what: String) -> DocumentFault {
        self.line = self.num_lines;
        self.wrong(what)
    }
}
