//! The live vertices of each version.

use std::collections::HashMap;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;

use crate::delta::Delta;
use crate::store::PublishedState;

/// The versions in which vertices died and returned.
#[derive(Debug)]
pub(super) struct Lives {
    /// The dead vertices of the base's version.
    dead_at_anchor: Bitmap,
    /// For each vertex that died or returned: the versions of these changes, ascending, and whether it died.
    changes: HashMap<VertexId, Vec<(u32, bool)>>,
}

impl Lives {
    /// Follows the deltas. Checks that vertices that die were live, that those that return were dead, and that the
    /// manifest's counts are right.
    ///
    /// # Errors
    /// A version, and its fault.
    pub fn new(state: &PublishedState) -> Result<Self, (u32, String)> {
        let chain = &state.manifest.chain;
        let mut dead_at_anchor = Bitmap::new(state.base.vertex_bound());
        state.base.dead().iter().for_each(|&vertex| dead_at_anchor.set(vertex as usize));
        let mut changes: HashMap<VertexId, Vec<(u32, bool)>> = HashMap::new();
        let delta_of = |number: u32| chain.version(number).and_then(|version| state.delta_at(version.delta?));
        let read = |number: u32, delta: &Delta| {
            let damaged = |error: anden_base::Error| (number, error.to_string());
            Ok([(delta.died().map_err(damaged)?.to_vec(), true), (delta.returned().map_err(damaged)?.to_vec(), false)])
        };
        for version in &chain.versions {
            let Some(delta) = delta_of(version.number) else { continue };
            for (vertices, dies) in read(version.number, delta)? {
                for vertex in vertices {
                    changes.entry(vertex).or_default().push((version.number, dies));
                }
            }
        }
        let lives = Self { dead_at_anchor, changes };
        lives.check(state)?;
        Ok(lives)
    }

    fn check(&self, state: &PublishedState) -> Result<(), (u32, String)> {
        let chain = &state.manifest.chain;
        for (vertex, changes) in &self.changes {
            let at_anchor = changes.iter().rev().find(|(number, _)| *number <= chain.anchor);
            let dead_at_anchor = match (at_anchor, changes.first()) {
                (Some((_, died)), _) => *died,
                // A vertex that first returns was dead before.
                (None, first) => first.is_some_and(|(_, died)| !died),
            };
            // A vertex above the bound is younger than the base, which then says nothing about it.
            let is_below = (*vertex as usize) < self.dead_at_anchor.len();
            let fits = !is_below || self.dead_at_anchor.get(*vertex as usize) == dead_at_anchor;
            let alternates = changes.windows(2).all(|pair| pair[0].1 != pair[1].1);
            if !fits || !alternates {
                return Err((changes[0].0, format!("the deltas do not agree whether {vertex} is a vertex")));
            }
        }
        // A vertex without changes is as in the base, or was added live.
        let mut num_dead = self.dead_at_anchor.count_ones() as u64;
        let anchor = chain.index(chain.anchor).unwrap_or(0);
        let change = |number: u32| {
            let mut change = (0_u64, 0_u64);
            if let Some(delta) = chain.version(number).and_then(|version| state.delta_at(version.delta?)) {
                let count =
                    |vertices: anden_base::Result<&[VertexId]>| vertices.map_or(0, |vertices| vertices.len() as u64);
                change = (count(delta.died()), count(delta.returned()));
            }
            change
        };
        let check = |index: usize, num_dead: u64| {
            let version = &chain.versions[index];
            if version.num_vertices.checked_add(num_dead) == Some(version.vertex_bound) {
                return Ok(());
            }
            let what =
                format!("{} vertices and {num_dead} dead ones below {}", version.num_vertices, version.vertex_bound);
            Err((version.number, what))
        };
        check(anchor, num_dead)?;
        let at_anchor = num_dead;
        for index in anchor + 1..chain.versions.len() {
            let (died, returned) = change(chain.versions[index].number);
            // Wrapping: a wrong delta may count below zero, and `check` then fails.
            num_dead = num_dead.wrapping_add(died).wrapping_sub(returned);
            check(index, num_dead)?;
        }
        num_dead = at_anchor;
        for index in (0..anchor).rev() {
            let (died, returned) = change(chain.versions[index + 1].number);
            num_dead = num_dead.wrapping_sub(died).wrapping_add(returned);
            check(index, num_dead)?;
        }
        Ok(())
    }

    /// Whether a vertex is dead in a version.
    pub fn is_dead(&self, vertex: VertexId, number: u32) -> bool {
        match self.changes.get(&vertex) {
            Some(changes) => match changes.iter().rev().find(|(change, _)| *change <= number) {
                Some((_, died)) => *died,
                None => changes.first().is_some_and(|(_, died)| !died),
            },
            None => (vertex as usize) < self.dead_at_anchor.len() && self.dead_at_anchor.get(vertex as usize),
        }
    }
}
