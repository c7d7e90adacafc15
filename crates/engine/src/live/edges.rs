//! What a batch makes of the edges of a pair of vertices, where that depends on which edges there are.
//!
//! In a multigraph, and where edges have properties, an entry of a list is one edge and carries its weight and the number
//! of its row. A plan says exactly which entries a pair is to have, so recovery applies it without a lookup. A pair is
//! removed whole and gets all its entries anew; a pair that only gains edges keeps the ones that it has.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use base::VertexId;
use graph::property::OwnedValue;
use lama::{ArcData, Finder, GraphOptions};

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
    /// Maps each later row of an edge to the first row of the edge.
    first_rows: BTreeMap<u64, u64>,
    /// The rows of the request that is being planned begin here. No version shows them yet, so they may still change.
    request_start: usize,
    /// Of a multigraph, the numbers of the edges that the request adds; `None` of a loop that is not stored.
    pub(super) numbers: Vec<Option<u64>>,
    /// Edges of pairs after the steps that were tracked.
    pairs: HashMap<Ends, PlannedPair>,
    /// The pair that was replaced last by this request, and the steps that do so.
    replaced: Option<(Ends, Range<usize>)>,
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
    /// What stands beside each, in the order in which they were added.
    edges: Vec<ArcData>,
}

/// Some of the edges of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// The one that was added last.
    Last,
    /// The one with this number.
    Numbered(u64),
    All,
}

/// What becomes of one edge, whose properties have places.
#[derive(Debug)]
pub(super) enum PlannedAction {
    Remove,
    /// The bits of its new weight.
    SetWeight(u64),
    SetValue(usize, OwnedValue),
}

/// What is to become of an edge.
#[derive(Clone, Copy, Debug)]
struct EdgeChange<'a> {
    /// The bits of a new weight; otherwise it stays.
    weight: Option<u64>,
    /// New values, with the places of their properties.
    values: &'a [(usize, OwnedValue)],
}

impl EdgePlan {
    /// Without edges; rows begin at `first_row`.
    pub(super) fn new(first_row: u64) -> Self {
        let (rows, first_rows, numbers, pairs, replaced, removed) = Default::default();
        Self { first_row, rows, first_rows, request_start: 0, numbers, pairs, replaced, removed, num_tracked: 0 }
    }

    /// The rows with their numbers.
    pub(super) fn numbered_rows(&self) -> impl ExactSizeIterator<Item = (u64, &[OwnedValue])> {
        self.rows.iter().enumerate().map(|(index, values)| (self.first_row + index as u64, &values[..]))
    }

    /// Rows that are not the first of their edges, and the first ones.
    pub(super) fn first_rows(&self) -> impl Iterator<Item = (u64, u64)> {
        self.first_rows.iter().map(|(&row, &first)| (row, first))
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
        self.numbers.clear();
        self.replaced = None;
        self.request_start = self.rows.len();
        self.request_start
    }

    /// Forgets a request that is not right.
    pub(super) fn cut(&mut self, num_rows: usize) {
        self.rows.truncate(num_rows);
        self.first_rows.split_off(&self.end());
        // The steps that are left are tracked again where that is needed.
        self.pairs.clear();
        self.replaced = None;
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

    /// The place of a row that the current request makes; such a row may still change.
    fn own_place(&self, row: u64) -> Option<usize> {
        self.place_of(row).filter(|&place| place >= self.request_start)
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
        if let Some(data) = edge.addition.filter(|_| options.has_rows()) {
            let change = EdgeChange { weight: options.weight_type.map(|_| data.weight), values: &values };
            let ends = (edge.source, edge.target);
            if !options.multigraph && self.change_edges(ends, Which::Last, &change, plan, finder)?.is_some() {
                return Ok(());
            }
            let row = plan.edges.new_row(row_of(values));
            edge.addition = Some(ArcData { row, ..data });
            if options.multigraph {
                plan.edges.numbers.push(stored(options, (edge.source, edge.target)).map(|_| row));
            }
        }
        plan.steps.push(Step::Edge(edge));
        Ok(())
    }

    /// Plans a weight of all edges of a pair; where there is none, one is made.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_weight(&self, edge: EdgeUpdate, plan: &mut Plan, finder: &mut Finder<'_>) -> Result<()> {
        let change = EdgeChange { weight: edge.addition.map(|data| data.weight), values: &[] };
        let ends = (edge.source, edge.target);
        if self.options().has_rows() && self.change_edges(ends, Which::All, &change, plan, finder)?.is_some() {
            return Ok(());
        }
        self.plan_edge(edge, Vec::new(), plan, finder)
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
        let change = EdgeChange { weight: None, values: &[(place, value)] };
        Ok(self.change_edges(ends, Which::Last, &change, plan, finder)?.unwrap_or(false))
    }

