//! Tables that are read a batch after the other.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use base::VertexId;
use graph::property::{OwnedValue, PropertyColumn};
use graph::walk::try_walk;
use graph::{Graph, Parts};
use lama::Entries;

use super::Chosen;
use super::edges::EdgeField;
use super::vertices::VertexField;
use crate::{Error, Result, View};

/// Rows of a batch, at most.
const BATCH_ROWS: usize = 1 << 16;
/// Bytes of an entry of a list beside its columns, and of a value in a column and while it is gathered, about.
const ENTRY_BYTES: u64 = 24;
const VALUE_BYTES: u64 = 24;

/// Edges or vertices of a view as record batches of at most 65,536 rows, in the order of the lists: by ascending id of the
/// source, then of the target, then in the order in which parallel edges were added.
///
/// Workers read batches side by side; each holds one. A list that is longer than a batch is held as a whole, without its
/// columns.
pub struct Batches<'a> {
    view: &'a View,
    table: BatchSource,
    /// The vertex that is read next.
    next: VertexId,
    /// A list of several batches, and how many of its entries are read.
    list: Option<(Arc<Entries>, usize)>,
    ready: VecDeque<RecordBatch>,
    /// Batches that are read side by side: one at first, since the caller may want no more.
    num_at_once: usize,
    max_at_once: usize,
}

/// What is read.
enum BatchSource {
    Edges(Chosen<EdgeField>),
    Vertices(Chosen<VertexField>),
}

/// What a worker makes a batch of.
enum BatchPart {
    /// The lists of these vertices, or the vertices themselves.
    Vertices(Range<VertexId>),
    /// A part of a list.
    List(Arc<Entries>, Range<usize>),
}

impl fmt::Debug for Batches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("schema", self.schema()).field("next", &self.next).finish_non_exhaustive()
    }
}

impl View {
    /// Reads all edges, an undirected one once, with these columns: `source` and `target`, the keys of its ends; `weight`,
    /// where the graph has weights; `number`, of a multigraph; and properties. No names: all columns. A property that
    /// bears one of these names stands for itself.
    ///
    /// ```
    /// use anden::{Database, Options, OwnedValue, Update};
    ///
    /// let db = Database::in_memory(Options { edge_properties: true, ..Options::default() })?;
    /// db.apply(&[Update::add_edge_with(1, 2, [("amount", 5_i64)]), Update::add_edge(2, 3)])?;
    /// let view = db.view()?;
    /// let mut sum = 0;
    /// for batch in view.edges(&["amount"])? {
    ///     sum += batch?.num_rows();
    /// }
    /// assert_eq!(sum, 2);
    /// let rows = view.edges(&["target", "amount"])?.rows().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(rows, [[OwnedValue::U64(2), OwnedValue::I64(5)], [OwnedValue::U64(3), OwnedValue::Null]]);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`]: there is no such column, and the nearest one; [`Error::Memory`]: not even one worker has room
    /// for a batch. Batches fail where damage is met, and once the work is cancelled.
    pub fn edges(&self, columns: &[&str]) -> Result<Batches<'_>> {
        Batches::new(self, BatchSource::Edges(Chosen::of_edges(self, columns)?))
    }

    /// Reads all vertices, with these columns: `key`, `out_degree`, `in_degree`, where the graph has in-lists, and
    /// properties. No names: the key and all properties. A property that bears one of these names stands for itself.
    ///
    /// # Errors
    /// As of [`edges`](Self::edges).
    pub fn vertices(&self, columns: &[&str]) -> Result<Batches<'_>> {
        Batches::new(self, BatchSource::Vertices(Chosen::of_vertices(self, columns)?))
    }
}

impl<'a> Batches<'a> {
    fn new(view: &'a View, table: BatchSource) -> Result<Self> {
        view.all_lists()?;
        let (session, num_columns) = (view.session(), table.schema().fields().len() as u64);
        let require = |num_workers: usize| {
            let num_bytes = num_workers as u64 * BATCH_ROWS as u64 * (ENTRY_BYTES + num_columns * VALUE_BYTES);
            session.require_reader("reading rows", view.beside(), num_bytes)
        };
        let mut max_at_once = session.num_threads();
        if require(max_at_once).is_err() {
            require(1)?;
            max_at_once = 1;
        }
        Ok(Self { view, table, next: 0, list: None, ready: VecDeque::new(), num_at_once: 1, max_at_once })
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        self.table.schema()
    }

