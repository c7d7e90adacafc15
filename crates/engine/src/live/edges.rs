//! Plans changes of edges that depend on the existing edges of a pair.
//!
//! In a multigraph, and if edges have properties, each arc carries a weight and the number of its row. A plan lists the
//! exact arcs of a pair, so recovery applies it without a lookup. A changed pair is removed whole and gets all its arcs
//! anew; a pair that only gains edges keeps its arcs.

use std::collections::BTreeMap;
use std::ops::Range;

use anden_base::VertexId;
use anden_graph::property::OwnedValue;
use anden_snapshots::{ArcData, Finder, GraphOptions};
use foldhash::HashMap;

use super::MemtableWriter;
use super::apply::{BatchPlan, BatchStep, EdgeUpdate};
use crate::Result;
use crate::validation::stored_ends;

/// The ends of an edge in the order of storage.
pub(super) type EdgeEnds = (VertexId, VertexId);

/// The rows of a plan, and the edges of the pairs that it changes.
#[derive(Debug)]
pub(super) struct EdgePlan {
    /// The number of the first row.
    first_row: u64,
    /// The values of each row by property; missing ones at the end are null.
    pub(super) rows: Vec<Vec<OwnedValue>>,
    /// Maps each later row of an edge to the first row of the edge: of all edges of the pairs that the plan replaces.
    first_rows: BTreeMap<u64, u64>,
    /// First row of the current request. No version shows these rows yet, so they may still change.
    request_start: usize,
    /// In a multigraph, the numbers of the edges that the request adds; `None` for a loop that is not stored.
    pub(super) numbers: Vec<Option<u64>>,
    /// Edges of pairs after the tracked steps.
    pairs: HashMap<EdgeEnds, PlannedPair>,
    /// The pair that the request replaced last, and the steps that do so.
    replaced: Option<(EdgeEnds, Range<usize>)>,
    /// Vertices that a tracked step removes, with the last such step.
    removed: HashMap<VertexId, usize>,
    num_tracked: usize,
}

/// The edges of one pair.
#[derive(Debug, Default)]
struct PlannedPair {
    /// The last tracked step of the pair.
    step: usize,
    /// Whether `edges` includes those below the plan.
    is_whole: bool,
    /// Row and weight of each edge, in the order in which they were added.
    edges: Vec<ArcData>,
}

/// Selects edges of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EdgeSelector {
    /// The last added edge.
    Last,
    /// The edge with this number.
    Numbered(u64),
    All,
}

/// A change of one edge, with properties resolved to indexes.
#[derive(Debug)]
pub(super) enum PlannedAction {
    Remove,
    /// The bits of the new weight.
    SetWeight(u64),
    SetValue(usize, OwnedValue),
}

/// A change of the weight or the values of an edge.
#[derive(Clone, Copy, Debug)]
struct EdgeChange<'a> {
    /// The bits of a new weight; `None` keeps the weight.
    weight: Option<u64>,
    /// New values, with the indexes of their properties.
    values: &'a [(usize, OwnedValue)],
}

impl EdgePlan {
    /// An empty plan; its rows begin at `first_row`.
    pub(super) fn new(first_row: u64) -> Self {
        let (rows, first_rows, numbers, pairs, replaced, removed) = Default::default();
        Self { first_row, rows, first_rows, request_start: 0, numbers, pairs, replaced, removed, num_tracked: 0 }
    }

    /// The rows with their numbers.
    pub(super) fn numbered_rows(&self) -> impl ExactSizeIterator<Item = (u64, &[OwnedValue])> {
        self.rows.iter().enumerate().map(|(index, values)| (self.first_row + index as u64, &values[..]))
    }

    /// Later rows of edges, with the first rows of these edges.
    pub(super) fn first_rows(&self) -> impl Iterator<Item = (u64, u64)> {
        self.first_rows.iter().map(|(&row, &first)| (row, first))
    }

    /// Lets the rows begin at `first_row`; lower numbers belong to rows outside the plan.
    pub(super) fn begin_at(&mut self, first_row: u64) {
        debug_assert!(self.rows.is_empty());
        self.first_row = first_row;
    }

    /// The number after the last row.
    pub(super) fn end(&self) -> u64 {
        self.first_row + self.rows.len() as u64
    }

    /// Begins a request. [`forget_after`](Self::forget_after) takes the returned number to forget the request.
    pub(super) fn begin_request(&mut self) -> usize {
        self.numbers.clear();
        self.replaced = None;
        self.request_start = self.rows.len();
        self.request_start
    }

