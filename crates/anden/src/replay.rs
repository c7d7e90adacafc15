//! From a file of updates to commits.
//!
//! Small batches are submitted one after the other and waited for together, up to [`MOST_IN_FLIGHT`] updates: they make
//! one group, with one sync, and each is a transaction of its own all the same. Before the next line of a pipe has to be
//! waited for, what is in flight is answered. A batch that the pipe does not fill is committed after
//! [`ApplyOptions::flush`].
//!
//! With a budget of memory, what else goes on beside a large batch is done before it: what was committed becomes a snapshot
//! where the batch finds no room beside it, and merges wait until the batch is committed.

use std::time::Instant;

use base::progress::Progress;
use engine::{
    Durability, EdgeWeight, GraphOptions, KeyScheme, Missing, NewValue, Pending, Sequence, Update, UpkeepHold,
    integer_key,
};
use graph::WeightType;
use graph::formats::{InputPath, LineValue, NextUpdate, UpdateLine, Updates, parse_weight, weight_range};
use graph::property::OwnedValue;
use lama::Key;

use crate::live::{ApplyOptions, ApplyReport};
use crate::{Database, EdgeAction, EdgeId, Error, Result};

/// Batches of more updates are committed at once, by all cores and without a copy.
const SMALL_BATCH: usize = 4 << 10;
/// With so many updates in flight they are waited for.
const MOST_IN_FLIGHT: usize = 32 << 10;
/// What an update of a file takes until it is applied, its text left out: as it is read, sorted and logged, with room to
/// grow, and in the container, where it may be the only one of two vertices, with weights.
const UPDATE_BYTES: u64 = 640;
/// Its text is there as it is read, as a key of the graph, and in the log.
const TEXT_COPIES: u64 = 3;
/// After so many bytes it is looked whether a batch still fits in memory. With fewer it is none that others make room for.
const LOOK_BYTES: u64 = 1 << 20;
/// What is committed and in no snapshot takes half as much again while one is made of it.
const SNAPSHOT_SHARE: u64 = 2;

/// A file of updates that is being applied.
pub(crate) struct Replay<'db, F> {
    database: &'db Database,
    options: &'db ApplyOptions,
    durability: Durability,
    updates: Updates,
    /// Whether the input may have to be waited for.
    may_stall: bool,
    input: &'db InputPath,
    answered: F,
    sequence: Sequence,
    /// Submitted and not answered, in their order.
    in_flight: Vec<InFlight<'db>>,
    num_in_flight: usize,
    report: ApplyReport,
}

/// A batch that is submitted.
struct InFlight<'db> {
    pending: Pending<'db>,
    lines: Vec<u64>,
}

/// Updates and the numbers of their lines.
#[derive(Default)]
struct Batch<'db> {
    updates: Vec<Update>,
    lines: Vec<u64>,
    /// Of one that others make room for.
    upkeep: Option<UpkeepHold<'db>>,
    /// The moment since which the batch waits for its commit, where the input may stall.
    waits_since: Option<Instant>,
}

impl<'db, F: FnMut(u64) -> Result<()>> Replay<'db, F> {
    /// # Errors
    /// The input cannot be read.
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
            // No line is read yet, so only a regular file needs no waiting.
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