    /// The same, row by row.
    pub fn rows(self) -> BatchRows<'a> {
        BatchRows { batches: self, columns: Vec::new(), rows: 0..0 }
    }

    /// Reads the next batches.
    fn read(&mut self) -> Result<()> {
        self.view.context().progress.check()?;
        let parts = self.cut()?;
        let made = self.view.context().pool.share(parts, |_, part| self.batch(part));
        for batch in made {
            self.ready.extend(Some(batch?).filter(|batch| batch.num_rows() > 0));
        }
        // Lists with damage look empty: what they hold is known only if all is well.
        self.view.check_lists()?;
        self.num_at_once = self.max_at_once;
        Ok(())
    }

    /// What the next batches are made of.
    fn cut(&mut self) -> Result<Vec<BatchPart>> {
        let mut parts = Vec::new();
        while parts.len() < self.num_at_once && !self.is_at_end() {
            if let Some((entries, start)) = &mut self.list {
                let range = *start..entries.len().min(*start + BATCH_ROWS);
                *start = range.end;
                let is_read = range.end == entries.len();
                parts.push(BatchPart::List(Arc::clone(entries), range));
                if is_read {
                    self.list = None;
                }
                continue;
            }
            let vertices = self.take_vertices();
            match &self.table {
                BatchSource::Edges(_)
                    if vertices.len() == 1 && self.view.lists().out_degree(vertices.start) > BATCH_ROWS =>
                {
                    let entries = self.entries(vertices)?;
                    self.list = (!entries.is_empty()).then(|| (Arc::new(entries), 0));
                }
                _ => parts.push(BatchPart::Vertices(vertices)),
            }
        }
        Ok(parts)
    }

    fn is_at_end(&self) -> bool {
        self.list.is_none() && self.next as usize >= self.view.vertex_bound()
    }

    /// The next vertices that fill a batch: at least one.
    fn take_vertices(&mut self) -> Range<VertexId> {
        let (start, bound) = (self.next, self.view.vertex_bound() as VertexId);
        let mut num_rows = 0;
        while self.next < bound {
            num_rows += match &self.table {
                BatchSource::Edges(_) => self.view.lists().out_degree(self.next),
                BatchSource::Vertices(_) => 1,
            };
            if num_rows > BATCH_ROWS && self.next > start {
                break;
            }
            self.next += 1;
        }
        start..self.next
    }

    fn batch(&self, part: BatchPart) -> Result<RecordBatch> {
        match (&self.table, part) {
            (BatchSource::Edges(chosen), BatchPart::List(entries, range)) => {
                chosen.edge_batch(self.view, &entries, range)
            }
            (BatchSource::Edges(chosen), BatchPart::Vertices(vertices)) => {
                let entries = self.entries(vertices)?;
                chosen.edge_batch(self.view, &entries, 0..entries.len())
            }
            (BatchSource::Vertices(chosen), BatchPart::Vertices(vertices)) => {
                let vertices: Vec<VertexId> = vertices.filter(|&vertex| self.view.lists().is_live(vertex)).collect();
                chosen.vertex_batch(self.view, &vertices)
            }
            (BatchSource::Vertices(_), BatchPart::List(..)) => {
                Err(Error::InvalidInput("vertices have no lists".into()))
            }
        }
    }

    /// The edges of the lists of these vertices.
    fn entries(&self, vertices: Range<VertexId>) -> Result<Entries> {
        let (lists, mut entries) = (self.view.lists(), Entries::default());
        try_walk(lists, graph::Side::Out, Parts::Weighted, vertices, |vertex| {
            let keeps = |target: VertexId, _: u64| Ok::<_, Error>(self.view.is_listed(vertex, target));
            lists.push_entries(graph::Side::Out, vertex, &mut entries, keeps)
        })?;
        Ok(entries)
    }
}

impl BatchSource {
    fn schema(&self) -> &SchemaRef {
        match self {
            Self::Edges(chosen) => &chosen.schema,
            Self::Vertices(chosen) => &chosen.schema,
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_at_end() {
            if let Err(error) = self.read() {
                // Nothing follows an error.
                (self.list, self.next) = (None, VertexId::MAX);
                self.ready.clear();
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

/// The rows of [`Batches`], each with a value a column.
#[derive(Debug)]
pub struct BatchRows<'a> {
    batches: Batches<'a>,
    columns: Vec<PropertyColumn>,
    /// The rows of `columns` that are not given yet.
    rows: Range<usize>,
}

impl Iterator for BatchRows<'_> {
    type Item = Result<Vec<OwnedValue>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(self.columns.iter().map(|column| column.get(row).into()).collect()));
            }
            let columns = self.batches.next()?.and_then(|batch| {
                self.rows = 0..batch.num_rows();
                let columns = batch.columns().iter().map(|array| PropertyColumn::from_array(Arc::clone(array)));
                Ok(columns.collect::<Result<Vec<_>, _>>()?)
            });
            match columns {
                Ok(columns) => self.columns = columns,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
