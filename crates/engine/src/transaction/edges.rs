//! Edges of a transaction.

use std::ops::ControlFlow;

use base::VertexId;
use graph::{Graph, Weight, WeightType, WeightedEdges};
use lama::{Key, Side};

use super::{Place, Transaction};
use crate::append::weight_bits;
use crate::live::{EdgeUpdate, Update};
use crate::validation::ReadKey;
use crate::{EdgeWeight, Error, Result};

impl Transaction<'_> {
    /// Whether there is an edge; there is none where an end is not there.
    ///
    /// # Errors
    /// A key is none of this graph; damage met on the way.
    pub fn has_edge(&self, source: &Key, target: &Key) -> Result<bool> {
        Ok(self.find_edge(source, target)? > 0)
    }

    /// Adds an edge, with its ends where they are not there; one that is there gets the weight, and a multigraph one more.
    /// Reads nothing.
    ///
    /// # Errors
    /// A key or the weight does not fit the graph.
    pub fn add_edge(&mut self, source: &Key, target: &Key, weight: Option<EdgeWeight>) -> Result<()> {
        let (source, target) = (self.fitting(source)?, self.fitting(target)?);
        let bits = weight_bits((&source, &target), weight, self.view.options())?;
        let ends = (self.make(&source)?, self.make(&target)?);
        self.change_edge(ends, Some(bits));
        self.updates.push(Update::AddEdge { source, target, weight, properties: Vec::new() });
        Ok(())
    }

    /// Adds an edge if there is none; whether there was none. One that is there keeps its weight.
    ///
    /// # Errors
    /// As [`add_edge`](Self::add_edge); damage met on the way.
    pub fn insert_edge(&mut self, source: &Key, target: &Key, weight: Option<EdgeWeight>) -> Result<bool> {
        let is_new = !self.has_edge(source, target)?;
        if is_new {
            self.add_edge(source, target, weight)?;
        }
        Ok(is_new)
    }

    /// Removes an edge if it is there, of a multigraph all of the pair. Reads nothing.
    ///
    /// # Errors
    /// A key is none of this graph; damage in the dictionary.
    pub fn remove_edge(&mut self, source: &Key, target: &Key) -> Result<()> {
        let (source, target) = (self.fitting(source)?, self.fitting(target)?);
        if let (Some(from), Some(to)) = (self.id(self.place(&source)?), self.id(self.place(&target)?)) {
            self.change_edge((from, to), None);
        }
        self.updates.push(Update::RemoveEdge { source, target });
        Ok(())
    }

    /// The weight of an edge, of a multigraph of one of the pair; `None` where there is no edge, or no weights.
    ///
    /// # Errors
    /// As [`has_edge`](Self::has_edge).
    pub fn weight(&self, source: &Key, target: &Key) -> Result<Option<EdgeWeight>> {
        let Some(weight_type) = self.view.weight_type() else { return Ok(None) };
        let Some((source, target)) = self.ends(source, target)? else { return Ok(None) };
        self.note_edge(source, target);
        let own = self.own.list(Side::Out, source);
        if let Some((_, bits)) = own.and_then(|list| list.added(target)) {
            return Ok(Some(weight_of(bits, weight_type)));
        }
        if !self.is_edge_of_view(source, target) {
            return Ok(None);
        }
        let bits = match weight_type {
            WeightType::U32 => self.weight_in_view::<u32>(source, target),
            WeightType::I64 => self.weight_in_view::<i64>(source, target),
            WeightType::F32 => self.weight_in_view::<f32>(source, target),
            WeightType::F64 => self.weight_in_view::<f64>(source, target),
        };
        self.view.check()?;
        Ok(bits.map(|bits| weight_of(bits, weight_type)))
    }

    /// Gives an edge that is there a weight, of a multigraph all of the pair.
    ///
    /// # Errors
    /// There is no such edge; the weight does not fit the graph; damage met on the way.
    pub fn set_weight(&mut self, source: &Key, target: &Key, weight: EdgeWeight) -> Result<()> {
        let num_edges = self.require_edge(source, target)?;
        let (source, target) = (self.fitting(source)?, self.fitting(target)?);
        let bits = weight_bits((&source, &target), Some(weight), self.view.options())?;
        let ends = (self.make(&source)?, self.make(&target)?);
        if self.view.is_multigraph() {
            self.change_edge(ends, None);
        }
        (0..num_edges).for_each(|_| self.change_edge(ends, Some(bits)));
        self.updates.push(Update::SetWeight { source, target, weight });
        Ok(())
    }

    /// The number of edges from one vertex to another, of which there is one.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn require_edge(&self, source: &Key, target: &Key) -> Result<usize> {
        match self.find_edge(source, target)? {
            0 => Err(Error::no_edge(source, target)),
            num_edges => Ok(num_edges),
        }
    }

    pub(super) fn change_edge(&mut self, (source, target): (VertexId, VertexId), addition: Option<u64>) {
        let edge = EdgeUpdate { source, target, addition };
        self.own.change_edge(edge, self.view.options());
    }

    /// The id that a key leads to.
    pub(super) fn id(&self, place: Place) -> Option<VertexId> {
        match place {
            Place::View(vertex) | Place::Own(vertex) => Some(vertex),
            Place::Nowhere => None,
        }
    }

    /// The ends of an edge in the order in which it is stored; `None` where one has no id, which is noted.
    pub(super) fn ends(&self, source: &Key, target: &Key) -> Result<Option<(VertexId, VertexId)>> {
        let keys = [self.fitting(source)?, self.fitting(target)?];
        let mut ends = [0; 2];
        for (end, key) in ends.iter_mut().zip(&keys) {
            match self.id(self.place(key)?) {
                Some(vertex) => *end = vertex,
                None => {
                    self.note_absent(key);
                    return Ok(None);
                }
            }
        }
        let is_turned = self.view.options().ordered && ends[0] > ends[1];
        Ok(Some(if is_turned { (ends[1], ends[0]) } else { (ends[0], ends[1]) }))
    }

    /// An edge is read; one of a vertex that was made here is no edge of the view.
    pub(super) fn note_edge(&self, source: VertexId, target: VertexId) {
        let newer = source.max(target);
        self.note_of(newer, ReadKey::edge(self.view.options(), source, target));
    }

    /// Whether the edges that the view has between two vertices count.
    pub(super) fn is_edge_of_view(&self, source: VertexId, target: VertexId) -> bool {
        let own = &self.own;
        (source.max(target) as usize) < own.first_new
            && !own.is_gone(source)
            && !own.is_gone(target)
            && !own.list(Side::Out, source).is_some_and(|list| list.is_removed(target))
    }

    fn find_edge(&self, source: &Key, target: &Key) -> Result<usize> {
        let Some((source, target)) = self.ends(source, target)? else { return Ok(0) };
        let own = self.own.list(Side::Out, source);
        let num_added = own.and_then(|list| list.added(target)).map_or(0, |(count, _)| count);
        let is_parallel = self.view.is_multigraph();
        // What was written here decides, whatever others do.
        if !is_parallel && num_added > 0 {
            return Ok(1);
        }
        if own.is_some_and(|list| list.is_removed(target)) {
            return Ok(num_added);
        }
        self.note_edge(source, target);
        if !self.is_edge_of_view(source, target) {
            return Ok(num_added);
        }
        let mut num_edges = num_added;
        let _ = self.view.for_each_out_fragment(source, |targets| {
            let first = targets.partition_point(|&other| other < target);
            num_edges += targets[first..].iter().take_while(|&&other| other == target).count();
            if num_edges > 0 && !is_parallel { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.view.check()?;
        Ok(num_edges)
    }

    fn weight_in_view<W: Weight>(&self, source: VertexId, target: VertexId) -> Option<u64> {
        let mut found = None;
        let _ = self.view.for_each_weighted_out_fragment::<W>(source, |targets, weights| {
            match targets.binary_search(&target) {
                Ok(place) => {
                    found = Some(weights[place].bits());
                    ControlFlow::Break(())
                }
                Err(_) => ControlFlow::Continue(()),
            }
        });
        found
    }
}

fn weight_of(bits: u64, weight_type: WeightType) -> EdgeWeight {
    match weight_type {
        WeightType::U32 => EdgeWeight::Integer(u32::of_bits(bits).into()),
        WeightType::I64 => EdgeWeight::Integer(i64::of_bits(bits)),
        WeightType::F32 => EdgeWeight::Real(f32::of_bits(bits).into()),
        WeightType::F64 => EdgeWeight::Real(f64::of_bits(bits)),
    }
}
