//! From what is asked for to what changes.
//!
//! Arcs that are asked for are sorted by list and neighbour, so a list is looked at once, and its
//! pieces are searched from one wanted neighbour on to the next.

use std::ops::Range;

use base::VertexId;
use base::parallel::Pool;
use base::progress::Progress;
use graph::{Direction, Graph};
use lama::{ArcData, ChangedArc, Finder, View};

use crate::Result;

/// Arcs that a worker compares at once.
const GRAIN: usize = 2 << 10;
/// How many arcs before its turn an entry of a list is fetched; the place of the list is as many before.
const AHEAD: usize = 16;

/// Arcs that are asked for.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Sorted; in a simple graph at most one for each pair.
    pub(crate) added: Vec<ChangedArc>,
    /// List and neighbour of arcs to be gone, sorted, each once.
    pub(crate) removed: Vec<(VertexId, VertexId)>,
}

/// Arcs that change.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Effective {
    /// Not there before, sorted.
    pub(crate) added: Vec<ChangedArc>,
    /// There before, sorted.
    pub(crate) removed: Vec<ChangedArc>,
    /// Edges of `added`, undirected ones counted once.
    pub(crate) num_added: u64,
    pub(crate) num_removed: u64,
    /// Edges that were to be removed and are not there.
    pub(crate) num_missing: u64,
}

