//! Batches of many edges with properties, planned and stored on all workers.
//!
//! Values are not copied between the updates, the WAL record and the columns. An edge that exists, or occurs twice in
//! the batch, keeps its other values: it is planned after the others, one by one and in order.

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::property::{OwnedValue, PropertySchema, PropertyType, PropertyValue};
use anden_snapshots::{ArcData, Direction};
use foldhash::{HashSet, HashSetExt};

use super::MemtableWriter;
use super::apply::{BatchPlan, EdgeUpdate, said_of_edges};
use super::batch::ArcBatch;
use super::edges::stored;
use super::rows::{LiveRows, RowWriter};
use super::update::{NewValue, Update};
use crate::Result;
use crate::fitting::weight_bits;
use crate::validation::stored_ends;

/// Updates that one worker handles in a row.
const GRAIN: usize = 1 << 12;
/// Updates by which the two prefetch stages run ahead: the place of a list, then the arcs that a search reads.
const PLACES_AHEAD: usize = 24;
const EDGES_AHEAD: usize = 12;

/// The rows of new edges, in parts made by one worker each.
#[derive(Debug, Default)]
pub(super) struct BulkRows<'u> {
    parts: Vec<BulkChunk<'u>>,
    first_row: u64,
}

#[derive(Debug)]
struct BulkChunk<'u> {
    /// Number of rows in earlier parts.
    start: u64,
    edges: Vec<KnownEdge>,
    /// The values of each edge in turn, with the indexes of their properties.
    values: Vec<(usize, PropertyValue<'u>)>,
}

/// An added edge, with the ids of its ends.
#[derive(Debug)]
struct KnownEdge {
    source: VertexId,
    target: VertexId,
    /// The bits of its weight.
    weight: u64,
    /// The end of its values in the part.
    end: usize,
    /// Whether it gets a row as it is: it does not exist yet, and the batch has it once.
    is_new: bool,
}

impl KnownEdge {
    /// The edge with this row.
    fn update(&self, row: u64) -> EdgeUpdate {
        let addition = Some(ArcData { row, weight: self.weight });
        EdgeUpdate { source: self.source, target: self.target, addition }
    }
}

