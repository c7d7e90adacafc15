//! Bins in a database: without slots, which belong to one run. So one stored form serves both precisions.
//!
//! The arrays are the starts of all cells, row after row, then the targets of all rows, and their sources.

use std::sync::atomic::{AtomicBool, Ordering};

use anden_base::table::RUN_FLAG;
use anden_graph::{FormArrays, Graph, StoredForm, StoredFormKey};
use bytemuck::cast_slice;

use super::{BinRow, Bins, CellStart, MAX_PARTITION_BITS, MAX_PARTITIONS, PARTITION_BYTES, Score};
use crate::preparation::PreparedForm;
use crate::stored_arrays::{arrays, values};
use crate::{Context, Error, Result};

/// Bins that are made to be stored. Their slots are unused, so these are as small as possible.
pub(crate) struct StoredBins(Bins<f32>);

impl StoredBins {
    pub(crate) fn build(ctx: &Context<'_>, graph: &impl Graph, bits: u64) -> Result<Self> {
        ctx.progress.stage("pagerank: prepare", None);
        match u32::try_from(bits).ok().filter(|bits| (1..=MAX_PARTITION_BITS).contains(bits)) {
            Some(bits) => Ok(Self(Bins::build(ctx, graph, bits, 0)?)),
            None => {
                Err(Error::Parameter(format!("bins have partitions of 1 to {MAX_PARTITION_BITS} bits, not {bits}")))
            }
        }
    }

    pub(crate) fn arrays(&self) -> FormArrays<'_> {
        let rows = self.0.rows.iter();
        vec![
            rows.clone().map(|row| cast_slice(&row.starts)).collect(),
            rows.clone().map(|row| cast_slice(&row.targets)).collect(),
            rows.map(|row| cast_slice(&row.sources)).collect(),
        ]
    }
}

/// The parts of a row in the arrays.
type StoredRow<'a> = (&'a [CellStart], &'a [u16], &'a [u16]);

impl<T: Score> Bins<T> {
    /// The bins that the database stores, if there are any and the budget, less `state_bytes`, has room for them.
    pub(super) fn read<'a>(
        ctx: &Context<'a>,
        graph: &impl Graph,
        bits: u32,
        state_bytes: u64,
    ) -> Option<PreparedForm<'a, Self>> {
        let key = StoredFormKey { form: StoredForm::Bins, parameter: bits.into() };
        PreparedForm::read(
            ctx.preparations,
            ctx.pool,
            graph,
            key,
            |arrays| Self::from_arrays(ctx, graph, bits, arrays, state_bytes),
            |bins| bins.kept_bytes(ctx.pool.num_threads()),
        )
    }

    fn from_arrays(
        ctx: &Context<'_>,
        graph: &impl Graph,
        bits: u32,
        stored: &[&[u8]],
        state_bytes: u64,
    ) -> Result<Option<Self>, String> {
        let [starts, targets, sources] = arrays(stored)?;
        let (starts, targets, sources) = (values(starts)?, values(targets)?, values(sources)?);
        let num_partitions = graph.vertex_bound().div_ceil(1 << bits);
        if num_partitions > MAX_PARTITIONS || starts.len() != num_partitions * (num_partitions + 1) {
            return Err(format!("{} starts of cells for {num_partitions} partitions", starts.len()));
        }
        let updates_bytes = sources.len() * size_of::<T>();
        let num_bytes = (size_of_val(starts) + size_of_val(targets) + size_of_val(sources) + updates_bytes) as u64;
        let fixed_bytes = state_bytes + num_partitions as u64 * PARTITION_BYTES;
        if !ctx.allows(fixed_bytes + num_bytes + Self::tables_bytes(ctx.pool.num_threads())) {
            return Ok(None);
        }
        let stored = split_rows(starts, targets, sources, num_partitions).ok_or("a row ends outside of the arrays")?;
        let mut rows: Vec<BinRow<T>> = stored.iter().map(|_| BinRow::default()).collect();
        let is_wrong = AtomicBool::new(false);
        let items = rows.iter_mut().zip(stored).collect();
        ctx.pool.for_each_item(items, |_, (row, (starts, targets, sources))| {
            if !has_whole_cells(starts, targets) {
                // Relaxed: read after the loop.
                return is_wrong.store(true, Ordering::Relaxed);
            }
            let (starts, targets, updates) = (starts.to_vec(), targets.to_vec(), T::zeros(sources.len()));
            *row = BinRow { starts, targets, sources: sources.to_vec(), updates };
        });
        if is_wrong.into_inner() {
            return Err("a cell has not one slot for each of its runs".into());
        }
        let mut bins = Self { bits, rows, num_bytes, tables: Vec::new() };
        bins.resize_tables(ctx.pool.num_threads());
        Ok(Some(bins))
    }
}

