//! The cost of a list that was read ahead, by mechanism: `madvise` on the map as in the prefetcher, read calls through
//! the page cache, and direct reads.
//!
//! Only the disk is measured, without concurrent work. A memory limit makes no difference.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anden_base::mapped::{Advice, FileBytes};
use anden_testkit::Random;
use anyhow::{Context, Result, bail};

use super::side::in_turn;
use super::{Ground, disk};
use crate::harness::{Pairs, seconds};
use crate::report::{Line, Report};

const NUM_LISTS: usize = 4000;
const LIST_BYTES: [usize; 2] = [4 << 10, 64 << 10];

/// The number of lists that are requested ahead.
const AHEAD: usize = 256;
/// The threads for read calls; each reads one list at a time.
const NUM_READERS: usize = 64;
/// A read touches one byte in this many.
const PAGE_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Madvise,
    Direct,
    Calls,
    Nothing,
}

impl Way {
    const ALL: [Self; 4] = [Self::Madvise, Self::Direct, Self::Calls, Self::Nothing];

    fn name(self) -> &'static str {
        match self {
            Self::Madvise => "madvise, 256 ahead",
            Self::Direct => "direct reads, 64 threads",
            Self::Calls => "reads, 64 threads",
            Self::Nothing => "nothing",
        }
    }

    /// Reads all lists from the disk. Returns the seconds and a checksum.
    fn run(self, path: &Path, places: &[u64], list_bytes: usize) -> Result<(f64, u64)> {
        anden_testkit::evict(path)?;
        let named = || format!("{}: cannot read", path.display());
        let file =
            if self == Self::Direct { disk::open_direct(path)? } else { File::open(path).with_context(named)? };
        match self {
            Self::Direct | Self::Calls => {
                let (time, seen) = seconds(|| read_all(&file, places, list_bytes));
                Ok((time, seen.with_context(named)?))
            }
            Self::Madvise | Self::Nothing => {
                let bytes = FileBytes::map(&file).with_context(named)?;
                bytes.advise(Advice::Random);
                let ahead = if self == Self::Madvise { AHEAD } else { 0 };
                Ok(seconds(|| look_at_all(&bytes, places, list_bytes, ahead)))
            }
        }
    }
}

/// Reads the lists of a map in turn, and requests the one `ahead` lists further.
fn look_at_all(bytes: &FileBytes, places: &[u64], list_bytes: usize, ahead: usize) -> u64 {
    let list = |place: u64| place as usize..place as usize + list_bytes;
    let ask = |place: &u64| bytes.advise_part(list(*place), Advice::WillNeed);
    places.iter().take(ahead).for_each(ask);
    let look = |(i, &place): (usize, &u64)| {
        if ahead > 0 {
            places.get(i + ahead).into_iter().for_each(ask);
        }
        glance(&bytes.as_slice()[list(place)])
    };
    places.iter().enumerate().map(look).sum()
}

fn read_all(file: &File, places: &[u64], list_bytes: usize) -> std::io::Result<u64> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let read = || -> std::io::Result<u64> {
            let mut memory = disk::aligned(list_bytes);
            let mut seen = 0;
            while let Some(&place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                file.read_exact_at(memory.bytes(), place)?;
                seen += glance(memory.bytes());
            }
            Ok(seen)
        };
        let readers: Vec<_> = (0..NUM_READERS).map(|_| scope.spawn(read)).collect();
        readers.into_iter().map(|reader| reader.join().unwrap_or(Ok(0))).sum()
    })
}

fn glance(list: &[u8]) -> u64 {
    list.iter().step_by(PAGE_BYTES).map(|&byte| u64::from(byte)).sum()
}

/// Reads lists at random places of the largest file, with each mechanism in turn.
pub(super) fn lines(ground: &Ground<'_>, report: &mut Report) -> Result<()> {
    let path = ground.lists()?;
    let len = std::fs::metadata(&path)?.len();
    for list_bytes in LIST_BYTES {
        let num_places = u32::try_from(len / list_bytes as u64).unwrap_or(u32::MAX);
        if num_places == 0 {
            bail!("{}: too small for lists of {list_bytes} bytes", path.display());
        }
        let mut random = Random::new(list_bytes as u64);
        let places: Vec<u64> =
            (0..NUM_LISTS).map(|_| u64::from(random.below(num_places)) * list_bytes as u64).collect();
        let [mut direct, mut calls, mut nothing] = [Pairs::default(), Pairs::default(), Pairs::default()];
        for round in 0..ground.setting.num_pairs {
            let found = in_turn(&Way::ALL, round, |way| way.run(&path, &places, list_bytes))?;
            if found.iter().any(|&(_, seen)| seen != found[0].1) {
                bail!("{}: two ways of reading it do not see the same", path.display());
            }
            for (pairs, other) in [&mut direct, &mut calls, &mut nothing].into_iter().zip(&found[1..]) {
                pairs.push(found[0].0, other.0);
            }
        }
        let name = format!("{NUM_LISTS} lists of {} KB, {}", list_bytes >> 10, Way::Madvise.name());
        for (pairs, way) in [direct, calls, nothing].iter().zip(&Way::ALL[1..]) {
            let each = format!("{:.1} µs a list", pairs.ours() / NUM_LISTS as f64 * 1e6);
            report.line(Line::compared(name.clone(), pairs, way.name(), each));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_sees_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lists");
        let bytes: Vec<u8> = (0..64_u32 << 10).map(|i| (i / 1000) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let places: Vec<u64> = (0..16).map(|i| i * 7 % 16 * 4096).collect();
        let expected = places.iter().map(|&place| u64::from(bytes[place as usize])).sum::<u64>();
        assert!(expected > 0);
        for way in Way::ALL {
            assert_eq!(way.run(&path, &places, 4096).unwrap().1, expected, "{way:?}");
            assert!(way.run(&path, &[60 << 10], 4096).is_ok());
            assert!(way.run(&dir.path().join("none"), &places, 4096).is_err());
        }
    }
}
