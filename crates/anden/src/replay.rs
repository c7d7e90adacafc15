//! Applies a file of updates as a sequence of transactions.
//!
//! Small batches are submitted without waiting, up to [`MOST_IN_FLIGHT`] updates. So they share a commit group and one
//! sync, and each stays a transaction. Before a read from a pipe waits, the batches in flight are answered. An unfilled
//! batch is committed after [`ApplyOptions::flush`].
//!
//! With a memory budget, a large batch first makes room. If the batch does not fit beside the memtable, a checkpoint
//! empties the memtable. Merges wait until the batch is committed.

use std::time::Instant;

use anden_base::progress::Progress;
use anden_engine::{
    Durability, EdgeWeight, GraphOptions, KeyScheme, MaintenanceHold, Missing, NewValue, PendingCommit, Sequence,
    Update, integer_key,
};
use anden_formats::{InputPath, LineValue, NextUpdate, UpdateLine, Updates, parse_weight, weight_range};
use anden_graph::WeightType;
use anden_graph::property::OwnedValue;
use anden_snapshots::Key;

use crate::changes::EdgeAction;
use crate::changes::{ApplyOptions, ApplyReport};
use crate::{Database, EdgeId, Error, Result};

/// Larger batches are committed at once, by all cores and without a copy.
const SMALL_BATCH: usize = 4 << 10;
/// With this many updates in flight, the replay waits for all of them.
const MOST_IN_FLIGHT: usize = 32 << 10;
/// Bytes of an update until it is applied, without its text. Counts the parsed, sorted and logged copies with spare
/// capacity. In the memtable, the edge may be the only one of two vertices, with weights.
const UPDATE_BYTES: u64 = 640;
/// Copies of the text of an update: as read, as a key of the graph, in the WAL.
const TEXT_COPIES: u64 = 3;
/// The budget is checked after this many bytes. A smaller batch does not reserve memory.
const LOOK_BYTES: u64 = 1 << 20;
/// A checkpoint adds half of the memtable to memory.
const SNAPSHOT_SHARE: u64 = 2;

/// The replay of a file of updates.
pub(crate) struct UpdateFileReplay<'db, F> {
    database: &'db Database,
    options: &'db ApplyOptions,
    durability: Durability,
    updates: Updates,
    /// Whether a read of the input may wait.
    may_stall: bool,
    input: &'db InputPath,
    answered: F,
    sequence: Sequence,
    /// Submitted batches without an answer, in order.
    in_flight: Vec<InFlight<'db>>,
    num_in_flight: usize,
    report: ApplyReport,
}

/// A submitted batch.
struct InFlight<'db> {
    pending: PendingCommit<'db>,
    lines: Vec<u64>,
}

/// A batch: updates and their line numbers.
#[derive(Default)]
struct ReplayBatch<'db> {
    updates: Vec<Update>,
    lines: Vec<u64>,
    /// Delays maintenance while a large batch is in memory.
    maintenance: Option<MaintenanceHold<'db>>,
    /// When the batch became due for a flush, if the input may stall.
    waits_since: Option<Instant>,
}

/// Fails on a database that is open for reading only.
impl Database {
    /// Applies a file of updates, batch by batch. Calls `answered` with the last line number of each batch once the
    /// batch is durable.
    ///
    /// Small batches share one group commit, but each stays its own transaction. With a memory budget or
    /// [`strict`](ApplyOptions::strict), batches are committed one by one. Before a read from a pipe waits, all full
    /// batches are answered; the unfilled one follows after [`flush`](ApplyOptions::flush).
    ///
    /// A bad line drops its batch and all later lines. Earlier batches stay committed. Cancellation drops the batch
    /// being read.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), with file and line. An error of `answered`; later batches may be committed then.
    /// Cancellation. The memory budget is too small for a batch.
    pub fn apply_file(
        &self,
        input: &InputPath,
        options: &ApplyOptions,
        answered: impl FnMut(u64) -> Result<()>,
    ) -> Result<ApplyReport> {
        // A budget that is too small for any batch is refused before the input is opened.
        self.session().require_writer("applying updates", 0)?;
        let start = Instant::now();
        // The counter spans the life of the handle; the report covers this file only.
        let automatic_before = self.inner().live_stats().automatic_checkpoints;
        let mut report = UpdateFileReplay::new(self, input, options, answered)?.run()?;
        report.seconds = start.elapsed().as_secs_f64();
        report.automatic_checkpoints = self.inner().live_stats().automatic_checkpoints - automatic_before;
        Ok(report)
    }
}

impl<'db, F: FnMut(u64) -> Result<()>> UpdateFileReplay<'db, F> {
    /// # Errors
    /// The input cannot be opened.
    pub(crate) fn new(
        database: &'db Database,
        input: &'db InputPath,
        options: &'db ApplyOptions,
        answered: F,
    ) -> Result<Self> {
        let updates = Updates::open(input)?;
        Ok(Self {
            database,
            options,
            durability: options.durability.unwrap_or_else(|| database.durability()),
            // A regular file needs no waiting. Other inputs may stall, although no line was read yet.
            may_stall: updates.may_wait(),
            updates,
            input,
            answered,
            sequence: Sequence::default(),
            in_flight: Vec::new(),
            num_in_flight: 0,
            report: ApplyReport::default(),
        })
    }

