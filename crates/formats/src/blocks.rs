//! Cuts text into blocks at line ends, or within a line that is longer than a block.

use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::number::PADDING;
use crate::{Error, Result};

/// Whole lines of an input, each with its line end, or a part of a line that is longer than a block. [`PADDING`] line
/// ends follow.
#[derive(Debug)]
pub(crate) struct TextBlock {
    /// The buffer. Bytes after `end` and the padding are remains of earlier blocks.
    pub(crate) bytes: Vec<u8>,
    /// The start of the lines to parse. Earlier lines belong to a header.
    pub(crate) start: usize,
    /// The end of the lines.
    pub(crate) end: usize,
}

/// Reads an input and cuts it into blocks.
pub(crate) struct BlockCutter {
    reader: Box<dyn Read + Send>,
    /// Whether a line longer than a block is cut after a blank; otherwise it is a fault.
    cuts_lines: bool,
    /// The beginning of a line with an end that is still unread.
    carry: Vec<u8>,
    is_first: bool,
    /// Whether the last returned block was the first one.
    was_first: bool,
    is_done: bool,
    /// A read error, returned after the lines before it.
    error: Option<Error>,
}

/// The reason why no block follows.
#[derive(Debug)]
pub(crate) enum CutError {
    /// The line is longer than a block.
    LongLine(usize),
    /// Reading failed.
    Read(Error),
}

