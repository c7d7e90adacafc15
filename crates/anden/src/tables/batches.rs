//! Tables read in batches.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use anden_base::VertexId;
use anden_graph::property::{OwnedValue, PropertyColumn, PropertyType};
use anden_graph::walk::try_walk;
use anden_graph::{Direction, Graph, Parts};
use anden_snapshots::Entries;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::Chosen;
use super::edges::EdgeField;
use super::filtered::{ViewEdges, ViewFilter, passing_columns};
use super::vertices::VertexField;
use crate::{Error, Result, View};

/// Maximum number of rows in a batch.
const BATCH_ROWS: usize = 1 << 16;
/// Approximate bytes: a list entry without its columns; a value, in its column and while it is gathered.
const ENTRY_BYTES: u64 = 24;
const VALUE_BYTES: u64 = 24;

/// Edges or vertices of a view as record batches of at most 65,536 rows. Edges come in storage order: by source id,
/// target id and row. A row numbers the insertion of an edge, or its last change.
///
/// Workers read batches in parallel, and each worker holds one batch. A list longer than a batch is held as a whole,
/// without its columns.
pub struct Batches<'a> {
    view: &'a View,
    table: BatchSource,
    /// The next vertex to read.
    next: VertexId,
    /// A list of several batches, and the number of its entries already read.
    list: Option<(Arc<Entries>, usize)>,
    ready: VecDeque<RecordBatch>,
    /// Number of batches read in parallel. Initially one, because the caller may want no more.
    num_at_once: usize,
    max_at_once: usize,
}

/// The kind of table, and the predicates that its rows meet.
enum BatchSource {
    Edges(Chosen<EdgeField>, Vec<ViewFilter<EdgeField>>),
    Vertices(Chosen<VertexField>, Vec<ViewFilter<VertexField>>),
}

/// The input of one batch.
enum BatchPart {
    /// The lists of these vertices, or the vertices.
    Vertices(Range<VertexId>),
    /// A range of one list.
    List(Arc<Entries>, Range<usize>),
}

impl fmt::Debug for Batches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("schema", self.schema()).field("next", &self.next).finish_non_exhaustive()
    }
}

impl View {
    /// Reads all edges as a table; an undirected edge is one row. Columns: `source` and `target` (keys), `weight`
    /// (graphs with weights), `number` (multigraphs), and properties. An empty slice selects all columns. A property
    /// with one of these names hides the built-in column. A property of lists is a `LargeList`; predicates compare the
    /// text of a list.
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
    /// [`Error::NotFound`]: the column does not exist; the message suggests the nearest name. [`Error::Memory`]: the
    /// budget is too small for one batch. A batch fails on damage and on cancellation.
    pub fn edges(&self, columns: &[&str]) -> Result<Batches<'_>> {
        Batches::new(self, BatchSource::Edges(Chosen::of_edges(self, columns)?, Vec::new()))
    }

    /// Reads all vertices as a table. Columns: `key`, `out_degree`, `in_degree` (graphs with in-lists), and properties.
    /// An empty slice selects the key and all properties. A property with one of these names hides the built-in column.
    ///
    /// # Errors
    /// As [`edges`](Self::edges).
    pub fn vertices(&self, columns: &[&str]) -> Result<Batches<'_>> {
        Batches::new(self, BatchSource::Vertices(Chosen::of_vertices(self, columns)?, Vec::new()))
    }
}

impl<'a> Batches<'a> {
    /// All edges, with all that is known of each.
    pub(super) fn of_whole_edges(view: &'a View) -> Result<Self> {
        Self::new(view, BatchSource::Edges(Chosen::of_whole_edges(view), Vec::new()))
    }

    fn new(view: &'a View, table: BatchSource) -> Result<Self> {
        // Lays a part out now, so that no later batch fails for that reason.
        view.all_lists()?;
        let max_at_once = workers_for(view, &table)?;
        Ok(Self { view, table, next: 0, list: None, ready: VecDeque::new(), num_at_once: 1, max_at_once })
    }

