//! A part of the edges and vertices of a view, laid out in memory as a base is.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::VertexId;
use base::bitmap::Bitmap;
use base::parallel::Pool;
use base::progress::Progress;
use base::storage::{MemoryStorage, Storage};
use graph::{Direction, Graph, Weight, WeightType};

use super::entries::Entries;
use super::{View, ViewParts, sides};
use crate::base_run::{BaseRun, SideFiles};
use crate::file::{FileKind, FramedFile};
use crate::key::{Key, KeyRef};
use crate::lists::ListRules;
use crate::options::{DatabaseId, GraphOptions};
use crate::overlay::{AddedPiece, ListChanges, Overlay};
use crate::property::{PropertyOverlay, RowOverlay, RowSet};
use crate::run::{FinishedRun, RunWriter};
use crate::side::{Fault, Show};
use crate::table::PAGE_VERTICES;
use crate::{Error, Result};

/// The lists of a filtered view are files in memory, which nothing else sees.
const DIRECTORY: &str = "(filtered)";
const ID: DatabaseId = DatabaseId([0; 16]);
/// The entries themselves, turned for the in-lists, and the files of both sides.
const LAYOUT_FACTOR: u64 = 3;

/// Says of each of some entries whether it stays.
pub type KeepEntries<'a, E> = dyn Fn(&Entries) -> Result<Vec<bool>, E> + Sync + 'a;

/// Which entries stay.
pub struct EntryFilter<'a, E> {
    /// The rows of the entries that stay, as far as rows are in files.
    pub rows: Option<&'a RowSet<'a>>,
    /// Asked about the other entries; without it, they stay.
    pub keeps: Option<&'a KeepEntries<'a, E>>,
}

impl View {
    /// The entries of the lists of these vertices that stay; those of `dead` vertices, and entries that lead there, do not.
    pub(super) fn kept_entries<E: From<Error>>(
        &self,
        side: graph::Side,
        vertices: impl Iterator<Item = VertexId>,
        dead: Option<&Bitmap>,
        filter: &EntryFilter<'_, E>,
    ) -> Result<Entries, E> {
        let mut entries = Entries::default();
        let mut reader = filter.rows.map(RowSet::reader);
        let is_dead = |vertex: VertexId| dead.is_some_and(|dead| dead.get(vertex as usize));
        let is_plain = side == graph::Side::Out && self.options().weight_type.is_none();
        for vertex in vertices.filter(|&vertex| !is_dead(vertex)) {
            if let Some(reader) = reader.as_mut().filter(|_| is_plain) {
                self.push_passing(vertex, &mut entries, reader, |target| !is_dead(target))?;
                continue;
            }
            let keeps = |target: VertexId, row: u64| -> Result<bool, E> {
                if is_dead(target) {
                    return Ok(false);
                }
                Ok(reader.as_mut().map_or(Ok(true), |reader| reader.may_pass(row))?)
            };
            self.push_entries(side, vertex, &mut entries, keeps)?;
        }
        let Some(keeps) = filter.keeps.filter(|_| !entries.is_empty()) else { return Ok(entries) };
        let Some(rows) = filter.rows else {
            let kept = keeps(&entries)?;
            entries.retain(|place| kept[place]);
            return Ok(entries);
        };
        let is_open: Vec<bool> = entries.rows.iter().map(|&row| !rows.has_tested(row)).collect();
        if is_open.contains(&true) {
            let mut open = entries.clone();
            open.retain(|place| is_open[place]);
            let mut kept = keeps(&open)?.into_iter();
            let stays: Vec<bool> = is_open.iter().map(|&is_open| !is_open || kept.next() == Some(true)).collect();
            entries.retain(|place| stays[place]);
        }
        Ok(entries)
    }

