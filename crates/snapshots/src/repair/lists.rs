//! Reads the lists of a version page by page, and recovers those of damaged pages from the other ends of the edges.
//!
//! Each edge is in the list of its source and in that of its target. So the entries of a damaged page are found in the
//! undamaged lists of the other direction, or of an undirected graph. An edge is lost only if both are damaged.

use std::ops::Range;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_base::progress::Progress;
use anden_graph::{Direction, GraphKind};

use super::DamagedStore;
use crate::Result;
use crate::base::{AdjacencyFiles, BaseLists};
use crate::base_writer::BaseWriter;
use crate::changes::{ApplyDirection, ArcData, ChangedArc, ComposeScratch, EntryBuffer, PageChanges, compose};
use crate::delta::Delta;
use crate::file::FileKind;
use crate::lists::ListRules;
use crate::options::GraphOptions;
use crate::page::{BasePage, NO_OFFSETS, WholePage};
use crate::table::{PAGE_VERTICES, num_pages, page_of};

/// One direction of a version.
struct DamagedLists<'a> {
    direction: Direction,
    /// `None` if a file of the base cannot be opened.
    base: Option<BaseLists>,
    steps: &'a [(Delta, ApplyDirection)],
    options: GraphOptions,
    vertex_bound: usize,
}

/// The pages of one direction.
struct SurveyedLists<'a> {
    lists: DamagedLists<'a>,
    /// Pages that cannot be read.
    damaged: Bitmap,
    /// Entries of the damaged pages that the other direction has, sorted.
    recovered: Vec<ChangedArc>,
}

/// All readable lists of a version.
pub(super) struct SavedLists<'a> {
    /// Out-lists, then in-lists if the graph has them.
    directions: Vec<SurveyedLists<'a>>,
    options: GraphOptions,
    vertex_bound: usize,
}

/// What was written.
#[derive(Default)]
pub(super) struct WrittenLists {
    pub num_arcs: u64,
    pub num_loops: u64,
    /// Row numbers that out-lists name, ascending.
    pub rows: Vec<u64>,
}

/// Pages with edges that are lost: from those of the first range to those of the second; `None`: to all.
pub(super) type LostPages = (Range<usize>, Option<Range<usize>>);

impl<'a> DamagedLists<'a> {
    fn open(
        store: &DamagedStore,
        direction: Direction,
        steps: &'a [(Delta, ApplyDirection)],
        vertex_bound: usize,
    ) -> Self {
        let options = store.manifest.created.options;
        let base = store.open_lists(direction).ok();
        Self { direction, base, steps, options, vertex_bound }
    }

    /// All lists of a page.
    ///
    /// # Errors
    /// The page is damaged, in the base or in a delta.
    fn page(&self, page: usize) -> anden_base::Result<WholePage> {
        let Some(lists) = &self.base else { return Err(anden_base::Error::corrupt("".as_ref(), 0, "no such file")) };
        let (mut parts, mut all) = (Vec::new(), PageChanges::default());
        for (delta, sense) in self.steps {
            let mut part = PageChanges::default();
            if delta.read_page(self.direction, page, &mut part)? {
                if *sense == ApplyDirection::Backward {
                    part.invert();
                }
                parts.push(part);
            }
        }
        compose(&parts, &mut all, &mut ComposeScratch::default());
        let is_in_base = page < lists.num_pages();
        let base_page = if is_in_base { lists.page(page)? } else { None };
        if is_in_base {
            lists.verify_weights(page)?;
            lists.verify_rows(lists.edges(page))?;
        }
        let base_page = BasePage {
            offsets: base_page.map_or(NO_OFFSETS, |page| page.offsets),
            targets: base_page.map_or(&[], |page| page.targets),
            edge_base: base_page.map_or(0, |page| page.edge_base),
            columns: base_page.map(|_| lists.columns()),
            options: &self.options,
        };
        let mut whole = WholePage::default();
        let corrupt = |what: String| anden_base::Error::corrupt("".as_ref(), 0, what);
        whole.fill(&base_page, &all).map_err(corrupt)?;
        match whole.entries.targets.iter().max() {
            Some(&largest) if largest as usize >= self.vertex_bound => {
                Err(corrupt(format!("a target below {} expected, {largest} found", self.vertex_bound)))
            }
            _ => Ok(whole),
        }
    }
}

