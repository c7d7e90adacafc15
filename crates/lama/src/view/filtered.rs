//! A part of the edges and vertices of a view, laid out in memory as a base is.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::VertexId;
use base::bitmap::Bitmap;
use base::parallel::Pool;
use base::storage::{MemoryStorage, Storage};
use graph::{Direction, Graph, Weight, WeightType, WeightedEdges};

use super::{View, ViewParts, sides};
use crate::base_run::{BaseRun, SideFiles};
use crate::file::{FileKind, FramedFile};
use crate::key::{Key, KeyRef};
use crate::lists::ListRules;
use crate::options::{DatabaseId, GraphOptions};
use crate::overlay::{AddedPiece, ListChanges, Overlay};
use crate::property::{PropertyOverlay, RowOverlay};
use crate::run::{FinishedRun, RunWriter};
use crate::side::{Fault, Show};
use crate::table::PAGE_VERTICES;
use crate::{Error, Result};

/// The lists of a filtered view are files in memory, which nothing else sees.
const DIRECTORY: &str = "(filtered)";
const ID: DatabaseId = DatabaseId([0; 16]);
/// The entries themselves, turned for the in-lists, and the files of both sides.
const LAYOUT_FACTOR: u64 = 3;

/// Entries of out-lists, side by side, ascending by source and target.
#[derive(Debug, Default)]
pub struct Entries {
    /// The list of each.
    pub sources: Vec<VertexId>,
    /// The vertex that it leads to.
    pub targets: Vec<VertexId>,
    /// The bits of its weight; empty where edges have none.
    pub weights: Vec<u64>,
    /// The row of its properties; empty where edges have none.
    pub rows: Vec<u64>,
}

impl Entries {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    fn num_bytes(&self) -> u64 {
        (4 * (self.sources.len() + self.targets.len()) + 8 * (self.weights.len() + self.rows.len())) as u64
    }

    /// Leaves those that `keeps` says.
    fn retain(&mut self, keeps: impl Fn(usize) -> bool) {
        fn leave<T>(values: &mut Vec<T>, keeps: impl Fn(usize) -> bool) {
            let mut place = 0..;
            values.retain(|_| place.next().is_some_and(&keeps));
        }
        leave(&mut self.sources, &keeps);
        leave(&mut self.targets, &keeps);
        leave(&mut self.weights, &keeps);
        leave(&mut self.rows, &keeps);
    }

    /// Sorts the entries from `start` on, which are of one list, by target and row.
    fn sort_from(&mut self, start: usize) {
        if self.targets[start..].is_sorted_by(|a, b| a < b) {
            return;
        }
        let row = |place: usize| self.rows.get(place).copied().unwrap_or(0);
        let mut order: Vec<usize> = (start..self.len()).collect();
        order.sort_by_key(|&place| (self.targets[place], row(place)));
        fn pick<T: Copy>(values: &mut [T], start: usize, order: &[usize]) {
            if !values.is_empty() {
                let picked: Vec<T> = order.iter().map(|&place| values[place]).collect();
                values[start..].copy_from_slice(&picked);
            }
        }
        pick(&mut self.targets, start, &order);
        pick(&mut self.weights, start, &order);
        pick(&mut self.rows, start, &order);
    }

    /// The same edges as entries of the lists of their targets.
    fn turned(parts: &[Self], vertex_bound: usize) -> Self {
        let mut next = vec![0; vertex_bound + 1];
        parts.iter().flat_map(|part| &part.targets).for_each(|&target| next[target as usize + 1] += 1);
        (0..vertex_bound).for_each(|vertex| next[vertex + 1] += next[vertex]);
        let len = next[vertex_bound];
        let column = |is_there: bool| vec![0_u64; if is_there { len } else { 0 }];
        let is_there = |column: fn(&Self) -> &Vec<u64>| parts.iter().any(|part| !column(part).is_empty());
        let mut turned = Self {
            sources: vec![0; len],
            targets: vec![0; len],
            weights: column(is_there(|part| &part.weights)),
            rows: column(is_there(|part| &part.rows)),
        };
        for part in parts {
            for (place, (&source, &target)) in part.sources.iter().zip(&part.targets).enumerate() {
                let to = &mut next[target as usize];
                (turned.sources[*to], turned.targets[*to]) = (target, source);
                part.weights.get(place).into_iter().for_each(|&bits| turned.weights[*to] = bits);
                part.rows.get(place).into_iter().for_each(|&row| turned.rows[*to] = row);
                *to += 1;
            }
        }
        turned
    }
}

/// Says of each of some entries whether it stays.
pub type KeepEntries<'a, E> = dyn Fn(&Entries) -> Result<Vec<bool>, E> + Sync + 'a;

