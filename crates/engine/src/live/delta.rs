//! The memtable's container, for arc data of every width: none, a weight of four bytes, a weight or row number of
//! eight, and both in sixteen.

use std::borrow::Cow;
use std::ops::ControlFlow;

use anden_base::VertexId;
use anden_base::parallel::Pool;
use anden_graph::WeightType;
use anden_memtable::{
    Addition, AdjacencyTable, Differences, Edges, Lists, Options, Space, Terrace, TransposedChanges, Version,
    differences,
};
use anden_snapshots::{
    Added, AddedFragment, ArcData, ChangedArc, ChangedPart, ChangedPartBody, Direction, DirtyPageLists, GraphOptions,
    ListChanges,
};

use super::batch::ArcBatch;
use super::below::Below;
use crate::{Error, Result};

/// The least arcs of a share that a worker sorts.
const MIN_SHARE: usize = 16 << 10;

/// A container with the buffers to fill it.
#[derive(Debug)]
pub(crate) struct FilledTerrace<W: anden_memtable::EntryValue> {
    terrace: Terrace<W>,
    space: Space<anden_memtable::EntryUpdate<W>>,
    transpose: TransposedChanges<W>,
    /// Buffer for batches that come as pairs.
    pairs: Space<Addition>,
}

/// The writable container: additions and tombstones.
#[derive(Debug)]
pub(crate) enum MemtableArcs {
    None(FilledTerrace<()>),
    Narrow(FilledTerrace<u32>),
    Wide(FilledTerrace<u64>),
    Full(FilledTerrace<[u64; 2]>),
}

/// A published version of the container.
#[derive(Clone, Debug)]
pub(crate) enum MemtableArcsVersion {
    None(Version<()>),
    Narrow(Version<u32>),
    Wide(Version<u64>),
    Full(Version<[u64; 2]>),
}

macro_rules! for_widths {
    ($kind:ident, $delta:expr, $name:ident => $body:expr) => {
        match $delta {
            $kind::None($name) => $body,
            $kind::Narrow($name) => $body,
            $kind::Wide($name) => $body,
            $kind::Full($name) => $body,
        }
    };
}
pub(crate) use for_widths;

/// The data beside an arc, as wide as the graph needs.
pub(crate) trait Bits: anden_memtable::EntryValue {
    fn of(data: ArcData) -> Self;
    /// `has_rows`: whether arcs of the graph have rows.
    fn into_data(self, has_rows: bool) -> ArcData;
    fn bytes(values: &[Self]) -> &[u8];
}

impl Bits for () {
    fn of(_: ArcData) {}

    fn into_data(self, _: bool) -> ArcData {
        ArcData::default()
    }

    fn bytes(_: &[Self]) -> &[u8] {
        &[]
    }
}

impl Bits for [u64; 2] {
    fn of(ArcData { row, weight }: ArcData) -> Self {
        [row, weight]
    }

    fn into_data(self, _: bool) -> ArcData {
        ArcData { row: self[0], weight: self[1] }
    }

    fn bytes(values: &[Self]) -> &[u8] {
        bytemuck::cast_slice(values)
    }
}

/// The width of the data beside the arcs of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArcDataWidth {
    None,
    Narrow,
    Wide,
    Full,
}

impl ArcDataWidth {
    pub(super) fn of(options: &GraphOptions) -> Self {
        match (options.has_rows(), options.weight_type.map(WeightType::num_bytes)) {
            // A row and a weight together need sixteen bytes, whatever the type of the weight.
            (true, Some(_)) => Self::Full,
            (true, None) => Self::Wide,
            (false, None) => Self::None,
            (false, Some(4)) => Self::Narrow,
            (false, Some(_)) => Self::Wide,
        }
    }
}

macro_rules! bits_of_widths {
    ($($width:ty)*) => {$(
        impl Bits for $width {
            fn of(ArcData { row, weight }: ArcData) -> Self {
                // A graph of this width has either rows or weights; the other field is 0.
                (row | weight) as Self
            }

            fn into_data(self, has_rows: bool) -> ArcData {
                if has_rows { ArcData::of_row(self.into()) } else { ArcData::of_weight(self.into()) }
            }

            fn bytes(values: &[Self]) -> &[u8] {
                bytemuck::cast_slice(values)
            }
        }
    )*};
}