    /// Forgets an invalid request.
    pub(super) fn forget_after(&mut self, num_rows: usize) {
        self.rows.truncate(num_rows);
        // Only rows of earlier requests keep their entries.
        self.first_rows.split_off(&self.end());
        // The remaining steps are tracked again when needed.
        self.pairs.clear();
        self.replaced = None;
        self.removed.clear();
        self.num_tracked = 0;
    }

    fn new_row(&mut self, values: Vec<OwnedValue>) -> u64 {
        self.rows.push(values);
        self.first_row + self.rows.len() as u64 - 1
    }

    /// The index of a row of this plan.
    fn place_of(&self, row: u64) -> Option<usize> {
        row.checked_sub(self.first_row).map(|place| place as usize)
    }

    /// The index of a row of the current request; such a row may still change.
    fn own_place(&self, row: u64) -> Option<usize> {
        self.place_of(row).filter(|&place| place >= self.request_start)
    }

    /// Tracks the steps that were planned since the last call.
    fn track(&mut self, steps: &[BatchStep], options: &GraphOptions) {
        for (index, step) in steps.iter().enumerate().skip(self.num_tracked) {
            match *step {
                BatchStep::Edge(EdgeUpdate { source, target, addition }) => {
                    let Some(ends) = stored(options, (source, target)) else { continue };
                    let pair = self.pair(ends);
                    pair.step = index;
                    // From here on the plan knows all edges of the pair.
                    if addition.is_none() || !options.multigraph {
                        pair.edges.clear();
                        pair.is_whole = true;
                    }
                    pair.edges.extend(addition);
                }
                BatchStep::RemoveVertex(vertex) => {
                    self.removed.insert(vertex, index);
                }
                BatchStep::AddVertex(_) | BatchStep::SetValue(_) => {}
            }
        }
        self.num_tracked = steps.len();
    }

    /// The edges of a pair, as far as tracked steps tell.
    fn pair(&mut self, ends: EdgeEnds) -> &mut PlannedPair {
        let removed = [ends.0, ends.1].iter().filter_map(|end| self.removed.get(end).copied()).max();
        let pair = self.pairs.entry(ends).or_default();
        // The removal came after the last step of the pair, and took the edges of the pair along.
        if let Some(step) = removed.filter(|&step| step >= pair.step) {
            *pair = PlannedPair { step: step + 1, is_whole: true, edges: Vec::new() };
        }
        pair
    }
}

/// The ends of an edge in the order of storage; `None` if the graph does not store such an edge.
pub(super) fn stored(options: &GraphOptions, ends: EdgeEnds) -> Option<EdgeEnds> {
    (!options.ordered || ends.0 != ends.1).then(|| stored_ends(options, ends))
}

impl MemtableWriter {
    pub(super) fn options(&self) -> &GraphOptions {
        self.overlay_base.view().options()
    }