impl<'u> BulkChunk<'u> {
    /// The edges with their values.
    fn edges(&self) -> impl Iterator<Item = (&KnownEdge, &[(usize, PropertyValue<'u>)])> {
        let mut start = 0;
        self.edges.iter().map(move |edge| {
            let values = &self.values[start..edge.end];
            start = edge.end;
            (edge, values)
        })
    }

    /// The values of the rows.
    fn rows(&self) -> impl Iterator<Item = &[(usize, PropertyValue<'u>)]> {
        self.edges().filter(|(edge, _)| edge.is_new).map(|(_, values)| values)
    }
}

impl<'u> BulkRows<'u> {
    /// The rows with their numbers.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u64, &[(usize, PropertyValue<'u>)])> {
        (self.first_row..).zip(self.parts.iter().flat_map(BulkChunk::rows))
    }

    /// Stores the values of all rows.
    pub(super) fn store<'r>(&'r self, rows: &'r LiveRows, pool: &Pool) {
        pool.map_chunks(0..self.parts.len(), 1, |_, chunk| {
            for part in &self.parts[chunk] {
                let mut writer = RowWriter::new(rows);
                for (row, values) in (self.first_row + part.start..).zip(part.rows()) {
                    values.iter().for_each(|&(place, value)| writer.set(row, place, value));
                }
            }
        });
    }
}

impl MemtableWriter {
    /// Plans additions of edges with properties, if all updates are valid additions whose ends are known or dense ids.
    /// The arcs go to `batch`. `None` otherwise.
    pub(super) fn plan_known_rows<'u>(
        &self,
        updates: &'u [Update],
        batch: &mut ArcBatch,
        pool: &Pool,
    ) -> Option<(BatchPlan, BulkRows<'u>)> {
        let options = self.options();
        let mut plan = self.empty_plan();
        let mut last = &[][..];
        for update in updates {
            let Update::AddEdge { properties, .. } = update else { return None };
            // Most edges name the same properties as the edge before.
            if !properties.iter().map(|(name, _)| name).eq(last.iter().map(|(name, _): &(_, _)| name)) {
                for (name, _) in properties {
                    plan.edge_properties.find(name, said_of_edges(updates, name)).ok()?;
                }
            }
            last = properties;
        }
        let parts = pool.map_chunks(0..updates.len(), GRAIN, |_, chunk| self.known_edges(&updates[chunk], &plan));
        let mut parts: Vec<BulkChunk<'u>> = parts.into_iter().collect::<Option<_>>()?;
        let edges = || parts.iter().flat_map(|part| &part.edges);
        // Dense keys may name ids beyond the bound, which become vertices.
        let bound = edges().map(|edge| edge.source.max(edge.target) as usize + 1).max().unwrap_or(0);
        plan.vertex_bound = plan.vertex_bound.max(bound);
        let key = |edge: &KnownEdge| {
            let (first, second) = stored_ends(options, (edge.source, edge.target));
            u64::from(first) << u32::BITS | u64::from(second)
        };
        // Edges that occur twice in the batch are planned one by one, in order.
        let mut repeated = HashSet::new();
        if !options.multigraph {
            let mut keys: Vec<u64> = edges().map(key).collect();
            keys.sort_unstable();
            repeated.extend(keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        }
        let first_row = self.edges.next;
        let mut next = first_row;
        for part in &mut parts {
            part.start = next - first_row;
            for edge in &mut part.edges {
                // Without repeated edges, the lookup is saved.
                edge.is_new &= repeated.is_empty() || !repeated.contains(&key(edge));
                if edge.is_new {
                    edge.update(next).for_each_arc(options, |arc| batch.push(arc));
                    next += 1;
                }
            }
        }
        // The rows of the edges planned below follow those of the new edges.
        plan.edges.begin_at(next);
        let mut finder = self.overlay_base.finder();
        for (edge, values) in parts.iter().flat_map(BulkChunk::edges).filter(|(edge, _)| !edge.is_new) {
            let values = values.iter().map(|&(place, value)| (place, OwnedValue::from(value))).collect();
            // On an error, the serial path plans all updates again and names the wrong one.
            self.plan_edge(edge.update(0), values, &mut plan, &mut finder).ok()?;
        }
        Some((plan, BulkRows { parts, first_row }))
    }

    /// The edges that updates add; `None` if a key is unknown, or an update is invalid.
    fn known_edges<'u>(&self, updates: &'u [Update], plan: &BatchPlan) -> Option<BulkChunk<'u>> {
        let options = self.options();
        let schema = plan.edge_properties.schema();
        let is_every_id_live = self.num_vertices == self.vertex_bound;
        let mut part = BulkChunk { start: 0, edges: Vec::with_capacity(updates.len()), values: Vec::new() };
        let mut places = SchemaCache::new(schema);
        for update in updates {
            let Update::AddEdge { source, target, weight, properties } = update else { return None };
            let weight = weight_bits((source, target), *weight, options).ok()?;
            let (source, target) = (self.known_id(source, true, plan)?, self.known_id(target, true, plan)?);
            if options.ordered && source == target && !is_every_id_live {
                // A loop is no arc here, but must add its vertex.
                return None;
            }
            let start = part.values.len();
            for (index, (name, value)) in properties.iter().enumerate() {
                let (place, property_type) = places.find(index, name)?;
                // The last of two values of one property counts; the serial path handles that.
                if part.values[start..].iter().any(|&(other, _)| other == place) {
                    return None;
                }
                part.values.push((place, borrowed(value, property_type)?));
            }
            part.edges.push(KnownEdge { source, target, weight, end: part.values.len(), is_new: true });
        }
        // A multigraph needs no lookup: each addition is a new edge.
        if !options.multigraph {
            self.find_known(&mut part.edges).ok()?;
        }
        Some(part)
    }

    /// Finds which edges exist already.
    fn find_known(&self, edges: &mut [KnownEdge]) -> Result<()> {
        let options = self.options();
        let mut finder = self.overlay_base.finder();
        for index in 0..edges.len() {
            if let Some(next) = edges.get(index + PLACES_AHEAD) {
                finder.prefetch(next.source);
                self.newest.delta.prefetch(Direction::Out, next.source);
            }
            if let Some(next) = edges.get(index + EDGES_AHEAD).filter(|next| self.is_below_bound(next)) {
                finder.prefetch_arc(next.source, next.target);
                self.newest.delta.prefetch_place(Direction::Out, next.source, false);
            }
            let KnownEdge { source, target, .. } = edges[index];
            if let Some(ends) = stored(options, (source, target)) {
                edges[index].is_new = self.newest.edges(ends.0, ends.1, &mut finder)?.is_empty();
            }
        }
        Ok(())
    }

    fn is_below_bound(&self, edge: &KnownEdge) -> bool {
        (edge.source as usize) < self.vertex_bound
    }
}

/// A cache of property indexes: most updates name the same properties in the same order.
struct SchemaCache<'a> {
    schema: &'a PropertySchema,
    last: Vec<(usize, PropertyType)>,
}

impl<'a> SchemaCache<'a> {
    fn new(schema: &'a PropertySchema) -> Self {
        Self { schema, last: Vec::new() }
    }

    fn find(&mut self, index: usize, name: &str) -> Option<(usize, PropertyType)> {
        // The name is compared, because an edge may name other properties than the edge before.
        if let Some(&(place, property_type)) = self.last.get(index)
            && self.schema.get(place).is_some_and(|(known, _)| known == name)
        {
            return Some((place, property_type));
        }
        let place = self.schema.find(name)?;
        let found = (place, self.schema.get(place)?.1);
        self.last.truncate(index);
        self.last.push(found);
        Some(found)
    }
}

/// A value in the type of its property, without a copy; `None` if it needs one, or does not fit the type.
fn borrowed(value: &NewValue, property_type: PropertyType) -> Option<PropertyValue<'_>> {
    match value {
        NewValue::Value(OwnedValue::Null) => Some(PropertyValue::Null),
        NewValue::Value(value) => value.as_value().converted(property_type),
        NewValue::Text { text, .. } => match property_type {
            PropertyType::String => Some(PropertyValue::String(text)),
            PropertyType::Bytes => None,
            _ => OwnedValue::parse(text, property_type).ok()?.as_value().to_static(),
        },
    }
}