bits_of_widths!(u32 u64);

impl<W: Bits> FilledTerrace<W> {
    fn new(options: &Options) -> Result<Self> {
        let (space, transpose, pairs) = (Space::default(), TransposedChanges::default(), Space::default());
        Ok(Self { terrace: Terrace::new(options)?, space, transpose, pairs })
    }

    fn apply(&mut self, pool: &Pool, below: &Below<'_>, arcs: &[anden_memtable::EntryUpdate<W>]) -> Result<()> {
        Ok(self.terrace.apply_directions_over(pool, below, arcs, &mut self.space, &mut self.transpose)?)
    }
}

impl MemtableArcs {
    /// A container without changes.
    pub(crate) fn new(graph: &GraphOptions, options: &Options) -> Result<Self> {
        Ok(match ArcDataWidth::of(graph) {
            ArcDataWidth::None => Self::None(FilledTerrace::new(options)?),
            ArcDataWidth::Narrow => Self::Narrow(FilledTerrace::new(options)?),
            ArcDataWidth::Wide => Self::Wide(FilledTerrace::new(options)?),
            ArcDataWidth::Full => Self::Full(FilledTerrace::new(options)?),
        })
    }

    /// Makes room for vertices below `bound`.
    pub(crate) fn grow(&mut self, bound: usize) -> Result<()> {
        for_widths!(Self, self, delta => delta.terrace.grow(bound)?);
        Ok(())
    }

    /// Whether it has no arcs.
    pub(crate) fn is_empty(&self) -> bool {
        for_widths!(Self, self, delta => delta.terrace.is_empty())
    }

    /// Bytes that readers hold, and bytes of the last published version.
    pub(crate) fn num_bytes(&self) -> u64 {
        for_widths!(Self, self, delta => delta.terrace.num_live_bytes())
    }

    /// Applies arcs of out-lists, and transposed those of in-lists, as differences from `below`. If one arc changes
    /// several times, the last change counts.
    pub(crate) fn apply(&mut self, pool: &Pool, below: &Below<'_>, batch: &ArcBatch) -> Result<()> {
        match (self, batch) {
            (Self::None(delta), ArcBatch::None(arcs)) => delta.apply(pool, below, arcs),
            (Self::Narrow(delta), ArcBatch::Narrow(arcs)) => delta.apply(pool, below, arcs),
            (Self::Wide(delta), ArcBatch::Wide(arcs)) => delta.apply(pool, below, arcs),
            (Self::Full(delta), ArcBatch::Full(arcs)) => delta.apply(pool, below, arcs),
            _ => Err(Error::internal("arcs with data of another width than the graph's")),
        }
    }

    /// As [`apply`](Self::apply), for edges of a graph without weights.
    pub(crate) fn apply_edges(&mut self, pool: &Pool, below: &Below<'_>, edges: Edges<'_>) -> Result<()> {
        match self {
            Self::None(delta) => {
                Ok(delta.terrace.apply_edges_over(pool, below, edges, &mut delta.pairs, &mut delta.transpose)?)
            }
            _ => Err(Error::internal("edges without weights in a graph with weights")),
        }
    }

    /// Hints that lists of a vertex change soon. Called once [a version's hint](MemtableArcsVersion::prefetch) has
    /// taken effect.
    pub(crate) fn prefetch_lists(&self, direction: Direction, vertex: VertexId) {
        for_widths!(Self, self, delta => delta.terrace.prefetch_lists(direction, vertex));
    }

    /// Makes a version of the changes until now.
    pub(crate) fn publish(&mut self) -> MemtableArcsVersion {
        match self {
            Self::None(delta) => MemtableArcsVersion::None(published(delta)),
            Self::Narrow(delta) => MemtableArcsVersion::Narrow(published(delta)),
            Self::Wide(delta) => MemtableArcsVersion::Wide(published(delta)),
            Self::Full(delta) => MemtableArcsVersion::Full(published(delta)),
        }
    }
}

