//! Writes a base: the lists of a whole graph, streamed into files in parallel.

use std::path::Path;

use anden_base::storage::Storage;
use anden_base::{MAX_VERTICES, VertexId};
use anden_graph::{Direction, Weight, WeightType};
use parking_lot::Mutex;

use crate::changes::EntryBuffer;
use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::lists::ListRules;
use crate::names;
use crate::options::{DatabaseId, GraphOptions};
use crate::page::WholePage;
use crate::table::{PAGE_VERTICES, TableWriter};
use crate::{Error, Result};

impl FileKind {
    pub(crate) fn targets(direction: Direction) -> Self {
        match direction {
            Direction::Out => Self::OutTargets,
            Direction::In => Self::InTargets,
        }
    }

    pub(crate) fn weights(direction: Direction) -> Self {
        match direction {
            Direction::Out => Self::OutWeights,
            Direction::In => Self::InWeights,
        }
    }

    pub(crate) fn rows(direction: Direction) -> Self {
        match direction {
            Direction::Out => Self::OutRows,
            Direction::In => Self::InRows,
        }
    }

    pub(crate) fn table(direction: Direction) -> Self {
        match direction {
            Direction::Out => Self::OutTable,
            Direction::In => Self::InTable,
        }
    }
}

/// The part of a file's name that tells which column of a base it is.
pub(crate) fn column_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::OutTargets => "out",
        FileKind::InTargets => "in",
        FileKind::OutWeights => "out-weights",
        FileKind::InWeights => "in-weights",
        FileKind::OutRows => "out-rows",
        FileKind::InRows => "in-rows",
        FileKind::OutTable => "out-table",
        FileKind::InTable => "in-table",
        FileKind::Dictionary => "keys",
        FileKind::Delta => "deltas",
        FileKind::Column | FileKind::Rows | FileKind::Index | FileKind::Preparation => "column",
    }
}

/// The column files of a base for this kind of graph.
pub(crate) fn columns(options: &GraphOptions) -> Vec<FileKind> {
    let directions = [Direction::Out, Direction::In].into_iter().take(if options.stores_in_lists() { 2 } else { 1 });
    let columns = |direction: Direction| {
        let weights = options.weight_type.map(|_| FileKind::weights(direction));
        let rows = options.has_rows().then(|| FileKind::rows(direction));
        [FileKind::targets(direction), FileKind::table(direction)].into_iter().chain(weights).chain(rows)
    };
    directions.flat_map(columns).collect()
}

/// Writes a base under temporary names.
///
/// The two directions proceed independently, perhaps on two threads. Memory: about 3 MB a direction, and a thousandth
/// of the written bytes for their checksums.
#[derive(Debug)]
pub struct BaseWriter {
    id: DatabaseId,
    rules: ListRules,
    weight_type: Option<WeightType>,
    has_rows: bool,
    out_adjacency: Mutex<AdjacencyWriter>,
    in_adjacency: Option<Mutex<AdjacencyWriter>>,
}

/// A base that is written and synced, but not part of the database yet.
#[derive(Debug)]
pub struct FinishedBase {
    pub(crate) files: Vec<WrittenFile>,
    pub(crate) vertex_bound: usize,
    pub(crate) num_arcs: u64,
}

impl FinishedBase {
    /// Number of entries of the out-lists.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }
}

#[derive(Debug)]
struct AdjacencyWriter {
    direction: Direction,
    table: TableWriter,
    targets: FileWriter,
    weights: Option<FileWriter>,
    rows: Option<FileWriter>,
    num_arcs: u64,
    /// Set during an append: after an error, the columns may not fit together.
    is_broken: bool,
}