    /// Applies the whole file.
    ///
    /// # Errors
    /// As [`Database::apply_file`].
    pub(crate) fn run(mut self) -> Result<ApplyReport> {
        self.progress().stage("apply", None);
        let done = self.read_and_commit();
        // Batches before a bad line stay committed, so they are answered too.
        self.wait_for_all()?;
        done.map(|()| self.report)
    }

    fn progress(&self) -> &'db dyn Progress {
        self.database.session().progress()
    }

    fn read_and_commit(&mut self) -> Result<()> {
        let (mut num_read, mut at_checkpoint) = (0, 0);
        loop {
            self.progress().check()?;
            let batch = self.next_batch()?;
            // A cancelled input ends early, and its last line may be cut off: drop the batch.
            self.progress().check()?;
            if batch.updates.is_empty() {
                return Ok(());
            }
            num_read += batch.updates.len() as u64;
            self.commit(batch)?;
            if self.options.checkpoint_every.is_some_and(|every| num_read - at_checkpoint >= every) {
                self.wait_for_all()?;
                // Does nothing if the batch itself became a snapshot.
                self.database.inner().checkpoint_pending()?;
                at_checkpoint = num_read;
            }
        }
    }

    fn next_batch(&mut self) -> Result<ReplayBatch<'db>> {
        let mut batch = ReplayBatch::default();
        let (mut num_bytes, mut next_look) = (0, LOOK_BYTES);
        while batch.updates.len() < self.options.batch.max(1) {
            if self.updates.may_wait() {
                self.updates.set_deadline(self.deadline(&mut batch));
            }
            let line = match self.updates.next_update()? {
                NextUpdate::Found(line) => line,
                NextUpdate::End => break,
                // The input pauses: answer the batches in flight now.
                NextUpdate::Late if !self.in_flight.is_empty() => {
                    self.wait_for_all()?;
                    continue;
                }
                NextUpdate::Late if batch.waits_since.is_some_and(|since| since.elapsed() >= self.options.flush) => {
                    break;
                }
                // The deadline belonged to an earlier batch.
                NextUpdate::Late => continue,
            };
            match update_of(line, self.database.options()) {
                Ok(update) => batch.updates.push(update),
                Err(what) => return Err(self.updates.error(what).into()),
            }
            batch.lines.push(self.updates.line_number());
            if self.may_stall && batch.updates.len() == 1 {
                // A comment may follow the first update, then a pause: set the deadline now.
                self.updates.set_deadline(self.deadline(&mut batch));
            }
            num_bytes += UPDATE_BYTES + TEXT_COPIES * self.updates.line_bytes() as u64;
            if num_bytes >= next_look {
                self.make_room(&mut batch, num_bytes)?;
                next_look = num_bytes + LOOK_BYTES;
            }
        }
        Ok(batch)
    }

    /// How long to wait for the next line; `None`: without limit.
    fn deadline(&self, batch: &mut ReplayBatch<'db>) -> Option<Instant> {
        match () {
            // Committed batches are answered before the input is waited for.
            () if !self.in_flight.is_empty() => Some(Instant::now()),
            () if batch.updates.is_empty() => None,
            // Counted from the first update, so a slow trickle of lines does not delay the commit.
            () => batch.waits_since.get_or_insert_with(Instant::now).checked_add(self.options.flush),
        }
    }

    /// Frees memory for a batch of `num_bytes`, or refuses it if the budget is too small.
    fn make_room(&mut self, batch: &mut ReplayBatch<'db>, num_bytes: u64) -> Result<()> {
        let (database, session) = (self.database.inner(), self.database.session());
        if session.memory().is_none() {
            return Ok(());
        }
        let what = format!("a batch of {} updates", batch.updates.len());
        // A merge beside the batch would need the memory that the batch takes.
        batch.maintenance.get_or_insert_with(|| database.hold_maintenance());
        let committed = database.live_stats().delta_bytes;
        // A checkpoint must fit beside the batch. If it does not, make the checkpoint now, while the batch is small.
        if session.require_writer(&what, num_bytes + committed + committed / SNAPSHOT_SHARE).is_err() {
            self.wait_for_all()?;
            database.checkpoint_pending()?;
        }
        session.require_writer(&what, num_bytes)
    }

    fn commit(&mut self, batch: ReplayBatch<'db>) -> Result<()> {
        let ReplayBatch { updates, lines, maintenance, .. } = batch;
        let (database, pool) = (self.database.inner(), self.database.session().pool());
        // With a budget, no submitted batch stays in memory beside the one being read.
        let can_wait = updates.len() <= SMALL_BATCH && self.database.session().memory().is_none();
        if can_wait && !self.options.strict {
            let pending = database.submit_next(&self.sequence, updates, self.durability, pool)?;
            self.num_in_flight += lines.len();
            self.in_flight.push(InFlight { pending, lines });
            return if self.num_in_flight < MOST_IN_FLIGHT { Ok(()) } else { self.wait_for_all() };
        }
        // Batches take effect in the order of the file.
        self.wait_for_all()?;
        let missing = if self.options.strict { Missing::Strict } else { Missing::Lenient };
        let applied = database.apply_with(&updates, missing, self.durability, pool).map(|_| ());
        self.answer(applied, &lines)?;
        if let Some(maintenance) = maintenance {
            // Free the batch before maintenance, which needs memory itself.
            drop((updates, maintenance));
            // The batch is committed whatever happens to maintenance, which runs again later.
            let _ = database.maintain(pool, self.progress());
        }
        Ok(())
    }

    /// Waits for all batches in flight and answers them.
    fn wait_for_all(&mut self) -> Result<()> {
        self.num_in_flight = 0;
        for InFlight { pending, lines } in std::mem::take(&mut self.in_flight) {
            self.answer(pending.wait().map(|_| ()), &lines)?;
        }
        Ok(())
    }

    /// Answers a batch with these lines: committed or failed.
    fn answer(&mut self, committed: Result<(), anden_engine::Error>, lines: &[u64]) -> Result<()> {
        committed.map_err(|error| match error {
            anden_engine::Error::Update { index, error } => {
                let (path, what) = (self.input.path().to_owned(), error.to_string());
                anden_formats::Error::Line { path, line: lines[index], what }.into()
            }
            error => Error::from(error),
        })?;
        self.report.updates += lines.len() as u64;
        self.report.transactions += 1;
        self.progress().advance(lines.len() as u64);
        lines.last().map_or(Ok(()), |&last| (self.answered)(last))
    }
}

