//! The arcs that a live graph adds to its snapshot and removes from it, for data of every width: none, a weight of four
//! bytes, a weight or the number of a row of eight, and both of sixteen.

use std::borrow::Cow;
use std::ops::ControlFlow;

use base::VertexId;
use base::parallel::Pool;
use graph::WeightType;
use lama::{
    Added, AddedPiece, ArcData, ChangedArc, ChangedPart, ChangedPartBody, GraphOptions, ListChanges, Side, TouchedLists,
};
use terrace::{Addition, Differences, Edges, Lists, Mirror, Options, Plane, Space, Terrace, Version, differences};

use super::batch::Batch;
use super::below::Below;
use crate::{Error, Result};

/// Arcs of a smaller share are sorted by one worker.
const MIN_SHARE: usize = 16 << 10;

/// The live container, and what it takes to fill it.
#[derive(Debug)]
pub(crate) struct Filled<W: terrace::Value> {
    terrace: Terrace<W>,
    space: Space<terrace::Update<W>>,
    mirror: Mirror<W>,
    /// For batches that come as pairs.
    pairs: Space<Addition>,
}

/// What is added and removed, before it is published.
#[derive(Debug)]
pub(crate) enum Delta {
    None(Filled<()>),
    Narrow(Filled<u32>),
    Wide(Filled<u64>),
    Full(Filled<[u64; 2]>),
}