impl BaseWriter {
    pub(crate) fn create(
        storage: &dyn Storage,
        directory: &Path,
        options: &GraphOptions,
        id: DatabaseId,
        vertex_bound: usize,
        number: u32,
    ) -> Result<Self> {
        if vertex_bound > MAX_VERTICES {
            return Err(Error::Input(format!("{vertex_bound} vertices, at most {MAX_VERTICES} are possible")));
        }
        let writer = |direction: Direction| -> Result<Mutex<AdjacencyWriter>> {
            let file = |kind| {
                let name = names::temporary(&names::base(number, column_name(kind)));
                FileWriter::create(storage, &directory.join(name))
            };
            let mut targets = file(FileKind::targets(direction))?;
            targets.begin_section(SectionKind::Targets)?;
            let mut weights = options.weight_type.map(|_| file(FileKind::weights(direction))).transpose()?;
            if let Some(weights) = &mut weights {
                weights.begin_section(SectionKind::Weights)?;
            }
            let mut rows = options.has_rows().then(|| file(FileKind::rows(direction))).transpose()?;
            if let Some(rows) = &mut rows {
                rows.begin_section(SectionKind::RowNumbers)?;
            }
            let table = TableWriter::new(file(FileKind::table(direction))?, vertex_bound)?;
            Ok(Mutex::new(AdjacencyWriter { direction, table, targets, weights, rows, num_arcs: 0, is_broken: false }))
        };
        let out_adjacency = writer(Direction::Out)?;
        let in_adjacency = options.stores_in_lists().then(|| writer(Direction::In)).transpose()?;
        let rules = ListRules { vertex_bound, multigraph: options.multigraph };
        let (weight_type, has_rows) = (options.weight_type, options.has_rows());
        Ok(Self { id, rules, weight_type, has_rows, out_adjacency, in_adjacency })
    }

    pub(crate) fn weight_type(&self) -> Option<WeightType> {
        self.weight_type
    }

    /// Appends the lists of the next `degrees.len()` vertices of one direction. `targets` holds the lists one after the
    /// other. `weights` and `rows` are parallel to it, or empty if the graph has none.
    ///
    /// Cost: one checksum and one check over the bytes; slices of at least a megabyte are written without a copy.
    ///
    /// # Errors
    /// The slices do not fit each other or the graph's options. A target is not below the vertex bound. A list does not
    /// ascend (strictly, unless the graph is a multigraph). The graph does not store this direction, a page has too
    /// many edges, or the disk failed. After an error the base cannot be finished.
    pub fn append<W: Weight>(
        &self,
        direction: Direction,
        degrees: &[u32],
        targets: &[VertexId],
        weights: &[W],
        rows: &[u64],
    ) -> Result<()> {
        self.check_lists(degrees, targets)?;
        self.append_verified(direction, degrees, targets, weights, rows)
    }

    /// Number of vertices of a page.
    pub(crate) fn num_vertices(&self, page: usize) -> usize {
        self.rules.vertex_bound.saturating_sub(page * PAGE_VERTICES).min(PAGE_VERTICES)
    }