/// The arcs that a delta adds and removes, sorted by list.
#[derive(Debug, Default)]
pub(crate) struct DeltaArcs {
    pub(crate) out_added: Vec<ChangedArc>,
    pub(crate) out_removed: Vec<ChangedArc>,
    /// Empty if in-lists are not kept.
    pub(crate) in_added: Vec<ChangedArc>,
    pub(crate) in_removed: Vec<ChangedArc>,
}

impl DeltaArcs {
    /// The differences that a batch makes to the versions below; ids are below `bound`.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(crate) fn of_batch(
        batch: &ArcBatch,
        below: &Below<'_>,
        bound: usize,
        options: &GraphOptions,
        pool: &Pool,
    ) -> Result<Self> {
        let mut arcs = for_widths!(ArcBatch, batch, changes => {
            let differences = differences(pool, below, changes, (bound, options.multigraph), &mut Space::default())?;
            Self::of_differences(differences, options)
        });
        if options.multigraph {
            cancel(&mut arcs.out_added, &mut arcs.out_removed);
        }
        // Turned after the cancellation, so that both directions agree.
        if options.stores_in_lists() {
            arcs.in_added = reversed(&arcs.out_added, pool);
            arcs.in_removed = reversed(&arcs.out_removed, pool);
        }
        Ok(arcs)
    }

    fn of_differences<W: Bits>(parts: Vec<Differences<W>>, options: &GraphOptions) -> Self {
        let has_rows = options.has_rows();
        let arc = |change: &anden_memtable::EntryUpdate<W>| {
            let data = change.addition.map_or(ArcData::default(), |value| value.into_data(has_rows));
            ChangedArc { list: change.source, neighbor: change.target, data }
        };
        let mut arcs = Self::default();
        // The counts are known, so the arrays never grow.
        arcs.out_added.reserve_exact(parts.iter().map(|part| part.added.len()).sum());
        arcs.out_removed.reserve_exact(parts.iter().map(|part| part.removed.len()).sum());
        for part in parts {
            arcs.out_added.extend(part.added.iter().map(arc));
            arcs.out_removed.extend(part.removed.iter().map(arc));
        }
        arcs
    }
}

/// Sorts arcs, and drops those that are both added and removed: in a multigraph, a pair is removed whole, and its
/// remaining edges are added again.
pub(super) fn cancel(added: &mut Vec<ChangedArc>, removed: &mut Vec<ChangedArc>) {
    added.sort_unstable();
    removed.sort_unstable();
    let all_removed = std::mem::take(removed);
    // Both arrays are sorted, so one pass finds what they share.
    let mut rest = all_removed.into_iter().peekable();
    added.retain(|arc| {
        while let Some(other) = rest.next_if(|other| other < arc) {
            removed.push(other);
        }
        rest.next_if_eq(arc).is_none()
    });
    removed.extend(rest);
}

/// The arcs as entries of the lists of their other ends, sorted.
fn reversed(arcs: &[ChangedArc], pool: &Pool) -> Vec<ChangedArc> {
    let reverse = |arc: &ChangedArc| ChangedArc { list: arc.neighbor, neighbor: arc.list, data: arc.data };
    let mut reversed: Vec<_> = arcs.iter().map(reverse).collect();
    let share = reversed.len().div_ceil(pool.num_threads()).max(MIN_SHARE);
    pool.for_each_part_mut(&mut reversed, share, |_, part| part.sort_unstable());
    // A stable sort detects the sorted shares and merges them.
    reversed.sort();
    reversed
}

fn published<W: Bits>(delta: &mut FilledTerrace<W>) -> Version<W> {
    delta.terrace.publish();
    delta.terrace.version()
}

impl MemtableArcsVersion {
    /// Number of arcs in an adjacency table.
    pub(crate) fn num_arcs(&self, adjacency_table: AdjacencyTable) -> u64 {
        for_widths!(Self, self, version => version.lists(adjacency_table).num_arcs())
    }

    /// Number of arcs among them from a vertex to itself.
    pub(crate) fn num_loops(&self, adjacency_table: AdjacencyTable) -> u64 {
        for_widths!(Self, self, version => version.lists(adjacency_table).num_loops())
    }

