//! The difference of two graphs that share nothing but the names of their vertices.

use std::collections::HashMap;
use std::ops::ControlFlow;

use base::{NO_VERTEX, VertexId};
use engine::{ArcData, ChangedArc};
use graph::property::PropertySchema;
use graph::{Direction, Graph, Parts, Side, Weight, WeightType, WeightedEdges, WillNeed};

use super::{ChangedValue, Diff, Edges, Here, PAGE_BYTES};
use crate::properties::row_values;
use crate::session::Beside;
use crate::{Error, Result, Session};

/// An entry of a list: where it leads, and in the place of its row the number of the values there.
type Entry = (VertexId, ArcData);

/// Vertices of a part.
const PART_VERTICES: usize = 4 << 10;
/// An id in the other graph.
const ID_BYTES: u64 = 4;

/// How the vertices of two graphs are matched.
#[derive(Debug)]
pub(super) struct Across {
    /// For each vertex of the first graph, its id in the second; [`NO_VERTEX`] where it is none there.
    there: Vec<VertexId>,
    /// The same for the vertices of the second graph.
    back: Vec<VertexId>,
}

impl Across {
    /// The ids of this graph's vertices in the other, and the way back.
    fn ids(&self, here: Here) -> [&[VertexId]; 2] {
        match here {
            Here::First => [&self.there, &self.back],
            Here::Second => [&self.back, &self.there],
        }
    }

    pub(super) fn num_parts(&self, here: Here) -> usize {
        self.ids(here)[0].len().div_ceil(PART_VERTICES)
    }

    /// Appends the edges from the vertices of a part that the first of these views has and the second has not.
    ///
    /// # Errors
    /// Damage met on the way.
    pub(super) fn read_part(
        &self,
        here: Here,
        [view, other]: [&lama::View; 2],
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
        // Graphs that were loaded from files in one order are read in one order.
        let is_walk =
            theirs.is_sorted() && theirs.last().is_some_and(|last| last - theirs[0] < 2 * PART_VERTICES as u32);
        let walked = if is_walk { theirs[0]..theirs[theirs.len() - 1] + 1 } else { 0..0 };
        view.will_walk(Side::Out, parts, own.clone());
        if is_walk {
            other.will_walk(Side::Out, parts, walked.clone());
        } else {
            theirs.sort_unstable();
            other.will_need(Side::Out, parts, &theirs);
        }
        for vertex in own.clone().filter(|&vertex| view.is_live(vertex)) {
            self.compare_lists(here, [view, other], vertex, arcs)?;
        }
        view.has_walked(Side::Out, parts, own);
        if is_walk {
            other.has_walked(Side::Out, parts, walked);
        }
        view.check()?;
        Ok(other.check()?)
    }

    /// Appends the edges of a vertex that the first of these views has and the second has not.
    fn compare_lists(
        &self,
        here: Here,
        [view, other]: [&lama::View; 2],
        vertex: VertexId,
        arcs: &mut Vec<ChangedArc>,
    ) -> Result<()> {
        let [ids, back] = self.ids(here);
        let is_counted = |neighbour: VertexId| view.direction() == Direction::Directed || vertex <= neighbour;
        let mut values = SameValues::default();
        let own = entries(view, vertex, &mut values, Here::First)?;
        let theirs = match ids[vertex as usize] {
            NO_VERTEX => Vec::new(),
            id => entries(other, id, &mut values, Here::Second)?,
        };
        let first = arcs.len();
        // Compared by the ids of the other graph; an entry that leads elsewhere is here only.
        let (mut a, mut b) = (Vec::new(), theirs);
        for (neighbour, data) in own {
            match ids[neighbour as usize] {
                NO_VERTEX if is_counted(neighbour) => arcs.push(ChangedArc { list: vertex, neighbour, data }),
                NO_VERTEX => {}
                id => a.push((id, data)),
            }
        }
        a.sort_unstable();
        b.sort_unstable();
        let only_here = only_in_first(&a, &b).into_iter().map(|(id, data)| (back[id as usize], data));
        let only_here = only_here.filter(|&(neighbour, _)| is_counted(neighbour));
        arcs.extend(only_here.map(|(neighbour, data)| ChangedArc { list: vertex, neighbour, data }));
        if view.options().edge_properties {
            arcs[first..].iter_mut().for_each(|arc| arc.data.row = values.row(arc.data.row, Here::First));
        }
        arcs[first..].sort_unstable();
        Ok(())
    }
}

/// What changes on the way from one graph to another.
///
/// Cost: the keys of both are looked up, and one id is held for each vertex of either.
///
/// # Errors
/// The graphs are of different kinds; [`Error::Memory`]; damage met on the way.
pub(super) fn compare(from: (u32, lama::View), to: (u32, lama::View), session: &Session) -> Result<Diff> {
    let (old, new) = (&from.1, &to.1);
    require_same_kind(old, new)?;
    require_memory([old, new], session)?;
    let there = ids_there(old, new)?;
    let mut back = vec![NO_VERTEX; new.vertex_bound()];
    for (vertex, &other) in (0..).zip(&there).filter(|(_, other)| **other != NO_VERTEX) {
        back[other as usize] = vertex;
    }
    let only_in = |view: &lama::View, ids: &[VertexId]| -> Vec<VertexId> {
        let vertices = (0..).zip(ids).filter(|&(vertex, &id)| id == NO_VERTEX && view.is_live(vertex));
        vertices.map(|(vertex, _)| vertex).collect()
    };
    let (removed_vertices, added_vertices) = (only_in(old, &there), only_in(new, &back));
    let properties = changed_values(old, new, &back)?;
    old.check()?;
    new.check()?;
    let (edges, session) = (Edges::Across(Across { there, back }), session.clone());
    let (from_view, to_view) = (from.1, to.1);
    let (from, to) = (from.0, to.0);
    Ok(Diff { edges, session, added_vertices, removed_vertices, properties, from_view, to_view, from, to })
}

