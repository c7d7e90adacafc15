//! Writes a run: the lists of a whole graph, streamed side by side.

use std::path::Path;
use std::sync::Mutex;

use base::storage::Storage;
use base::{MAX_VERTICES, VertexId};
use graph::{Side, Weight, WeightType};

use crate::file::{FileKind, FileWriter, SectionKind, WrittenFile};
use crate::lists::ListRules;
use crate::names;
use crate::options::{DatabaseId, GraphOptions};
use crate::table::TableWriter;
use crate::{Error, Result};

impl FileKind {
    pub(crate) fn targets(side: Side) -> Self {
        match side {
            Side::Out => Self::OutTargets,
            Side::In => Self::InTargets,
        }
    }

    pub(crate) fn weights(side: Side) -> Self {
        match side {
            Side::Out => Self::OutWeights,
            Side::In => Self::InWeights,
        }
    }

    pub(crate) fn rows(side: Side) -> Self {
        match side {
            Side::Out => Self::OutRows,
            Side::In => Self::InRows,
        }
    }

    pub(crate) fn table(side: Side) -> Self {
        match side {
            Side::Out => Self::OutTable,
            Side::In => Self::InTable,
        }
    }
}

/// The part of a file's name that says which column of a run it is.
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
        FileKind::Level => "levels",
        FileKind::Column | FileKind::Rows | FileKind::Index => "column",
    }
}

/// The columns of a run of such a graph.
pub(crate) fn columns(options: &GraphOptions) -> Vec<FileKind> {
    let sides = [Side::Out, Side::In].into_iter().take(if options.stores_in_lists() { 2 } else { 1 });
    let columns = |side: Side| {
        let weights = options.weight_type.map(|_| FileKind::weights(side));
        let rows = options.has_rows().then(|| FileKind::rows(side));
        [FileKind::targets(side), FileKind::table(side)].into_iter().chain(weights).chain(rows)
    };
    sides.flat_map(columns).collect()
}

/// Writes a run under temporary names.
///
/// The two sides go at their own pace, perhaps from two threads. Memory: about 3 MB a side, and a
/// thousandth of the bytes written, for their checksums.
#[derive(Debug)]
pub struct RunWriter {
    id: DatabaseId,
    rules: ListRules,
    weight_type: Option<WeightType>,
    has_rows: bool,
    out_side: Mutex<SideWriter>,
    in_side: Option<Mutex<SideWriter>>,
}

/// A run that is written and synced, but not part of the database yet.
#[derive(Debug)]
pub struct FinishedRun {
    pub(crate) files: Vec<WrittenFile>,
    pub(crate) vertex_bound: usize,
    pub(crate) num_arcs: u64,
}

impl FinishedRun {
    /// The number of entries of the out-lists.
    pub fn num_arcs(&self) -> u64 {
        self.num_arcs
    }
}

#[derive(Debug)]
struct SideWriter {
    side: Side,
    table: TableWriter,
    targets: FileWriter,
    weights: Option<FileWriter>,
    rows: Option<FileWriter>,
    num_arcs: u64,
    /// An append ended in the middle: the columns may not fit together.
    is_broken: bool,
}