    /// The same graph without the vertices of `hidden`, which count as removed, and without the edges that `filter` does
    /// not keep. Ids stay as they are. An undirected edge is asked for from both ends.
    ///
    /// Cost: reads all lists once. What is left is laid out in memory, in about three times its bytes while it is made;
    /// that may be `memory` bytes.
    ///
    /// # Errors
    /// Those of `filter`; [`Error::Memory`]; cancellation; damage met on the way.
    pub fn filtered<E: From<Error> + Send>(
        &self,
        hidden: &Bitmap,
        filter: &EntryFilter<'_, E>,
        pool: &Pool,
        memory: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<Self, E> {
        let vertex_bound = self.vertex_bound;
        let held = AtomicU64::new(filter.rows.map_or(0, RowSet::num_bytes));
        let mut dead = Bitmap::new(vertex_bound);
        let is_dead = |vertex: usize| hidden.get(vertex) || !self.is_live(vertex as VertexId);
        (0..vertex_bound).filter(|&vertex| is_dead(vertex)).for_each(|vertex| dead.set(vertex));
        let some_dead = (dead.count_ones() > 0).then_some(&dead);
        let parts = pool.map_chunks(0..vertex_bound, PAGE_VERTICES, |_, vertices| -> Result<Entries, E> {
            progress.check().map_err(Error::from)?;
            let vertices = vertices.map(|vertex| vertex as VertexId);
            let entries = self.kept_entries(graph::Side::Out, vertices, some_dead, filter)?;
            let num_bytes = LAYOUT_FACTOR * entries.num_bytes();
            let needed = held.fetch_add(num_bytes, Ordering::Relaxed) + num_bytes;
            match memory.filter(|&budget| needed > budget) {
                Some(budget) => {
                    Err(Error::Memory { what: "a part of the graph, in memory,".into(), needed, budget }.into())
                }
                None => Ok(entries),
            }
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>, E>>()?;
        self.check().map_err(Error::from)?;
        Ok(self.laid_out(&parts, dead, pool)?)
    }

    /// A view of these entries, which come a page of vertices after the other.
    fn laid_out(&self, parts: &[Entries], dead: Bitmap, pool: &Pool) -> Result<Self> {
        let (options, vertex_bound) = (self.options(), self.vertex_bound);
        let (storage, directory) = (MemoryStorage::default(), Path::new(DIRECTORY));
        storage.create_dir(directory)?;
        let writer = RunWriter::create(&storage, directory, options, ID, vertex_bound, 1)?;
        let written_sides = [Some(graph::Side::Out), options.stores_in_lists().then_some(graph::Side::In)];
        let written_sides = written_sides.into_iter().flatten().collect();
        let written = pool.share(written_sides, |_, side| match side {
            graph::Side::Out => append_out_lists(&writer, parts, vertex_bound),
            graph::Side::In => append_in_lists(&writer, parts, vertex_bound),
        });
        written.into_iter().collect::<Result<()>>()?;
        let num_loops = || {
            let is_loop = |(source, target): (&VertexId, &VertexId)| source == target;
            let loops = parts.iter().map(|part| part.sources.iter().zip(&part.targets).filter(|ends| is_loop(*ends)));
            loops.map(Iterator::count).sum::<usize>() as u64
        };
        let base = open(&storage, &writer.finish()?, options, vertex_bound)?;
        let num_arcs = base.num_arcs();
        let num_edges = match options.direction {
            Direction::Directed => num_arcs,
            Direction::Undirected => (num_arcs + num_loops()) / 2,
        };
        let num_vertices = vertex_bound - dead.count_ones();
        let parts = ViewParts {
            version: None,
            base,
            steps: Vec::new(),
            options: *options,
            vertex_bound,
            num_vertices: num_vertices as u64,
            num_edges,
            num_arcs,
            dictionary: Arc::clone(&self.shared.dictionary),
            properties: Arc::clone(&self.shared.properties),
            edge_properties: Arc::clone(&self.shared.edge_properties),
            path: PathBuf::from(DIRECTORY),
        };
        let fault = Fault::default();
        let (out_side, in_side) = sides(&parts, &parts.steps, Show::Everything, &fault);
        let overlay = self.overlay.clone().map(|whole| {
            let dead = dead.clone();
            Arc::new(FilteredOverlay { whole, dead, num_vertices, num_edges, num_arcs }) as Arc<dyn Overlay>
        });
        Ok(Self { overlay, ..Self::new(parts, out_side, in_side, Some(dead), fault) })
    }
}

/// Appends the out-lists: each part has those of a page of vertices.
fn append_out_lists(writer: &RunWriter, parts: &[Entries], vertex_bound: usize) -> Result<()> {
    for (page, part) in parts.iter().enumerate() {
        let start = page * PAGE_VERTICES;
        let mut degrees = vec![0; vertex_bound.min(start + PAGE_VERTICES) - start];
        part.sources.iter().for_each(|&source| degrees[source as usize - start] += 1);
        append(writer, graph::Side::Out, &degrees, part, 0..part.len())?;
    }
    Ok(())
}

fn append_in_lists(writer: &RunWriter, parts: &[Entries], vertex_bound: usize) -> Result<()> {
    let (ends, turned) = Entries::turned(parts, vertex_bound);
    let mut start = 0;
    for ends in ends.chunks(PAGE_VERTICES) {
        let (first, mut last) = (start, start);
        let degrees: Vec<u32> = ends.iter().map(|&end| (end - std::mem::replace(&mut last, end)) as u32).collect();
        start = last;
        append(writer, graph::Side::In, &degrees, &turned, first..last)?;
    }
    Ok(())
}

/// Appends the entries of a range, as lists of these lengths.
fn append(
    writer: &RunWriter,
    side: graph::Side,
    degrees: &[u32],
    entries: &Entries,
    range: Range<usize>,
) -> Result<()> {
    let (targets, rows) = (&entries.targets[range.clone()], entries.rows.get(range.clone()).unwrap_or_default());
    let bits = entries.weights.get(range).unwrap_or_default();
    match writer.weight_type() {
        None => writer.append::<u32>(side, degrees, targets, &[], rows),
        Some(WeightType::U32) => writer.append(side, degrees, targets, &typed::<u32>(bits), rows),
        Some(WeightType::I64) => writer.append(side, degrees, targets, &typed::<i64>(bits), rows),
        Some(WeightType::F32) => writer.append(side, degrees, targets, &typed::<f32>(bits), rows),
        Some(WeightType::F64) => writer.append(side, degrees, targets, &typed::<f64>(bits), rows),
    }
}

fn typed<W: Weight>(bits: &[u64]) -> Vec<W> {
    bits.iter().map(|&bits| W::of_bits(bits)).collect()
}

/// Opens the files of a run.
fn open(storage: &dyn Storage, run: &FinishedRun, options: &GraphOptions, vertex_bound: usize) -> Result<Arc<BaseRun>> {
    let file = |kind: FileKind| -> Result<Arc<FramedFile>> {
        let file = run.files.iter().find(|file| file.kind == kind);
        let file = file.ok_or_else(|| Error::Input("a file of a filtered view is missing".into()))?;
        Ok(Arc::new(FramedFile::open(storage, &file.path, kind, ID)?))
    };
    let side = |side: graph::Side| -> Result<SideFiles> {
        Ok(SideFiles {
            table: file(FileKind::table(side))?,
            targets: file(FileKind::targets(side))?,
            weights: match options.weight_type {
                Some(weight_type) => Some((file(FileKind::weights(side))?, weight_type)),
                None => None,
            },
            rows: options.has_rows().then(|| file(FileKind::rows(side))).transpose()?,
        })
    };
    let in_files = options.stores_in_lists().then(|| side(graph::Side::In)).transpose()?;
    let rules = ListRules { vertex_bound, multigraph: options.multigraph };
    BaseRun::open(&side(graph::Side::Out)?, in_files.as_ref(), rules, 0)
}

/// What lies over a snapshot beside its lists, which a filtered view has of its own.
#[derive(Debug)]
struct FilteredOverlay {
    whole: Arc<dyn Overlay>,
    dead: Bitmap,
    num_vertices: usize,
    num_edges: u64,
    num_arcs: u64,
}

impl Overlay for FilteredOverlay {
    fn vertex_bound(&self) -> usize {
        self.whole.vertex_bound()
    }

    fn num_vertices(&self) -> usize {
        self.num_vertices
    }

    fn num_edges(&self) -> u64 {
        self.num_edges
    }

    fn num_arcs(&self) -> u64 {
        self.num_arcs
    }

    fn is_live(&self, vertex: VertexId) -> Option<bool> {
        Some(!self.dead.get(vertex as usize))
    }

    fn vertex(&self, key: &Key) -> Option<VertexId> {
        self.whole.vertex(key)
    }

    fn key(&self, vertex: VertexId) -> Option<KeyRef<'_>> {
        self.whole.key(vertex)
    }

    fn properties(&self) -> Option<&dyn PropertyOverlay> {
        self.whole.properties()
    }

    fn rows(&self) -> Option<&dyn RowOverlay> {
        self.whole.rows()
    }

    fn num_changes(&self, _: graph::Side, _: VertexId) -> ListChanges {
        ListChanges::default()
    }

    fn removed(&self, _: graph::Side, _: VertexId) -> Cow<'_, [VertexId]> {
        Cow::Borrowed(&[])
    }

    fn for_each_added(&self, _: graph::Side, _: VertexId, _: &mut AddedPiece<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
