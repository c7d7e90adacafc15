//! The scores and their update at the end of a round, common to all variants.

use std::ops::{Add, Mul, Range, Sub};

use anden_base::VertexId;
use anden_base::memory::zeroed_huge;
use anden_base::table::{Number, TABLE_LEN};
use anden_graph::Graph;

use super::{Algorithm, PageRankParams};
use crate::Context;

/// Vertices of a block. Sums over all vertices add block sums in order, so they do not depend on the number of threads.
pub(super) const BLOCK: usize = 1 << 14;

/// A number type of scores.
pub(super) trait Score:
    Number + Default + Send + Sync + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + 'static
{
    /// The name of the type.
    const NAME: &'static str;

    /// Zeros on huge pages.
    fn zeros(len: usize) -> Vec<Self>;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn abs(self) -> Self;
    /// The scores as `f64`.
    fn widened(ctx: &Context<'_>, scores: Vec<Self>) -> Vec<f64>;
}

macro_rules! impl_score {
    ($type:ty, $widened:expr) => {
        impl Score for $type {
            const NAME: &'static str = stringify!($type);

            fn zeros(len: usize) -> Vec<Self> {
                zeroed_huge(len)
            }

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn abs(self) -> Self {
                self.abs()
            }

            fn widened(ctx: &Context<'_>, scores: Vec<Self>) -> Vec<f64> {
                $widened(ctx, scores)
            }
        }
    };
}

impl_score!(f64, |_: &Context<'_>, scores| scores);
impl_score!(f32, |ctx: &Context<'_>, scores: Vec<f32>| {
    let mut wide = zeroed_huge::<f64>(scores.len());
    ctx.pool.for_each_part_mut(&mut wide, BLOCK, |start, part| {
        part.iter_mut().zip(&scores[start..]).for_each(|(wide, &score)| *wide = f64::from(score));
    });
    wide
});

/// The state of all vertices between two rounds.
pub(super) struct PageRankState<T> {
    /// The score of each vertex.
    pub(super) scores: Vec<T>,
    /// The contribution of a vertex to each out-edge, for each unit of weight: its score over its out-degree. Zeros
    /// follow, so that a table at the start of any partition is complete, and for the absent entries of short lists.
    pub(super) contributions: Vec<T>,
    /// The inverse of the out-degree, or of the sum of out-weights; 0 for dangling vertices, negative for dead ones.
    inverse_degrees: Vec<T>,
    sources: Vec<VertexId>,
    num_vertices: usize,
    dangling: f64,
}

/// The part of a block of vertices in the sums of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageRankBlockSums {
    delta: f64,
    dangling: f64,
}

/// The constants of one round.
pub(super) struct Round<T> {
    damping: T,
    /// The addend of every live vertex.
    base: T,
    /// The addend of every source; without sources, unused.
    source_base: T,
}

impl<T: Score> PageRankState<T> {
    /// The bytes of a state: scores, contributions and degrees. The widened result replaces the latter two.
    pub(super) fn num_bytes(bound: usize) -> u64 {
        (Self::num_contributions(bound) * 3 * size_of::<T>()) as u64
    }

    /// The length of the contributions, the zeros behind them included.
    pub(super) fn num_contributions(bound: usize) -> usize {
        bound + TABLE_LEN
    }

    /// The initial state. `degrees` writes the out-degrees of vertices, or the sums of their out-weights.
    pub(super) fn new(
        ctx: &Context<'_>,
        graph: &impl Graph,
        sources: Vec<VertexId>,
        degrees: impl Fn(Range<VertexId>, &mut [T]) + Sync,
    ) -> Self {
        let bound = graph.vertex_bound();
        let num_vertices = graph.num_vertices();
        let start = if num_vertices == 0 { T::default() } else { T::from_f64(1.0 / num_vertices as f64) };
        let mut state = Self {
            scores: T::zeros(bound),
            contributions: T::zeros(Self::num_contributions(bound)),
            inverse_degrees: T::zeros(bound),
            sources,
            num_vertices,
            dangling: 0.0,
        };
        let blocks = state.inverse_degrees.chunks_mut(BLOCK).zip(state.scores.chunks_mut(BLOCK));
        let blocks = blocks.zip(state.contributions.chunks_mut(BLOCK)).enumerate();
        let has_dead = num_vertices < bound;
        ctx.pool.for_each_item(blocks.collect(), |_, (block, ((inverse_degrees, scores), contributions))| {
            let first = block * BLOCK;
            degrees(first as VertexId..(first + inverse_degrees.len()) as VertexId, inverse_degrees);
            for (i, inverse) in inverse_degrees.iter_mut().enumerate() {
                if has_dead && !graph.is_live((first + i) as VertexId) {
                    *inverse = T::from_f64(-1.0);
                    continue;
                }
                // A dangling vertex keeps the inverse 0.
                let degree = inverse.to_f64();
                *inverse = T::from_f64(if degree > 0.0 { 1.0 / degree } else { 0.0 });
                scores[i] = start;
                contributions[i] = start * *inverse;
            }
        });
        let blocks = ctx.pool.map_chunks(0..bound, BLOCK, |_, chunk| state.dangling_of(chunk));
        state.dangling = blocks.into_iter().sum();
        state
    }

    fn dangling_of(&self, chunk: Range<usize>) -> f64 {
        let pairs = self.scores[chunk.clone()].iter().zip(&self.inverse_degrees[chunk]);
        pairs.map(|(score, inverse)| if *inverse == T::default() { score.to_f64() } else { 0.0 }).sum()
    }

