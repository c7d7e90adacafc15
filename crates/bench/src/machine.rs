//! The limits of the machine, measured beside the benchmarks.

use std::path::Path;
use std::time::Instant;

use anden_base::parallel::Pool;
use anden_base::storage::{DiskStorage, Storage};
use anyhow::Result;

use crate::harness::median;

/// The bytes a second that all workers together read sequentially from memory.
pub fn read_bandwidth(pool: &Pool) -> f64 {
    const NUM_WORDS: usize = 1 << 27;
    let mut words = anden_base::memory::zeroed_huge::<u64>(NUM_WORDS);
    pool.for_each_part_mut(&mut words, 1 << 20, |start, part| part.fill(start as u64));
    let rates: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            let sums =
                pool.map_chunks(0..NUM_WORDS, 1 << 18, |_, chunk| words[chunk].iter().fold(0, |a: u64, &b| a ^ b));
            std::hint::black_box(sums);
            size_of_val(&words[..]) as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    median(&rates)
}

/// The seconds to write `num_bytes` to a new file in `dir` and sync it: the lower bound of every load.
pub fn write_and_sync_seconds(dir: &Path, num_bytes: u64) -> Result<f64> {
    const PIECE: usize = 8 << 20;
    let path = dir.join("disk-probe");
    let piece: Vec<u8> = (0..PIECE).map(|i| (i * 2_654_435_761) as u8).collect();
    let start = Instant::now();
    let file = DiskStorage.create(&path)?;
    let mut offset = 0;
    while offset < num_bytes {
        let len = PIECE.min((num_bytes - offset) as usize);
        file.write_at(offset, &piece[..len])?;
        offset += len as u64;
    }
    file.sync()?;
    let time = start.elapsed().as_secs_f64();
    DiskStorage.remove_file(&path)?;
    Ok(time)
}