/// What is added and removed at an epoch.
#[derive(Clone, Debug)]
pub(crate) enum DeltaVersion {
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

/// What stands beside an entry, as wide as the graph needs it.
pub(crate) trait Bits: terrace::Value {
    fn of(data: ArcData) -> Self;
    /// `has_rows`: whether entries of the graph have rows.
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

/// The width of what stands beside the entries of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    None,
    Narrow,
    Wide,
    Full,
}

impl Width {
    pub(super) fn of(options: &GraphOptions) -> Self {
        match (options.has_rows(), options.weight_type.map(WeightType::num_bytes)) {
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
                // One of the two is there.
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

impl<W: Bits> Filled<W> {
    fn new(options: &Options) -> Result<Self> {
        let (space, mirror, pairs) = (Space::default(), Mirror::default(), Space::default());
        Ok(Self { terrace: Terrace::new(options)?, space, mirror, pairs })
    }

    fn apply(&mut self, pool: &Pool, below: &Below<'_>, arcs: &[terrace::Update<W>]) -> Result<()> {
        Ok(self.terrace.apply_sides_over(pool, below, arcs, &mut self.space, &mut self.mirror)?)
    }
}

impl Delta {
    /// Without changes.
    pub(crate) fn new(graph: &GraphOptions, options: &Options) -> Result<Self> {
        Ok(match Width::of(graph) {
            Width::None => Self::None(Filled::new(options)?),
            Width::Narrow => Self::Narrow(Filled::new(options)?),
            Width::Wide => Self::Wide(Filled::new(options)?),
            Width::Full => Self::Full(Filled::new(options)?),
        })
    }

    /// Lets changes name vertices below `bound`.
    pub(crate) fn grow(&mut self, bound: usize) -> Result<()> {
        for_widths!(Self, self, delta => delta.terrace.grow(bound)?);
        Ok(())
    }

    /// The bytes of what readers hold, and of what was published last.
    pub(crate) fn num_bytes(&self) -> u64 {
        for_widths!(Self, self, delta => delta.terrace.num_live_bytes())
    }

    /// Applies arcs of out-lists, and the other way round those of in-lists, to what differs from `below`; of one
    /// arc, the last change counts.
    pub(crate) fn apply(&mut self, pool: &Pool, below: &Below<'_>, batch: &Batch) -> Result<()> {
        match (self, batch) {
            (Self::None(delta), Batch::None(arcs)) => delta.apply(pool, below, arcs),
            (Self::Narrow(delta), Batch::Narrow(arcs)) => delta.apply(pool, below, arcs),
            (Self::Wide(delta), Batch::Wide(arcs)) => delta.apply(pool, below, arcs),
            (Self::Full(delta), Batch::Full(arcs)) => delta.apply(pool, below, arcs),
            _ => Err(Error::Option("arcs with data of another width than the graph's".into())),
        }
    }

    /// Applies edges of a graph without weights, as [`apply`](Self::apply) does arcs.
    pub(crate) fn apply_edges(&mut self, pool: &Pool, below: &Below<'_>, edges: Edges<'_>) -> Result<()> {
        match self {
            Self::None(delta) => {
                Ok(delta.terrace.apply_edges_over(pool, below, edges, &mut delta.pairs, &mut delta.mirror)?)
            }
            _ => Err(Error::Option("edges without weights, in a graph that has some".into())),
        }
    }

    /// Hints that lists of a vertex on a side change soon, once what [a version fetches](DeltaVersion::prefetch) is there.
    pub(crate) fn prefetch_lists(&self, side: Side, vertex: VertexId) {
        for_widths!(Self, self, delta => delta.terrace.prefetch_lists(side, vertex));
    }

    /// Makes a version of what was applied.
    pub(crate) fn publish(&mut self) -> DeltaVersion {
        match self {
            Self::None(delta) => DeltaVersion::None(published(delta)),
            Self::Narrow(delta) => DeltaVersion::Narrow(published(delta)),
            Self::Wide(delta) => DeltaVersion::Wide(published(delta)),
            Self::Full(delta) => DeltaVersion::Full(published(delta)),
        }
    }
}

/// The entries of lists that a snapshot adds and removes, sorted by list.
#[derive(Debug, Default)]
pub(crate) struct LevelArcs {
    pub(crate) out_added: Vec<ChangedArc>,
    pub(crate) out_removed: Vec<ChangedArc>,
    /// Empty where in-lists are not kept.
    pub(crate) in_added: Vec<ChangedArc>,
    pub(crate) in_removed: Vec<ChangedArc>,
}

impl LevelArcs {
    /// What a batch changes in what lies below it; ids are below `bound`.
    ///
    /// # Errors
    /// Damage in the snapshot.
    pub(crate) fn of_batch(
        batch: &Batch,
        below: &Below<'_>,
        bound: usize,
        options: &GraphOptions,
        pool: &Pool,
    ) -> Result<Self> {
        let mut arcs = for_widths!(Batch, batch, changes => {
            Self::of_differences(differences(pool, below, changes, (bound, options.multigraph), &mut Space::default())?, options)
        });
        if options.multigraph {
            cancel(&mut arcs.out_added, &mut arcs.out_removed);
        }
        if options.stores_in_lists() {
            arcs.in_added = turned(&arcs.out_added, pool);
            arcs.in_removed = turned(&arcs.out_removed, pool);
        }
        Ok(arcs)
    }

    fn of_differences<W: Bits>(parts: Vec<Differences<W>>, options: &GraphOptions) -> Self {
        let has_rows = options.has_rows();
        let arc = |change: &terrace::Update<W>| {
            let data = change.addition.map_or(ArcData::default(), |value| value.into_data(has_rows));
            ChangedArc { list: change.source, neighbour: change.target, data }
        };
        let mut arcs = Self::default();
        arcs.out_added.reserve_exact(parts.iter().map(|part| part.added.len()).sum());
        arcs.out_removed.reserve_exact(parts.iter().map(|part| part.removed.len()).sum());
        for part in parts {
            arcs.out_added.extend(part.added.iter().map(arc));
            arcs.out_removed.extend(part.removed.iter().map(arc));
        }
        arcs
    }
}

/// Sorts arcs, and leaves those out that are both added and removed: a pair of a multigraph is removed whole, and what
/// stays of it is added again.
pub(super) fn cancel(added: &mut Vec<ChangedArc>, removed: &mut Vec<ChangedArc>) {
    added.sort_unstable();
    removed.sort_unstable();
    let all_removed = std::mem::take(removed);
    let mut rest = all_removed.into_iter().peekable();
    added.retain(|arc| {
        while let Some(other) = rest.next_if(|other| other < arc) {
            removed.push(other);
        }
        rest.next_if_eq(arc).is_none()
    });
    removed.extend(rest);
}

/// The same arcs as entries of the lists of their other ends, sorted.
fn turned(arcs: &[ChangedArc], pool: &Pool) -> Vec<ChangedArc> {
    let turn = |arc: &ChangedArc| ChangedArc { list: arc.neighbour, neighbour: arc.list, data: arc.data };
    let mut turned: Vec<_> = arcs.iter().map(turn).collect();
    let share = turned.len().div_ceil(pool.num_threads()).max(MIN_SHARE);
    pool.for_each_part_mut(&mut turned, share, |_, part| part.sort_unstable());
    // Finds the shares sorted and merges them.
    turned.sort();
    turned
}

fn published<W: Bits>(delta: &mut Filled<W>) -> Version<W> {
    delta.terrace.publish();
    delta.terrace.version()
}

impl DeltaVersion {
    /// The entries of all lists of a plane.
    pub(crate) fn num_arcs(&self, plane: Plane) -> u64 {
        for_widths!(Self, self, version => version.lists(plane).num_arcs())
    }

    /// Those of them that lead from a vertex to itself.
    pub(crate) fn num_loops(&self, plane: Plane) -> u64 {
        for_widths!(Self, self, version => version.lists(plane).num_loops())
    }

    /// How much of a list changes.
    pub(crate) fn num_changes(&self, side: Side, vertex: VertexId) -> ListChanges {
        for_widths!(Self, self, version => {
            let removed = version.lists(Plane::removed(side));
            let num_removed = if removed.num_arcs() > 0 { removed.degree(vertex) } else { 0 };
            ListChanges { removed: num_removed, added: version.lists(Plane::added(side)).degree(vertex) }
        })
    }

    /// What a list loses.
    pub(crate) fn removed(&self, side: Side, vertex: VertexId) -> Cow<'_, [VertexId]> {
        for_widths!(Self, self, version => entries(version.lists(Plane::removed(side)), vertex))
    }

    /// What a list loses, and what it gains where that is in one piece.
    pub(crate) fn changes(&self, side: Side, vertex: VertexId) -> (Cow<'_, [VertexId]>, Option<Added<'_>>) {
        for_widths!(Self, self, version => {
            let gone = entries(version.lists(Plane::removed(side)), vertex);
            let new = version.lists(Plane::added(side)).single(vertex).map(|(targets, values)| (targets, Bits::bytes(values)));
            (gone, new)
        })
    }

    /// What a list gains where that is in one piece.
    pub(crate) fn added(&self, side: Side, vertex: VertexId) -> Option<Added<'_>> {
        for_widths!(Self, self, version => {
            let list = version.lists(Plane::added(side)).single(vertex);
            list.map(|(targets, values)| (targets, Bits::bytes(values)))
        })
    }

    /// What changes in lists of a group, part by part.
    pub(crate) fn for_each_change(&self, side: Side, lists: &TouchedLists, body: &mut ChangedPartBody<'_>) {
        for_widths!(Self, self, version => {
            changes(version.lists(Plane::removed(side)), version.lists(Plane::added(side)), lists, body);
        })
    }

    /// Hints that what changes in a list, which was looked for, is read soon.
    pub(crate) fn prefetch_list(&self, side: Side, vertex: VertexId, is_cut: bool) {
        for_widths!(Self, self, version => {
            version.lists(Plane::added(side)).prefetch_list(vertex);
            if is_cut {
                version.lists(Plane::removed(side)).prefetch_list(vertex);
            }
        })
    }

    /// Hints that what changes in a list is looked for soon.
    pub(crate) fn prefetch(&self, side: Side, vertex: VertexId) {
        for_widths!(Self, self, version => {
            version.lists(Plane::added(side)).prefetch(vertex);
            version.lists(Plane::removed(side)).prefetch(vertex);
        })
    }

    /// Hints the same, once what the first hint asked for is there.
    pub(crate) fn prefetch_place(&self, side: Side, vertex: VertexId, is_cut: bool) {
        for_widths!(Self, self, version => {
            version.lists(Plane::added(side)).prefetch_place(vertex);
            if is_cut {
                version.lists(Plane::removed(side)).prefetch_place(vertex);
            }
        })
    }

    /// What a list gains, piece by piece.
    pub(crate) fn for_each_added(&self, side: Side, vertex: VertexId, body: &mut AddedPiece<'_>) -> ControlFlow<()> {
        for_widths!(Self, self, version => pieces(version.lists(Plane::added(side)), vertex, body))
    }

    /// What stands in a plane beside an entry.
    pub(crate) fn data(
        &self,
        plane: Plane,
        list: VertexId,
        neighbor: VertexId,
        options: &GraphOptions,
    ) -> Option<ArcData> {
        let has_rows = options.has_rows();
        for_widths!(Self, self, version => {
            version.lists(plane).get(list, neighbor).map(|&value| Bits::into_data(value, has_rows))
        })
    }

    /// Calls `body` with what stands in a plane beside each of the entries to a neighbor.
    pub(crate) fn for_each_parallel(
        &self,
        plane: Plane,
        (list, neighbor): (VertexId, VertexId),
        options: &GraphOptions,
        mut body: impl FnMut(ArcData),
    ) {
        let has_rows = options.has_rows();
        for_widths!(Self, self, version => {
            let lists = version.lists(plane);
            if lists.num_arcs() > 0 {
                lists.for_each_parallel(list, neighbor, |&value| body(Bits::into_data(value, has_rows)));
            }
        });
    }

    /// All arcs of a plane in these lists, which ascend.
    pub(crate) fn arcs(
        &self,
        plane: Plane,
        lists: impl Iterator<Item = VertexId>,
        options: &GraphOptions,
    ) -> Vec<ChangedArc> {
        for_widths!(Self, self, version => arcs(version.lists(plane), lists, options.has_rows()))
    }
}

#[inline]
fn entries<W: Bits>(lists: Lists<'_, W>, vertex: VertexId) -> Cow<'_, [VertexId]> {
    if lists.num_arcs() == 0 {
        return Cow::Borrowed(&[]);
    }
    if let Some((entries, _)) = lists.single(vertex) {
        return Cow::Borrowed(entries);
    }
    let mut entries = Vec::with_capacity(lists.degree(vertex));
    let _ = lists.for_each_fragment(vertex, |targets, _| {
        entries.extend_from_slice(targets);
        ControlFlow::Continue(())
    });
    Cow::Owned(entries)
}

/// What changes in lists of a group. What they lose is needed first; what they gain only by those who read on, except
/// where that is all there is.
fn changes<W: Bits>(removed: Lists<'_, W>, added: Lists<'_, W>, lists: &TouchedLists, body: &mut ChangedPartBody<'_>) {
    let (gone, new) = (removed.of_group(&lists.cut), added.of_group(&lists.wanted));
    let read = |vertex| {
        if !lists.gaining.contains(vertex) {
            let gone = match lists.cut.contains(vertex) {
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
        if lists.cut.contains(vertex) {
            gone.prefetch_place(vertex);
        }
    };
    let list = |vertex| {
        new.prefetch_list(vertex);
        if lists.cut.contains(vertex) {
            gone.prefetch_list(vertex);
        }
    };
    lists.wanted.for_each_in_steps(place, list, read);
}

fn pieces<W: Bits>(lists: Lists<'_, W>, vertex: VertexId, body: &mut AddedPiece<'_>) -> ControlFlow<()> {
    lists.for_each_fragment(vertex, |targets, values| match targets.is_empty() {
        true => ControlFlow::Continue(()),
        false => body(targets, W::bytes(values)),
    })
}

fn arcs<W: Bits>(lists: Lists<'_, W>, of: impl Iterator<Item = VertexId>, has_rows: bool) -> Vec<ChangedArc> {
    let mut arcs = Vec::with_capacity(lists.num_arcs() as usize);
    for list in of {
        let _ = lists.for_each_fragment(list, |targets, values| {
            let data = values.iter().map(|&value| value.into_data(has_rows));
            arcs.extend(targets.iter().zip(data).map(|(&neighbour, data)| ChangedArc { list, neighbour, data }));
            ControlFlow::Continue(())
        });
    }
    arcs
}