/// Holds what is asked for against the graph. Removals come before additions.
///
/// Cost: two searches or so for each arc, whatever the size of the graph.
pub(crate) fn compare(view: &View, asked: &Asked, pool: &Pool, progress: &dyn Progress) -> Result<Effective> {
    progress.stage("compare", Some((asked.added.len() + asked.removed.len()) as u64));
    let pieces = cut(asked);
    let parts = pool.map_chunks(0..pieces.len(), 1, |_, chunk| -> Result<Effective> {
        let (added, removed) = pieces[chunk.start].clone();
        let mut comparer = Comparer::new(view);
        progress.check()?;
        progress.advance((added.len() + removed.len()) as u64);
        comparer.compare(&asked.added[added], &asked.removed[removed])?;
        Ok(comparer.found)
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
    let mut all = Effective::default();
    all.added.reserve_exact(parts.iter().map(|part| part.added.len()).sum());
    all.removed.reserve_exact(parts.iter().map(|part| part.removed.len()).sum());
    for part in parts {
        all.added.extend_from_slice(&part.added);
        all.removed.extend_from_slice(&part.removed);
        all.num_added += part.num_added;
        all.num_removed += part.num_removed;
        all.num_missing += part.num_missing;
    }
    Ok(all)
}

/// Ranges of additions and removals that belong to the same lists.
fn cut(asked: &Asked) -> Vec<(Range<usize>, Range<usize>)> {
    let added = asked.added.chunks(GRAIN).filter_map(|chunk| chunk.last()).map(|arc| arc.list);
    let removed = asked.removed.chunks(GRAIN).filter_map(|chunk| chunk.last()).map(|arc| arc.0);
    let mut lasts: Vec<VertexId> = added.chain(removed).collect();
    lasts.sort_unstable();
    lasts.dedup();
    let mut starts = (0, 0);
    let pieces = lasts.into_iter().map(|last| {
        let ends = (
            starts.0 + asked.added[starts.0..].partition_point(|arc| arc.list <= last),
            starts.1 + asked.removed[starts.1..].partition_point(|arc| arc.0 <= last),
        );
        let piece = (starts.0..ends.0, starts.1..ends.1);
        starts = ends;
        piece
    });
    pieces.collect()
}

/// A neighbour that is asked about, in one list.
#[derive(Clone, Debug)]
struct Wanted {
    neighbour: VertexId,
    added: Range<usize>,
    is_removed: bool,
}

/// Compares one list after the other.
struct Comparer<'a> {
    finder: Finder<'a>,
    is_multigraph: bool,
    is_undirected: bool,
    wanted: Vec<Wanted>,
    /// Entries that are there: the index of what is wanted, and what stands beside it.
    present: Vec<(usize, ArcData)>,
    found: Effective,
}

impl<'a> Comparer<'a> {
    fn new(view: &'a View) -> Self {
        Self {
            finder: view.finder(),
            is_multigraph: view.is_multigraph(),
            is_undirected: view.direction() == Direction::Undirected,
            wanted: Vec::new(),
            present: Vec::new(),
            found: Effective::default(),
        }
    }

    fn compare(&mut self, added: &[ChangedArc], removed: &[(VertexId, VertexId)]) -> Result<()> {
        let (mut a, mut r) = (0, 0);
        loop {
            let list = match (added.get(a), removed.get(r)) {
                (Some(arc), Some(gone)) => arc.list.min(gone.0),
                (Some(arc), None) => arc.list,
                (None, Some(gone)) => gone.0,
                (None, None) => break,
            };
            let num_added = added[a..].iter().take_while(|arc| arc.list == list).count();
            for turn in a..a + num_added {
                if let Some(later) = added.get(turn + 2 * AHEAD) {
                    self.finder.prefetch(later.list);
                }
                if let Some(later) = added.get(turn + AHEAD) {
                    self.finder.prefetch_arc(later.list, later.neighbour);
                }
            }
            let num_removed = removed[r..].iter().take_while(|gone| gone.0 == list).count();
            self.compare_list(list, &added[a..a + num_added], &removed[r..r + num_removed])?;
            a += num_added;
            r += num_removed;
        }
        Ok(())
    }

    fn compare_list(&mut self, list: VertexId, added: &[ChangedArc], removed: &[(VertexId, VertexId)]) -> Result<()> {
        self.note_wanted(added, removed);
        self.present.clear();
        let neighbours = self.wanted.iter().map(|wanted| wanted.neighbour);
        self.finder.find(list, neighbours, |index, data| self.present.push((index, data)))?;
        self.present.sort_unstable();
        let mut next = 0;
        let wanted = std::mem::take(&mut self.wanted);
        for (index, wanted) in wanted.iter().enumerate() {
            let num_present = self.present[next..].iter().take_while(|entry| entry.0 == index).count();
            let present = next..next + num_present;
            next += num_present;
            self.decide(list, wanted, &added[wanted.added.clone()], present);
        }
        self.wanted = wanted;
        Ok(())
    }

    /// Merges additions and removals by neighbour.
    fn note_wanted(&mut self, added: &[ChangedArc], removed: &[(VertexId, VertexId)]) {
        self.wanted.clear();
        let (mut a, mut r) = (0, 0);
        loop {
            let neighbour = match (added.get(a), removed.get(r)) {
                (Some(arc), Some(gone)) => arc.neighbour.min(gone.1),
                (Some(arc), None) => arc.neighbour,
                (None, Some(gone)) => gone.1,
                (None, None) => break,
            };
            let num_added = added[a..].iter().take_while(|arc| arc.neighbour == neighbour).count();
            let is_removed = removed.get(r).is_some_and(|gone| gone.1 == neighbour);
            self.wanted.push(Wanted { neighbour, added: a..a + num_added, is_removed });
            a += num_added;
            r += usize::from(is_removed);
        }
    }

    /// What happens to the arcs from `list` to one neighbour, of which those at `present` are there.
    fn decide(&mut self, list: VertexId, wanted: &Wanted, added: &[ChangedArc], present: Range<usize>) {
        let arc = |data| ChangedArc { list, neighbour: wanted.neighbour, data };
        let counts = !self.is_undirected || list <= wanted.neighbour;
        let old = &self.present[present];
        if wanted.is_removed && old.is_empty() && counts {
            self.found.num_missing += 1;
        }
        let before = (self.found.added.len(), self.found.removed.len());
        if self.is_multigraph && !wanted.is_removed {
            self.found.added.extend(added);
        } else if wanted.is_removed || !added.is_empty() {
            // Both ascend by row and weight; what is in both stays as it is.
            let (mut a, mut o) = (0, 0);
            loop {
                match (added.get(a), old.get(o)) {
                    (Some(new), Some(old)) if new.data == old.1 => (a, o) = (a + 1, o + 1),
                    (Some(new), Some(old)) if new.data > old.1 => {
                        self.found.removed.push(arc(old.1));
                        o += 1;
                    }
                    (Some(new), _) => {
                        self.found.added.push(*new);
                        a += 1;
                    }
                    (None, Some(old)) => {
                        self.found.removed.push(arc(old.1));
                        o += 1;
                    }
                    (None, None) => break,
                }
            }
        }
        if counts {
            self.found.num_added += (self.found.added.len() - before.0) as u64;
            self.found.num_removed += (self.found.removed.len() - before.1) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_whole_lists() {
        let arc = |list, neighbour| ChangedArc { list, neighbour, data: ArcData::default() };
        let added: Vec<_> = (0..50_000).map(|i| arc(i / 20_000, i)).collect();
        let removed: Vec<_> = (0..30_000).map(|i| (i / 10, i)).collect();
        let pieces = cut(&Asked { added, removed });
        assert!(pieces.len() > 3);
        assert_eq!(pieces.iter().map(|piece| piece.0.len()).sum::<usize>(), 50_000);
        assert_eq!(pieces.iter().map(|piece| piece.1.len()).sum::<usize>(), 30_000);
        assert!(pieces.iter().all(|piece| piece.0.is_empty() || piece.0.len() % 10_000 == 0));
        assert!(cut(&Asked::default()).is_empty());
    }
}
