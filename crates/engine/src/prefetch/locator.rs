//! The helper threads: locate the bytes of a request, order and join them, and ask for those that are not resident.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anden_base::VertexId;
use anden_base::mapped::FileBytes;
use anden_snapshots::{Direction, Parts, SnapshotView};

use super::PrefetchShared;
use super::counters::{PolicyCounters, PrefetchPolicy};
use super::hook::PrefetchHook;
use super::ring::Next;

/// Pieces at most this far apart are read as one: a disk reads the gap faster than it serves another request.
const GAP_BYTES: usize = 16 << 10;

/// The most bytes of a neighbor's list that are read ahead: the neighbor may never be visited.
const NEIGHBOR_BYTES: usize = 64 << 10;

/// The most neighbors of a vertex whose lists are read ahead.
const MAX_NEIGHBORS: usize = 256;

/// The content of a request.
#[derive(Debug)]
pub(super) enum PrefetchTarget {
    /// The lists of these vertices.
    Lists(Parts, Box<[VertexId]>),
    /// The lists of these runs of vertices.
    Runs(Parts, Box<[Range<VertexId>]>),
    /// Bytes of the targets, and the data beside them, ahead of a scan.
    Bytes(Parts, Range<usize>),
    /// Bytes that a scan has passed, to be released.
    Passed(Parts, Range<usize>),
}

/// A part of an announcement.
#[derive(Debug)]
pub(super) struct PrefetchRequest {
    pub hook: Arc<PrefetchHook>,
    pub direction: Direction,
    pub policy: PrefetchPolicy,
    pub epoch: u64,
    pub what: PrefetchTarget,
}

/// After this time without an announcement, the system's own read-ahead is turned on again for a reader's lists,
const SILENCE: Duration = Duration::from_millis(20);
/// or after this time, if the system would read more around a list than memory has room for.
const TIGHT_SILENCE: Duration = Duration::from_millis(500);

/// Serves requests until the ring is closed.
pub(super) fn serve(shared: &PrefetchShared) {
    // Reused for all requests, so that a request allocates nothing.
    let (mut pieces, mut samples) = (Vec::new(), Samples::default());
    // The hook of the last request, with its number of announcements then.
    let mut last: Option<(Weak<PrefetchHook>, u64)> = None;
    loop {
        match shared.ring.next(last.as_ref().map(|(hook, _)| silence(hook))) {
            Next::Request(request) => {
                // Weak, so that an idle helper does not keep the view alive.
                last = Some((Arc::downgrade(&request.hook), request.hook.num_heard()));
                request.serve(&mut pieces, &mut samples);
                samples.judge(shared);
            }
            Next::Nothing => {
                last = last.and_then(still_heard);
                if last.is_none() {
                    // Samples keep files open that may be removed, and too few requests will follow to judge them soon.
                    samples.waiting.clear();
                }
            }
            Next::Closed => return,
        }
    }
}

/// The time without announcements after which a reader counts as silent.
fn silence(hook: &Weak<PrefetchHook>) -> Duration {
    let is_tight = hook.upgrade().is_some_and(|hook| hook.is_tight(Direction::Out));
    if is_tight { TIGHT_SILENCE } else { SILENCE }
}

/// The hook if it had announcements since; otherwise turns the system's own read-ahead on.
fn still_heard((hook, num_before): (Weak<PrefetchHook>, u64)) -> Option<(Weak<PrefetchHook>, u64)> {
    // The reader may be gone, and its pages with it.
    let live = hook.upgrade()?;
    let num_heard = live.num_heard();
    if num_heard == num_before {
        live.view().read_exactly(false);
        return None;
    }
    Some((hook, num_heard))
}

/// A sample of the prefetched pieces, to be judged later.
#[derive(Default)]
struct Samples {
    num_issued: u64,
    num_bytes: u64,
    waiting: VecDeque<Sample>,
}

struct Sample {
    targets: FileBytes,
    piece: Range<usize>,
    policy: PrefetchPolicy,
    /// The bytes asked for before it.
    num_bytes: u64,
    /// The pauses begun before it.
    num_pauses: u32,
}