impl BlockCutter {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            cuts_lines: false,
            carry: Vec::new(),
            is_first: true,
            was_first: false,
            is_done: false,
            error: None,
        }
    }

    /// Allows lines longer than a block from now on: they are cut after blanks.
    pub(crate) fn cut_lines(&mut self) {
        self.cuts_lines = true;
    }

    /// Returns the next lines, about `block_bytes`, in `buffer` if it is large enough.
    pub(crate) fn next(
        &mut self,
        path: &Path,
        mut buffer: Vec<u8>,
        block_bytes: usize,
    ) -> Result<Option<TextBlock>, CutError> {
        // A read error waits here until the lines before it were returned.
        if self.is_done {
            return self.error.take().map_or(Ok(None), |error| Err(CutError::Read(error)));
        }
        // Lines that were taken back may be longer than a block.
        let limit = block_bytes.max(1).max(self.carry.len());
        // One byte more than the limit, for a last line without its line end.
        if buffer.len() < limit + 1 + PADDING {
            buffer = vec![0; limit + 1 + PADDING];
        }
        let mut filled = self.carry.len();
        buffer[..filled].copy_from_slice(&self.carry);
        self.carry.clear();
        while filled < limit {
            match self.reader.read(&mut buffer[filled..limit]) {
                Ok(0) => {
                    self.is_done = true;
                    break;
                }
                Ok(num_bytes) => filled += num_bytes,
                // A signal interrupted the read, which is no fault of the input.
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    self.is_done = true;
                    self.error = Some(anden_base::Error::io("read", path, e).into());
                    break;
                }
            }
        }
        let end = match memchr::memrchr(b'\n', &buffer[..filled]) {
            Some(last) if !self.is_done || self.error.is_some() => last + 1,
            // No whole line precedes the error, so it is returned now.
            _ if self.error.is_some() => return self.next(path, buffer, block_bytes),
            _ if self.is_done && filled == 0 => return Ok(None),
            _ if self.is_done => {
                // The input may lack its last line end. One too many would be an empty line.
                buffer[filled] = b'\n';
                filled + usize::from(buffer[filled - 1] != b'\n')
            }
            // Never cuts after the last byte: if the input ends there, its line end must still be added.
            _ => match buffer[..filled - 1].iter().rposition(u8::is_ascii_whitespace).filter(|_| self.cuts_lines) {
                Some(blank) => blank + 1,
                None => {
                    self.is_done = true;
                    return Err(CutError::LongLine(limit));
                }
            },
        };
        // At the end of the input, nothing follows: a partial line before a read error is dropped.
        if end < filled && !self.is_done {
            self.carry.extend_from_slice(&buffer[end..filled]);
        }
        buffer[end..end + PADDING].fill(b'\n');
        self.was_first = std::mem::take(&mut self.is_first);
        // A byte order mark counts only at the start of the input.
        let has_mark = self.was_first && buffer[..end].starts_with(b"\xef\xbb\xbf");
        let start = if has_mark { 3 } else { 0 };
        Ok(Some(TextBlock { bytes: buffer, start, end }))
    }

    /// Whether the last returned block is the end of the input.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_done && self.error.is_none()
    }

    /// Takes back the lines of the last returned block from `at` on. The next block begins with them.
    pub(crate) fn take_back(&mut self, block: &mut TextBlock, at: usize) {
        self.is_first = at == 0 && self.was_first;
        // The text behind the block is already carried, so these bytes go before it.
        self.carry.splice(..0, block.bytes[at..block.end].iter().copied());
        block.end = at;
        block.bytes[at..at + PADDING].fill(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static [u8], block_bytes: usize) -> Result<Vec<String>, CutError> {
        let mut cutter = BlockCutter::new(Box::new(text));
        let mut buffer = Vec::new();
        let mut blocks = Vec::new();
        while let Some(block) = cutter.next("x".as_ref(), buffer, block_bytes)? {
            let lines = &block.bytes[block.start..block.end];
            assert!(lines.ends_with(b"\n"));
            assert!(block.bytes[block.end..][..PADDING].iter().all(|&b| b == b'\n'));
            blocks.push(String::from_utf8(lines.to_vec()).unwrap());
            buffer = block.bytes;
        }
        Ok(blocks)
    }

    #[test]
    fn blocks_are_whole_lines() {
        let text = b"one\ntwo\n\nthree\nfour";
        for block_bytes in [6, 7, 8, 9, 19, 20, 1000] {
            let blocks = lines(text, block_bytes).unwrap();
            assert_eq!(blocks.concat(), "one\ntwo\n\nthree\nfour\n", "{block_bytes}");
            assert!(blocks.iter().all(|b| b.len() <= block_bytes + 1));
        }
        assert_eq!(lines(b"", 8).unwrap(), Vec::<String>::new());
        assert_eq!(lines(b"\n", 8).unwrap(), ["\n"]);
        assert_eq!(lines(b"\xef\xbb\xbfa\n\xef\xbb\xbfb", 100).unwrap(), ["a\n\u{feff}b\n"]);
    }

    #[test]
    fn lines_before_a_failure_are_handed_out() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("no more"))
            }
        }
        for (text, whole) in [(&b"one\ntwo\nthr"[..], Some(8)), (b"one", None), (b"", None)] {
            let mut cutter = BlockCutter::new(Box::new(text.chain(Failing)));
            let next = |cutter: &mut BlockCutter| cutter.next("x".as_ref(), Vec::new(), 100);
            if let Some(len) = whole {
                assert_eq!(next(&mut cutter).unwrap().unwrap().end, len);
            }
            assert!(matches!(next(&mut cutter), Err(CutError::Read(e)) if e.to_string() == "x: cannot read: no more"));
            assert!(next(&mut cutter).unwrap().is_none());
        }
    }

    #[test]
    fn lines_that_are_taken_back_come_again() {
        let text = b"\xef\xbb\xbfone\ntwo\nthree\nfour\n";
        let mut cutter = BlockCutter::new(Box::new(&text[..]));
        let mut next = |block_bytes: usize, keep: usize| {
            let mut block = cutter.next("x".as_ref(), Vec::new(), block_bytes).unwrap().unwrap();
            let found = String::from_utf8(block.bytes[block.start..block.end].to_vec()).unwrap();
            let at = block.start + keep;
            if at < block.end {
                cutter.take_back(&mut block, if keep == 0 { 0 } else { at });
                assert!(block.bytes[block.end..][..PADDING].iter().all(|&b| b == b'\n'));
            }
            (found, cutter.is_at_end())
        };
        assert_eq!(next(12, 0), ("one\ntwo\n".to_owned(), false));
        assert_eq!(next(12, 4), ("one\ntwo\n".to_owned(), false));
        assert_eq!(next(11, 4), ("two\nthree\n".to_owned(), false));
        assert_eq!(next(100, 100), ("three\nfour\n".to_owned(), true));
    }

    #[test]
    fn a_line_longer_than_a_block_is_refused() {
        assert!(matches!(lines(b"one\nthree\n", 5), Err(CutError::LongLine(5))));
        assert_eq!(lines(b"one\nthree\n", 6).unwrap().len(), 2);
    }

    #[test]
    fn lines_that_may_be_cut_are_cut_behind_blanks() {
        let text = "one\n2 33 444\t5 \n66 7 \n888 9 ";
        for (block_bytes, expected) in [
            (5, &["one\n", "2 ", "33 ", "444\t", "5 \n", "66 ", "7 \n", "888 ", "9 \n"][..]),
            (7, &["one\n", "2 33 ", "444\t5 \n", "66 7 \n", "888 9 \n"]),
            (100, &["one\n2 33 444\t5 \n66 7 \n888 9 \n"]),
        ] {
            let mut cutter = BlockCutter::new(Box::new(text.as_bytes()));
            cutter.cut_lines();
            let mut found = Vec::new();
            while let Some(block) = cutter.next("x".as_ref(), Vec::new(), block_bytes).unwrap() {
                assert!(block.bytes[block.end..][..PADDING].iter().all(|&b| b == b'\n'));
                found.push(String::from_utf8(block.bytes[..block.end].to_vec()).unwrap());
            }
            assert_eq!(found, expected, "{block_bytes}");
        }
        let mut cutter = BlockCutter::new(Box::new(&b"1 22 4444 5\n"[..]));
        cutter.cut_lines();
        let mut next = || cutter.next("x".as_ref(), Vec::new(), 4);
        assert_eq!(next().unwrap().unwrap().end, 2);
        assert_eq!(next().unwrap().unwrap().end, 3);
        assert!(matches!(next(), Err(CutError::LongLine(4))));
    }
}
