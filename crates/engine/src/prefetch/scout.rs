//! What scouts do with a request: find the bytes, order and join them, and ask for those that are not in memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::VertexId;
use base::mapped::FileBytes;
use lama::{Parts, Side, View};

use super::Shared;
use super::attached::Attached;
use super::counters::{Policy, PolicyCounters};
use super::ring::Next;

/// Pieces that are so close are read as one: less than a disk reads in the time of another request.
const GAP_BYTES: usize = 16 << 10;

/// No more of a long list is read ahead for a neighbour, who may never be visited.
const NEIGHBOUR_BYTES: usize = 64 << 10;

/// The most neighbours of a vertex whose lists are read ahead.
const MAX_NEIGHBOURS: usize = 256;

/// What will be read.
#[derive(Debug)]
pub(super) enum What {
    /// The lists of these vertices.
    Lists(Parts, Box<[VertexId]>),
    /// The lists of these runs of vertices.
    Runs(Parts, Box<[Range<VertexId>]>),
    /// These bytes of the targets, and what is beside them, by a scan.
    Bytes(Parts, Range<usize>),
    /// Not these any more: a scan has passed them.
    Passed(Parts, Range<usize>),
}

/// A part of what was announced.
#[derive(Debug)]
pub(super) struct Request {
    pub listener: Arc<Attached>,
    pub side: Side,
    pub policy: Policy,
    pub epoch: u64,
    pub what: What,
}

/// A reader that has announced nothing for this time reads lists without announcing them, and the system reads around
/// them again;
const SILENCE: Duration = Duration::from_millis(20);
/// for this time where the system would read more around a list than memory has room for.
const TIGHT_SILENCE: Duration = Duration::from_millis(500);

/// Serves requests until there will be no more.
pub(super) fn serve(shared: &Shared) {
    let (mut pieces, mut samples) = (Vec::new(), Samples::default());
    // Of whom the last request was, and how much was heard of him by then.
    let mut last: Option<(Weak<Attached>, u64)> = None;
    loop {
        match shared.ring.next(last.as_ref().map(|(listener, _)| silence(listener))) {
            Next::Request(request) => {
                last = Some((Arc::downgrade(&request.listener), request.listener.num_heard()));
                request.serve(&mut pieces, &mut samples);
                samples.judge(shared);
            }
            Next::Nothing => {
                last = last.and_then(still_heard);
                if last.is_none() {
                    // Samples keep files that may be gone; nobody will ask for enough to have them looked at soon.
                    samples.waiting.clear();
                }
            }
            Next::Closed => return,
        }
    }
}

/// The silence after which a reader announces nothing more.
fn silence(listener: &Weak<Attached>) -> Duration {
    let is_tight = listener.upgrade().is_some_and(|attached| attached.is_tight(Side::Out));
    if is_tight { TIGHT_SILENCE } else { SILENCE }
}

/// Who was heard of since; of whom nothing was, the system reads around what he reads.
fn still_heard((listener, num_before): (Weak<Attached>, u64)) -> Option<(Weak<Attached>, u64)> {
    let attached = listener.upgrade()?;
    let num_heard = attached.num_heard();
    if num_heard == num_before {
        attached.view().read_exactly(false);
        return None;
    }
    Some((listener, num_heard))
}

/// Some of the pieces that were read ahead, to see later what became of them.
#[derive(Default)]
struct Samples {
    num_issued: u64,
    num_bytes: u64,
    waiting: VecDeque<Sample>,
}

struct Sample {
    targets: FileBytes,
    piece: Range<usize>,
    policy: Policy,
    /// The bytes that were asked for up to it.
    num_bytes: u64,
    /// And the pauses that had begun.
    num_pauses: u32,
}

/// One piece in so many is a sample.
const SAMPLED: u64 = 8;

/// A sample is looked at when so many bytes were asked for after it: announcements are not that far ahead of readers.
const JUDGED_AFTER: u64 = 8 << 20;

/// What is read for the shortest list.
const LEAST_BYTES: u64 = 4096;

impl Samples {
    /// Counts what was asked for beside pieces that may be samples.
    fn pass(&mut self, piece: &Range<usize>) {
        self.num_bytes += (piece.len() as u64).max(LEAST_BYTES);
    }