    /// Number of arcs added to and removed from one list.
    pub(crate) fn num_changes(&self, direction: Direction, vertex: VertexId) -> ListChanges {
        for_widths!(Self, self, version => {
            let removed = version.lists(AdjacencyTable::removed(direction));
            // Most memtables have few tombstones or none: skip the lookup.
            let num_removed = if removed.num_arcs() > 0 { removed.degree(vertex) } else { 0 };
            ListChanges { removed: num_removed, added: version.lists(AdjacencyTable::added(direction)).degree(vertex) }
        })
    }

    /// The tombstones of a list.
    pub(crate) fn removed(&self, direction: Direction, vertex: VertexId) -> Cow<'_, [VertexId]> {
        for_widths!(Self, self, version => entries(version.lists(AdjacencyTable::removed(direction)), vertex))
    }

    /// The tombstones of a list, and its additions if they are one fragment.
    pub(crate) fn changes(&self, direction: Direction, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        for_widths!(Self, self, version => {
            let gone = entries(version.lists(AdjacencyTable::removed(direction)), vertex);
            let new = version.lists(AdjacencyTable::added(direction)).single(vertex);
            let new = new.map(|(targets, values)| (targets, Bits::bytes(values)));
            (gone, new)
        })
    }

    /// The additions of a list if they are one fragment.
    pub(crate) fn added(&self, direction: Direction, vertex: VertexId) -> Option<Added<'_>> {
        for_widths!(Self, self, version => {
            let list = version.lists(AdjacencyTable::added(direction)).single(vertex);
            list.map(|(targets, values)| (targets, Bits::bytes(values)))
        })
    }

    /// Calls `body` with the changes of the lists of a group, fragment by fragment.
    pub(crate) fn for_each_change(&self, direction: Direction, lists: &DirtyPageLists, body: &mut ChangedPartBody<'_>) {
        for_widths!(Self, self, version => {
            let (removed, added) = (AdjacencyTable::removed(direction), AdjacencyTable::added(direction));
            changes(version.lists(removed), version.lists(added), lists, body);
        })
    }

    /// Last prefetch stage: fetches the changes of a list whose place is known.
    pub(crate) fn prefetch_list(&self, direction: Direction, vertex: VertexId, has_tombstones: bool) {
        for_widths!(Self, self, version => {
            version.lists(AdjacencyTable::added(direction)).prefetch_list(vertex);
            if has_tombstones {
                version.lists(AdjacencyTable::removed(direction)).prefetch_list(vertex);
            }
        })
    }

    /// First prefetch stage: fetches the table entry of a list.
    pub(crate) fn prefetch(&self, direction: Direction, vertex: VertexId) {
        for_widths!(Self, self, version => {
            version.lists(AdjacencyTable::added(direction)).prefetch(vertex);
            version.lists(AdjacencyTable::removed(direction)).prefetch(vertex);
        })
    }

    /// Second prefetch stage: fetches the block that holds the list's address.
    pub(crate) fn prefetch_place(&self, direction: Direction, vertex: VertexId, has_tombstones: bool) {
        for_widths!(Self, self, version => {
            version.lists(AdjacencyTable::added(direction)).prefetch_place(vertex);
            if has_tombstones {
                version.lists(AdjacencyTable::removed(direction)).prefetch_place(vertex);
            }
        })
    }

    /// Calls `body` with the additions of a list, fragment by fragment.
    pub(crate) fn for_each_added(
        &self,
        direction: Direction,
        vertex: VertexId,
        body: &mut AddedFragment<'_>,
    ) -> ControlFlow<()> {
        for_widths!(Self, self, version => pieces(version.lists(AdjacencyTable::added(direction)), vertex, body))
    }

    /// The data of an arc in an adjacency table.
    pub(crate) fn data(
        &self,
        adjacency_table: AdjacencyTable,
        list: VertexId,
        neighbor: VertexId,
        options: &GraphOptions,
    ) -> Option<ArcData> {
        let has_rows = options.has_rows();
        for_widths!(Self, self, version => {
            version.lists(adjacency_table).get(list, neighbor).map(|&value| Bits::into_data(value, has_rows))
        })
    }

    /// Calls `body` with the data of each of the arcs to a neighbor.
    pub(crate) fn for_each_parallel(
        &self,
        adjacency_table: AdjacencyTable,
        (list, neighbor): (VertexId, VertexId),
        options: &GraphOptions,
        mut body: impl FnMut(ArcData),
    ) {
        let has_rows = options.has_rows();
        for_widths!(Self, self, version => {
            let lists = version.lists(adjacency_table);
            if lists.num_arcs() > 0 {
                lists.for_each_parallel(list, neighbor, |&value| body(Bits::into_data(value, has_rows)));
            }
        });
    }

    /// The arcs of an adjacency table in ascending lists.
    pub(crate) fn arcs(
        &self,
        adjacency_table: AdjacencyTable,
        lists: impl Iterator<Item = VertexId>,
        options: &GraphOptions,
    ) -> Vec<ChangedArc> {
        for_widths!(Self, self, version => arcs(version.lists(adjacency_table), lists, options.has_rows()))
    }
}

