//! The difference of two databases, whose vertices are matched by key.

use std::collections::HashMap;
use std::ops::ControlFlow;

use anden_base::{NO_VERTEX, VertexId};
use anden_engine::{ArcData, ChangedArc};
use anden_graph::property::PropertySchema;
use anden_graph::{Direction, Graph, GraphKind, Parts, Weight, WeightType, WeightedEdges, WillNeed};
use anden_snapshots::SnapshotView;

use super::{ChangedValue, Diff, DiffEdgeSource, Here, PAGE_BYTES};
use crate::property::row_values;
use crate::session::Beside;
use crate::{Error, Result, Session};

/// An arc: its target, and its data with a value number in place of the row.
type ComparedArc = (VertexId, ArcData);

/// Vertices in one part.
const PART_VERTICES: usize = 4 << 10;
/// Bytes of a vertex id.
const ID_BYTES: u64 = 4;

/// The mapping between the vertices of two graphs.
#[derive(Debug)]
pub(super) struct Across {
    /// For each vertex of the first graph, its id in the second, or [`NO_VERTEX`].
    there: Vec<VertexId>,
    /// For each vertex of the second graph, its id in the first, or [`NO_VERTEX`].
    back: Vec<VertexId>,
}

impl Across {
    /// The mapping from this graph to the other, and its inverse.
    fn ids(&self, here: Here) -> [&[VertexId]; 2] {
        match here {
            Here::First => [&self.there, &self.back],
            Here::Second => [&self.back, &self.there],
        }
    }

    pub(super) fn num_parts(&self, here: Here) -> usize {
        self.ids(here)[0].len().div_ceil(PART_VERTICES)
    }

    /// Appends the edges of a part of vertices that are in the first view but not in the second.
    ///
    /// # Errors
    /// Damage met on the way.
    pub(super) fn read_part(
        &self,
        here: Here,
        [view, other]: [&SnapshotView; 2],
        part: usize,
        arcs: &mut Vec<ChangedArc>,
    ) -> Result<()> {
        let ids = self.ids(here)[0];
        let vertices = part * PART_VERTICES..ids.len().min((part + 1) * PART_VERTICES);
        let parts = if view.weight_type().is_some() || view.options().edge_properties {
            Parts::Weighted
        } else {
            Parts::Targets
        };
        let own = vertices.start as VertexId..vertices.end as VertexId;
        let mut theirs: Vec<VertexId> = ids[vertices.clone()].iter().copied().filter(|&id| id != NO_VERTEX).collect();
        // Graphs loaded from similar files have similar ids, so both are read in storage order.
        let is_walk =
            theirs.is_sorted() && theirs.last().is_some_and(|last| last - theirs[0] < 2 * PART_VERTICES as u32);
        let walked = if is_walk { theirs[0]..theirs[theirs.len() - 1] + 1 } else { 0..0 };
        view.will_walk(Direction::Out, parts, own.clone());
        if is_walk {
            other.will_walk(Direction::Out, parts, walked.clone());
        } else {
            // Lists are announced in stored order.
            theirs.sort_unstable();
            other.will_need(Direction::Out, parts, &theirs);
        }
        for vertex in own.clone().filter(|&vertex| view.is_live(vertex)) {
            self.compare_lists(here, [view, other], vertex, arcs)?;
        }
        view.has_walked(Direction::Out, parts, own);
        if is_walk {
            other.has_walked(Direction::Out, parts, walked);
        }
        // Damaged lists look empty, and every edge of the other list would look different.
        view.check()?;
        Ok(other.check()?)
    }

    /// Appends the edges of one vertex that are in the first view but not in the second.
    fn compare_lists(
        &self,
        here: Here,
        [view, other]: [&SnapshotView; 2],
        vertex: VertexId,
        arcs: &mut Vec<ChangedArc>,
    ) -> Result<()> {
        let [ids, back] = self.ids(here);
        // An undirected edge is in two lists; the smaller end reports it.
        let is_counted = |neighbor: VertexId| view.graph_kind() == GraphKind::Directed || vertex <= neighbor;
        let mut values = SameValues::default();
        let own = entries(view, vertex, &mut values, Here::First)?;
        let theirs = match ids[vertex as usize] {
            NO_VERTEX => Vec::new(),
            id => entries(other, id, &mut values, Here::Second)?,
        };
        let first = arcs.len();
        // Lists are compared by ids of the other graph. A target without such an id exists only here.
        let (mut a, mut b) = (Vec::new(), theirs);
        for (neighbor, data) in own {
            match ids[neighbor as usize] {
                NO_VERTEX if is_counted(neighbor) => arcs.push(ChangedArc { list: vertex, neighbor, data }),
                NO_VERTEX => {}
                id => a.push((id, data)),
            }
        }
        a.sort_unstable();
        b.sort_unstable();
        let only_here = only_in_first(&a, &b).into_iter().map(|(id, data)| (back[id as usize], data));
        let only_here = only_here.filter(|&(neighbor, _)| is_counted(neighbor));
        arcs.extend(only_here.map(|(neighbor, data)| ChangedArc { list: vertex, neighbor, data }));
        // Callers read properties by row, so rows replace the value numbers again.
        if view.options().edge_properties {
            arcs[first..].iter_mut().for_each(|arc| arc.data.row = values.row(arc.data.row, Here::First));
        }
        // The comparison ran in the order of the other graph's ids.
        arcs[first..].sort_unstable();
        Ok(())
    }
}

