//! Growth of what a process holds: samples over time, and the judge of soak tests.
//!
//! A leak grows for as long as the work goes on, and everything else levels off. So the judge skips a warm-up, cuts the
//! other samples in thirds, and compares their medians. A median ignores peaks, and a third is longer than the period
//! of checkpoints and merges.

use std::path::{Path, PathBuf};

use anden_base::memory::{heap_bytes, resident_beside_files};

/// One part in this many of the samples is the warm-up.
const WARM_UP_SHARE: usize = 4;
/// Both steps between the thirds are at least one part in this many of the allowed growth. A single step is no leak.
const STEP_SHARE: u64 = 4;

/// A resource that a process may leak.
struct HeldResource {
    name: &'static str,
    /// Growth that is no leak: a part of the first median, and an amount besides.
    percent: u64,
    amount: u64,
    measure: fn(&Path) -> u64,
}

const NUM_RESOURCES: usize = 7;

static RESOURCES: [HeldResource; NUM_RESOURCES] = [
    HeldResource { name: "heap bytes", percent: 10, amount: 4 << 20, measure: |_| heap_bytes() as u64 },
    HeldResource { name: "resident bytes", percent: 10, amount: 24 << 20, measure: |_| resident_beside_files() },
    HeldResource { name: "descriptors", percent: 20, amount: 8, measure: |_| num_entries("/proc/self/fd") },
    HeldResource { name: "threads", percent: 20, amount: 3, measure: |_| num_entries("/proc/self/task") },
    HeldResource { name: "maps", percent: 20, amount: 40, measure: |_| num_maps() },
    HeldResource { name: "files", percent: 20, amount: 12, measure: |folder| disk_use(folder).0 },
    HeldResource { name: "disk bytes", percent: 20, amount: 8 << 20, measure: |folder| disk_use(folder).1 },
];

/// Samples of the memory, descriptors, threads and maps of this process, and of the files in a folder.
#[derive(Debug)]
pub struct ResourceLog {
    folder: PathBuf,
    samples: Vec<[u64; NUM_RESOURCES]>,
}

impl ResourceLog {
    /// A log without samples.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), samples: Vec::new() }
    }

    /// Takes a sample.
    pub fn sample(&mut self) {
        self.samples.push(RESOURCES.each_ref().map(|resource| (resource.measure)(&self.folder)));
    }

    /// The resources that grew as leaks do, with the medians of the thirds.
    pub fn leaks(&self) -> Vec<String> {
        let judged = RESOURCES.iter().enumerate().filter_map(|(i, resource)| {
            let medians = self.medians(i)?;
            is_leak(medians, resource.percent, resource.amount).then(|| format!("{}: {medians:?}", resource.name))
        });
        judged.collect()
    }

    /// Lines with the medians of each resource.
    pub fn summary(&self) -> String {
        let line = |(i, resource): (usize, &HeldResource)| format!("{}: {:?}\n", resource.name, self.medians(i));
        RESOURCES.iter().enumerate().map(line).collect()
    }

    fn medians(&self, resource: usize) -> Option<[u64; 3]> {
        medians(&self.samples.iter().map(|sample| sample[resource]).collect::<Vec<_>>())
    }
}

/// The medians of three thirds, without the warm-up; `None` for too few samples.
fn medians(values: &[u64]) -> Option<[u64; 3]> {
    let warm = &values[values.len() / WARM_UP_SHARE..];
    let third = warm.len() / 3;
    let median = |part: usize| {
        let mut part = warm[part * third..(part + 1) * third].to_vec();
        part.sort_unstable();
        part[part.len() / 2]
    };
    (third > 0).then(|| [0, 1, 2].map(median))
}

/// Whether medians grow like a leak.
fn is_leak([first, second, third]: [u64; 3], percent: u64, amount: u64) -> bool {
    let allowed = first / 100 * percent + amount;
    let step = allowed / STEP_SHARE;
    third > first + allowed && second > first + step && third > second + step
}

fn num_entries(path: &str) -> u64 {
    std::fs::read_dir(path).map_or(0, |entries| entries.count() as u64)
}

fn num_maps() -> u64 {
    std::fs::read_to_string("/proc/self/maps").map_or(0, |maps| maps.lines().count() as u64)
}

/// The number of files below a folder, and the bytes that they take on the disk. Files may vanish meanwhile.
fn disk_use(folder: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let (mut num_files, mut num_bytes) = (0, 0);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let (files, bytes) = if metadata.is_dir() { disk_use(&entry.path()) } else { (1, metadata.blocks() * 512) };
        (num_files, num_bytes) = (num_files + files, num_bytes + bytes);
    }
    (num_files, num_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;
    use crate::Random;

    const NUM_SAMPLES: u64 = 300;

    fn is_leaking(value: impl Fn(u64, &mut Random) -> u64) -> bool {
        let mut random = Random::new(7);
        let values: Vec<u64> = (0..NUM_SAMPLES).map(|time| value(time, &mut random)).collect();
        is_leak(medians(&values).unwrap(), 10, 50)
    }

    #[test]
    fn noise_peaks_and_warm_up_are_no_leaks() {
        assert!(!is_leaking(|_, random| 1000 + random.below_u64(200)));
        assert!(!is_leaking(|time, _| 1000 + time % 20 * 50), "a sawtooth");
        assert!(!is_leaking(|time, _| 100 * time.min(NUM_SAMPLES / 4)), "a warm-up");
        assert!(!is_leaking(|time, _| if time > 280 { 1_000_000 } else { 1000 }), "a late peak");
        assert!(!is_leaking(|time, _| if time > 150 { 5000 } else { 1000 }), "a single step");
        assert!(!is_leaking(|time, _| 1000 + time / 4), "growth within the allowance");
        assert!(!is_leaking(|time, _| 9000 - 20 * time), "a decrease");
        assert_eq!(medians(&[1, 2]), None, "too few samples");
    }

    #[test]
    fn steady_growth_is_a_leak() {
        assert!(is_leaking(|time, _| 1000 + 2 * time));
        assert!(is_leaking(|time, random| 1000 + 2 * time + random.below_u64(400)), "noise");
        assert!(is_leaking(|time, _| 1000 + 4 * time + time % 20 * 50), "a sawtooth");
        assert!(is_leaking(|time, _| 1000 + time / 30 * 60), "growth in steps");
        assert!(is_leaking(|time, _| time), "growth from zero");
    }

    /// Leaks memory, descriptors, threads and files, and finds each of them.
    #[test]
    fn real_leaks_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = ResourceLog::new(folder.path());
        let (mut memory, mut files, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..60_u32 {
            memory.push(vec![1_u8; 2 << 20]);
            let mut file = std::fs::File::create(folder.path().join(format!("file-{i}"))).unwrap();
            file.write_all(&vec![1_u8; 1 << 20]).unwrap();
            files.push(file);
            if i % 2 == 0 {
                let (sender, receiver) = mpsc::channel::<()>();
                threads.push((sender, std::thread::spawn(move || _ = receiver.recv())));
            }
            log.sample();
        }
        let leaks = log.leaks();
        let named = |name: &str| leaks.iter().any(|leak| leak.starts_with(name));
        for name in ["resident bytes", "descriptors", "threads", "files", "disk bytes"] {
            assert!(named(name), "{name} is not in {leaks:?}: {}", log.summary());
        }
        for (sender, thread) in threads {
            drop(sender);
            thread.join().unwrap();
        }
    }
}