/// One in this many pieces is sampled.
const SAMPLED: u64 = 8;

/// A sample is judged once this many bytes were asked for after it; announcements are not that far ahead of readers.
const JUDGED_AFTER: u64 = 8 << 20;

/// The bytes that are read for the shortest list.
const LEAST_BYTES: u64 = 4096;

impl Samples {
    /// Counts bytes that are not sampled.
    fn pass(&mut self, piece: &Range<usize>) {
        self.num_bytes += (piece.len() as u64).max(LEAST_BYTES);
    }

    fn note(&mut self, targets: &FileBytes, piece: &Range<usize>, policy: PrefetchPolicy, counters: &PolicyCounters) {
        self.num_issued += 1;
        self.pass(piece);
        if self.num_issued.is_multiple_of(SAMPLED) {
            let (targets, piece, num_bytes) = (targets.clone(), piece.clone(), self.num_bytes);
            let num_pauses = counters.usefulness.num_pauses();
            self.waiting.push_back(Sample { targets, piece, policy, num_bytes, num_pauses });
        }
    }

    fn judge(&mut self, shared: &PrefetchShared) {
        let is_due = |sample: &Sample| self.num_bytes - sample.num_bytes >= JUDGED_AFTER;
        while self.waiting.front().is_some_and(is_due)
            && let Some(sample) = self.waiting.pop_front()
        {
            let counters = shared.counters.of(sample.policy);
            // A piece from before a pause may have been evicted during it. Judging it now would cause the next pause.
            if sample.num_pauses == counters.usefulness.num_pauses() {
                judge(counters, &sample.targets, sample.piece);
            }
        }
    }
}

/// Judges whether a prefetched piece was read.
fn judge(counters: &PolicyCounters, targets: &FileBytes, piece: Range<usize>) {
    if let Some(num_touched) = targets.num_touched_pages(piece) {
        let counter = if num_touched > 0 { &counters.useful } else { &counters.wasted };
        counter.add(1);
        counters.usefulness.judge(num_touched > 0);
    }
}

impl PrefetchTarget {
    /// The number of lists, for counters.
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

impl PrefetchRequest {
    /// Asks for a few lists on the calling thread.
    pub fn read_now(hook: &PrefetchHook, direction: Direction, parts: Parts, vertices: &[VertexId]) {
        for &vertex in vertices {
            let list = hook.view().stored_list(direction, vertex);
            Self::read_bytes_now(hook, direction, PrefetchPolicy::Frontier, parts, &list);
        }
    }

    /// Asks for these bytes of the targets, and for the data at the same places, on the calling thread.
    pub fn read_bytes_now(
        hook: &PrefetchHook,
        direction: Direction,
        policy: PrefetchPolicy,
        parts: Parts,
        bytes: &Range<usize>,
    ) {
        let Some(targets) = hook.view().stored_targets(direction) else { return };
        ask(hook, policy, targets, bytes);
        if let Some((weights, width)) = stored_weights(hook, direction, parts) {
            ask(hook, policy, &weights, &beside(bytes, width));
        }
    }