impl DamagedStore {
    fn open_lists(&self, direction: Direction) -> Result<BaseLists> {
        let options = &self.manifest.created.options;
        let files = AdjacencyFiles {
            table: self.open_base_file(FileKind::table(direction))?,
            targets: self.open_base_file(FileKind::targets(direction))?,
            weights: match options.weight_type {
                Some(weight_type) => Some((self.open_base_file(FileKind::weights(direction))?, weight_type)),
                None => None,
            },
            rows: options.has_rows().then(|| self.open_base_file(FileKind::rows(direction))).transpose()?,
        };
        let vertex_bound = self.anchor().vertex_bound as usize;
        BaseLists::open(&files, ListRules { vertex_bound, multigraph: options.multigraph })
    }
}

impl<'a> SavedLists<'a> {
    /// Reads all pages of a version, and recovers the entries of damaged ones.
    ///
    /// Memory: the recovered entries.
    ///
    /// # Errors
    /// Cancellation.
    pub fn read(
        store: &DamagedStore,
        steps: &'a [(Delta, ApplyDirection)],
        vertex_bound: usize,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let options = store.manifest.created.options;
        let num_directions = if options.stores_in_lists() { 2 } else { 1 };
        let mut directions = Vec::new();
        for direction in [Direction::Out, Direction::In].into_iter().take(num_directions) {
            let lists = DamagedLists::open(store, direction, steps, vertex_bound);
            let mut damaged = Bitmap::new(num_pages(vertex_bound));
            for page in 0..num_pages(vertex_bound) {
                progress.check()?;
                if lists.page(page).is_err() {
                    damaged.set(page);
                }
            }
            directions.push(SurveyedLists { lists, damaged, recovered: Vec::new() });
        }
        let mut this = Self { directions, options, vertex_bound };
        for place in 0..this.directions.len() {
            this.directions[place].recovered = this.recover(place, progress)?;
        }
        Ok(this)
    }

    /// The place of the direction that holds the other entry of each edge, if there is one.
    fn transposed(&self, place: usize) -> Option<usize> {
        match (self.options.graph_kind, self.directions.len()) {
            (GraphKind::Undirected, _) => Some(place),
            (GraphKind::Directed, 2) => Some(1 - place),
            _ => None,
        }
    }

    fn recover(&self, place: usize, progress: &dyn Progress) -> Result<Vec<ChangedArc>> {
        let damaged = &self.directions[place].damaged;
        let mut recovered = Vec::new();
        let Some(other) = self.transposed(place).filter(|_| damaged.count_ones() > 0) else { return Ok(recovered) };
        let other = &self.directions[other];
        for page in (0..other.damaged.len()).filter(|&page| !other.damaged.get(page)) {
            progress.check()?;
            let whole = other.lists.page(page)?;
            for_each_entry(page, &whole, |vertex, neighbor, data| {
                if damaged.get(page_of(neighbor)) {
                    recovered.push(ChangedArc { list: neighbor, neighbor: vertex, data });
                }
            });
        }
        recovered.sort_unstable();
        Ok(recovered)
    }

    /// Number of entries that can be read or were recovered, in the out-lists.
    pub fn num_arcs(&self) -> Result<u64> {
        let (mut num_arcs, lists) = (0, &self.directions[0]);
        for page in (0..lists.damaged.len()).filter(|&page| !lists.damaged.get(page)) {
            num_arcs += lists.lists.page(page)?.entries.targets.len() as u64;
        }
        Ok(num_arcs + lists.recovered.len() as u64)
    }

    /// The pages between which edges are lost, if some are.
    pub fn lost_pages(&self) -> Vec<LostPages> {
        /// With more pairs of ranges, the ranges of targets are left out.
        const MOST_PAIRS: usize = 1000;
        let ranges = |damaged: &Bitmap| -> Vec<Range<usize>> {
            let pages = (0..damaged.len() as u32).filter(|&page| damaged.get(page as usize));
            super::loss::ranges(pages).into_iter().map(|(first, last)| first as usize..last as usize + 1).collect()
        };
        let from = ranges(&self.directions[0].damaged);
        let to = self.transposed(0).map(|other| ranges(&self.directions[other].damaged));
        match to {
            Some(to) if from.len() * to.len() <= MOST_PAIRS => {
                let pairs = from.iter().flat_map(|from| to.iter().map(|to| (from.clone(), Some(to.clone()))));
                pairs.collect()
            }
            _ => from.into_iter().map(|from| (from, None)).collect(),
        }
    }