    fn note(&mut self, targets: &FileBytes, piece: &Range<usize>, policy: Policy, counters: &PolicyCounters) {
        self.num_issued += 1;
        self.pass(piece);
        if self.num_issued.is_multiple_of(SAMPLED) {
            let (targets, piece, num_bytes) = (targets.clone(), piece.clone(), self.num_bytes);
            let num_pauses = counters.worth.num_pauses();
            self.waiting.push_back(Sample { targets, piece, policy, num_bytes, num_pauses });
        }
    }

    fn judge(&mut self, shared: &Shared) {
        let is_due = |sample: &Sample| self.num_bytes - sample.num_bytes >= JUDGED_AFTER;
        while self.waiting.front().is_some_and(is_due)
            && let Some(sample) = self.waiting.pop_front()
        {
            let counters = shared.counters.of(sample.policy);
            // What was asked for before a pause may have gone during it: held against what is asked for now, it would
            // bring about the next one.
            if sample.num_pauses == counters.worth.num_pauses() {
                judge(counters, &sample.targets, sample.piece);
            }
        }
    }
}

/// Looks whether a piece that was read ahead was read by anybody.
fn judge(counters: &PolicyCounters, targets: &FileBytes, piece: Range<usize>) {
    if let Some(num_touched) = targets.num_touched_pages(piece) {
        let counter = if num_touched > 0 { &counters.useful } else { &counters.wasted };
        counter.add(1);
        counters.worth.judge(num_touched > 0);
    }
}

impl What {
    /// What counters call it.
    pub fn num_lists(&self) -> u64 {
        match self {
            Self::Lists(_, vertices) => vertices.len() as u64,
            Self::Runs(_, runs) => runs.iter().map(|run| run.len() as u64).sum(),
            Self::Bytes(..) => 1,
            Self::Passed(..) => 0,
        }
    }

    fn parts(&self) -> Parts {
        match *self {
            Self::Lists(parts, _) | Self::Runs(parts, _) | Self::Bytes(parts, _) | Self::Passed(parts, _) => parts,
        }
    }
}

impl Request {
    /// Reads a few lists ahead on the calling thread.
    pub fn read_now(listener: &Attached, side: Side, parts: Parts, vertices: &[VertexId]) {
        for &vertex in vertices {
            let list = listener.view().stored_list(side, vertex);
            Self::read_bytes_now(listener, side, Policy::Frontier, parts, &list);
        }
    }

    /// Reads these bytes of the targets, and the weights and rows at the same places, on the calling thread.
    pub fn read_bytes_now(listener: &Attached, side: Side, policy: Policy, parts: Parts, bytes: &Range<usize>) {
        let Some(targets) = listener.view().stored_targets(side) else { return };
        ask(listener, policy, targets, bytes);
        if let Some((weights, width)) = stored_weights(listener, side, parts) {
            ask(listener, policy, &weights, &beside(bytes, width));
        }
    }

    fn serve(&self, pieces: &mut Vec<Range<usize>>, samples: &mut Samples) {
        let Some(targets) = self.listener.view().stored_targets(self.side) else { return };
        let weights = stored_weights(&self.listener, self.side, self.what.parts());
        match &self.what {
            What::Passed(_, passed) => {
                judge(self.listener.counters(self.policy), targets, passed.clone());
                if let Some((weights, width)) = weights {
                    weights.release(beside(passed, width));
                }
                return targets.release(passed.clone());
            }
            _ if self.listener.is_stale(self.epoch) => {
                return self.listener.counters(self.policy).dropped.add(self.what.num_lists());
            }
            What::Bytes(_, bytes) => pieces.push(bytes.clone()),
            What::Runs(_, runs) => {
                pieces.extend(runs.iter().map(|run| self.view().stored_lists(self.side, run.clone())));
            }
            What::Lists(_, vertices) => match self.policy {
                Policy::Neighbourhood => self.neighbours(vertices, targets, pieces),
                Policy::Frontier | Policy::Sequential => pieces.extend(vertices.iter().map(|&v| self.list(v))),
            },
        }
        join(pieces);
        // Readers may have gone on while places were looked up.
        if self.listener.is_stale(self.epoch) {
            self.listener.counters(self.policy).dropped.add(self.what.num_lists());
            return pieces.clear();
        }
        for piece in pieces.drain(..) {
            if let Some((weights, width)) = &weights {
                let piece = beside(&piece, *width);
                if ask(&self.listener, self.policy, weights, &piece) {
                    samples.pass(&piece);
                }
            }
            let is_issued = ask(&self.listener, self.policy, targets, &piece);
            // What a scan asks for is looked at when it is released.
            if is_issued && self.policy != Policy::Sequential {
                samples.note(targets, &piece, self.policy, self.listener.counters(self.policy));
            }
        }
    }