    /// Applies all of it.
    ///
    /// # Errors
    /// As [`Database::apply_file`].
    pub(crate) fn run(mut self) -> Result<ApplyReport> {
        self.progress().stage("apply", None);
        let done = self.read_and_commit();
        // What is before a line that is wrong has happened.
        self.settle()?;
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
            // Where the input ends for the same reason, its last line may be half of one.
            self.progress().check()?;
            if batch.updates.is_empty() {
                return Ok(());
            }
            num_read += batch.updates.len() as u64;
            self.commit(batch)?;
            if self.options.checkpoint_every.is_some_and(|every| num_read - at_checkpoint >= every) {
                self.settle()?;
                // Where every batch is a snapshot, there is none to be made.
                self.database.inner().checkpoint_pending()?;
                at_checkpoint = num_read;
            }
        }
    }

    fn next_batch(&mut self) -> Result<Batch<'db>> {
        let mut batch = Batch::default();
        let (mut num_bytes, mut next_look) = (0, LOOK_BYTES);
        while batch.updates.len() < self.options.batch.max(1) {
            if self.updates.may_wait() {
                self.updates.set_deadline(self.deadline(&mut batch));
            }
            let line = match self.updates.next_update()? {
                NextUpdate::Found(line) => line,
                NextUpdate::End => break,
                NextUpdate::Late if !self.in_flight.is_empty() => {
                    self.settle()?;
                    continue;
                }
                NextUpdate::Late if batch.waits_since.is_some_and(|since| since.elapsed() >= self.options.flush) => {
                    break;
                }
                // The deadline was that of another batch.
                NextUpdate::Late => continue,
            };
            match update_of(line, self.database.options()) {
                Ok(update) => batch.updates.push(update),
                Err(what) => return Err(self.updates.error(what).into()),
            }
            batch.lines.push(self.updates.line_number());
            if self.may_stall && batch.updates.len() == 1 {
                // A comment may follow it, and nothing behind that.
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

    /// The moment up to which the next line is waited for; `None` for ever.
    fn deadline(&self, batch: &mut Batch<'db>) -> Option<Instant> {
        match () {
            // Answers do not wait for input.
            () if !self.in_flight.is_empty() => Some(Instant::now()),
            () if batch.updates.is_empty() => None,
            // From the first update on: a line now and then does not put the commit off.
            () => batch.waits_since.get_or_insert_with(Instant::now).checked_add(self.options.flush),
        }
    }

    /// Refuses a batch that takes so many bytes in all, where the budget has no room for it.
    fn make_room(&mut self, batch: &mut Batch<'db>, num_bytes: u64) -> Result<()> {
        let (database, session) = (self.database.inner(), self.database.session());
        if session.memory().is_none() {
            return Ok(());
        }
        let what = format!("a batch of {} updates", batch.updates.len());
        batch.upkeep.get_or_insert_with(|| database.hold_upkeep());
        let committed = database.live_stats().delta_bytes;
        if session.require_writer(&what, num_bytes + committed + committed / SNAPSHOT_SHARE).is_err() {
            self.settle()?;
            database.checkpoint_pending()?;
        }
        session.require_writer(&what, num_bytes)
    }

    fn commit(&mut self, batch: Batch<'db>) -> Result<()> {
        let Batch { updates, lines, upkeep, .. } = batch;
        let (database, pool) = (self.database.inner(), self.database.session().pool());
        // With a budget, nothing waits beside what is read.
        let can_wait = updates.len() <= SMALL_BATCH && self.database.session().memory().is_none();
        if can_wait && !self.options.strict {
            let pending = database.submit_next(&self.sequence, updates, self.durability, pool)?;
            self.num_in_flight += lines.len();
            self.in_flight.push(InFlight { pending, lines });
            return if self.num_in_flight < MOST_IN_FLIGHT { Ok(()) } else { self.settle() };
        }
        self.settle()?;
        let missing = if self.options.strict { Missing::Strict } else { Missing::Lenient };
        let applied = database.apply_with(&updates, missing, self.durability, pool).map(|_| ());
        self.answer(applied, &lines)?;
        if let Some(upkeep) = upkeep {
            drop((updates, upkeep));
            // The batch stands whatever becomes of upkeep, which is tried again.
            let _ = database.maintain(pool, self.progress());
        }
        Ok(())
    }

    /// Waits for what is in flight, and answers it.
    fn settle(&mut self) -> Result<()> {
        self.num_in_flight = 0;
        for InFlight { pending, lines } in std::mem::take(&mut self.in_flight) {
            self.answer(pending.wait().map(|_| ()), &lines)?;
        }
        Ok(())
    }

    /// A batch of these lines was committed, or not.
    fn answer(&mut self, committed: Result<(), engine::Error>, lines: &[u64]) -> Result<()> {
        committed.map_err(|error| match error {
            engine::Error::Update { index, error } => {
                let (path, what) = (self.input.path().to_owned(), error.to_string());
                graph::Error::Line { path, line: lines[index], what }.into()
            }
            error => Error::from(error),
        })?;
        self.report.updates += lines.len() as u64;
        self.report.transactions += 1;
        self.progress().advance(lines.len() as u64);
        lines.last().map_or(Ok(()), |&last| (self.answered)(last))
    }
}

/// The update that a line asks for of such a graph.
fn update_of(line: UpdateLine<'_>, options: &GraphOptions) -> Result<Update, String> {
    let weight_type = options.weight_type;
    let key = |text: &str| match options.keys {
        KeyScheme::String => Key::from(text),
        // Text that is no number is told so later.
        _ => integer_key(text).map_or_else(|| text.into(), Key::Integer),
    };
    let id = |source: &str, target: &str, number| EdgeId { source: key(source), target: key(target), number };
    let weight = |text: &str| -> Result<EdgeWeight, String> {
        let weight = match weight_type {
            Some(WeightType::U32) => text.parse().ok().map(|weight: u32| EdgeWeight::Integer(weight.into())),
            Some(WeightType::I64) => text.parse().ok().map(EdgeWeight::Integer),
            Some(WeightType::F32) => parse_weight(text.as_bytes()).map(|weight: f32| EdgeWeight::Real(weight.into())),
            // That the graph has none is said later.
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