#[inline]
fn entries<W: Bits>(lists: Lists<'_, W>, vertex: VertexId) -> Cow<'_, [VertexId]> {
    // Without any tombstone, the lookup is saved.
    if lists.num_arcs() == 0 {
        return Cow::Borrowed(&[]);
    }
    if let Some((entries, _)) = lists.single(vertex) {
        // A list in one fragment is borrowed, not copied.
        return Cow::Borrowed(entries);
    }
    let mut entries = Vec::with_capacity(lists.degree(vertex));
    let _ = lists.for_each_fragment(vertex, |targets, _| {
        entries.extend_from_slice(targets);
        ControlFlow::Continue(())
    });
    Cow::Owned(entries)
}

/// Calls `body` with the changes of a group of lists. Tombstones come first, and additions only if the reader goes on;
/// lists that only gain arcs have no tombstones to read.
fn changes<W: Bits>(
    removed: Lists<'_, W>,
    added: Lists<'_, W>,
    lists: &DirtyPageLists,
    body: &mut ChangedPartBody<'_>,
) {
    let (gone, new) = (removed.of_group(&lists.tombstoned), added.of_group(&lists.wanted));
    let read = |vertex| {
        if !lists.gaining.contains(vertex) {
            let gone = match lists.tombstoned.contains(vertex) {
                false => Cow::Borrowed(&[][..]),
                true => match gone.single(vertex) {
                    Some((entries, _)) => Cow::Borrowed(entries),
                    None => entries(removed, vertex),
                },
            };
            if body(vertex, ChangedPart::Removed(&gone)).is_break() {
                return;
            }
        }
        let _ = new.for_each_fragment(vertex, |targets, values| match targets.is_empty() {
            true => ControlFlow::Continue(()),
            false => body(vertex, ChangedPart::Added(targets, W::bytes(values))),
        });
    };
    let place = |vertex| {
        new.prefetch_place(vertex);
        if lists.tombstoned.contains(vertex) {
            gone.prefetch_place(vertex);
        }
    };
    let list = |vertex| {
        new.prefetch_list(vertex);
        if lists.tombstoned.contains(vertex) {
            gone.prefetch_list(vertex);
        }
    };
    // Each stage prefetches for lists further on, so that a read seldom waits for memory.
    lists.wanted.for_each_in_steps(place, list, read);
}

fn pieces<W: Bits>(lists: Lists<'_, W>, vertex: VertexId, body: &mut AddedFragment<'_>) -> ControlFlow<()> {
    lists.for_each_fragment(vertex, |targets, values| match targets.is_empty() {
        true => ControlFlow::Continue(()),
        false => body(targets, W::bytes(values)),
    })
}

fn arcs<W: Bits>(lists: Lists<'_, W>, of: impl Iterator<Item = VertexId>, has_rows: bool) -> Vec<ChangedArc> {
    // The number is known, so the array is allocated once.
    let mut arcs = Vec::with_capacity(lists.num_arcs() as usize);
    for list in of {
        let _ = lists.for_each_fragment(list, |targets, values| {
            let data = values.iter().map(|&value| value.into_data(has_rows));
            arcs.extend(targets.iter().zip(data).map(|(&neighbor, data)| ChangedArc { list, neighbor, data }));
            ControlFlow::Continue(())
        });
    }
    arcs
}