    fn view(&self) -> &View {
        self.listener.view()
    }

    fn list(&self, vertex: VertexId) -> Range<usize> {
        self.view().stored_list(self.side, vertex)
    }

    /// The lists of the neighbours of `vertices`, of each those with the most entries.
    fn neighbours(&self, vertices: &[VertexId], targets: &FileBytes, pieces: &mut Vec<Range<usize>>) {
        for &vertex in vertices {
            let list = self.list(vertex);
            let Some(neighbours) = targets.typed::<VertexId>(list.start as u64, (list.len() / 4) as u64) else {
                continue;
            };
            let first = pieces.len();
            // Unverified as they are, neighbours that are no vertices have no lists.
            pieces.extend(neighbours.iter().map(|&neighbour| self.list(neighbour)).filter(|list| !list.is_empty()));
            if pieces.len() - first > MAX_NEIGHBOURS {
                pieces[first..].select_nth_unstable_by_key(MAX_NEIGHBOURS, |list| std::cmp::Reverse(list.len()));
                pieces.truncate(first + MAX_NEIGHBOURS);
            }
            pieces[first..].iter_mut().for_each(|list| list.end = list.end.min(list.start + NEIGHBOUR_BYTES));
        }
    }
}

/// What stands beside the targets, and the bytes for each of them, if that is to be read.
pub(super) fn stored_weights(listener: &Attached, side: Side, parts: Parts) -> Option<(FileBytes, usize)> {
    listener.view().stored_weights(side).filter(|_| parts == Parts::Weighted)
}

/// Where what stands beside a piece of the targets is, of so many bytes for each of them.
fn beside(piece: &Range<usize>, width: usize) -> Range<usize> {
    let first = |byte: usize| byte / size_of::<VertexId>() * width;
    first(piece.start)..first(piece.end)
}

/// Asks the system for a piece, unless all of it is in memory; whether it did.
fn ask(listener: &Attached, policy: Policy, targets: &FileBytes, piece: &Range<usize>) -> bool {
    if piece.is_empty() {
        return false;
    }
    let counters = listener.counters(policy);
    let is_resident = targets.num_missing_pages(piece.clone()) == Some(0);
    counters.worth.found(is_resident);
    if is_resident {
        counters.already_resident.add(1);
        return false;
    }
    counters.issued.add(1);
    counters.bytes.add(piece.len() as u64);
    targets.read_ahead(piece.clone());
    true
}

/// Puts pieces in order, and makes one of those that lie close together.
fn join(pieces: &mut Vec<Range<usize>>) {
    pieces.retain(|piece| !piece.is_empty());
    pieces.sort_unstable_by_key(|piece| piece.start);
    pieces.dedup_by(|next, last| {
        let is_close = next.start <= last.end.saturating_add(GAP_BYTES);
        if is_close {
            last.end = last.end.max(next.end);
        }
        is_close
    });
}

#[cfg(test)]
mod tests {
    use base::parallel::Pool;
    use base::progress::Silent;
    use lama::Listener as _;

    use super::super::Prefetch;
    use super::super::attached::REQUEST_LISTS;
    use super::super::worth::JUDGED;
    use super::*;
    use crate::{Database, GraphOptions, KeyScheme, MergeScope, Missing, Update};

    /// Vertex 0 knows 1 to 300, of which each has as many entries as its number says, but the last, who has 20,000.
    fn hub() -> View {
        let pool = Pool::new(1).unwrap();
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = Database::in_memory(options).unwrap();
        let num_entries = |vertex: u64| if vertex == 300 { 20_000 } else { vertex };
        let of_friend = |vertex| (0..num_entries(vertex)).map(move |other| Update::add_edge(vertex, other));
        let edges = (1..=300).map(|vertex| Update::add_edge(0_u64, vertex)).chain((1..=300).flat_map(of_friend));
        database.apply(&edges.collect::<Vec<_>>(), Missing::Lenient, &pool).unwrap();
        database.checkpoint(None).unwrap();
        database.merge(MergeScope::All, &pool, &Silent).unwrap();
        database.view().unwrap()
    }

