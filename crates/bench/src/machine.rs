//! The limits of the machine, measured beside the benchmarks.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anden_base::parallel::Pool;
use anden_base::storage::{DiskStorage, Storage};
use anyhow::Result;

use crate::harness::median;

/// The levels and sizes in bytes of the data caches that the first core has or shares, from the innermost on; empty if
/// the system does not tell.
pub fn caches() -> Vec<(u32, u64)> {
    let caches = (0..).map(|index| PathBuf::from(format!("/sys/devices/system/cpu/cpu0/cache/index{index}")));
    let text = |dir: &Path, name| Some(std::fs::read_to_string(dir.join(name)).ok()?.trim().to_owned());
    let levels = caches.map_while(|dir| Some((text(&dir, "type")?, text(&dir, "level")?, text(&dir, "size")?)));
    let data = levels.filter(|(kind, ..)| kind != "Instruction");
    data.filter_map(|(_, level, size)| Some((level.parse().ok()?, size.strip_suffix('K')?.parse::<u64>().ok()? << 10)))
        .collect()
}

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