impl View {
    fn entries_into(&self, vertex: VertexId, to: &mut Entries) {
        let start = to.len();
        self.fix_list_order(vertex);
        let Entries { targets, weights, rows, .. } = to;
        if self.options().has_rows() {
            let _ = self.for_each_out_row(vertex, |part, part_rows| {
                targets.extend_from_slice(part);
                rows.extend_from_slice(part_rows);
                ControlFlow::Continue(())
            });
        } else {
            let _ = self.for_each_out_fragment(vertex, |part| {
                targets.extend_from_slice(part);
                ControlFlow::Continue(())
            });
        }
        match self.options().weight_type {
            None => {}
            Some(WeightType::U32) => self.weights_into::<u32>(vertex, weights),
            Some(WeightType::I64) => self.weights_into::<i64>(vertex, weights),
            Some(WeightType::F32) => self.weights_into::<f32>(vertex, weights),
            Some(WeightType::F64) => self.weights_into::<f64>(vertex, weights),
        }
        to.sources.resize(to.targets.len(), vertex);
        to.sort_from(start);
    }

    fn weights_into<W: Weight>(&self, vertex: VertexId, to: &mut Vec<u64>) {
        let _ = self.for_each_weighted_out_fragment(vertex, |_, weights: &[W]| {
            to.extend(weights.iter().map(|weight| weight.bits()));
            ControlFlow::Continue(())
        });
    }

    /// The same graph without the vertices of `hidden`, which count as removed, and without the edges that `keeps` does
    /// not keep. Ids stay as they are. An undirected edge is asked for from both ends.
    ///
    /// Cost: reads all lists once. What is left is laid out in memory, in about three times its bytes while it is made;
    /// that may be `memory` bytes.
    ///
    /// # Errors
    /// Those of `keeps`; [`Error::Memory`]; damage met on the way.
    pub fn filtered<E: From<Error> + Send>(
        &self,
        hidden: &Bitmap,
        keeps: &KeepEntries<'_, E>,
        pool: &Pool,
        memory: Option<u64>,
    ) -> Result<Self, E> {
        let vertex_bound = self.vertex_bound;
        let held = AtomicU64::new(0);
        let mut dead = Bitmap::new(vertex_bound);
        let is_dead = |vertex: usize| hidden.get(vertex) || !self.is_live(vertex as VertexId);
        (0..vertex_bound).filter(|&vertex| is_dead(vertex)).for_each(|vertex| dead.set(vertex));
        let parts = pool.map_chunks(0..vertex_bound, PAGE_VERTICES, |_, vertices| -> Result<Entries, E> {
            let mut entries = Entries::default();
            for vertex in vertices.filter(|&vertex| !dead.get(vertex)) {
                self.entries_into(vertex as VertexId, &mut entries);
            }
            let to_live: Vec<bool> = entries.targets.iter().map(|&target| !dead.get(target as usize)).collect();
            entries.retain(|place| to_live[place]);
            if !entries.is_empty() {
                let kept = keeps(&entries)?;
                entries.retain(|place| kept[place]);
            }
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
        Ok(self.laid_out(&parts, dead)?)
    }

    /// A view of these entries, which come a page of vertices after the other.
    fn laid_out(&self, parts: &[Entries], dead: Bitmap) -> Result<Self> {
        let (options, vertex_bound) = (self.options(), self.vertex_bound);
        let (storage, directory) = (MemoryStorage::default(), Path::new(DIRECTORY));
        storage.create_dir(directory)?;
        let writer = RunWriter::create(&storage, directory, options, ID, vertex_bound, 1)?;
        for (page, part) in parts.iter().enumerate() {
            let start = page * PAGE_VERTICES;
            append(&writer, graph::Side::Out, part, start..vertex_bound.min(start + PAGE_VERTICES), 0..part.len())?;
        }
        if options.stores_in_lists() {
            let turned = Entries::turned(parts, vertex_bound);
            let mut first = 0;
            for start in (0..vertex_bound).step_by(PAGE_VERTICES) {
                let vertices = start..vertex_bound.min(start + PAGE_VERTICES);
                let len = turned.sources[first..].partition_point(|&source| (source as usize) < vertices.end);
                append(&writer, graph::Side::In, &turned, vertices, first..first + len)?;
                first += len;
            }
        }
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

/// Appends the entries of a range, those of the lists of these vertices.
fn append(
    writer: &RunWriter,
    side: graph::Side,
    entries: &Entries,
    vertices: Range<usize>,
    range: Range<usize>,
) -> Result<()> {
    let mut degrees = vec![0; vertices.len()];
    entries.sources[range.clone()].iter().for_each(|&source| degrees[source as usize - vertices.start] += 1);
    let (targets, rows) = (&entries.targets[range.clone()], entries.rows.get(range.clone()).unwrap_or_default());
    let bits = entries.weights.get(range).unwrap_or_default();
    match writer.weight_type() {
        None => writer.append::<u32>(side, &degrees, targets, &[], rows),
        Some(WeightType::U32) => writer.append(side, &degrees, targets, &typed::<u32>(bits), rows),
        Some(WeightType::I64) => writer.append(side, &degrees, targets, &typed::<i64>(bits), rows),
        Some(WeightType::F32) => writer.append(side, &degrees, targets, &typed::<f32>(bits), rows),
        Some(WeightType::F64) => writer.append(side, &degrees, targets, &typed::<f64>(bits), rows),
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