/// The parts of each row; `None` if their lengths do not fit the arrays.
fn split_rows<'a>(
    starts: &'a [CellStart],
    mut targets: &'a [u16],
    mut sources: &'a [u16],
    num_partitions: usize,
) -> Option<Vec<StoredRow<'a>>> {
    let mut rows = Vec::with_capacity(num_partitions);
    for starts in starts.chunks_exact(num_partitions + 1) {
        let end = starts[num_partitions];
        let row_targets = targets.split_off(..end.target as usize)?;
        rows.push((starts, row_targets, sources.split_off(..end.update as usize)?));
    }
    (targets.is_empty() && sources.is_empty()).then_some(rows)
}

/// Whether the cells of a row follow each other, and each has as many slots as runs. The last start is the end of the
/// row.
fn has_whole_cells(starts: &[CellStart], targets: &[u16]) -> bool {
    let begins = starts.first().is_some_and(|first| (first.target, first.update) == (0, 0));
    begins
        && starts.windows(2).all(|pair| {
            let (from, to) = (pair[0], pair[1]);
            let cell = targets.get(from.target as usize..to.target as usize);
            cell.is_some_and(|cell| {
                let num_runs = cell.iter().map(|&place| u64::from(place / RUN_FLAG)).sum::<u64>();
                let begins = cell.first().is_none_or(|&place| place >= RUN_FLAG);
                begins && to.update.checked_sub(from.update).map(u64::from) == Some(num_runs)
            })
        })
}

#[cfg(test)]
mod tests {
    use anden_base::parallel::Pool;
    use anden_testkit::for_each_graph;

    use super::*;

    /// Bins from damaged arrays are refused, or change sums only: no round panics on them.
    #[test]
    fn stored_bins_are_read_as_they_were_made() {
        for threads in [1, 3] {
            let pool = Pool::new(threads).unwrap();
            let ctx = Context::new(&pool);
            for_each_graph(|name, graph| {
                let made = StoredBins::build(&ctx, graph, 2).unwrap();
                let whole: Vec<Vec<u8>> = made.arrays().iter().map(|pieces| pieces.concat()).collect();
                // Copies at addresses that fit every type.
                let words: Vec<Vec<u64>> = whole.iter().map(|bytes| aligned(bytes)).collect();
                let read = |lens: [usize; 3]| {
                    let arrays: Vec<&[u8]> =
                        words.iter().zip(lens).map(|(words, len)| &cast_slice(words)[..len]).collect();
                    Bins::<f64>::from_arrays(&ctx, graph, 2, &arrays, 0)
                };
                let lens = [0, 1, 2].map(|array| whole[array].len());
                let bins = read(lens).unwrap().unwrap();
                let built = Bins::<f64>::build(&ctx, graph, 2, 0).unwrap();
                assert_eq!(bins.num_bytes, built.num_bytes, "{name}");
                for (read, built) in bins.rows.iter().zip(&built.rows) {
                    assert!(read.targets == built.targets && read.sources == built.sources, "{name}");
                    assert_eq!(read.updates.len(), built.updates.len(), "{name}");
                    assert!(cast_slice::<_, u32>(&read.starts) == cast_slice::<_, u32>(&built.starts), "{name}");
                }
                for array in (0..3).filter(|&array| lens[array] > 8) {
                    let mut cut = lens;
                    cut[array] -= 8;
                    assert!(read(cut).is_err(), "{name}: array {array}");
                }
            });
        }
    }

    fn aligned(bytes: &[u8]) -> Vec<u64> {
        let mut words = vec![0_u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        words
    }

    #[test]
    fn cells_without_a_slot_for_each_run_are_refused() {
        let start = |target, update| CellStart { target, update };
        let targets = [RUN_FLAG, 1, RUN_FLAG | 2];
        assert!(has_whole_cells(&[start(0, 0), start(2, 1), start(3, 2)], &targets));
        for starts in [
            [start(0, 0), start(1, 1), start(3, 2)],
            [start(0, 0), start(2, 0), start(3, 2)],
            [start(0, 0), start(4, 1), start(3, 2)],
            [start(0, 1), start(2, 1), start(3, 2)],
            [start(0, 0), start(2, 1), start(3, 3)],
        ] {
            assert!(!has_whole_cells(&starts, &targets));
        }
    }
}
