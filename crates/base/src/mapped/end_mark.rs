//! Whether a mapped file still has its end.

use std::sync::atomic::{Ordering, fence};

use super::{FileBytes, MappedSlice, Owner};

/// The last byte of a mapped file that is not zero, to find out whether another process cut the file.
///
/// A map shows zeros between the end of a cut file and the next page. So a file that still has this byte has lost
/// nothing but zeros, which the map shows all the same. A file that became shorter and longer again has lost the byte.
#[derive(Clone, Debug)]
pub struct EndMark {
    byte: MappedSlice<u8>,
    value: u8,
}

impl FileBytes {
    /// The mark of a mapped file. `None` if the bytes are in memory, where nothing cuts them, or are all zeros.
    ///
    /// Cost: reads the file from its end to the mark.
    pub fn end_mark(&self) -> Option<EndMark> {
        let Owner::Mapped(map, _) = &*self.owner else { return None };
        let place = map.iter().rposition(|&byte| byte != 0)?;
        let byte = Self { owner: self.owner.clone(), range: place..place + 1 };
        Some(EndMark { byte: MappedSlice::new(byte)?, value: map[place] })
    }
}

impl EndMark {
    /// Whether the file still has the byte. If it does, all reads of the file before this call were whole.
    ///
    /// If the file lost the whole page of the byte, this call ends with `SIGBUS`, as any read of a lost page does.
    #[inline]
    pub fn is_there(&self) -> bool {
        // Keeps the reads of the file before the read of the mark.
        fence(Ordering::Acquire);
        // SAFETY: the slice has one byte, which is mapped while the slice lives. The read is volatile because another
        // process may change the byte.
        unsafe { self.byte.as_ptr().read_volatile() == self.value }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn cut_file_loses_its_mark() {
        let path = std::env::temp_dir().join(format!("anden-mark-{}", std::process::id()));
        let file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let map_of = |bytes: &[u8]| {
            file.set_len(0).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
            FileBytes::map(&file).unwrap()
        };
        let content = [&[7_u8; 5000][..], &[0; 100]].concat();
        let mark = map_of(&content).end_mark().unwrap();
        assert!(mark.is_there());
        // Only zeros are lost.
        file.set_len(5000).unwrap();
        assert!(mark.is_there());
        file.set_len(4999).unwrap();
        assert!(!mark.is_there());
        // As long as before, but with zeros.
        file.set_len(5100).unwrap();
        assert!(!mark.is_there());

        assert!(map_of(&[0; 10]).end_mark().is_none());
        assert!(FileBytes::copied(&content).end_mark().is_none());
    }
}