/// Converts a line to an update for a graph with these options.
fn update_of(line: UpdateLine<'_>, options: &GraphOptions) -> Result<Update, String> {
    let weight_type = options.weight_type;
    let key = |text: &str| match options.keys {
        KeyScheme::String => Key::from(text),
        // The engine reports text that is not a number.
        _ => integer_key(text).map_or_else(|| text.into(), Key::Integer),
    };
    let id = |source: &str, target: &str, number| EdgeId { source: key(source), target: key(target), number };
    let weight = |text: &str| -> Result<EdgeWeight, String> {
        let weight = match weight_type {
            Some(WeightType::U32) => text.parse().ok().map(|weight: u32| EdgeWeight::Integer(weight.into())),
            Some(WeightType::I64) => text.parse().ok().map(EdgeWeight::Integer),
            Some(WeightType::F32) => parse_weight(text.as_bytes()).map(|weight: f32| EdgeWeight::Real(weight.into())),
            // The engine reports a weight in a graph without weights.
            Some(WeightType::F64) | None => parse_weight(text.as_bytes()).map(EdgeWeight::Real),
        };
        let expected = weight_type.map_or("a number as the weight", weight_range);
        weight.ok_or_else(|| format!("expected {expected}, found '{text}'"))
    };
    Ok(match line {
        UpdateLine::AddEdge { source, target, weight: text, properties } => Update::AddEdge {
            source: key(source),
            target: key(target),
            weight: text.map(weight).transpose()?,
            properties: properties.iter().map(|(name, value)| (name.into(), new_value(value))).collect(),
        },
        UpdateLine::SetWeight { source, target, number, weight: text } => match number {
            None => Update::set_weight(key(source), key(target), weight(text)?),
            Some(number) => Update::change_edge(id(source, target, number), EdgeAction::SetWeight(weight(text)?)),
        },
        UpdateLine::RemoveEdge { source, target, number } => match number {
            None => Update::remove_edge(key(source), key(target)),
            Some(number) => Update::change_edge(id(source, target, number), EdgeAction::Remove),
        },
        UpdateLine::AddVertex(vertex) => Update::AddVertex(key(vertex)),
        UpdateLine::RemoveVertex(vertex) => Update::RemoveVertex(key(vertex)),
        UpdateLine::SetVertexProperty { vertex, name, value } => {
            Update::set_vertex(key(vertex), name, new_value(value))
        }
        UpdateLine::SetEdgeProperty { source, target, number, name, value } => match number {
            None => Update::set_edge(key(source), key(target), name, new_value(value)),
            Some(number) => {
                let action = EdgeAction::SetProperty { name: name.to_owned(), value: new_value(value) };
                Update::change_edge(id(source, target, number), action)
            }
        },
    })
}

fn new_value(value: LineValue<'_>) -> NewValue {
    match value {
        LineValue::Null => NewValue::Value(OwnedValue::Null),
        LineValue::Text { text, is_quoted } => NewValue::Text { text: text.to_owned(), is_quoted },
    }
}
