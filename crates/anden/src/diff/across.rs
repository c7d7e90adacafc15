//! The difference of two graphs that share nothing but the names of their vertices.

use std::collections::HashMap;
use std::ops::ControlFlow;

use base::{NO_VERTEX, VertexId};
use engine::ChangedArc;
use graph::property::PropertySchema;
use graph::{Direction, Graph, Weight, WeightType, WeightedEdges};

use super::{ChangedValue, Diff, Here};
use crate::properties::row_values;
use crate::{Error, Result};

/// An entry of a list: where it leads, and the bits of its weight.
type Entry = (VertexId, u64);

/// What changes on the way from one graph to another.
///
/// Cost: both are read, and one id is held for each vertex of the first.
pub(super) fn compare(from: (u32, lama::View), to: (u32, lama::View)) -> Result<Diff> {
    let (old, new) = (&from.1, &to.1);
    require_same_kind(old, new)?;
    let there = ids_there(old, new)?;
    let mut diff = Diff {
        added: Vec::new(),
        removed: Vec::new(),
        added_vertices: Vec::new(),
        removed_vertices: Vec::new(),
        properties: Vec::new(),
        from_view: from.1.clone(),
        to_view: to.1.clone(),
        from: from.0,
        to: to.0,
    };
    // The vertices of the second graph that the first has too, by their ids there.
    let mut back = vec![NO_VERTEX; new.vertex_bound()];
    for (vertex, &other) in (0..).zip(&there).filter(|(_, other)| **other != NO_VERTEX) {
        back[other as usize] = vertex;
    }
    let mut values = SameValues::default();
    let counts_once = |list: VertexId, neighbour: VertexId| old.direction() == Direction::Directed || list <= neighbour;
    for vertex in (0..old.vertex_bound() as VertexId).filter(|&vertex| old.is_live(vertex)) {
        let mine = entries(old, vertex, &mut values, Here::First)?;
        let other = there[vertex as usize];
        let theirs = if other == NO_VERTEX {
            diff.removed_vertices.push(vertex);
            Vec::new()
        } else {
            entries(new, other, &mut values, Here::Second)?
        };
        // Compared by the ids of the second graph; what leads elsewhere is in the first only.
        let (mut a, mut b): (Vec<_>, Vec<_>) = (Vec::new(), theirs);
        for &(neighbour, weight) in &mine {
            let arc = ChangedArc { list: vertex, neighbour, weight };
            match there[neighbour as usize] {
                NO_VERTEX if counts_once(vertex, neighbour) => diff.removed.push(arc),
                NO_VERTEX => {}
                id => a.push((id, weight)),
            }
        }
        a.sort_unstable();
        b.sort_unstable();
        let (only_a, only_b) = without_common(&a, &b);
        let gone = only_a.into_iter().map(|(id, weight)| (back[id as usize], weight));
        let gone = gone.filter(|&(neighbour, _)| counts_once(vertex, neighbour));
        diff.removed.extend(gone.map(|(neighbour, weight)| ChangedArc { list: vertex, neighbour, weight }));
        let come = only_b.into_iter().filter(|&(neighbour, _)| counts_once(other, neighbour));
        diff.added.extend(come.map(|(neighbour, weight)| ChangedArc { list: other, neighbour, weight }));
    }
    for vertex in (0..new.vertex_bound() as VertexId).filter(|&vertex| new.is_live(vertex)) {
        if back[vertex as usize] == NO_VERTEX {
            diff.added_vertices.push(vertex);
            let come = entries(new, vertex, &mut values, Here::Second)?
                .into_iter()
                .filter(|&(neighbour, _)| counts_once(vertex, neighbour));
            diff.added.extend(come.map(|(neighbour, weight)| ChangedArc { list: vertex, neighbour, weight }));
        }
    }
    if old.options().edge_properties {
        diff.removed.iter_mut().for_each(|arc| arc.weight = values.row(arc.weight, Here::First));
        diff.added.iter_mut().for_each(|arc| arc.weight = values.row(arc.weight, Here::Second));
    }
    diff.properties = changed_values(old, new, &back)?;
    diff.added.sort_unstable();
    diff.removed.sort_unstable();
    old.check()?;
    new.check()?;
    Ok(diff)
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

/// The out-list of a vertex; rows of properties are numbered by their values.
fn entries(view: &lama::View, vertex: VertexId, values: &mut SameValues, here: Here) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(view.out_degree(vertex));
    if view.options().edge_properties {
        let _ = view.for_each_out_row(vertex, |targets, rows| {
            entries.extend(targets.iter().zip(rows).map(|(&target, &row)| (target, row as u64)));
            ControlFlow::Continue(())
        });
        for (_, row) in &mut entries {
            *row = values.number(view, *row, here)?;
        }
        return Ok(entries);
    }
    match view.weight_type() {
        None => {
            let _ = view.for_each_out_fragment(vertex, |targets| {
                entries.extend(targets.iter().map(|&target| (target, 0)));
                ControlFlow::Continue(())
            });
        }
        Some(WeightType::U32) => weighted_entries::<u32>(view, vertex, &mut entries),
        Some(WeightType::I64) => weighted_entries::<i64>(view, vertex, &mut entries),
        Some(WeightType::F32) => weighted_entries::<f32>(view, vertex, &mut entries),
        Some(WeightType::F64) => weighted_entries::<f64>(view, vertex, &mut entries),
    }
    Ok(entries)
}

fn weighted_entries<W: Weight>(view: &lama::View, vertex: VertexId, entries: &mut Vec<Entry>) {
    let _ = view.for_each_weighted_out_fragment::<W>(vertex, |targets, weights| {
        entries.extend(targets.iter().zip(weights).map(|(&target, weight)| (target, weight.bits())));
        ControlFlow::Continue(())
    });
}

/// What only one of two ascending lists holds, each entry as often as it does.
fn without_common(a: &[Entry], b: &[Entry]) -> (Vec<Entry>, Vec<Entry>) {
    let (mut only_a, mut only_b) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
        match x.cmp(&y) {
            std::cmp::Ordering::Equal => (i, j) = (i + 1, j + 1),
            std::cmp::Ordering::Less => {
                only_a.push(x);
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                only_b.push(y);
                j += 1;
            }
        }
    }
    only_a.extend_from_slice(&a[i..]);
    only_b.extend_from_slice(&b[j..]);
    (only_a, only_b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_entries_cancel_one_by_one() {
        let (a, b) = ([(1, 0), (1, 0), (2, 5), (4, 0)], [(1, 0), (2, 6), (9, 0)]);
        let expected = (vec![(1, 0), (2, 5), (4, 0)], vec![(2, 6), (9, 0)]);
        assert_eq!(without_common(&a, &b), expected);
        assert_eq!(without_common(&a, &a), (vec![], vec![]));
    }
}