    /// The rows that meet a predicate, in the language of [`View::filter`]. It may name every column of the edges or
    /// vertices, also one that was not selected. After several calls, rows meet all predicates.
    ///
    /// Cost: reads the columns of the predicate for all rows, and the other columns for the rows that pass.
    ///
    /// ```
    /// use anden::{Database, Options, Update};
    ///
    /// let db = Database::in_memory(Options { edge_properties: true, ..Options::default() })?;
    /// let edge = |source, amount: i64| Update::add_edge_with(source, source + 1, [("amount", amount)]);
    /// db.apply(&[edge(1, 5), edge(2, 9)])?;
    /// let view = db.view()?;
    /// let large = view.edges(&["target"])?.with_filter("amount > 5 AND source < 9")?;
    /// assert_eq!(large.rows().count(), 1);
    /// # Ok::<(), anden::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidInput`]: the text does not parse, names an unknown column, or mixes incompatible types. A batch
    /// fails if a calculation overflows.
    pub fn with_filter(mut self, predicate: &str) -> Result<Self> {
        match &mut self.table {
            BatchSource::Edges(_, filters) => filters.push(ViewFilter::of_edges(self.view, predicate)?),
            BatchSource::Vertices(_, filters) => filters.push(ViewFilter::of_vertices(self.view, predicate)?),
        }
        self.max_at_once = workers_for(self.view, &self.table)?;
        Ok(self)
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        self.table.schema()
    }