    /// The request that an announcement becomes; nobody else serves any.
    fn announced(policy: Prefetch, vertices: &[VertexId]) -> (Arc<Shared>, Request) {
        let shared = Arc::new(Shared::new(64, None));
        let listener = Attached::new(&shared, hub(), policy);
        listener.will_need(Side::Out, Parts::Targets, vertices);
        let Next::Request(request) = shared.ring.next(None) else { panic!("no request") };
        (shared, request)
    }

    #[test]
    fn neighbours_with_most_entries_are_read_ahead_and_long_lists_cut() {
        let (_shared, request) = announced(Prefetch::Neighbourhood, &[0]);
        let (mut pieces, targets) = (Vec::new(), request.view().stored_targets(Side::Out).unwrap());
        request.neighbours(&[0], targets, &mut pieces);
        let mut lens: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
        lens.sort_unstable();
        let first = 300 - MAX_NEIGHBOURS + 1;
        let expected: Vec<usize> = (first..300).map(|num_entries| 4 * num_entries).collect();
        assert_eq!(
            (&lens[..MAX_NEIGHBOURS - 1], lens[MAX_NEIGHBOURS - 1..].to_vec()),
            (&expected[..], vec![NEIGHBOUR_BYTES])
        );
    }

    #[test]
    fn what_its_reader_has_left_behind_is_dropped() {
        let vertices: Vec<VertexId> = (0..100).collect();
        for has_gone_on in [false, true] {
            let (shared, request) = announced(Prefetch::Frontier, &vertices);
            if has_gone_on {
                request.listener.forget();
            }
            request.serve(&mut Vec::new(), &mut Samples::default());
            let frontier = shared.counters.stats().frontier;
            let num_looked_at = frontier.issued + frontier.already_resident;
            let expected = if has_gone_on { (100, true) } else { (0, false) };
            assert_eq!((frontier.dropped, num_looked_at == 0), expected, "{frontier:?}");
        }
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let shared = Arc::new(Shared::new(2, None));
        let listener = Attached::new(&shared, hub(), Prefetch::Frontier);
        let vertices: Vec<VertexId> = (0..4 * REQUEST_LISTS as VertexId).map(|v| v % 300).collect();
        listener.will_need(Side::Out, Parts::Targets, &vertices);
        let frontier = shared.counters.stats().frontier;
        let num_waiting: u64 = (0..2)
            .map(|_| match shared.ring.next(None) {
                Next::Request(request) => request.what.num_lists(),
                _ => 0,
            })
            .sum();
        assert_eq!(num_waiting, 2 * REQUEST_LISTS as u64);
        assert_eq!(
            (frontier.requested, frontier.dropped),
            (vertices.len() as u64, vertices.len() as u64 - num_waiting)
        );
    }

    #[test]
    fn what_was_asked_for_before_a_pause_says_nothing_after_it() {
        let vertices: Vec<VertexId> = (0..100).collect();
        for pauses in [false, true] {
            let (shared, request) = announced(Prefetch::Frontier, &vertices);
            let (counters, mut samples) = (shared.counters.of(Policy::Frontier), Samples::default());
            let targets = request.view().stored_targets(Side::Out).unwrap();
            (0..SAMPLED).for_each(|_| samples.note(targets, &(0..4096), Policy::Frontier, counters));
            if pauses {
                (0..JUDGED).for_each(|_| counters.worth.judge(false));
            }
            samples.pass(&(0..JUDGED_AFTER as usize));
            samples.judge(&shared);
            let frontier = shared.counters.stats().frontier;
            assert_eq!(frontier.useful + frontier.wasted, u64::from(!pauses), "{frontier:?}");
            assert!(samples.waiting.is_empty());
        }
    }

    #[test]
    fn close_pieces_become_one() {
        let mut pieces = vec![100_000..100_004, 8..8, 16..20, 0..8, 100_000..100_100, 20_000..20_001];
        join(&mut pieces);
        assert_eq!(pieces, [0..20, 20_000..20_001, 100_000..100_100]);
        pieces[1] = 20 + GAP_BYTES..usize::MAX;
        join(&mut pieces);
        assert_eq!(pieces.as_slice(), std::slice::from_ref(&(0..usize::MAX)));
    }
}