    /// Appends the lists of the next page, which were verified before.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) fn append_page(&self, direction: Direction, page: usize, whole: &WholePage) -> Result<()> {
        let ends = whole.offsets.get(..=self.num_vertices(page)).unwrap_or_default();
        let degrees: Vec<u32> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let EntryBuffer { targets, weights, rows } = &whole.entries;
        match self.weight_type {
            None => self.append_verified::<u32>(direction, &degrees, targets, &[], rows),
            Some(WeightType::U32) => self.append_verified(direction, &degrees, targets, &typed::<u32>(weights), rows),
            Some(WeightType::I64) => self.append_verified(direction, &degrees, targets, &typed::<i64>(weights), rows),
            Some(WeightType::F32) => self.append_verified(direction, &degrees, targets, &typed::<f32>(weights), rows),
            Some(WeightType::F64) => self.append_verified(direction, &degrees, targets, &typed::<f64>(weights), rows),
        }
    }

    /// As [`append`](Self::append), for lists that were verified before.
    pub(crate) fn append_verified<W: Weight>(
        &self,
        direction: Direction,
        degrees: &[u32],
        targets: &[VertexId],
        weights: &[W],
        rows: &[u64],
    ) -> Result<()> {
        // Not checked again in a release: a merge reads verified pages only.
        debug_assert!(self.check_lists(degrees, targets).is_ok(), "the lists were verified");
        let writer = match direction {
            Direction::Out => &self.out_adjacency,
            Direction::In => {
                self.in_adjacency.as_ref().ok_or_else(|| Error::Input("the graph keeps no in-lists".into()))?
            }
        };
        let num_weights = if self.weight_type.is_some() { targets.len() } else { 0 };
        // Bytes of another type would be read as wrong weights.
        if weights.len() != num_weights || self.weight_type.is_some_and(|expected| expected != W::TYPE) {
            let expected = self.weight_type.map_or("no", WeightType::name);
            let (found, name) = (weights.len(), W::TYPE.name());
            return Err(Error::Input(format!("{num_weights} {expected} weights expected, {found} {name} found")));
        }
        let num_rows = if self.has_rows { targets.len() } else { 0 };
        if rows.len() != num_rows {
            return Err(Error::Input(format!("{num_rows} rows expected, {} found", rows.len())));
        }
        writer.lock().append(degrees, targets, bytemuck::cast_slice(weights), rows)
    }

    fn check_lists(&self, degrees: &[u32], targets: &[VertexId]) -> Result<()> {
        let num_edges: u64 = degrees.iter().map(|&degree| u64::from(degree)).sum();
        if num_edges != targets.len() as u64 {
            return Err(Error::Input(format!("degrees add up to {num_edges}, there are {} targets", targets.len())));
        }
        let ends = degrees.iter().scan(0, |end, &degree| {
            *end += degree as usize;
            Some(*end)
        });
        self.rules.check(targets, ends).map_err(Error::Input)
    }

    /// Ends both directions, with empty lists for missing vertices, and syncs their files.
    ///
    /// # Errors
    /// An append failed before; the directions have different numbers of arcs; the disk failed.
    pub fn finish(self) -> Result<FinishedBase> {
        self.finish_with_dead(&[])
    }

    /// As [`finish`](Self::finish), with the ids of dead vertices, ascending.
    ///
    /// # Errors
    /// As [`finish`](Self::finish); the ids do not ascend below the vertex bound.
    pub(crate) fn finish_with_dead(self, dead: &[VertexId]) -> Result<FinishedBase> {
        let ascends = dead.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascends || dead.last().is_some_and(|&last| last as usize >= self.rules.vertex_bound) {
            return Err(Error::Input(format!("dead vertices that ascend below {} expected", self.rules.vertex_bound)));
        }
        let out_adjacency = self.out_adjacency.into_inner();
        let in_adjacency = self.in_adjacency.map(Mutex::into_inner);
        let num_arcs = out_adjacency.num_arcs;
        // Each edge is in both directions, so the numbers of arcs must agree.
        if let Some(in_adjacency) = &in_adjacency
            && in_adjacency.num_arcs != num_arcs
        {
            let what = format!("{num_arcs} edges in out-lists, {} in in-lists", in_adjacency.num_arcs);
            return Err(Error::Input(what));
        }
        let mut files = Vec::new();
        for writer in std::iter::once(out_adjacency).chain(in_adjacency) {
            // Dead vertices are stored once, with the table of the out-lists.
            let dead = if writer.direction == Direction::Out { dead } else { &[] };
            writer.finish(self.id, dead, &mut files)?;
        }
        Ok(FinishedBase { files, vertex_bound: self.rules.vertex_bound, num_arcs })
    }
}

fn typed<W: Weight>(bits: &[u64]) -> Vec<W> {
    bits.iter().map(|&bits| W::of_bits(bits)).collect()
}

impl AdjacencyWriter {
    fn append(&mut self, degrees: &[u32], targets: &[VertexId], weights: &[u8], rows: &[u64]) -> Result<()> {
        if self.is_broken {
            return Err(Error::Input("an append failed before".into()));
        }
        // Stays set after an error, which may leave columns of unequal length.
        self.is_broken = true;
        // The table first, because it refuses a page with too many edges.
        self.table.append(degrees)?;
        self.targets.append(bytemuck::cast_slice(targets))?;
        if let Some(file) = &mut self.weights {
            file.append(weights)?;
        }
        if let Some(file) = &mut self.rows {
            file.append(bytemuck::cast_slice(rows))?;
        }
        self.num_arcs += targets.len() as u64;
        self.is_broken = false;
        Ok(())
    }

    fn finish(self, id: DatabaseId, dead: &[VertexId], files: &mut Vec<WrittenFile>) -> Result<()> {
        if self.is_broken {
            return Err(Error::Input("an append failed before".into()));
        }
        files.push(self.targets.finish(FileKind::targets(self.direction), id)?);
        if let Some(weights) = self.weights {
            files.push(weights.finish(FileKind::weights(self.direction), id)?);
        }
        if let Some(rows) = self.rows {
            files.push(rows.finish(FileKind::rows(self.direction), id)?);
        }
        files.push(self.table.finish(FileKind::table(self.direction), id, dead)?);
        Ok(())
    }
}