    /// Iterates over rows in place of batches.
    pub fn rows(mut self) -> BatchRows<'a> {
        // A row has the text of a list, so that no batch needs to parse it.
        let types = match &mut self.table {
            BatchSource::Edges(chosen, _) => chosen.keep_texts(),
            BatchSource::Vertices(chosen, _) => chosen.keep_texts(),
        };
        BatchRows { batches: self, types, columns: Vec::new(), rows: 0..0 }
    }

    /// Reads the next batches in parallel.
    fn read(&mut self) -> Result<()> {
        self.view.context().progress.check()?;
        let parts = self.cut()?;
        // A caller may iterate inside a parallel loop, where only `share` is allowed.
        let made = self.view.context().pool.share(parts, |_, part| self.batch(part));
        for batch in made {
            // Removed vertices and mirrored arcs may leave a batch empty.
            self.ready.extend(Some(batch?).filter(|batch| batch.num_rows() > 0));
        }
        // Damaged lists look empty, so the batches are complete only if this check passes.
        self.view.check_lists()?;
        // After the first batch, the caller probably wants more: use all workers.
        self.num_at_once = self.max_at_once;
        Ok(())
    }

    /// Selects the input of the next batches.
    fn cut(&mut self) -> Result<Vec<BatchPart>> {
        let mut parts = Vec::new();
        while parts.len() < self.num_at_once && !self.is_at_end() {
            // The entries of a long list are read once and shared by its batches.
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
                // A hub fills several batches. A shorter list is read by the worker of its batch.
                BatchSource::Edges(..)
                    if vertices.len() == 1 && self.view.lists().degree(Direction::Out, vertices.start) > BATCH_ROWS =>
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

    /// Takes at least one vertex, and at most the vertices that fill a batch.
    fn take_vertices(&mut self) -> Range<VertexId> {
        let (start, bound) = (self.next, self.view.vertex_bound() as VertexId);
        let mut num_rows = 0;
        while self.next < bound {
            // Degrees only bound the rows: they count an undirected edge at both ends.
            num_rows += match &self.table {
                BatchSource::Edges(..) => self.view.lists().degree(Direction::Out, self.next),
                BatchSource::Vertices(..) => 1,
            };
            // At least one vertex is taken, also if its list alone exceeds a batch.
            if num_rows > BATCH_ROWS && self.next > start {
                break;
            }
            self.next += 1;
        }
        start..self.next
    }

    fn batch(&self, part: BatchPart) -> Result<RecordBatch> {
        match (&self.table, part) {
            (BatchSource::Edges(chosen, filters), part) => {
                let rows = match part {
                    BatchPart::List(ref entries, range) => ViewEdges { entries: Cow::Borrowed(entries), range },
                    BatchPart::Vertices(vertices) => {
                        let entries = self.entries(vertices)?;
                        ViewEdges { range: 0..entries.len(), entries: Cow::Owned(entries) }
                    }
                };
                chosen.batch(passing_columns(self.view, rows, filters, &chosen.fields)?)
            }
            (BatchSource::Vertices(chosen, filters), BatchPart::Vertices(vertices)) => {
                let vertices: Vec<VertexId> = vertices.filter(|&vertex| self.view.lists().is_live(vertex)).collect();
                chosen.batch(passing_columns(self.view, vertices, filters, &chosen.fields)?)
            }
            (BatchSource::Vertices(..), BatchPart::List(..)) => Err(Error::Internal("vertices have no lists".into())),
        }
    }

    /// The edges of the lists of these vertices.
    fn entries(&self, vertices: Range<VertexId>) -> Result<Entries> {
        let (lists, mut entries) = (self.view.lists(), Entries::default());
        try_walk(lists, Direction::Out, Parts::Weighted, vertices, |vertex| {
            let keeps = |target: VertexId, _: u64| Ok::<_, Error>(self.view.is_listed(vertex, target));
            lists.push_entries(Direction::Out, vertex, &mut entries, keeps)
        })?;
        Ok(entries)
    }
}

impl BatchSource {
    fn schema(&self) -> &SchemaRef {
        match self {
            Self::Edges(chosen, _) => &chosen.schema,
            Self::Vertices(chosen, _) => &chosen.schema,
        }
    }

    /// Number of columns that a batch reads at most.
    fn num_columns(&self) -> usize {
        self.schema().fields().len()
            + match self {
                Self::Edges(_, filters) => filters.iter().map(|filter| filter.fields.len()).sum::<usize>(),
                Self::Vertices(_, filters) => filters.iter().map(|filter| filter.fields.len()).sum(),
            }
    }
}

/// The number of workers whose batches the memory budget holds at once.
fn workers_for(view: &View, table: &BatchSource) -> Result<usize> {
    let (session, num_columns) = (view.session(), table.num_columns() as u64);
    let require = |num_workers: usize| {
        let num_bytes = num_workers as u64 * BATCH_ROWS as u64 * (ENTRY_BYTES + num_columns * VALUE_BYTES);
        view.require_reader("reading rows", num_bytes)
    };
    let num_workers = session.num_threads();
    // One worker is slower, but needs less memory than all.
    if require(num_workers).is_err() {
        require(1)?;
        return Ok(1);
    }
    Ok(num_workers)
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.is_at_end() {
            if let Err(error) = self.read() {
                // The iterator ends after an error.
                (self.list, self.next) = (None, VertexId::MAX);
                self.ready.clear();
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

/// The rows of [`Batches`]; each row has one value for each column.
#[derive(Debug)]
pub struct BatchRows<'a> {
    batches: Batches<'a>,
    /// The types of the columns.
    types: Vec<PropertyType>,
    columns: Vec<PropertyColumn>,
    /// The rows of `columns` not yet returned.
    rows: Range<usize>,
}

impl Iterator for BatchRows<'_> {
    type Item = Result<Vec<OwnedValue>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                let values = self.columns.iter().zip(&self.types);
                return Some(Ok(values.map(|(column, &found)| OwnedValue::of(column.get(row), found)).collect()));
            }
            let read = self.batches.next()?.and_then(|batch| {
                let columns = batch.columns().iter().map(|array| PropertyColumn::from_array(Arc::clone(array)));
                Ok((batch.num_rows(), columns.collect::<Result<Vec<_>, _>>()?))
            });
            match read {
                // Both change together, so a failed batch leaves no rows behind.
                Ok((num_rows, columns)) => (self.rows, self.columns) = (0..num_rows, columns),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
