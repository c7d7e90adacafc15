//! What a batch makes of the edges of a pair of vertices, where that depends on which edges there are.
//!
//! In a multigraph, and where edges have properties, an entry of a list is one edge and carries its weight or the number
//! of its row. A plan says exactly which entries a pair is to have, so recovery applies it without a lookup. A pair is
//! removed whole and gets all its entries anew; a pair that only gains edges keeps the ones that it has.

use std::collections::HashMap;

use base::VertexId;
use graph::property::OwnedValue;
use lama::{Finder, GraphOptions};

use super::Writer;
use super::apply::{EdgeUpdate, Plan, Step};
use crate::Result;
use crate::validation::stored_ends;

/// The ends of an edge in the order in which the graph stores them.
pub(super) type Ends = (VertexId, VertexId);

/// The rows of a plan, and the edges that it leaves.
#[derive(Debug)]
pub(super) struct EdgePlan {
    /// The number of the first row.
    first_row: u64,
    /// The values of each row by property; behind the last one, all are null.
    pub(super) rows: Vec<Vec<OwnedValue>>,
    /// The rows of the request that is being planned begin here. No version shows them yet, so they may still change.
    request_start: usize,
    /// Edges of pairs after the steps that were tracked.
    pairs: HashMap<Ends, PlannedPair>,
    /// Vertices that a tracked step removes, and the last step that does.
    removed: HashMap<VertexId, usize>,
    num_tracked: usize,
}

/// The edges of a pair.
#[derive(Debug, Default)]
struct PlannedPair {
    /// The last step that was seen of it.
    step: usize,
    /// Whether those below the plan are among them.
    is_whole: bool,
    /// The bits of the weight of each, or the number of its row, in the order in which they were added.
    edges: Vec<u64>,
}

impl EdgePlan {
    /// Without edges; rows begin at `first_row`.
    pub(super) fn new(first_row: u64) -> Self {
        let (rows, pairs, removed) = Default::default();
        Self { first_row, rows, request_start: 0, pairs, removed, num_tracked: 0 }
    }

    /// The rows with their numbers.
    pub(super) fn numbered_rows(&self) -> impl ExactSizeIterator<Item = (u64, &[OwnedValue])> {
        self.rows.iter().enumerate().map(|(index, values)| (self.first_row + index as u64, &values[..]))
    }

    /// Leaves this many numbers to rows of others, before any row of the plan.
    pub(super) fn begin_at(&mut self, first_row: u64) {
        debug_assert!(self.rows.is_empty());
        self.first_row = first_row;
    }

    /// The number of the row behind the last.
    pub(super) fn end(&self) -> u64 {
        self.first_row + self.rows.len() as u64
    }

    /// Begins a request; returns what [`cut`](Self::cut) takes to forget it.
    pub(super) fn begin_request(&mut self) -> usize {
        self.request_start = self.rows.len();
        self.request_start
    }

    /// Forgets a request that is not right.
    pub(super) fn cut(&mut self, num_rows: usize) {
        self.rows.truncate(num_rows);
        // The steps that are left are tracked again where that is needed.
        self.pairs.clear();
        self.removed.clear();
        self.num_tracked = 0;
    }

    fn new_row(&mut self, values: Vec<OwnedValue>) -> u64 {
        self.rows.push(values);
        self.first_row + self.rows.len() as u64 - 1
    }

    /// The place of a row that this plan makes.
    fn place_of(&self, row: u64) -> Option<usize> {
        row.checked_sub(self.first_row).map(|place| place as usize)
    }

    /// Follows the steps that were planned meanwhile.
    fn track(&mut self, steps: &[Step], options: &GraphOptions) {
        for (index, step) in steps.iter().enumerate().skip(self.num_tracked) {
            match *step {
                Step::Edge(EdgeUpdate { source, target, addition }) => {
                    let Some(ends) = stored(options, (source, target)) else { continue };
                    let pair = self.pair(ends);
                    pair.step = index;
                    if addition.is_none() || !options.multigraph {
                        pair.edges.clear();
                        pair.is_whole = true;
                    }
                    pair.edges.extend(addition);
                }
                Step::RemoveVertex(vertex) => {
                    self.removed.insert(vertex, index);
                }
                Step::AddVertex(_) | Step::SetValue(_) => {}
            }
        }
        self.num_tracked = steps.len();
    }

    /// The edges of a pair, as far as tracked steps say.
    fn pair(&mut self, ends: Ends) -> &mut PlannedPair {
        let removed = [ends.0, ends.1].iter().filter_map(|end| self.removed.get(end).copied()).max();
        let pair = self.pairs.entry(ends).or_default();
        if let Some(step) = removed.filter(|&step| step >= pair.step) {
            *pair = PlannedPair { step: step + 1, is_whole: true, edges: Vec::new() };
        }
        pair
    }
}