    /// The vertices with an entry, as bits.
    pub fn touched(&self) -> Result<Bitmap> {
        let mut touched = Bitmap::new(self.vertex_bound);
        self.for_each_page(0, &mut |page, whole| {
            for_each_entry(page, whole, |vertex, neighbor, _| {
                touched.set(vertex as usize);
                touched.set(neighbor as usize);
            });
            Ok(())
        })?;
        Ok(touched)
    }

    /// Writes all lists, without the entries of dead vertices.
    ///
    /// # Errors
    /// The disk failed; cancellation.
    pub fn write(&self, writer: &BaseWriter, dead: &Bitmap, progress: &dyn Progress) -> Result<WrittenLists> {
        let mut written = WrittenLists::default();
        for (place, direction) in self.directions.iter().enumerate() {
            let direction = direction.lists.direction;
            self.for_each_page(place, &mut |page, whole| {
                progress.check()?;
                let kept = without(page, whole, dead, self.vertex_bound);
                if direction == Direction::Out {
                    for_each_entry(page, &kept, |vertex, neighbor, data| {
                        written.num_arcs += 1;
                        written.num_loops += u64::from(vertex == neighbor);
                        if self.options.has_rows() {
                            written.rows.push(data.row);
                        }
                    });
                }
                writer.append_page(direction, page, &kept)
            })?;
        }
        written.rows.sort_unstable();
        // Both entries of an undirected edge have its row.
        written.rows.dedup();
        Ok(written)
    }

    /// Calls `take` with each page of a direction, read or recovered.
    fn for_each_page(&self, place: usize, take: &mut dyn FnMut(usize, &WholePage) -> Result<()>) -> Result<()> {
        let SurveyedLists { lists, damaged, recovered } = &self.directions[place];
        let mut rest = &recovered[..];
        for page in 0..damaged.len() {
            match damaged.get(page) {
                false => take(page, &lists.page(page)?)?,
                true => {
                    let (own, others) = rest.split_at(rest.partition_point(|arc| page_of(arc.list) == page));
                    rest = others;
                    take(page, &page_of_arcs(own, &self.options))?;
                }
            }
        }
        Ok(())
    }
}

/// Calls `take` with vertex, neighbor and data of each entry of a page.
fn for_each_entry(page: usize, whole: &WholePage, mut take: impl FnMut(VertexId, VertexId, ArcData)) {
    let first = (page * PAGE_VERTICES) as VertexId;
    for (local, ends) in whole.offsets.windows(2).enumerate() {
        let list = whole.entries.all().slice(ends[0] as usize..ends[1] as usize);
        for (place, &neighbor) in list.targets.iter().enumerate() {
            take(first + local as VertexId, neighbor, list.data(place));
        }
    }
}

/// A page with these sorted entries.
fn page_of_arcs(arcs: &[ChangedArc], options: &GraphOptions) -> WholePage {
    let mut changes = PageChanges::default();
    changes.extend_from_arcs(arcs, &[], options);
    let mut whole = WholePage { offsets: vec![0], entries: EntryBuffer::default() };
    let mut lists = changes.lists().peekable();
    for local in 0..PAGE_VERTICES {
        if let Some(list) = lists.next_if(|list| usize::from(list.local) == local) {
            whole.entries.extend(list.added);
        }
        whole.offsets.push(whole.entries.targets.len() as u32);
    }
    whole
}

/// A page without the entries of dead vertices.
fn without(page: usize, whole: &WholePage, dead: &Bitmap, vertex_bound: usize) -> WholePage {
    let is_dead = |vertex: VertexId| dead.get(vertex as usize);
    let mut kept = WholePage { offsets: vec![0], entries: EntryBuffer::default() };
    for local in 0..PAGE_VERTICES {
        let vertex = page * PAGE_VERTICES + local;
        let ends = whole.offsets.get(local..local + 2).unwrap_or(&[0, 0]);
        let list = whole.entries.all().slice(ends[0] as usize..ends[1] as usize);
        if vertex < vertex_bound && !is_dead(vertex as VertexId) {
            for place in (0..list.targets.len()).filter(|&place| !is_dead(list.targets[place])) {
                kept.entries.extend(list.slice(place..place + 1));
            }
        }
        kept.offsets.push(kept.entries.targets.len() as u32);
    }
    kept
}
