//! Makes lists from arcs that come in ascending order.

use anden_base::VertexId;

use super::arcs::{LoadArc, Payload};
use super::lists::{BuiltLists, ListSink};
use super::options::Duplicates;
use crate::Result;

/// Arcs, and lists, that are handed on at once; a longer list is handed on whole.
const BATCH: usize = 64 << 10;

/// Collects arcs and hands whole lists on.
pub(crate) struct ListBuilder<'a, P: Payload> {
    sink: &'a mut dyn ListSink<P>,
    duplicates: Duplicates,
    lists: BuiltLists<P>,
    /// The first of the collected lists.
    first: VertexId,
    previous: Option<LoadArc<P>>,
}

impl<'a, P: Payload> ListBuilder<'a, P> {
    pub(crate) fn new(sink: &'a mut dyn ListSink<P>, duplicates: Duplicates) -> Self {
        Self { sink, duplicates, lists: BuiltLists::default(), first: 0, previous: None }
    }

    /// Takes the next arcs: keys ascend, equal keys come in input order.
    pub(crate) fn extend(&mut self, arcs: &[LoadArc<P>]) -> Result<()> {
        for &arc in arcs {
            match self.previous {
                Some(previous) if previous.key() == arc.key() && self.duplicates != Duplicates::Keep => {
                    let rows = (previous.payload().data().row, arc.payload().data().row);
                    self.lists.first_merged = self.lists.first_merged.or(Some(rows));
                    let merged = previous.payload().merge(arc.payload(), self.duplicates);
                    if merged.is_none() {
                        // The sum is beyond its type: remembered for the error, while the pass goes on.
                        self.lists.first_beyond = self.lists.first_beyond.or(Some((previous.payload(), arc.payload())));
                    }
                    let merged = merged.unwrap_or(arc.payload());
                    if let Some(place) = self.lists.payloads.last_mut() {
                        *place = merged;
                    }
                    // The merged data meets the next parallel edge.
                    self.previous = Some(LoadArc::from_key(arc.key(), merged));
                }
                _ => {
                    self.open(arc.list())?;
                    if let Some(degree) = self.lists.degrees.last_mut() {
                        *degree += 1;
                    }
                    self.lists.neighbors.push(arc.neighbor());
                    self.lists.payloads.push(arc.payload());
                    self.lists.num_loops += u64::from(arc.list() == arc.neighbor());
                    self.previous = Some(arc);
                }
            }
        }
        Ok(())
    }

    /// Makes `list` the last list, with empty lists in the gap.
    fn open(&mut self, list: VertexId) -> Result<()> {
        // The next list to open; lists before `list` are empty.
        let mut next = self.first + self.lists.degrees.len() as VertexId;
        while next <= list {
            if self.lists.len() >= BATCH || self.lists.degrees.len() >= BATCH {
                self.flush()?;
            }
            // A gap may have more lists than a batch.
            let num_lists = ((list - next) as usize + 1).min(BATCH - self.lists.degrees.len().min(BATCH - 1));
            self.lists.degrees.resize(self.lists.degrees.len() + num_lists, 0);
            next += num_lists as VertexId;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.lists.degrees.is_empty() {
            self.sink.append(self.first, &mut self.lists)?;
            self.first += self.lists.degrees.len() as VertexId;
            self.lists.reset(0, 0);
        }
        Ok(())
    }

    /// Hands the remaining lists on.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that lists come in order, and keeps their arcs.
    #[derive(Default)]
    struct Kept {
        next: VertexId,
        arcs: Vec<(VertexId, VertexId, u32)>,
        num_loops: u64,
    }

    impl ListSink<u32> for Kept {
        fn append(&mut self, first: VertexId, lists: &mut BuiltLists<u32>) -> Result<()> {
            assert_eq!(first, self.next);
            self.next += lists.degrees.len() as VertexId;
            lists.for_each_arc(first, |arc| self.arcs.push((arc.list(), arc.neighbor(), arc.payload())));
            self.num_loops += lists.num_loops;
            Ok(())
        }
    }

    fn build(arcs: &[(VertexId, VertexId, u32)], duplicates: Duplicates) -> Kept {
        let mut kept = Kept::default();
        let mut builder = ListBuilder::new(&mut kept, duplicates);
        let arcs: Vec<_> = arcs.iter().map(|&(list, neighbor, w)| LoadArc::new(list, neighbor, w)).collect();
        arcs.chunks(3).for_each(|arcs| builder.extend(arcs).unwrap());
        builder.finish().unwrap();
        kept
    }

    #[test]
    fn gaps_are_empty_lists() {
        let arcs = [(3, 1, 5), (3, 9, 4), (500_000, 2, 1), (500_001, 500_001, 7)];
        let kept = build(&arcs, Duplicates::Min);
        assert_eq!(kept.arcs, arcs);
        assert_eq!((kept.next, kept.num_loops), (500_002, 1));
        assert_eq!(build(&[], Duplicates::Min).next, 0);
    }

    #[test]
    fn parallel_edges_merge_across_pieces() {
        let arcs = [(0, 1, 4), (0, 1, 2), (0, 1, 3), (0, 1, 5), (1, 0, 1)];
        assert_eq!(build(&arcs, Duplicates::Min).arcs, [(0, 1, 2), (1, 0, 1)]);
        assert_eq!(build(&arcs, Duplicates::Sum).arcs, [(0, 1, 14), (1, 0, 1)]);
        assert_eq!(build(&arcs, Duplicates::Last).arcs, [(0, 1, 5), (1, 0, 1)]);
        assert_eq!(build(&arcs, Duplicates::Keep).arcs, arcs);
    }

    #[test]
    fn long_inputs_are_handed_on_in_batches() {
        let arcs: Vec<_> = (0..3 * BATCH as u32).map(|i| (i / 5, i, i)).collect();
        assert_eq!(build(&arcs, Duplicates::Min).arcs, arcs);
    }
}