/// The ends of an edge as the graph stores them; `None` where it stores no such edge.
pub(super) fn stored(options: &GraphOptions, ends: Ends) -> Option<Ends> {
    (!options.ordered || ends.0 != ends.1).then(|| stored_ends(options, ends))
}

impl Writer {
    pub(super) fn options(&self) -> &GraphOptions {
        self.underlay.view().options()
    }

    /// Plans an edge that is to be there, with a weight of these bits if the graph has weights and with these values of
    /// properties, or to be gone. In a simple graph, an edge that is there keeps its other values.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_edge(
        &self,
        mut edge: EdgeUpdate,
        values: Vec<(usize, OwnedValue)>,
        plan: &mut Plan,
        finder: &mut Finder<'_>,
    ) -> Result<()> {
        let options = self.options();
        if options.edge_properties && edge.addition.is_some() {
            if let Some(ends) = stored(options, (edge.source, edge.target))
                && !options.multigraph
                && !self.planned_edges(ends, plan, finder)?.is_empty()
            {
                for (place, value) in values {
                    self.plan_edge_value(ends, place, value, plan, finder)?;
                }
                return Ok(());
            }
            edge.addition = Some(plan.edges.new_row(row_of(values)));
        }
        plan.steps.push(Step::Edge(edge));
        Ok(())
    }

    /// Plans a weight of all edges of a pair; where there is none, one is made.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_weight(&self, edge: EdgeUpdate, plan: &mut Plan, finder: &mut Finder<'_>) -> Result<()> {
        let options = self.options();
        let mut num_edges = 1;
        if options.multigraph
            && let Some(ends) = stored(options, (edge.source, edge.target))
        {
            num_edges = self.planned_edges(ends, plan, finder)?.len().max(1);
            plan.steps.push(Step::Edge(EdgeUpdate { addition: None, ..edge }));
        }
        plan.steps.extend(std::iter::repeat_n(Step::Edge(edge), num_edges));
        Ok(())
    }

    /// Plans a value of the edge of a pair that was added last. Returns whether there is an edge, and a value where one is
    /// taken away.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_edge_value(
        &self,
        ends: Ends,
        place: usize,
        value: OwnedValue,
        plan: &mut Plan,
        finder: &mut Finder<'_>,
    ) -> Result<bool> {
        let options = self.options();
        let Some(ends) = stored(options, ends) else { return Ok(false) };
        plan.edges.track(&plan.steps, options);
        let newest = plan.edges.pair(ends).edges.last().copied().and_then(|row| plan.edges.place_of(row));
        if let Some(own) = newest.filter(|&own| own >= plan.edges.request_start) {
            return Ok(set(&mut plan.edges.rows[own], place, value));
        }
        let edges = self.planned_edges(ends, plan, finder)?;
        let Some((&row, others)) = edges.split_last() else { return Ok(false) };
        let others = others.to_vec();
        let mut values = match plan.edges.place_of(row) {
            Some(place) => plan.edges.rows[place].clone(),
            None => self.newest.row_values(row)?,
        };
        if values.get(place).unwrap_or(&OwnedValue::Null) == &value {
            return Ok(value != OwnedValue::Null);
        }
        set(&mut values, place, value);
        let edge = |addition| Step::Edge(EdgeUpdate { source: ends.0, target: ends.1, addition });
        if options.multigraph {
            plan.steps.push(edge(None));
            plan.steps.extend(others.into_iter().map(|row| edge(Some(row))));
        }
        let row = plan.edges.new_row(values);
        plan.steps.push(edge(Some(row)));
        Ok(true)
    }

    /// All edges of a pair after the steps of a plan.
    fn planned_edges<'p>(&self, ends: Ends, plan: &'p mut Plan, finder: &mut Finder<'_>) -> Result<&'p [u64]> {
        plan.edges.track(&plan.steps, self.options());
        let pair = plan.edges.pair(ends);
        if !pair.is_whole {
            let mut edges = self.newest.edges(ends.0, ends.1, finder)?;
            edges.append(&mut pair.edges);
            (pair.edges, pair.is_whole) = (edges, true);
        }
        Ok(&pair.edges)
    }
}

/// A row with values at these places.
fn row_of(values: Vec<(usize, OwnedValue)>) -> Vec<OwnedValue> {
    let is_dense = values.iter().enumerate().all(|(index, (place, _))| index == *place);
    if is_dense {
        return values.into_iter().map(|(_, value)| value).collect();
    }
    let mut row = Vec::new();
    for (place, value) in values {
        set(&mut row, place, value);
    }
    row
}

/// Gives a row a value; returns whether it has one now, or had one before.
fn set(values: &mut Vec<OwnedValue>, place: usize, value: OwnedValue) -> bool {
    if values.len() <= place {
        values.resize(place + 1, OwnedValue::Null);
    }
    let is_null = value == OwnedValue::Null;
    let before = std::mem::replace(&mut values[place], value);
    !is_null || before != OwnedValue::Null
}