impl RunWriter {
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
        let side = |side: Side| -> Result<Mutex<SideWriter>> {
            let file = |kind| {
                let name = names::temporary(&names::run(number, column_name(kind)));
                FileWriter::create(storage, &directory.join(name))
            };
            let mut targets = file(FileKind::targets(side))?;
            targets.begin_section(SectionKind::Targets)?;
            let mut weights = options.weight_type.map(|_| file(FileKind::weights(side))).transpose()?;
            if let Some(weights) = &mut weights {
                weights.begin_section(SectionKind::Weights)?;
            }
            let mut rows = options.has_rows().then(|| file(FileKind::rows(side))).transpose()?;
            if let Some(rows) = &mut rows {
                rows.begin_section(SectionKind::RowNumbers)?;
            }
            let table = TableWriter::new(file(FileKind::table(side))?, vertex_bound)?;
            Ok(Mutex::new(SideWriter { side, table, targets, weights, rows, num_arcs: 0, is_broken: false }))
        };
        let out_side = side(Side::Out)?;
        let in_side = options.stores_in_lists().then(|| side(Side::In)).transpose()?;
        let rules = ListRules { vertex_bound, multigraph: options.multigraph };
        let (weight_type, has_rows) = (options.weight_type, options.has_rows());
        Ok(Self { id, rules, weight_type, has_rows, out_side, in_side })
    }

    pub(crate) fn weight_type(&self) -> Option<WeightType> {
        self.weight_type
    }

    /// Appends the lists of the next `degrees.len()` vertices of a side: `targets` holds them one after the other,
    /// `weights` and `rows` are parallel to it, or empty where the graph has none.
    ///
    /// Cost: one checksum and one check over the bytes; what is at least a megabyte is written
    /// without a copy.
    ///
    /// # Errors
    /// The slices do not fit together or the graph's options; a target is not below the vertex
    /// bound; a list does not ascend (strictly, but in a multigraph); the graph has no such side;
    /// a page has too many edges; the disk failed. After an error the run cannot be finished.
    pub fn append<W: Weight>(
        &self,
        side: Side,
        degrees: &[u32],
        targets: &[VertexId],
        weights: &[W],
        rows: &[u64],
    ) -> Result<()> {
        self.check_lists(degrees, targets)?;
        self.append_verified(side, degrees, targets, weights, rows)
    }

    /// As [`append`](Self::append), of lists that ascend and whose targets are vertices: they were verified before.
    pub(crate) fn append_verified<W: Weight>(
        &self,
        side: Side,
        degrees: &[u32],
        targets: &[VertexId],
        weights: &[W],
        rows: &[u64],
    ) -> Result<()> {
        debug_assert!(self.check_lists(degrees, targets).is_ok(), "the lists were verified");
        let writer = match side {
            Side::Out => &self.out_side,
            Side::In => self.in_side.as_ref().ok_or_else(|| Error::Input("the graph keeps no in-lists".into()))?,
        };
        let num_weights = if self.weight_type.is_some() { targets.len() } else { 0 };
        if weights.len() != num_weights || self.weight_type.is_some_and(|expected| expected != W::TYPE) {
            let expected = self.weight_type.map_or("no", WeightType::name);
            let (found, name) = (weights.len(), W::TYPE.name());
            return Err(Error::Input(format!("{num_weights} {expected} weights expected, {found} {name} found")));
        }
        let num_rows = if self.has_rows { targets.len() } else { 0 };
        if rows.len() != num_rows {
            return Err(Error::Input(format!("{num_rows} rows expected, {} found", rows.len())));
        }
        writer.lock().unwrap_or_else(|e| e.into_inner()).append(degrees, targets, bytemuck::cast_slice(weights), rows)
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

    /// Ends both sides, the missing vertices without edges, and syncs their files.
    ///
    /// # Errors
    /// An append failed before; the sides have different numbers of edges; the disk failed.
    pub fn finish(self) -> Result<FinishedRun> {
        self.finish_with_dead(&[])
    }

    /// As [`finish`](Self::finish), where some ids, given ascending, are no vertices any more.
    ///
    /// # Errors
    /// As [`finish`](Self::finish); the ids do not ascend below the vertex bound.
    pub(crate) fn finish_with_dead(self, dead: &[VertexId]) -> Result<FinishedRun> {
        let ascends = dead.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascends || dead.last().is_some_and(|&last| last as usize >= self.rules.vertex_bound) {
            return Err(Error::Input(format!("dead vertices that ascend below {} expected", self.rules.vertex_bound)));
        }
        let out_side = self.out_side.into_inner().unwrap_or_else(|e| e.into_inner());
        let in_side = self.in_side.map(|side| side.into_inner().unwrap_or_else(|e| e.into_inner()));
        let num_arcs = out_side.num_arcs;
        if let Some(in_side) = &in_side
            && in_side.num_arcs != num_arcs
        {
            let what = format!("{num_arcs} edges in out-lists, {} in in-lists", in_side.num_arcs);
            return Err(Error::Input(what));
        }
        let mut files = Vec::new();
        for side in std::iter::once(out_side).chain(in_side) {
            let dead = if side.side == Side::Out { dead } else { &[] };
            side.finish(self.id, dead, &mut files)?;
        }
        Ok(FinishedRun { files, vertex_bound: self.rules.vertex_bound, num_arcs })
    }
}

impl SideWriter {
    fn append(&mut self, degrees: &[u32], targets: &[VertexId], weights: &[u8], rows: &[u64]) -> Result<()> {
        if self.is_broken {
            return Err(Error::Input("an append failed before".into()));
        }
        self.is_broken = true;
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
        files.push(self.targets.finish(FileKind::targets(self.side), id)?);
        if let Some(weights) = self.weights {
            files.push(weights.finish(FileKind::weights(self.side), id)?);
        }
        if let Some(rows) = self.rows {
            files.push(rows.finish(FileKind::rows(self.side), id)?);
        }
        files.push(self.table.finish(FileKind::table(self.side), id, dead)?);
        Ok(())
    }
}