    /// Plans an insertion, with the bits of a weight if the graph has weights and with values of properties, or a
    /// deletion. An existing edge of a simple graph keeps its other values.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_edge(
        &self,
        mut edge: EdgeUpdate,
        values: Vec<(usize, OwnedValue)>,
        plan: &mut BatchPlan,
        finder: &mut Finder<'_>,
    ) -> Result<()> {
        let options = self.options();
        // Without rows, the change needs no look at the existing edges.
        if let Some(data) = edge.addition.filter(|_| options.has_rows()) {
            let change = EdgeChange { weight: options.weight_type.map(|_| data.weight), values: &values };
            let ends = (edge.source, edge.target);
            if !options.multigraph && self.change_edges(ends, EdgeSelector::Last, &change, plan, finder)?.is_some() {
                return Ok(());
            }
            let row = plan.edges.new_row(row_of(values));
            edge.addition = Some(ArcData { row, ..data });
            if options.multigraph {
                // The number of a new edge is that of its first row.
                plan.edges.numbers.push(stored(options, (edge.source, edge.target)).map(|_| row));
            }
        }
        plan.steps.push(BatchStep::Edge(edge));
        Ok(())
    }

    /// Plans a weight of all edges of a pair, or a new edge if there is none.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_weight(&self, edge: EdgeUpdate, plan: &mut BatchPlan, finder: &mut Finder<'_>) -> Result<()> {
        let change = EdgeChange { weight: edge.addition.map(|data| data.weight), values: &[] };
        let ends = (edge.source, edge.target);
        if self.options().has_rows() && self.change_edges(ends, EdgeSelector::All, &change, plan, finder)?.is_some() {
            return Ok(());
        }
        self.plan_edge(edge, Vec::new(), plan, finder)
    }

    /// Plans a value of the last added edge of a pair. Returns whether there is an edge and, for null, a value to
    /// remove.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_edge_value(
        &self,
        ends: EdgeEnds,
        place: usize,
        value: OwnedValue,
        plan: &mut BatchPlan,
        finder: &mut Finder<'_>,
    ) -> Result<bool> {
        let change = EdgeChange { weight: None, values: &[(place, value)] };
        Ok(self.change_edges(ends, EdgeSelector::Last, &change, plan, finder)?.unwrap_or(false))
    }

    /// Plans a change of one edge of a multigraph. Returns whether there is such an edge.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_action(
        &self,
        ends: EdgeEnds,
        number: u64,
        action: PlannedAction,
        plan: &mut BatchPlan,
        finder: &mut Finder<'_>,
    ) -> Result<bool> {
        let which = EdgeSelector::Numbered(number);
        let change = match &action {
            PlannedAction::Remove => {
                let Some(ends) = stored(self.options(), ends) else { return Ok(false) };
                let mut edges = self.planned_edges(ends, plan, finder)?.to_vec();
                let places = self.places_of(which, &edges, plan)?;
                let is_there = !places.is_empty();
                edges.drain(places);
                if is_there {
                    self.replace_edges(ends, edges, plan)?;
                }
                return Ok(is_there);
            }
            &PlannedAction::SetWeight(weight) => EdgeChange { weight: Some(weight), values: &[] },
            PlannedAction::SetValue(place, value) => EdgeChange { weight: None, values: &[(*place, value.clone())] },
        };
        Ok(self.change_edges(ends, which, &change, plan, finder)?.is_some())
    }

    /// The indexes of the selected edges.
    ///
    /// # Errors
    /// Damage in the snapshot.
    fn places_of(&self, which: EdgeSelector, edges: &[ArcData], plan: &BatchPlan) -> Result<Range<usize>> {
        let number = |data: &ArcData| self.planned_number(data.row, plan);
        let place = match which {
            EdgeSelector::All => return Ok(0..edges.len()),
            // The usual case needs no edge numbers.
            EdgeSelector::Last if edges.len() <= 1 => edges.len().checked_sub(1),
            EdgeSelector::Last => {
                let numbers = edges.iter().map(number).collect::<Result<Vec<_>>>()?;
                // Numbers ascend in the order of addition.
                (0..edges.len()).max_by_key(|&place| numbers[place])
            }
            EdgeSelector::Numbered(wanted) => {
                let numbers = edges.iter().map(number).collect::<Result<Vec<_>>>()?;
                numbers.iter().position(|&number| number == wanted)
            }
        };
        Ok(place.map_or(0..0, |place| place..place + 1))
    }

    /// The number of the edge that has a row.
    fn planned_number(&self, row: u64, plan: &BatchPlan) -> Result<u64> {
        match plan.edges.first_rows.get(&row) {
            Some(&first) => Ok(first),
            None if plan.edges.place_of(row).is_some() => Ok(row),
            None => self.newest.edge_number(row),
        }
    }

    /// Plans that a pair has exactly these edges. Replaces the request's previous steps for the pair, if those are the
    /// last ones: otherwise n changes of a pair would make n times its edges in steps.
    ///
    /// # Errors
    /// Damage in the snapshot.
    fn replace_edges(&self, ends: EdgeEnds, edges: Vec<ArcData>, plan: &mut BatchPlan) -> Result<()> {
        if self.options().multigraph {
            // The record names the edges that stay, too: with their numbers, a reader of the record needs no lookup.
            for data in &edges {
                let number = self.planned_number(data.row, plan)?;
                if number != data.row {
                    plan.edges.first_rows.insert(data.row, number);
                }
            }
        }
        if let Some((_, steps)) = plan.edges.replaced.take().filter(|(pair, _)| *pair == ends)
            && steps.end == plan.steps.len()
        {
            plan.steps.truncate(steps.start);
            plan.edges.num_tracked = plan.edges.num_tracked.min(steps.start);
        }
        let first = plan.steps.len();
        let edge = |addition| BatchStep::Edge(EdgeUpdate { source: ends.0, target: ends.1, addition });
        // In a simple graph, the last addition replaces the edge, so no deletion is needed.
        plan.steps.extend(self.options().multigraph.then(|| edge(None)));
        plan.steps.extend(edges.into_iter().map(|data| edge(Some(data))));
        plan.edges.replaced = Some((ends, first..plan.steps.len()));
        Ok(())
    }

    /// Plans changes of edges of a pair. An edge whose weight or values change gets a new row, because versions show
    /// the old one. Returns whether one of them has a value, or had a removed one; `None` if there is no such edge.
    ///
    /// # Errors
    /// Damage in the snapshot.
    fn change_edges(
        &self,
        ends: EdgeEnds,
        which: EdgeSelector,
        change: &EdgeChange<'_>,
        plan: &mut BatchPlan,
        finder: &mut Finder<'_>,
    ) -> Result<Option<bool>> {
        let options = self.options();
        let Some(ends) = stored(options, ends) else { return Ok(None) };
        plan.edges.track(&plan.steps, options);
        if which == EdgeSelector::Last && change.weight.is_none() {
            // The usual case, an edge of this request: its row may still change in place.
            let newest = plan.edges.pair(ends).edges.last().map(|data| data.row);
            // A later row of an older edge does not make that edge the last added one.
            let newest = newest.filter(|row| !plan.edges.first_rows.contains_key(row));
            if let Some(own) = newest.and_then(|row| plan.edges.own_place(row)) {
                return Ok(Some(set_all(&mut plan.edges.rows[own], change.values)));
            }
        }
        let mut edges = self.planned_edges(ends, plan, finder)?.to_vec();
        let places = self.places_of(which, &edges, plan)?;
        if places.is_empty() {
            return Ok(None);
        }
        let (mut has_value, mut is_changed) = (false, false);
        for data in &mut edges[places] {
            let old = *data;
            data.weight = change.weight.unwrap_or(old.weight);
            match plan.edges.own_place(old.row) {
                Some(own) => has_value |= set_all(&mut plan.edges.rows[own], change.values),
                None => {
                    let mut values = self.planned_values(old.row, plan)?;
                    let before = values.clone();
                    has_value |= set_all(&mut values, change.values);
                    // An edge that does not change keeps its row, so that the delta does not contain it.
                    if data.weight != old.weight || !is_same_row(&values, &before) {
                        data.row = plan.edges.new_row(values);
                        if options.multigraph {
                            let number = self.planned_number(old.row, plan)?;
                            plan.edges.first_rows.insert(data.row, number);
                        }
                    }
                }
            }
            is_changed |= *data != old;
        }
        if is_changed {
            self.replace_edges(ends, edges, plan)?;
        }
        Ok(Some(has_value))
    }

    /// The values of a row of the plan, or of the newest version.
    fn planned_values(&self, row: u64, plan: &BatchPlan) -> Result<Vec<OwnedValue>> {
        match plan.edges.place_of(row) {
            Some(place) => Ok(plan.edges.rows[place].clone()),
            None => self.newest.row_values(row),
        }
    }

    /// All edges of a pair after the steps of a plan.
    pub(super) fn planned_edges<'p>(
        &self,
        ends: EdgeEnds,
        plan: &'p mut BatchPlan,
        finder: &mut Finder<'_>,
    ) -> Result<&'p [ArcData]> {
        plan.edges.track(&plan.steps, self.options());
        let pair = plan.edges.pair(ends);
        // Looked up on demand, because an addition to a multigraph needs no edges below.
        if !pair.is_whole {
            let mut edges = self.newest.edges(ends.0, ends.1, finder)?;
            edges.append(&mut pair.edges);
            (pair.edges, pair.is_whole) = (edges, true);
        }
        Ok(&pair.edges)
    }
}

/// A row with these values at the indexes of their properties.
fn row_of(values: Vec<(usize, OwnedValue)>) -> Vec<OwnedValue> {
    // Values that come in the order of the schema are the row already.
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

/// Sets values of a row. Returns whether one of them is not null, or was not before.
fn set_all(row: &mut Vec<OwnedValue>, values: &[(usize, OwnedValue)]) -> bool {
    values.iter().fold(false, |has_value, (place, value)| set(row, *place, value.clone()) | has_value)
}

/// Whether two rows have equal values; missing ones at the end are null.
fn is_same_row(row: &[OwnedValue], other: &[OwnedValue]) -> bool {
    let value = |row: &[OwnedValue], place: usize| row.get(place).cloned().unwrap_or(OwnedValue::Null);
    (0..row.len().max(other.len())).all(|place| value(row, place) == value(other, place))
}

/// Sets a value of a row. Returns whether it is not null, or was not before.
fn set(values: &mut Vec<OwnedValue>, place: usize, value: OwnedValue) -> bool {
    if values.len() <= place {
        values.resize(place + 1, OwnedValue::Null);
    }
    let is_null = value == OwnedValue::Null;
    let before = std::mem::replace(&mut values[place], value);
    !is_null || before != OwnedValue::Null
}