/// Compares two graphs.
///
/// Cost: looks up all keys; holds one id for each vertex of both graphs.
///
/// # Errors
/// The graphs differ in kind; [`Error::Memory`]; damage met on the way.
pub(super) fn compare(from: (u32, SnapshotView), to: (u32, SnapshotView), session: &Session) -> Result<Diff> {
    let (old, new) = (&from.1, &to.1);
    require_same_kind(old, new)?;
    require_memory([old, new], session)?;
    let there = ids_there(old, new)?;
    let mut back = vec![NO_VERTEX; new.vertex_bound()];
    for (vertex, &other) in (0..).zip(&there).filter(|(_, other)| **other != NO_VERTEX) {
        back[other as usize] = vertex;
    }
    let only_in = |view: &SnapshotView, ids: &[VertexId]| -> Vec<VertexId> {
        let vertices = (0..).zip(ids).filter(|&(vertex, &id)| id == NO_VERTEX && view.is_live(vertex));
        vertices.map(|(vertex, _)| vertex).collect()
    };
    let (removed_vertices, added_vertices) = (only_in(old, &there), only_in(new, &back));
    let properties = changed_values(old, new, &back)?;
    old.check()?;
    new.check()?;
    let (edges, session) = (DiffEdgeSource::Across(Across { there, back }), session.clone());
    let (from_view, to_view) = (from.1, to.1);
    let (from, to) = (from.0, to.0);
    Ok(Diff { edges, session, added_vertices, removed_vertices, properties, from_view, to_view, from, to })
}

/// Checks that the budget has room for the ids and keys of both graphs, and for patched pages.
fn require_memory(views: [&SnapshotView; 2], session: &Session) -> Result<()> {
    // The reader of the lists reports a damaged index, so this estimate ignores it.
    let patches = |view: &SnapshotView| if view.has_deltas() { view.least_patch_bytes().unwrap_or(0) } else { 0 };
    let beside = Beside {
        has_patches: views.iter().any(|view| view.has_deltas()),
        taken: views.iter().map(|view| patches(view)).sum(),
        lists: views.iter().map(|view| view.stored_bytes()).sum(),
        cached: 0,
    };
    let held = |view: &&SnapshotView| ID_BYTES * view.vertex_bound() as u64 + view.dictionary().num_bytes();
    session.require_reader("a difference of databases", beside, PAGE_BYTES + views.iter().map(held).sum::<u64>())
}

/// The property values that differ between the graphs, for vertices of the second. `back` maps ids of the second graph
/// to ids of the first.
fn changed_values(
    old: &SnapshotView,
    new: &SnapshotView,
    back: &[VertexId],
) -> Result<Vec<(String, Vec<ChangedValue>)>> {
    let (before, after) = (old.properties(), new.properties());
    let mut names: Vec<&str> = after.schema().iter().chain(before.schema().iter()).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let mut changed = Vec::new();
    for name in names {
        // A graph without the property has null for each vertex.
        let place = |schema: &PropertySchema| schema.find(name).unwrap_or(schema.len());
        let (old_place, new_place) = (place(before.schema()), place(after.schema()));
        let mut values = Vec::new();
        for vertex in (0..new.vertex_bound() as VertexId).filter(|&vertex| new.is_live(vertex)) {
            // [`NO_VERTEX`] has no value, so an added vertex compares with null.
            let (was, is) = (before.value(old_place, back[vertex as usize])?, after.value(new_place, vertex)?);
            if was != is {
                values.push((vertex, is.into(), was.into()));
            }
        }
        if !values.is_empty() {
            changed.push((name.to_owned(), values));
        }
    }
    Ok(changed)
}

fn require_same_kind(old: &SnapshotView, new: &SnapshotView) -> Result<()> {
    let (a, b) = (old.options(), new.options());
    let differences = [
        ("direction (directed, undirected)", a.graph_kind != b.graph_kind),
        ("the kind of ids", a.keys != b.keys),
        ("the type of weights", a.weight_type != b.weight_type),
        ("whether edges have properties", a.edge_properties != b.edge_properties),
    ];
    match differences.iter().find(|(_, differs)| *differs) {
        None => Ok(()),
        Some((what, _)) => Err(Error::InvalidInput(format!("cannot diff: the databases differ in {what}").into())),
    }
}

