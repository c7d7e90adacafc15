//! The lists of one page in one slice: as a base holds them, and whole with the changes of deltas.

use std::ops::Range;

use anden_base::VertexId;

use crate::arc_columns::ArcColumns;
use crate::changes::{ArcData, EntryBuffer, ListEntries, PageChanges, apply};
use crate::options::GraphOptions;
use crate::table::{PAGE_OFFSETS, PAGE_VERTICES};

/// A page of the base, or its patched form, and the options of its graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BasePage<'a> {
    /// The page's offsets; zeros if the base has no edges here.
    pub offsets: &'a [u32],
    pub targets: &'a [VertexId],
    /// Index of its first arc among all targets.
    pub edge_base: usize,
    /// Weights and rows of all pages; `None` if no page has edges.
    pub columns: Option<&'a ArcColumns>,
    pub options: &'a GraphOptions,
}

/// The offsets of a page without edges.
pub(crate) const NO_OFFSETS: &[u32] = &[0; PAGE_OFFSETS];

impl BasePage<'_> {
    /// Range of a list among the targets.
    pub fn list(&self, local: usize) -> Range<usize> {
        self.offsets[local] as usize..self.offsets[local + 1] as usize
    }

    /// Appends these entries to `copy`.
    pub fn copy(&self, entries: Range<usize>, copy: &mut EntryBuffer) {
        copy.targets.extend_from_slice(&self.targets[entries.clone()]);
        if let Some(columns) = self.columns {
            columns.copy(self.edge_base + entries.start..self.edge_base + entries.end, copy);
        }
    }

    /// Row and weight of the entry at a position.
    pub fn data(&self, place: usize) -> ArcData {
        self.columns.map_or(ArcData::default(), |columns| columns.data(self.edge_base + place))
    }
}

/// All lists of a page, one after the other.
#[derive(Debug, Default)]
pub(crate) struct WholePage {
    /// One more than a page's vertices.
    pub offsets: Vec<u32>,
    pub entries: EntryBuffer,
}

impl WholePage {
    /// Becomes the page `base_page` with `changes`, all verified.
    ///
    /// # Errors
    /// Description of the fault: a removed arc is absent, an added one is present, or the page has too many entries.
    pub fn fill(&mut self, base_page: &BasePage<'_>, changes: &PageChanges) -> Result<(), String> {
        let Self { offsets, entries } = self;
        offsets.clear();
        entries.clear();
        offsets.reserve(PAGE_OFFSETS);
        entries.targets.reserve(base_page.targets.len() + changes.num_changes().0);
        offsets.push(0);
        let mut old = EntryBuffer::default();
        let mut next = 0;
        for list in changes.lists() {
            let local = usize::from(list.local);
            self.copy(base_page, next..local)?;
            let range = base_page.list(local);
            // Without weights and rows, the old list is read in place, without a copy.
            if base_page.options.is_plain() {
                let old = ListEntries { targets: &base_page.targets[range], ..ListEntries::default() };
                apply(old, &list, base_page.options.multigraph, &mut self.entries)?;
            } else {
                old.clear();
                base_page.copy(range, &mut old);
                apply(old.all(), &list, base_page.options.multigraph, &mut self.entries)?;
            }
            self.end_list()?;
            next = local + 1;
        }
        self.copy(base_page, next..PAGE_VERTICES)
    }

    /// Allocated bytes.
    pub fn num_bytes(&self) -> usize {
        self.offsets.capacity() * size_of::<u32>() + self.entries.num_bytes()
    }

    fn end_list(&mut self) -> Result<(), String> {
        let end =
            u32::try_from(self.entries.targets.len()).map_err(|_| "a page has 2^32 entries or more".to_owned())?;
        self.offsets.push(end);
        Ok(())
    }

    /// Copies unchanged lists.
    fn copy(&mut self, base_page: &BasePage<'_>, locals: Range<usize>) -> Result<(), String> {
        let entries = base_page.offsets[locals.start] as usize..base_page.offsets[locals.end] as usize;
        let start = self.entries.targets.len();
        base_page.copy(entries.clone(), &mut self.entries);
        u32::try_from(self.entries.targets.len()).map_err(|_| "a page has 2^32 entries or more".to_owned())?;
        let ends = &base_page.offsets[locals.start + 1..=locals.end];
        self.offsets.extend(ends.iter().map(|&end| (start + end as usize - entries.start) as u32));
        Ok(())
    }
}