/// Refuses a budget without room for the ids of both graphs, their keys, and pages that levels change.
fn require_memory(views: [&lama::View; 2], session: &Session) -> Result<()> {
    let patches = |view: &lama::View| if view.has_levels() { view.least_patch_bytes().unwrap_or(0) } else { 0 };
    let beside = Beside {
        has_patches: views.iter().any(|view| view.has_levels()),
        taken: views.iter().map(|view| patches(view)).sum(),
        lists: views.iter().map(|view| view.stored_bytes()).sum(),
    };
    let held = |view: &&lama::View| ID_BYTES * view.vertex_bound() as u64 + view.dictionary().num_bytes();
    session.require_reader("a difference of databases", beside, PAGE_BYTES + views.iter().map(held).sum::<u64>())
}

/// The values of the second graph's vertices that are not those of the first; `back` leads from its ids to those of the
/// first.
fn changed_values(old: &lama::View, new: &lama::View, back: &[VertexId]) -> Result<Vec<(String, Vec<ChangedValue>)>> {
    let (before, after) = (old.properties(), new.properties());
    let mut names: Vec<&str> = after.schema().iter().chain(before.schema().iter()).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let mut changed = Vec::new();
    for name in names {
        let place = |schema: &PropertySchema| schema.find(name).unwrap_or(schema.len());
        let (old_place, new_place) = (place(before.schema()), place(after.schema()));
        let mut values = Vec::new();
        for vertex in (0..new.vertex_bound() as VertexId).filter(|&vertex| new.is_live(vertex)) {
            // An id that is none has no value.
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

fn require_same_kind(old: &lama::View, new: &lama::View) -> Result<()> {
    let (a, b) = (old.options(), new.options());
    let is_same = a.direction == b.direction && a.keys == b.keys && a.weight_type == b.weight_type;
    let is_same = is_same && a.edge_properties == b.edge_properties;
    match is_same {
        true => Ok(()),
        false => Err(Error::InvalidInput(
            "graphs are compared that agree in direction, ids, type of weights and whether edges have properties: these do not".into(),
        )),
    }
}

/// For each vertex of `old`, its id in `new`; [`NO_VERTEX`] where it is none there.
fn ids_there(old: &lama::View, new: &lama::View) -> Result<Vec<VertexId>> {
    let id = |vertex: VertexId| -> Result<VertexId> {
        if !old.is_live(vertex) {
            return Ok(NO_VERTEX);
        }
        Ok(new.vertex(&old.key(vertex)?)?.unwrap_or(NO_VERTEX))
    };
    (0..old.vertex_bound() as VertexId).map(id).collect()
}

/// Edges whose properties are the same in both graphs get the same number, whatever their rows are.
#[derive(Default)]
struct SameValues {
    numbers: HashMap<Vec<u8>, u64>,
    /// By number: a row in each graph.
    rows: Vec<[u64; 2]>,
}

impl SameValues {
    /// The number of the values of a row.
    fn number(&mut self, view: &lama::View, row: u64, here: Here) -> Result<u64> {
        let mut named = row_values(view, row)?;
        named.sort_unstable_by_key(|(name, _)| *name);
        let mut bytes = Vec::new();
        for (name, value) in named {
            // No name has a control character, and types differ in their names.
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

    /// A row with the values of a number.
    fn row(&self, number: u64, here: Here) -> u64 {
        self.rows[number as usize][here as usize]
    }
}

/// The out-list of a vertex, with the numbers of the values of its rows.
fn entries(view: &lama::View, vertex: VertexId, values: &mut SameValues, here: Here) -> Result<Vec<Entry>> {
    view.fix_list_order(vertex);
    let mut entries = Vec::with_capacity(view.out_degree(vertex));
    match view.weight_type() {
        None => {
            let _ = view.for_each_out_fragment(vertex, |targets| {
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
        let _ = view.for_each_out_row(vertex, |_, found| {
            rows.extend_from_slice(found);
            ControlFlow::Continue(())
        });
        for ((_, data), row) in entries.iter_mut().zip(rows) {
            data.row = values.number(view, row, here)?;
        }
    }
    Ok(entries)
}

fn weighted_entries<W: Weight>(view: &lama::View, vertex: VertexId, entries: &mut Vec<Entry>) {
    let _ = view.for_each_weighted_out_fragment::<W>(vertex, |targets, weights| {
        let weights = weights.iter().map(|weight| ArcData::of_weight(weight.bits()));
        entries.extend(targets.iter().copied().zip(weights));
        ControlFlow::Continue(())
    });
}

/// What only the first of two ascending lists holds, each entry as often as it does.
fn only_in_first(a: &[Entry], b: &[Entry]) -> Vec<Entry> {
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
        let entries = |weights: &[(VertexId, u64)]| -> Vec<Entry> {
            weights.iter().map(|&(target, weight)| (target, ArcData::of_weight(weight))).collect()
        };
        let (a, b) = (entries(&[(1, 0), (1, 0), (2, 5), (4, 0)]), entries(&[(1, 0), (2, 6), (9, 0)]));
        assert_eq!(only_in_first(&a, &b), entries(&[(1, 0), (2, 5), (4, 0)]));
        assert_eq!(only_in_first(&b, &a), entries(&[(2, 6), (9, 0)]));
        assert_eq!(only_in_first(&a, &a), []);
    }
}