/// For each vertex of `old`, its id in `new`, or [`NO_VERTEX`].
fn ids_there(old: &SnapshotView, new: &SnapshotView) -> Result<Vec<VertexId>> {
    let id = |vertex: VertexId| -> Result<VertexId> {
        if !old.is_live(vertex) {
            return Ok(NO_VERTEX);
        }
        Ok(new.vertex(&old.key(vertex)?)?.unwrap_or(NO_VERTEX))
    };
    (0..old.vertex_bound() as VertexId).map(id).collect()
}

/// Numbers for sets of property values. Equal values get equal numbers in both graphs, so arcs compare without regard
/// to rows.
#[derive(Default)]
struct SameValues {
    numbers: HashMap<Vec<u8>, u64>,
    /// By number: one row in each graph with these values.
    rows: Vec<[u64; 2]>,
}

impl SameValues {
    /// The number of the values of a row.
    fn number(&mut self, view: &SnapshotView, row: u64, here: Here) -> Result<u64> {
        let mut named = row_values(view, row)?;
        // The schemas of the two databases may differ in order.
        named.sort_unstable_by_key(|(name, _)| *name);
        let mut bytes = Vec::new();
        for (name, value) in named {
            // Names have no control characters and type names are distinct, so the encoding is unambiguous.
            let of = value.property_type().map_or("", |of| of.name());
            let text = value.to_string();
            bytes.extend(format!("{name}\0{of}\0{}\0{text}", text.len()).into_bytes());
        }
        let next = self.rows.len() as u64;
        let number = *self.numbers.entry(bytes).or_insert(next);
        if number == next {
            self.rows.push([row; 2]);
        }
        self.rows[number as usize][here as usize] = row;
        Ok(number)
    }

    /// A row with the values of this number.
    fn row(&self, number: u64, here: Here) -> u64 {
        self.rows[number as usize][here as usize]
    }
}

/// The out-list of a vertex, with value numbers in place of rows.
fn entries(view: &SnapshotView, vertex: VertexId, values: &mut SameValues, here: Here) -> Result<Vec<ComparedArc>> {
    // Targets, weights and rows are read one after the other, and match by position.
    view.fix_list_order(vertex);
    let mut entries = Vec::with_capacity(view.degree(Direction::Out, vertex));
    match view.weight_type() {
        None => {
            let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
                entries.extend(targets.iter().map(|&target| (target, ArcData::default())));
                ControlFlow::Continue(())
            });
        }
        Some(WeightType::U32) => weighted_entries::<u32>(view, vertex, &mut entries),
        Some(WeightType::I64) => weighted_entries::<i64>(view, vertex, &mut entries),
        Some(WeightType::F32) => weighted_entries::<f32>(view, vertex, &mut entries),
        Some(WeightType::F64) => weighted_entries::<f64>(view, vertex, &mut entries),
    }
    if view.options().edge_properties {
        let mut rows = Vec::with_capacity(entries.len());
        let _ = view.for_each_row(Direction::Out, vertex, |_, found| {
            rows.extend_from_slice(found);
            ControlFlow::Continue(())
        });
        for ((_, data), row) in entries.iter_mut().zip(rows) {
            data.row = values.number(view, row, here)?;
        }
    }
    Ok(entries)
}

fn weighted_entries<W: Weight>(view: &SnapshotView, vertex: VertexId, entries: &mut Vec<ComparedArc>) {
    let _ = view.for_each_weighted_fragment::<W>(Direction::Out, vertex, |targets, weights| {
        let weights = weights.iter().map(|weight| ArcData::of_weight(weight.bits()));
        entries.extend(targets.iter().copied().zip(weights));
        ControlFlow::Continue(())
    });
}

/// The multiset difference of two ascending lists.
fn only_in_first(a: &[ComparedArc], b: &[ComparedArc]) -> Vec<ComparedArc> {
    let mut only_a = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
        match x.cmp(&y) {
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
            std::cmp::Ordering::Less => {
                only_a.push(x);
                i += 1;
            }
            std::cmp::Ordering::Greater => j += 1,
        }
    }
    only_a.extend_from_slice(&a[i..]);
    only_a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_entries_cancel_one_by_one() {
        let entries = |weights: &[(VertexId, u64)]| -> Vec<ComparedArc> {
            weights.iter().map(|&(target, weight)| (target, ArcData::of_weight(weight))).collect()
        };
        let (a, b) = (entries(&[(1, 0), (1, 0), (2, 5), (4, 0)]), entries(&[(1, 0), (2, 6), (9, 0)]));
        assert_eq!(only_in_first(&a, &b), entries(&[(1, 0), (2, 5), (4, 0)]));
        assert_eq!(only_in_first(&b, &a), entries(&[(2, 6), (9, 0)]));
        assert_eq!(only_in_first(&a, &a), []);
    }
}