    fn serve(&self, pieces: &mut Vec<Range<usize>>, samples: &mut Samples) {
        let Some(targets) = self.hook.view().stored_targets(self.direction) else { return };
        let weights = stored_weights(&self.hook, self.direction, self.what.parts());
        match &self.what {
            // Passed bytes are released even if the reader has gone on.
            PrefetchTarget::Passed(_, passed) => {
                judge(self.hook.counters(self.policy), targets, passed.clone());
                if let Some((weights, width)) = weights {
                    weights.release(beside(passed, width));
                }
                return targets.release(passed.clone());
            }
            // The reader went on while the request waited.
            _ if self.hook.is_stale(self.epoch) => {
                return self.hook.counters(self.policy).dropped.add(self.what.num_lists());
            }
            PrefetchTarget::Bytes(_, bytes) => pieces.push(bytes.clone()),
            PrefetchTarget::Runs(_, runs) => {
                pieces.extend(runs.iter().map(|run| self.view().stored_lists(self.direction, run.clone())));
            }
            PrefetchTarget::Lists(_, vertices) => match self.policy {
                PrefetchPolicy::Neighborhood => self.neighbors(vertices, targets, pieces),
                PrefetchPolicy::Frontier | PrefetchPolicy::Sequential => {
                    pieces.extend(vertices.iter().map(|&v| self.list(v)))
                }
            },
        }
        join(pieces);
        // Readers may have gone on during the lookup.
        if self.hook.is_stale(self.epoch) {
            self.hook.counters(self.policy).dropped.add(self.what.num_lists());
            return pieces.clear();
        }
        for piece in pieces.drain(..) {
            if let Some((weights, width)) = &weights {
                let piece = beside(&piece, *width);
                if ask(&self.hook, self.policy, weights, &piece) {
                    samples.pass(&piece);
                }
            }
            let is_issued = ask(&self.hook, self.policy, targets, &piece);
            // A scan's pieces are judged when they are released.
            if is_issued && self.policy != PrefetchPolicy::Sequential {
                samples.note(targets, &piece, self.policy, self.hook.counters(self.policy));
            }
        }
    }

    fn view(&self) -> &SnapshotView {
        self.hook.view()
    }

    fn list(&self, vertex: VertexId) -> Range<usize> {
        self.view().stored_list(self.direction, vertex)
    }

    /// The lists of the neighbors of `vertices`; of each vertex, the longest lists.
    fn neighbors(&self, vertices: &[VertexId], targets: &FileBytes, pieces: &mut Vec<Range<usize>>) {
        for &vertex in vertices {
            let list = self.list(vertex);
            let Some(neighbors) = targets.typed::<VertexId>(list.start as u64, (list.len() / 4) as u64) else {
                continue;
            };
            let first = pieces.len();
            // The neighbors are not verified yet; ids out of bounds have no lists.
            pieces.extend(neighbors.iter().map(|&neighbor| self.list(neighbor)).filter(|list| !list.is_empty()));
            if pieces.len() - first > MAX_NEIGHBORS {
                // A selection suffices, because `join` sorts the lists by place.
                pieces[first..].select_nth_unstable_by_key(MAX_NEIGHBORS, |list| std::cmp::Reverse(list.len()));
                pieces.truncate(first + MAX_NEIGHBORS);
            }
            pieces[first..].iter_mut().for_each(|list| list.end = list.end.min(list.start + NEIGHBOR_BYTES));
        }
    }
}

/// The file of the data beside the targets, with its width, if it is to be read.
pub(super) fn stored_weights(hook: &PrefetchHook, direction: Direction, parts: Parts) -> Option<(FileBytes, usize)> {
    hook.view().stored_weights(direction).filter(|_| parts == Parts::Weighted)
}

/// The bytes of the data beside a piece of the targets; `width` is the data's width.
fn beside(piece: &Range<usize>, width: usize) -> Range<usize> {
    let first = |byte: usize| byte / size_of::<VertexId>() * width;
    first(piece.start)..first(piece.end)
}

/// Asks the system for a piece, unless it is resident. Returns whether it asked.
fn ask(hook: &PrefetchHook, policy: PrefetchPolicy, targets: &FileBytes, piece: &Range<usize>) -> bool {
    if piece.is_empty() {
        return false;
    }
    let counters = hook.counters(policy);
    // A call for resident pages would be wasted.
    let is_resident = targets.num_missing_pages(piece.clone()) == Some(0);
    counters.usefulness.found(is_resident);
    if is_resident {
        counters.already_resident.add(1);
        return false;
    }
    counters.issued.add(1);
    counters.bytes.add(piece.len() as u64);
    targets.read_ahead(piece.clone());
    true
}

/// Sorts pieces, and joins close ones.
fn join(pieces: &mut Vec<Range<usize>>) {
    pieces.retain(|piece| !piece.is_empty());
    // Sorted by place, so that one pass joins pieces and the disk reads forward.
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
    use anden_base::parallel::Pool;
    use anden_base::progress::Silent;
    use anden_snapshots::Listener as _;

    use super::super::Prefetch;
    use super::super::hook::REQUEST_LISTS;
    use super::super::usefulness::JUDGED;
    use super::*;
    use crate::{Engine, GraphOptions, KeyScheme, MergeScope, Missing, Update};

    /// Vertex 0 has edges to 1 to 300. Each of these has as many edges as its number, but the last has 20,000.
    fn hub() -> SnapshotView {
        let pool = Pool::new(1).unwrap();
        let options = GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() };
        let database = Engine::in_memory(options).unwrap();
        let num_entries = |vertex: u64| if vertex == 300 { 20_000 } else { vertex };
        let of_friend = |vertex| (0..num_entries(vertex)).map(move |other| Update::add_edge(vertex, other));
        let edges = (1..=300).map(|vertex| Update::add_edge(0_u64, vertex)).chain((1..=300).flat_map(of_friend));
        database.apply(&edges.collect::<Vec<_>>(), Missing::Lenient, &pool).unwrap();
        database.checkpoint(None).unwrap();
        database.merge(MergeScope::All, &pool, &Silent).unwrap();
        database.view().unwrap()
    }