    /// Plans what becomes of one edge of a multigraph. Returns whether there is such an edge.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(super) fn plan_action(
        &self,
        ends: Ends,
        number: u64,
        action: PlannedAction,
        plan: &mut Plan,
        finder: &mut Finder<'_>,
    ) -> Result<bool> {
        let which = Which::Numbered(number);
        let change = match &action {
            PlannedAction::Remove => {
                let Some(ends) = stored(self.options(), ends) else { return Ok(false) };
                let mut edges = self.planned_edges(ends, plan, finder)?.to_vec();
                let places = self.places_of(which, &edges, plan)?;
                let is_there = !places.is_empty();
                edges.drain(places);
                if is_there {
                    self.replace_edges(ends, edges, plan);
                }
                return Ok(is_there);
            }
            &PlannedAction::SetWeight(weight) => EdgeChange { weight: Some(weight), values: &[] },
            PlannedAction::SetValue(place, value) => EdgeChange { weight: None, values: &[(*place, value.clone())] },
        };
        Ok(self.change_edges(ends, which, &change, plan, finder)?.is_some())
    }

    /// The places of some of these edges.
    ///
    /// # Errors
    /// Damage in the snapshot.
    fn places_of(&self, which: Which, edges: &[ArcData], plan: &Plan) -> Result<Range<usize>> {
        let number = |data: &ArcData| self.planned_number(data.row, plan);
        let place = match which {
            Which::All => return Ok(0..edges.len()),
            Which::Last if edges.len() <= 1 => edges.len().checked_sub(1),
            Which::Last => {
                let numbers = edges.iter().map(number).collect::<Result<Vec<_>>>()?;
                (0..edges.len()).max_by_key(|&place| numbers[place])
            }
            Which::Numbered(wanted) => {
                let numbers = edges.iter().map(number).collect::<Result<Vec<_>>>()?;
                numbers.iter().position(|&number| number == wanted)
            }
        };
        Ok(place.map_or(0..0, |place| place..place + 1))
    }

    /// The number of the edge that has a row.
    fn planned_number(&self, row: u64, plan: &Plan) -> Result<u64> {
        match plan.edges.first_rows.get(&row) {
            Some(&first) => Ok(first),
            None if plan.edges.place_of(row).is_some() => Ok(row),
            None => self.newest.edge_number(row),
        }
    }

    /// Plans that a pair has these edges and no others. Steps of the request that replaced the same pair just before are
    /// forgotten: many changes of one pair would else make as many steps as they are times its edges.
    fn replace_edges(&self, ends: Ends, edges: Vec<ArcData>, plan: &mut Plan) {
        if let Some((_, steps)) = plan.edges.replaced.take().filter(|(pair, _)| *pair == ends)
            && steps.end == plan.steps.len()
        {
            plan.steps.truncate(steps.start);
            plan.edges.num_tracked = plan.edges.num_tracked.min(steps.start);
        }
        let first = plan.steps.len();
        let edge = |addition| Step::Edge(EdgeUpdate { source: ends.0, target: ends.1, addition });
        // In a simple graph, the last addition counts.
        plan.steps.extend(self.options().multigraph.then(|| edge(None)));
        plan.steps.extend(edges.into_iter().map(|data| edge(Some(data))));
        plan.edges.replaced = Some((ends, first..plan.steps.len()));
    }

    /// Plans changes of edges of a pair. An edge whose weight or values change gets a new row, because versions show
    /// the old one.
    /// Returns whether one of them has a value, or had one that is taken away; `None` where there is no such edge.
    ///
    /// # Errors
    /// Damage in the snapshot.
    fn change_edges(
        &self,
        ends: Ends,
        which: Which,
        change: &EdgeChange<'_>,
        plan: &mut Plan,
        finder: &mut Finder<'_>,
    ) -> Result<Option<bool>> {
        let options = self.options();
        let Some(ends) = stored(options, ends) else { return Ok(None) };
        plan.edges.track(&plan.steps, options);
        if which == Which::Last && change.weight.is_none() {
            // The usual case, an edge of this request, needs no look at the others.
            let newest = plan.edges.pair(ends).edges.last().map(|data| data.row);
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
            self.replace_edges(ends, edges, plan);
        }
        Ok(Some(has_value))
    }

    /// The values of a row that the plan makes, or that is there.
    fn planned_values(&self, row: u64, plan: &Plan) -> Result<Vec<OwnedValue>> {
        match plan.edges.place_of(row) {
            Some(place) => Ok(plan.edges.rows[place].clone()),
            None => self.newest.row_values(row),
        }
    }

    /// All edges of a pair after the steps of a plan.
    pub(super) fn planned_edges<'p>(
        &self,
        ends: Ends,
        plan: &'p mut Plan,
        finder: &mut Finder<'_>,
    ) -> Result<&'p [ArcData]> {
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

/// Gives a row values; returns whether one of them is a value now, or was one before.
fn set_all(row: &mut Vec<OwnedValue>, values: &[(usize, OwnedValue)]) -> bool {
    values.iter().fold(false, |has_value, (place, value)| set(row, *place, value.clone()) | has_value)
}

/// Whether two rows have the same values; behind the last one, all are null.
fn is_same_row(row: &[OwnedValue], other: &[OwnedValue]) -> bool {
    let value = |row: &[OwnedValue], place: usize| row.get(place).cloned().unwrap_or(OwnedValue::Null);
    (0..row.len().max(other.len())).all(|place| value(row, place) == value(other, place))
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