    /// The constants of the round that starts from these scores.
    pub(super) fn next_round(&self, params: &PageRankParams) -> Round<T> {
        let dangling = if params.algorithm == Algorithm::Standard { self.dangling } else { 0.0 };
        let mass = (1.0 - params.damping) + params.damping * dangling;
        let share = |count: usize| if count == 0 { 0.0 } else { mass / count as f64 };
        let everyone = if self.sources.is_empty() { share(self.num_vertices) } else { 0.0 };
        Round {
            damping: T::from_f64(params.damping),
            base: T::from_f64(everyone),
            source_base: T::from_f64(share(self.sources.len())),
        }
    }

    /// Takes over the sums of a round. Returns the sum of the changes.
    pub(super) fn finish_round(&mut self, blocks: &[PageRankBlockSums]) -> f64 {
        self.dangling = blocks.iter().map(|block| block.dangling).sum();
        blocks.iter().map(|block| block.delta).sum()
    }

    /// The scores as `f64`, and their sum.
    pub(super) fn into_scores(self, ctx: &Context<'_>) -> (Vec<f64>, f64) {
        let Self { scores, contributions, inverse_degrees, .. } = self;
        // Freed before the widened copy is made, which takes their place in the budget.
        drop((contributions, inverse_degrees));
        let sums = ctx.pool.map_chunks(0..scores.len(), BLOCK, |_, chunk| {
            scores[chunk].iter().map(|score| score.to_f64()).sum::<f64>()
        });
        (T::widened(ctx, scores), sums.into_iter().sum())
    }

    /// Exchanges the contributions for those of the next round.
    pub(super) fn replace_contributions(&mut self, next: &mut Vec<T>) {
        std::mem::swap(&mut self.contributions, next);
    }

    /// The vertices cut into parts of `len`, for different workers, and the contributions.
    pub(super) fn parts(&mut self, len: usize) -> (Vec<ScoreSlice<'_, T>>, &mut [T]) {
        let mut rest = &self.sources[..];
        let arrays = self.scores.chunks_mut(len).zip(self.inverse_degrees.chunks(len)).enumerate();
        let parts = arrays.map(|(index, (scores, inverse_degrees))| {
            let first = index * len;
            let (sources, later) = rest.split_at(rest.partition_point(|&s| (s as usize) < first + len));
            rest = later;
            ScoreSlice { first, scores, inverse_degrees, sources }
        });
        (parts.collect(), &mut self.contributions)
    }
}

/// Consecutive vertices, writable.
pub(super) struct ScoreSlice<'a, T> {
    first: usize,
    scores: &'a mut [T],
    inverse_degrees: &'a [T],
    sources: &'a [VertexId],
}

impl<T: Score> ScoreSlice<'_, T> {
    /// Turns the sums over the edges into new scores.
    pub(super) fn rescore(&mut self, round: &Round<T>, sums: &[T]) -> PageRankBlockSums {
        let mut block = PageRankBlockSums::default();
        let mut start = 0;
        // The ranges between the sources keep a test for sources out of the inner loop.
        for &source in self.sources {
            let at = source as usize - self.first;
            self.rescore_range(start..at, round.base, round.damping, sums, &mut block);
            self.rescore_range(at..at + 1, round.source_base, round.damping, sums, &mut block);
            start = at + 1;
        }
        self.rescore_range(start..self.scores.len(), round.base, round.damping, sums, &mut block);
        block
    }

    fn rescore_range(&mut self, range: Range<usize>, base: T, damping: T, sums: &[T], block: &mut PageRankBlockSums) {
        // Lanes sum in the score type, over too few terms to lose precision. Their results are then added in 64 bits.
        const LANES: usize = 16;
        const STRETCH: usize = 8 * LANES;
        let scores = self.scores[range.clone()].chunks_mut(STRETCH);
        let inverse_degrees = self.inverse_degrees[range.clone()].chunks(STRETCH);
        for ((scores, inverse_degrees), sums) in scores.zip(inverse_degrees).zip(sums[range].chunks(STRETCH)) {
            let (mut deltas, mut danglings) = ([T::default(); LANES], [T::default(); LANES]);
            let lines = scores.chunks_mut(LANES).zip(inverse_degrees.chunks(LANES)).zip(sums.chunks(LANES));
            for ((scores, inverse_degrees), sums) in lines {
                let lanes = deltas.iter_mut().zip(&mut danglings).zip(scores).zip(inverse_degrees).zip(sums);
                for ((((delta, dangling), score), &inverse), &sum) in lanes {
                    let zero = T::default();
                    // Selections instead of branches, so that the lanes become vectors.
                    let new = if inverse < zero { zero } else { base + damping * sum };
                    *delta += (new - *score).abs();
                    *dangling += if inverse == zero { new } else { zero };
                    *score = new;
                }
            }
            block.delta += deltas.iter().map(|delta| delta.to_f64()).sum::<f64>();
            block.dangling += danglings.iter().map(|dangling| dangling.to_f64()).sum::<f64>();
        }
    }

    /// Computes the contributions of these vertices for the next round.
    pub(super) fn contribute(&self, contributions: &mut [T]) {
        let pairs = self.scores.iter().zip(self.inverse_degrees);
        // A dead vertex has score 0, so its negative inverse also gives 0.
        contributions.iter_mut().zip(pairs).for_each(|(to, (&score, &inverse))| *to = score * inverse);
    }

    /// The number of vertices.
    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    /// The vertices.
    pub(super) fn vertices(&self) -> Range<VertexId> {
        self.first as VertexId..(self.first + self.scores.len()) as VertexId
    }
}