    /// The request of an announcement; no helper serves it.
    fn announced(policy: Prefetch, vertices: &[VertexId]) -> (Arc<PrefetchShared>, PrefetchRequest) {
        let shared = Arc::new(PrefetchShared::new(64, None));
        let hook = PrefetchHook::new(&shared, hub(), policy);
        hook.will_need(Direction::Out, Parts::Targets, vertices);
        let Next::Request(request) = shared.ring.next(None) else { panic!("no request") };
        (shared, request)
    }

    #[test]
    fn largest_neighbor_lists_are_prefetched_and_capped() {
        let (_shared, request) = announced(Prefetch::Neighborhood, &[0]);
        let (mut pieces, targets) = (Vec::new(), request.view().stored_targets(Direction::Out).unwrap());
        request.neighbors(&[0], targets, &mut pieces);
        let mut lens: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
        lens.sort_unstable();
        let first = 300 - MAX_NEIGHBORS + 1;
        let expected: Vec<usize> = (first..300).map(|num_entries| 4 * num_entries).collect();
        assert_eq!(
            (&lens[..MAX_NEIGHBORS - 1], lens[MAX_NEIGHBORS - 1..].to_vec()),
            (&expected[..], vec![NEIGHBOR_BYTES])
        );
    }

    #[test]
    fn request_passed_by_its_reader_is_dropped() {
        let vertices: Vec<VertexId> = (0..100).collect();
        for has_gone_on in [false, true] {
            let (shared, request) = announced(Prefetch::Frontier, &vertices);
            if has_gone_on {
                request.hook.forget();
            }
            request.serve(&mut Vec::new(), &mut Samples::default());
            let frontier = shared.counters.stats().frontier;
            let num_looked_at = frontier.issued + frontier.already_resident;
            let expected = if has_gone_on { (100, true) } else { (0, false) };
            assert_eq!((frontier.dropped, num_looked_at == 0), expected, "{frontier:?}");
        }
    }

    #[test]
    fn requests_beyond_ring_capacity_are_dropped_and_counted() {
        let shared = Arc::new(PrefetchShared::new(2, None));
        let hook = PrefetchHook::new(&shared, hub(), Prefetch::Frontier);
        let vertices: Vec<VertexId> = (0..4 * REQUEST_LISTS as VertexId).map(|v| v % 300).collect();
        hook.will_need(Direction::Out, Parts::Targets, &vertices);
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
    fn samples_from_before_a_pause_are_discarded() {
        let vertices: Vec<VertexId> = (0..100).collect();
        for pauses in [false, true] {
            let (shared, request) = announced(Prefetch::Frontier, &vertices);
            let (counters, mut samples) = (shared.counters.of(PrefetchPolicy::Frontier), Samples::default());
            let targets = request.view().stored_targets(Direction::Out).unwrap();
            (0..SAMPLED).for_each(|_| samples.note(targets, &(0..4096), PrefetchPolicy::Frontier, counters));
            if pauses {
                (0..JUDGED).for_each(|_| counters.usefulness.judge(false));
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
